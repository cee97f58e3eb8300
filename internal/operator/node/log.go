package node

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/operator/cli"
	"aldis/internal/operator/control/glance"
	"aldis/internal/operator/logbook"
)

// newLogger makes the logger of the configuration. Its level can be changed at run time.
func newLogger(cfg *config.Config, stderr io.Writer) (*slog.Logger, *slog.LevelVar) {
	level := &slog.LevelVar{}
	level.Set(cfg.Log.Level)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: forPeople}
	var h slog.Handler = slog.NewJSONHandler(stderr, options)
	if cfg.Log.Format == "text" || cfg.Log.Format == "auto" && cli.IsTerminal(stderr) {
		h = slog.NewTextHandler(stderr, options)
	}
	var none error
	if cfg.Log.Format == "journald" {
		var j *journald
		j, none = newJournald(journaldSocket, level)
		if none == nil {
			h = j
		}
	}
	log := slog.New(limit(keyed{h})).With("node", cfg.Node.Name)
	if none != nil {
		log.Warn("systemd's journal takes no lines; the gateway logs to standard error", "error", none)
	}
	return log, level
}

// keyed gives each line the key of its event.
type keyed struct{ slog.Handler }

// Handle adds the key.
func (k keyed) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(slog.String(logbook.Field, logbook.KeyOf(r.Message)))
	return k.Handler.Handle(ctx, r)
}

// WithAttrs returns the handler for records that have these attributes too.
func (k keyed) WithAttrs(attrs []slog.Attr) slog.Handler { return keyed{k.Handler.WithAttrs(attrs)} }

// WithGroup returns the handler for records whose attributes are in a group.
func (k keyed) WithGroup(name string) slog.Handler { return keyed{k.Handler.WithGroup(name)} }

// forPeople writes durations with their unit in JSON too, omits unknown times, and replaces control characters that a
// terminal would obey: local and far peers choose names that are logged.
func forPeople(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Duration:
		return slog.String(a.Key, v.String())
	case time.Time:
		if v.IsZero() {
			return slog.Attr{}
		}
	case string:
		if a.Key == "name" { // a local peer has chosen it
			v = glance.Cut(v)
		}
		return slog.String(a.Key, cli.Printable(v))
	case error:
		return slog.String(a.Key, cli.Printable(v.Error()))
	}
	return a
}

const (
	limitLines  = 20 // of one kind
	limitKinds  = 32 // of one message: further kinds share an account
	limitPeriod = time.Minute
)

// limited passes on at most limitLines lines of one kind in each limitPeriod, so that no outsider can fill the log. A kind is a
// message with its reason and the host that it is about, so that lines about one host hide no others. The next line of a kind
// says how many were left out. Records below the handler's level do not come here.
type limited struct {
	slog.Handler
	*limits
}

type limits struct {
	mu    sync.Mutex
	texts map[string]map[string]*account // by message, by kind; the messages are the program's own texts, so there are few
	swept time.Time
}

type account struct {
	since   time.Time
	lines   int
	leftOut int
}

func limit(h slog.Handler) slog.Handler {
	return limited{h, &limits{texts: map[string]map[string]*account{}}}
}

// Handle passes a record on, unless there were too many of its kind.
func (l limited) Handle(ctx context.Context, r slog.Record) error {
	leftOut, pass, ended := l.pass(r.Message, kindOf(r), r.Time)
	for _, e := range ended {
		about := slog.NewRecord(r.Time, slog.LevelInfo, "repeated log lines were left out", 0)
		about.AddAttrs(slog.String("line", e.text), slog.String("of", e.kind), slog.Int("left_out", e.leftOut))
		if err := l.Handler.Handle(ctx, about); err != nil {
			return err
		}
	}
	if !pass {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("like_it_left_out", leftOut))
	}
	return l.Handler.Handle(ctx, r)
}

// kindOf distinguishes lines of one message: by the reason, the error without its numbers, the peer, and the host of an
// address.
func kindOf(r slog.Record) string {
	var kind strings.Builder
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.String()
		switch a.Key {
		case "reason", "peer":
		case "error":
			text = strings.Map(func(c rune) rune {
				if c >= '0' && c <= '9' {
					return -1 // ports and lengths differ each time
				}
				return c
			}, text)
		case "remote", "address":
			if at, err := netip.ParseAddrPort(text); err == nil {
				text = at.Addr().String()
			}
		default:
			return true
		}
		kind.WriteString(text[:min(len(text), 80)] + " ")
		return true
	})
	return strings.TrimSpace(kind.String())
}

// silenced is a kind whose lines were left out and that had no later line.
type silenced struct {
	text, kind string
	leftOut    int
}

func (l *limits) pass(text, kind string, now time.Time) (leftOut int, pass bool, ended []silenced) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := l.texts[text]
	if kinds == nil {
		kinds = map[string]*account{}
		l.texts[text] = kinds
	}
	ended = l.sweep(text, kind, now)
	a := kinds[kind]
	if a == nil && len(kinds) >= limitKinds {
		kind = "others"
		a = kinds[kind]
	}
	if a == nil {
		a = &account{since: now}
		kinds[kind] = a
	}
	if d := now.Sub(a.since); d >= limitPeriod || d < 0 {
		leftOut = a.leftOut
		*a = account{since: now}
	}
	if a.lines == limitLines {
		a.leftOut++
		return 0, false, ended
	}
	a.lines++
	return leftOut, true, ended
}

// sweep forgets, once in each period, the kinds whose period is over, except that of the present line.
func (l *limits) sweep(text, kind string, now time.Time) (ended []silenced) {
	if d := now.Sub(l.swept); d < limitPeriod && d >= 0 {
		return nil
	}
	l.swept = now
	for t, kinds := range l.texts {
		for k, a := range kinds {
			d := now.Sub(a.since)
			if t == text && k == kind || d < limitPeriod && d >= 0 {
				continue
			}
			if a.leftOut > 0 {
				ended = append(ended, silenced{t, k, a.leftOut})
			}
			delete(kinds, k)
		}
	}
	slices.SortFunc(ended, func(a, b silenced) int { return strings.Compare(a.text+a.kind, b.text+b.kind) })
	return ended
}

// WithAttrs returns the handler for records that have these attributes too, within the same limits.
func (l limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return limited{l.Handler.WithAttrs(attrs), l.limits}
}

// WithGroup returns the handler for records whose attributes are in a group, within the same limits.
func (l limited) WithGroup(name string) slog.Handler {
	return limited{l.Handler.WithGroup(name), l.limits}
}
