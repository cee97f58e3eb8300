package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
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
