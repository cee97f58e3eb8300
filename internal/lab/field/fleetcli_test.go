package field

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

// A fleet is drawn, or read from a file; one without the other, and neither mixed.
func TestWhatAFleetPlays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drawn.toml")
	for _, tt := range []struct {
		args []string
		good bool
	}{
		{[]string{"--gateways", "16", "--peers", "40", "--view", "ask", "--churn", "12.5%", "--write", file}, true},
		{[]string{"--script", file}, true},
		{[]string{"--script", file, "--duration", "1m"}, true},
		{nil, false},
		{[]string{"--script", file, "--gateways", "16"}, false},
		{[]string{"--script", file, "--churn", "5%"}, false},
		{[]string{"--gateways", "5"}, false},
		{[]string{"--gateways", "16", "--view", "a\nb"}, false},
		{[]string{"--gateways", "16", "--write", filepath.Join(file, "x")}, false},
	} {
		_, _, err := parseFleet("", tt.args, io.Discard)
		check.True(t, "read", (err == nil) == tt.good, tt.args, err)
	}
	text, err := os.ReadFile(file)
	check.True(t, "it is written", err == nil && len(text) > 0, err)
}

// If TAK plays too, two thirds of the local peers are of JXTA; otherwise all are of the one kind that plays.
func TestShared(t *testing.T) {
	for kinds, want := range map[string]string{"jxse27,jxta22,tak": "20 10", "tak": "0 30", "jxta22": "30 0"} {
		jxta, tak := shared(30, strings.Split(kinds, ","))
		check.Equal(t, kinds, fmt.Sprint(jxta, tak), want)
	}
}

// With --dry the accidents are printed, the same for the same seed, and nothing is played.
func TestDry(t *testing.T) {
	said := func(seed string) string {
		var out, errs strings.Builder
		code := Main([]string{"site", "--members", "3", "--hours", "0.25", "--seed", seed, "--dry"}, &out, &errs)
		check.Equal(t, "exit: "+errs.String(), code, 0)
		return out.String()
	}
	check.Equal(t, "machines that lose their power", strings.Count(said("1"), "without power"), 5)
	check.Equal(t, "upgrades", strings.Count(said("1"), "upgraded"), 5)
	check.Equal(t, "the same seed", said("2"), said("2"))
	check.True(t, "another seed, another order", said("1") != said("2"))
}
