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

// Of the local peers two thirds are of JXTA where TAK plays too; otherwise all are of what plays.
func TestShared(t *testing.T) {
	for kinds, want := range map[string]string{"jxse27,jxta22,tak": "20 10", "tak": "0 30", "jxta22": "30 0"} {
		jxta, tak := shared(30, strings.Split(kinds, ","))
		check.Equal(t, kinds, fmt.Sprint(jxta, tak), want)
	}
}
