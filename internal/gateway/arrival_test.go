package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// lastExpected is when the newest message of a node should be at HQ, and why nobody can say.
func lastExpected(w *sim.World, n *sim.Node) (at time.Time, why string) {
	q := n.GW.Messages().Queue(w.Now, 1)
	rows := known(n)
	r := rows[len(rows)-1]
	return q.Expected(q.Sort()[r.Number].Octets, r.Octets), q.Why
}

// The forecast for the last message that waits comes true, about, once some have been acknowledged while others waited. Before,
// the rate of the profile is all that is known.
func TestExpected(t *testing.T) {
	for _, tt := range []struct {
		name, profile string
		group         bool
		n             int
		measured      time.Duration // enough has gone
	}{{"iridium-directip", "iridium-directip", false, 400, 40 * time.Second}, {"iridium-dialup", "iridium-dialup", false, 150, 60 * time.Second}, {"hf-2400 to all", "hf-2400", true, 280, 90 * time.Second}} {
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

// TestExpectedWhileAcksWait: over P_Mul acknowledgements wait for a minute while there is much traffic. Messages that have left the radio
// meanwhile no longer wait: the forecast stays where it is, in the queue and in the status.
func TestExpectedWhileAcksWait(t *testing.T) {
	const n, most = 120, 20 * time.Second
	for _, nodes := range []int{2, 4} {
		for seed := uint64(41); seed < 44; seed++ {
			w := mulWorld(t, nodes, seed)
			hq, ship := w.Nodes[0], w.Nodes[1]
			w.Run(time.Minute)
			for i := range n {
				ship.Site.Send(w, track(2, pipeHQ, i, 200), 1)
			}
			type said struct{ at, last, all time.Time }
			var list []said
			for len(hq.Site.Got) < n && len(list) < 40 {
				if w.Run(15 * time.Second); len(known(ship)) > 0 {
					last, _ := lastExpected(w, ship)
					if q := peerOf(w, ship, hq.Name).Queue; len(q) > 0 {
						list = append(list, said{w.Now, last, q[0].Expected})
					}
				}
			}
			check.Equal(t, "messages that arrived", len(hq.Site.Got), n)
			real, worst := hq.Site.Got[n-1].At, time.Duration(0)
			for _, s := range list {
				if s.at.Before(real) {
					worst = max(worst, s.last.Sub(real).Abs(), s.all.Sub(real).Abs())
				}
			}
			t.Logf("%d nodes, seed %d: told %d times, wrong by %v at most", nodes, seed, len(list), worst.Round(time.Second))
			check.True(t, "what was told is right within 20 s", len(list) > 5 && worst <= most, worst, most)
		}
	}
}

// There is no forecast for a site that does not answer, and none for a silent gateway.
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
	order(w, ship, api.Silence{On: true})
	at, why = lastExpected(w, ship)
	check.Equal(t, "why", why, "this gateway is silent")
	check.True(t, "when", at.IsZero(), at)
}
