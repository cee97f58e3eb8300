package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/browser"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// TestMessagesOnThePage: a user that knows only the recipient of a message finds it in two clicks, sees its history, and holds
// it, releases it, changes its precedence and cancels it. The gateway is a whole one.
func TestMessagesOnThePage(t *testing.T) {
	p, err := profile.Load("iridium-directip", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := sim.New(sim.Config{Nodes: 2, Profile: p, Wire: p, Seed: 1, Down: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(20 * time.Second)
	w.Kill(hq, 24*time.Hour)
	for i := range 40 {
		m := air.Track(2, air.Pipe, i, 300)
		m.From = hostileName
		ship.Site.Send(w, m, hq.ID)
	}
	w.Run(2 * time.Minute)
	g := newBridge(t, 1, 0)
	src := &g.desk.live.src
	src.Snapshot = func(context.Context) (Snapshot, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return Snapshot{Gateway: ship.GW.Status(w.Now)}, nil
	}
	src.Messages = func(_ context.Context, f func(time.Time, gateway.Messages)) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		f(w.Now, ship.GW.Messages())
		return nil
	}
	src.Known = func(context.Context, map[string]bool) (map[string]string, error) { return nil, nil }
	src.Order = func(ev api.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		w.Give(ship, ev)
	}
	g.open(*src)
	b := browser.Start(t)
	for _, width := range []int{1280, 375} {
		for _, scheme := range []string{"light", "dark"} {
			b.Open(fmt.Sprintf("%s/?%d%s#messages", g.URL, width, scheme), width, "screen", scheme)
			b.Until("document.querySelectorAll('tbody tr').length===40")
			view(t, b, fmt.Sprintf("messages-%d-%s", width, scheme))
		}
	}
	b.Open(g.URL+"/?work#messages", 1280, "screen", "light")
	b.Until("document.querySelectorAll('tbody tr').length===40")
	b.Click("[name=to]")
	b.Type("hq")
	b.Click("form button.main")
	b.Until("document.querySelectorAll('tbody tr').length===40")
	b.Click("tbody tr:first-child a")
	b.Until("document.querySelector('.life h3')!==null && document.querySelectorAll('.events li').length>0")
	s := view(t, b, "message-life")
	check.Contains(t, "its life", s.Text, "accepted")
	check.Contains(t, "the sender is text", s.Text, "<script>alert(1)</script>")
	id := evaluated(b, "location.hash.split('/')[1]")

	b.Click("[data-do=hold]")
	b.Until("document.querySelector('dialog input[type=password]')!==null")
	b.Type(pageToken)
	b.Press("Enter")
	b.Until("document.querySelector('.life [data-do=release]')!==null")
	row := func() (r api.MessageRow) {
		g.set(func() {
			for _, n := range ship.GW.Messages().IDs() {
				if one, ok := ship.GW.Messages().Row(n); ok && one.ID == id {
					r = one
				}
			}
		})
		return r
	}
	check.True(t, "it is held", row().Held)
	b.Click("[data-do=release]")
	b.Until("document.querySelector('.life [data-do=hold]')!==null")
	b.Click("[data-do=precedence]")
	b.Until("document.querySelector('dialog select')!==null")
	b.Ask("(()=>{document.querySelector('dialog select').value='flash';return true})()", new(bool))
	b.Click("dialog button.main")
	b.Until("document.querySelector('.life dl').innerText.includes('flash')")
	check.Equal(t, "precedence", row().Precedence, site.Flash.String())
	b.Click("[data-do=cancel]")
	b.Until("document.querySelector('dialog').open")
	b.Click("dialog button.main")
	b.Until("document.querySelector('.life [data-do]')===null")
	check.Equal(t, "state", row().State, api.StateEnded)
	view(t, b, "message-ended")

	// An invalid id is reported as invalid.
	b.Click("[name=id]")
	b.Type("nonsense")
	b.Press("Enter")
	b.Until("document.querySelector('main').innerText.includes('is no id of a message')")
}
