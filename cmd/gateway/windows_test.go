package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/operator/cli"
)

// After a reload, a window in the file that begins in a moment makes a running gateway silent, and check and status name it.
func TestWindowOfSilenceIsReloaded(t *testing.T) {
	t.Parallel()
	a, b := two(t)
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(from time.Time) {
		t.Helper()
		stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
		window := "[[silence]]\nfrom = \"" + stamp(from) + "\"\nto = \"" + stamp(from.Add(time.Hour)) + "\"\nannounce = true\n"
		if err := os.WriteFile(b.file, append([]byte(window), text...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(time.Now().Add(10 * time.Hour))
	_, out, _ := run(t, "check", "-c", b.file)
	wants(t, out, "silence  from ", "announced")
	code, out, errs := run(t, "reload", "-c", b.file)
	check.Equal(t, "exit code of reload, and "+errs, code, cli.ExitGood)
	wants(t, out, "[[silence]]: 1 rule is new", "in force")
	_, out, _ = run(t, "silence", "status", "-c", b.file)
	wants(t, out, "not silent", "the next silence by [[silence]] begins at "+time.Now().UTC().Add(10*time.Hour).Format("2006-01-02T15"))
	write(time.Now().Add(2 * time.Second))
	check.Equal(t, "exit code of reload", runCode(t, "reload", "-c", b.file), cli.ExitGood)
	b.until(t, "it is silent", func() bool { return b.status(t).Silence.On })
	a.until(t, "the other knows", func() bool { return a.peer(t).Link == "listening" })
	_, out, _ = run(t, "silence", "off", "-c", b.file)
	check.True(t, "an order ends it", strings.Contains(out, "not silent"), out)
	check.Equal(t, "silent again", b.status(t).Silence.On, false)
}
