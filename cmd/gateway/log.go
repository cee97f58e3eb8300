package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/config"
)

func newLogger(cfg *config.Config, stderr io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Log.Level}
	var h slog.Handler = slog.NewJSONHandler(stderr, options)
	if cfg.Log.Format == "text" || cfg.Log.Format == "auto" && isTerminal(stderr) {
		h = slog.NewTextHandler(stderr, options)
	}
	return slog.New(limit(h)).With("node", cfg.Node.Name)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

const (
	limitLines  = 20 // of one message
	limitPeriod = time.Minute
)

// limited passes on a message limitLines times in limitPeriod, so that nobody outside can fill the log; the first
// after that says how many were left out. Messages below the handler's level do not get here.
type limited struct {
	slog.Handler
	*limits
}

type limits struct {
	mu    sync.Mutex
	texts map[string]*account // the texts are the program's own: there are not many
}

type account struct {
	since   time.Time
	lines   int
	leftOut int
}

func limit(h slog.Handler) slog.Handler { return limited{h, &limits{texts: map[string]*account{}}} }

func (l limited) Handle(ctx context.Context, r slog.Record) error {
	leftOut, pass := l.pass(r.Message, r.Time)
	if !pass {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("like_it_left_out", leftOut))
	}
	return l.Handler.Handle(ctx, r)
}

func (l *limits) pass(text string, now time.Time) (leftOut int, pass bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.texts[text]
	if a == nil {
		a = &account{since: now}
		l.texts[text] = a
	}
	if d := now.Sub(a.since); d >= limitPeriod || d < 0 {
		leftOut = a.leftOut
		*a = account{since: now}
	}
	if a.lines == limitLines {
		a.leftOut++
		return 0, false
	}
	a.lines++
	return leftOut, true
}

func (l limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{l.Handler.WithAttrs(attrs), l.limits}
}

func (l limited) WithGroup(name string) slog.Handler {
	return limited{l.Handler.WithGroup(name), l.limits}
}
