package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"aldis/internal/edge/config"
	"aldis/internal/lab/check"
)

func TestLogIsLimited(t *testing.T) {
	var out bytes.Buffer
	h := limit(slog.NewTextHandler(&out, nil)).WithAttrs([]slog.Attr{slog.String("node", "ship")})
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	say := func(text string) {
		if err := h.Handle(context.Background(), slog.NewRecord(at, slog.LevelInfo, text, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		say("refused")
		at = at.Add(time.Millisecond)
	}
	say("something else")
	if n := strings.Count(out.String(), "msg=refused node=ship\n"); n != limitLines {
		t.Errorf("%d lines, want %d", n, limitLines)
	}
	if !strings.Contains(out.String(), "something else") {
		t.Error("another message was left out")
	}
	out.Reset()
	at = at.Add(limitPeriod)
	say("refused")
	say("refused")
	if got := out.String(); strings.Count(got, "like_it_left_out=980") != 1 || strings.Count(got, "msg=refused") != 2 {
		t.Errorf("in the next period:\n%s", got)
	}
	out.Reset()
	at = at.Add(-time.Hour) // a clock set back must not silence the log for an hour
	for range limitLines {
		say("refused")
	}
	if n := strings.Count(out.String(), "msg=refused"); n != limitLines {
		t.Errorf("after the clock went back: %d lines", n)
	}
}

// A host that has used up its account hides neither its other lines nor those of other hosts, and strangers cannot make the
// limit exceed its bound.
func TestLogLinesOfOneKindHideNoOthers(t *testing.T) {
	var out bytes.Buffer
	l := limit(slog.NewTextHandler(&out, nil)).(limited)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	say := func(reason, remote, fault string) {
		r := slog.NewRecord(at, slog.LevelWarn, "lan: refused", 0)
		r.AddAttrs(slog.String("reason", reason), slog.String("remote", remote), slog.Any("error", errors.New(fault)))
		if err := l.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	count := func(parts ...string) (n int) {
		for _, line := range strings.Split(out.String(), "\n") {
			all := line != ""
			for _, p := range parts {
				all = all && strings.Contains(line, p)
			}
			if all {
				n++
			}
		}
		return n
	}
	for i := range 500 {
		say("welcome", fmt.Sprintf("192.0.2.9:%d", 1000+i), fmt.Sprintf("read tcp 192.0.2.9:%d: bad welcome line", 1000+i))
	}
	say("welcome", "192.0.2.10:999", "bad welcome line")
	say("frame", "192.0.2.9:999", "frame of 4 GiB")
	check.Equal(t, "lines of the host", count("reason=welcome", "192.0.2.9"), limitLines)
	check.Equal(t, "lines of another host", count("192.0.2.10"), 1)
	check.Equal(t, "lines of another reason", count("reason=frame"), 1)

	for i := range 100_000 {
		say("welcome", fmt.Sprintf("198.51.%d.%d:5", i/250%250, i%250), "bad welcome line")
	}
	check.True(t, "there is a bound on lines", count("") <= (limitKinds+1)*limitLines, count(""))
	check.True(t, "there is a bound on accounts", len(l.texts["lan: refused"]) <= limitKinds+1, len(l.texts["lan: refused"]))

	at = at.Add(limitPeriod)
	out.Reset()
	if err := l.Handle(context.Background(), slog.NewRecord(at, slog.LevelInfo, "something else", 0)); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "what was left out of the host's lines", count("left_out=480", "lan: refused", "192.0.2.9"), 1)
	check.Equal(t, "something else", count("something else"), 1)
	check.Equal(t, "accounts that are left", len(l.texts["lan: refused"]), 0)
}

// evil is a name that clears the screen, sets colours with one octet of C1, and turns the direction of writing.
const evil = "a\x1b[2J\u009b31m\u202eb\x7f\r"

// harmless checks that a text has no control characters that a terminal obeys.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			t.Errorf("%s has %U:\n%q", what, r, text)
			return
		}
	}
}

// The log has no characters that a terminal obeys, in either form. It has durations with their unit, and omits unknown times.
func TestLogForPeople(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log, _ := newLogger(&config.Config{Log: config.Log{Format: format}}, &b)
		log.LogAttrs(context.Background(), slog.LevelInfo, "said", slog.Any("name", evil), slog.Any("error", errors.New(evil)),
			slog.Any("after", 98*time.Millisecond), slog.Time("until", time.Time{}))
		harmless(t, "the log as "+format, b.String())
		check.Contains(t, "the log", b.String(), "98ms")
		b.Reset()
		log.LogAttrs(context.Background(), slog.LevelInfo, "peer has a lease", slog.String("name", strings.Repeat("A", 10_000)))
		check.True(t, "a name is cut", b.Len() < 1000, b.Len())
		check.True(t, "no unknown time", !strings.Contains(b.String(), "0001-01-01"), b.String())
	}
}
