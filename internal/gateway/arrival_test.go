package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// lastExpected is when the newest message of a node should be at HQ, and why nobody can say.
func lastExpected(w *sim.World, n *sim.Node) (at time.Time, why string) {
	q := gateway.MessagesOf(n.GW).Queue(w.Now, 1)
	rows := known(n)
	r := rows[len(rows)-1]
	return q.Expected(q.Sort()[r.Number].Octets, r.Octets), q.Why
}

// What is expected of the last message that waits comes true, about, once some have been acknowledged while others waited. Before,
// the rate of the profile is all that is known.
func TestExpected(t *testing.T) {
	for _, tt := range []struct {
		name, profile string
		group         bool
		n             int
		measured      time.Duration // enough has gone
	}{{"iridium-directip", "iridium-directip", false, 400, 40 * time.Second}, {"iridium-dialup", "iridium-dialup", false, 150, 60 * time.Second}, {"hf-2400 to all", "hf-2400", true, 150, 90 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			w := world(t, 2, tt.profile, 41)
			if tt.group {
				w = mulWorld(t, 2, 41)
			}
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			began := w.Now
			for i := range tt.n {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
			}
			w.Run(time.Second)
			first, _ := lastExpected(w, ship)
			w.Run(tt.measured)
			asked := w.Now
			second, _ := lastExpected(w, ship)
			w.Run(time.Hour)
			check.Equal(t, "messages that arrived", len(hq.Site.Got), tt.n)
			real := hq.Site.Got[tt.n-1].At
			t.Logf("the last is there after %v; said at once %v, said after %v: %v", real.Sub(began).Round(time.Second), first.Sub(began).Round(time.Second),
				tt.measured, second.Sub(began).Round(time.Second))
			left, said := real.Sub(asked).Seconds(), second.Sub(asked).Seconds()
			check.True(t, "what was said when some had gone is right by a third", said > left*2/3 && said < left*4/3, said, left)
			check.True(t, "what was said at once is right by a factor of three", !first.Before(began.Add(real.Sub(began)/3)) && !first.After(began.Add(3*real.Sub(began))))
		})
	}
}

// Of a site that does not answer nobody says when a message will be there, and of a silent gateway neither.
func TestNothingIsExpected(t *testing.T) {
	w := world(t, 2, "iridium-directip", 42)
	ship := w.Nodes[1]
	w.Run(time.Minute)
	for i := range 200 {
		ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
	}
	w.Run(time.Second)
	at, why := lastExpected(w, ship)
	check.True(t, "while the link is up", !at.IsZero() && why == "", at, why)
	w.Outage(ship, 10*time.Minute)
	w.Run(9 * time.Minute)
	at, why = lastExpected(w, ship)
	check.Equal(t, "why", why, "the link is down")
	check.True(t, "when", at.IsZero(), at)
	order(w, ship, gateway.Silence{On: true})
	at, why = lastExpected(w, ship)
	check.Equal(t, "why", why, "this gateway is silent")
	check.True(t, "when", at.IsZero(), at)
}
