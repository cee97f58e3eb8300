package gateway_test

import (
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
)

// TestStopTellsWhatHasArrived: a gateway is stopped, and starts from a copy of its data of 40 s before. It hands over nothing again,
// for before it stopped it told its peer what it had. Lost are only messages that its own local peers gave it after the copy, and that
// it had not sent when it stopped.
func TestStopTellsWhatHasArrived(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-dialup", "iridium-certus-100", "geo-satcom-128k"} {
		for seed := range 3 * seeds(33) {
			w := world(t, 2, link, 70+seed, lossless)
			hq, ship := w.Nodes[0], w.Nodes[1]
			up := textTracks(w, ship, []uint16{1}, 60, 3*time.Second)
			down := textTracks(w, hq, []uint16{2}, 60, 3*time.Second)
			w.Run(90*time.Second + time.Duration(seed)*700*time.Millisecond)
			before, copied := hq.Journal(), w.Now
			w.Run(30 * time.Second)
			w.Squeeze(func(n *sim.Node) time.Duration { // so that it stops in the midst of reading
				gateway.Slices(n.GW, 1)
				return 300 * time.Millisecond
			})
			w.Run(10 * time.Second)
			w.Squeeze(nil)
			gateway.Slices(hq.GW, 1<<20)
			w.Give(hq, api.Stop{})
			had, stopped := timesOf(ship.Site), w.Now
			hq.SetJournal(before)
			w.Kill(hq, time.Duration(seed)*time.Second+3*time.Second)
			w.Run(5 * time.Minute)
			once(t, w, hq.Site, 2, *up)
			got := timesOf(ship.Site)
			for _, o := range *down {
				data := o.Message.Parts[0].Data
				gone := had[string(data)] == 0 && o.At.After(copied) && !o.At.After(stopped)
				if n := got[string(data)]; n > 1 || n == 0 && !gone {
					t.Errorf("%s, seed %d: what was given %v after the copy came %d times\n%v", link, seed, o.At.Sub(copied), n, tail(w.Notes))
				}
			}
		}
	}
}

// timesOf counts how often a site was handed each text.
func timesOf(s *sim.Site) map[string]int {
	count := map[string]int{}
	for _, g := range s.Got {
		count[string(g.Payload.Parts[0].Data)]++
	}
	return count
}
