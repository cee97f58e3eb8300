// Package top shows a gateway in a terminal: the page's views Now and Messages, live, also over ssh. Its data comes
// from the same sources as the page, GET /events and GET /messages. Names of peers are made printable first, so no
// peer can move the cursor.
//
// Files: top.go the loop and its keys; draw.go the screen.
package top

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/gdamore/tcell/v2"

	"aldis/internal/gateway/api"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
)

// Source is a running gateway.
type Source struct {
	// Ask returns the answer to GET of a path.
	Ask func(ctx context.Context, path string) ([]byte, error)
	// Follow calls tell with the data of every event of a path, until ctx or the stream ends.
	Follow func(ctx context.Context, path string, tell func([]byte)) error
}

// The views.
const (
	viewNow = iota
	viewMessages
	views
)

// refresh is the time between two requests for messages while they are shown.
const refresh = 2 * time.Second

// mostShown is the most messages that are requested.
const mostShown = 200

// top is the state of the screen.
type top struct {
	screen tcell.Screen
	source Source
	update chan func() // results of goroutines, for the loop

	view   int
	scroll int // lines of Now above the screen

	now  *glance.View
	lost string // why the view is not current; "": it is

	list     control.MessageList
	problem  string // why there is no list
	chosen   int    // index in list
	waiting  bool   // show only waiting messages
	opened   *api.MessageRow
	asking   bool
	askedFor time.Time
}

// Run shows a gateway on a screen until the user quits or ctx ends.
func Run(ctx context.Context, screen tcell.Screen, source Source) error {
	if err := screen.Init(); err != nil {
		return fmt.Errorf("this needs a terminal: %w", err)
	}
	defer screen.Fini()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := &top{screen: screen, source: source, update: make(chan func(), 16), lost: "asking the gateway"}
	go t.follow(ctx)
	events := make(chan tcell.Event, 16)
	quit := make(chan struct{})
	defer close(quit)
	go screen.ChannelEvents(events, quit)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		t.draw(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case f := <-t.update:
			f()
		case <-tick.C:
			if t.view == viewMessages && time.Since(t.askedFor) >= refresh {
				t.ask(ctx)
			}
		case ev, ok := <-events:
			if !ok || t.event(ctx, ev) {
				return nil
			}
		}
	}
}

// do makes the loop run f.
func (t *top) do(ctx context.Context, f func()) {
	select {
	case t.update <- f:
	case <-ctx.Done():
	}
}

// follow keeps the View current. If the gateway has gone, it is asked again every second.
func (t *top) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := t.source.Follow(ctx, "/events", func(data []byte) {
			var v glance.View
			if json.Unmarshal(data, &v) == nil {
				t.do(ctx, func() { t.now, t.lost = &v, "" })
			}
		})
		why := "the gateway has ended the connection"
		if err != nil {
			why = err.Error()
		}
		t.do(ctx, func() { t.lost = why })
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// ask requests the messages, and the one that is open.
func (t *top) ask(ctx context.Context) {
	if t.asking {
		return
	}
	t.asking, t.askedFor = true, time.Now()
	q := url.Values{"limit": {strconv.Itoa(mostShown)}}
	if t.waiting {
		q.Set("state", api.StateWaiting)
	}
	id := ""
	if t.opened != nil {
		id = t.opened.ID
	}
	go func() {
		var list control.MessageList
		var one api.MessageRow
		data, err := t.source.Ask(ctx, "/messages?"+q.Encode())
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err == nil && id != "" {
			if data, err = t.source.Ask(ctx, "/messages/"+url.PathEscape(id)); err == nil {
				err = json.Unmarshal(data, &one)
			}
		}
		t.do(ctx, func() {
			t.asking, t.problem = false, ""
			if err != nil {
				t.problem = err.Error()
				return
			}
			t.list = list
			t.chosen = min(t.chosen, max(len(list.Messages)-1, 0))
			if t.opened != nil && t.opened.ID == one.ID {
				t.opened = &one
			} else if t.opened != nil {
				t.askedFor = time.Time{}
			}
		})
	}()
}

// event handles a key; true: the user quits.
func (t *top) event(ctx context.Context, ev tcell.Event) (over bool) {
	switch ev := ev.(type) {
	case *tcell.EventResize:
		t.screen.Sync()
	case *tcell.EventKey:
		return t.key(ctx, ev)
	}
	return false
}

func (t *top) key(ctx context.Context, ev *tcell.EventKey) (over bool) {
	switch ev.Key() {
	case tcell.KeyCtrlC:
		return true
	case tcell.KeyEscape:
		t.opened = nil
	case tcell.KeyTab:
		t.turn(ctx, (t.view+1)%views)
	case tcell.KeyUp:
		t.move(-1)
	case tcell.KeyDown:
		t.move(1)
	case tcell.KeyPgUp:
		t.move(-t.page())
	case tcell.KeyPgDn:
		t.move(t.page())
	case tcell.KeyHome:
		t.move(-1 << 20)
	case tcell.KeyEnter:
		if t.view == viewMessages && t.chosen < len(t.list.Messages) {
			one := t.list.Messages[t.chosen]
			t.opened, t.asking = &one, false
			t.ask(ctx)
		}
	case tcell.KeyRune:
		switch ev.Rune() {
		case 'q':
			return true
		case '1', '2':
			t.turn(ctx, int(ev.Rune()-'1'))
		case 'k':
			t.move(-1)
		case 'j':
			t.move(1)
		case 'w':
			if t.view == viewMessages {
				t.waiting, t.asking = !t.waiting, false
				t.ask(ctx)
			}
		}
	}
	return false
}

func (t *top) turn(ctx context.Context, view int) {
	t.view, t.scroll, t.opened = view, 0, nil
	if view == viewMessages {
		t.ask(ctx)
	}
}

func (t *top) page() int {
	_, h := t.screen.Size()
	return max(h-6, 1)
}

// move moves through the messages, or scrolls Now. draw keeps it within bounds.
func (t *top) move(by int) {
	if t.view == viewMessages {
		t.chosen = min(max(t.chosen+by, 0), max(len(t.list.Messages)-1, 0))
		return
	}
	t.scroll = max(t.scroll+by, 0)
}
