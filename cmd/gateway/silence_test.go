package main

import (
	"syscall"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func TestParseUntil(t *testing.T) {
	now := time.Date(2026, 11, 20, 23, 30, 15, 0, time.UTC)
	tests := []struct{ text, want string }{
		{"6h30m", "2026-11-21T06:00:15Z"},
		{"23:31", "2026-11-20T23:31:00Z"},
		{"23:30", "2026-11-21T23:30:00Z"},
		{"2026-11-20T23:30:16Z", "2026-11-20T23:30:16Z"},
		{"2026-11-21T01:30:15+02:00", ""},
		{"2026-11-21T01:30:17+02:00", "2026-11-20T23:30:17Z"},
		{"-1h", ""}, {"0s", ""}, {"tomorrow", ""}, {"", ""}, {"25:00", ""},
	}
	for _, tt := range tests {
		got, err := parseUntil(tt.text, now)
		in := check.In(t, tt.text)
		if err == nil {
			check.Equal(in, "parseUntil", got.Format(time.RFC3339), tt.want)
		} else {
			check.Equal(in, "the time wanted beside an error", tt.want, "")
		}
	}
}

// Silence ordered on the running gateway: nothing leaves, a restart changes nothing, and status tells what is owed.
func TestSilence(t *testing.T) {
	a, b := two(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	code, out, errs := run(t, "silence", "on", "-c", b.file, "--until", "6h", "--announce")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	wants(t, out, "SILENT until", "when it ends:")
	a.until(t, "the peer knows", func() bool { return a.peer(t).Link == "listening" })
	sent := b.peer(t).DatagramsSent
	b.stop(t, syscall.SIGKILL)
	b = b.testSite.start(t)
	code, out, _ = run(t, "silence", "status", "-c", b.file, "--json")
	if code != 0 {
		t.Errorf("status: exit %d", code)
	}
	wants(t, out, `"on":true`, `"until":"20`)
	if n := b.peer(t).DatagramsSent; n != 0 {
		t.Errorf("%d datagrams sent after the restart (%d before), want none", n, sent)
	}
	_, out, _ = run(t, "status", "-c", b.file)
	wants(t, out, "SILENT until")
	if code, out, _ = run(t, "silence", "off", "-c", b.file); code != 0 {
		t.Errorf("off: exit %d", code)
	}
	wants(t, out, "not silent")
	a.until(t, "the peer is heard again", func() bool { return a.peer(t).Link == "up" })
	for _, args := range [][]string{{}, {"on", "off"}, {"maybe"}, {"off", "--until", "6h"}, {"on", "--until", "yesterday"}} {
		if code, _, errs := run(t, append([]string{"silence", "-c", b.file}, args...)...); code != 2 || errs == "" {
			t.Errorf("silence %q: exit %d, want 2 and a reason", args, code)
		}
	}
}
