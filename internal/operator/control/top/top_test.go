package top

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
)

const evil = "\x1b[2J\x1b]0;owned\x07<script>\u202egnp"

// source is a gateway with a site and a message whose names are hostile.
func source(t testing.TB) Source {
	t.Helper()
	now := time.Now()
	v := glance.ViewOf(now, glance.NewHistory(now), glance.Seen{Version: "1", Started: now.Add(-time.Hour), Status: api.Status{ID: 2, Name: evil, Transport: "norm", NORM: api.NormStatus{Up: true},
		Peers: []api.PeerStatus{{ID: 1, Name: evil, Link: "silent", Waiting: 3, Queue: []api.QueueRow{{Precedence: "flash", Messages: 3, Octets: 900, Oldest: now.Add(-time.Minute)}}}}}})
	view, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	row := api.MessageRow{ID: "1NG54QN-17", From: evil, Label: evil, Precedence: "flash", Octets: 300, State: "waiting", Recipients: []api.RecipientRow{{Site: evil, State: "waiting", Detail: evil}}}
	list, err := json.Marshal(control.MessageList{Messages: []api.MessageRow{row}})
	if err != nil {
		t.Fatal(err)
	}
	row.Life = []api.LifeRow{{At: now, What: "accepted", Site: evil, Detail: evil}}
	one, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return Source{
		Follow: func(ctx context.Context, _ string, tell func([]byte)) error { tell(view); <-ctx.Done(); return nil },
		Ask: func(_ context.Context, path string) ([]byte, error) {
			switch {
			case strings.HasPrefix(path, "/messages?"):
				return list, nil
			case path == "/messages/1NG54QN-17":
				return one, nil
			}
			return nil, fmt.Errorf("nobody asks for %s", path)
		},
	}
}

// TestHostileNames: no name brings control characters to the terminal, in any view and at any size.
func TestHostileNames(t *testing.T) {
	for _, size := range [][2]int{{120, 40}, {80, 24}, {40, 12}, {10, 3}, {1, 1}} {
		screen := tcell.NewSimulationScreen("UTF-8")
		check.NoError(t, screen.Init())
		screen.SetSize(size[0], size[1])
		ctx, stop := context.WithCancel(context.Background())
		s := &top{screen: screen, source: source(t), update: make(chan func(), 16)}
		see := func(parts ...string) {
			t.Helper()
			s.draw(time.Now())
			cells, w, _ := screen.GetContents()
			var b strings.Builder
			for i, c := range cells {
				for _, r := range c.Runes {
					if r < ' ' || r == 0x7f || r == 0x202e || r == 0x9b {
						t.Errorf("%v: %U is on the screen", size, r)
					}
					b.WriteRune(r)
				}
				if (i+1)%w == 0 {
					b.WriteByte('\n')
				}
			}
			for _, part := range parts {
				if size[0] >= 80 && !strings.Contains(b.String(), part) {
					t.Errorf("%v: the screen lacks %q:\n%s", size, part, b.String())
				}
			}
		}
		key := func(k tcell.Key, r rune) bool { return s.key(ctx, tcell.NewEventKey(k, r, 0)) }
		see()
		go s.follow(ctx)
		(<-s.update)()
		see("[2J", "DOWN", "Not all is well: 0 of 1 sites answer")
		key(tcell.KeyRune, '2')
		(<-s.update)()
		see("1NG54QN-17", "BEHIND")
		key(tcell.KeyEnter, 0)
		see()
		(<-s.update)()
		see("accepted")
		key(tcell.KeyEscape, 0)
		see("BEHIND")
		for _, k := range []tcell.Key{tcell.KeyPgDn, tcell.KeyDown, tcell.KeyUp, tcell.KeyPgUp, tcell.KeyHome, tcell.KeyTab, tcell.KeyPgDn, tcell.KeyPgUp} {
			key(k, 0)
			see()
		}
		see("DOWN")
		check.True(t, "q ends", key(tcell.KeyRune, 'q'))
		check.True(t, "control-C ends", key(tcell.KeyCtrlC, 0))
		stop()
		screen.Fini()
	}
}
