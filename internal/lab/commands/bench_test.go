package commands

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"aldis/internal/operator/cli"
)

func TestBenchRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--only", "relay,beauty", "--peers-dir", "none"}, cli.ExitUsage, `no benchmark "beauty": ops, start, layers`},
		{[]string{"--where", "moon", "--peers-dir", "none"}, cli.ExitUsage, `no place "moon": direct, multicast`},
		{[]string{"--sizes", "1000,-1", "--peers-dir", "none"}, cli.ExitUsage, `"-1" is no number of octets`},
		{[]string{"--seeds", "-1", "--peers-dir", "none"}, cli.ExitUsage, "1 to 1,000"},
		{[]string{"--peers-dir", "none", "--only", "propagate", "--quick"}, cli.ExitUsage, "/nonexistent/gateway is no gateway"},
		{[]string{"--peers-dir", "none", "--write", "."}, cli.ExitRefused, "does not say its commit"},
		{[]string{"--advise", "/nonexistent"}, cli.ExitRefused, "no such file"},
		{[]string{"surplus"}, cli.ExitUsage, "surplus"},
	} {
		var stdout, stderr bytes.Buffer
		// Never the test program itself: it would run all tests.
		if code := Program().Dispatch(append([]string{"bench", "--gateway", "/nonexistent/gateway"}, tt.args...), &stdout, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("bench %q: exit %d, want %d, and %q in\n%s", tt.args, code, tt.code, tt.says, stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	if code := Program().Dispatch([]string{"bench", "-h"}, &stdout, &stderr); code != cli.ExitGood || !strings.Contains(stdout.String(), "propagate  ") {
		t.Errorf("help: exit %d:\n%s", code, stdout.String())
	}
}

// TestAdvise: a captured run of the repository and its page end in five sentences, each with its figure.
func TestAdvise(t *testing.T) {
	file := filepath.Join(t.TempDir(), "1a.trace")
	if code, _, errs := run(t, "record", "../../../field-tests/blue-game/results/run-1/1a.pcap.gz", "-o", file); code != cli.ExitGood {
		t.Fatal(errs)
	}
	code, out, errs := run(t, "bench", "--advise", file, "--write", "../../../docs")
	if code != cli.ExitGood || strings.Contains(out, "not measured") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, topic := range []string{"Transport:", "Pipe: a propagate pipe", "Grouping: one group", "Lifetime: 22 min", "Size:"} {
		if len(lines) != 5 || !strings.HasPrefix(lines[i], topic) {
			t.Fatalf("%d sentences, want %s:\n%s", len(lines), topic, out)
		}
	}
}
