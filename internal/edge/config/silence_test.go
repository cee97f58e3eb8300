package config

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func TestSilences(t *testing.T) {
	file := write(t, strings.Replace(good, "[http]", "[[silence]]\nfrom = \"22:00\"\nto = \"06:00\"\ndays = \"mon-fri\"\nannounce = true\n"+
		"[[silence]]\nfrom = \"2026-12-01T22:00:00+01:00\"\nto = \"2026-12-02T00:00:00Z\"\n[http]", 1))
	c, err := Load(file)
	check.NoError(t, err)
	var words []string
	for _, w := range c.Silences {
		words = append(words, w.String())
	}
	check.Same(t, "the windows", words, []string{"from 22:00 to 06:00 UTC, mon tue wed thu fri, announced", "from 2026-12-01T21:00:00Z to 2026-12-02T00:00:00Z"})
	_, announce, silent := c.Silences.At(time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC))
	check.True(t, "Monday night is silent", silent && announce)
}
