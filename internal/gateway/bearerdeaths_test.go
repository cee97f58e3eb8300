package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// The better bearer is cut, messages go on over the other, and one of the gateways dies after a commit, before or after the datagrams
// that the commit allowed go; then the better bearer is back. Each message arrives once, in order. The long form kills after every commit, the
// short one after every thirteenth.
func TestDeathsAtAnyCommitOnTheOtherBearer(t *testing.T) {
	t.Parallel()
	stride := 31
	if seeds(2) == 2 {
		stride = 1
	}
	for _, other := range []string{"iridium-directip", "iridium-certus-100", "hf-2400"} {
		for victim := range 2 {
			for i, back := range []time.Duration{0, 20 * time.Second} {
				name := fmt.Sprintf("%s, node %d dies, the better bearer is back %v after it", other, victim+1, back)
				commits := stride
				for kill := 1 + i*stride/2; kill <= commits; kill += stride {
					for _, sent := range []bool{true, false} {
						for _, octets := range []int{4000, 200} { // the last says how many commits there are
							commits = dieOnTheOther(t, fmt.Sprintf("%s: commit %d, sent %v, %d octets", name, kill, sent, octets), other, victim, kill, sent, back, octets)
						}
					}
				}
				t.Logf("%s: %d commits", name, commits)
				check.True(t, "commits on the other bearer", commits > 20, commits)
			}
		}
	}
}

// dieOnTheOther returns how many commits the victim made while the better bearer was cut and after that, until all messages were there.
func dieOnTheOther(t *testing.T, name, other string, victim, kill int, sent bool, back time.Duration, octets int) (commits int) {
	var w *sim.World
	const down = 3 * time.Second
	counts := false
	w = twoBearers(t, 2, "iridium-certus-100", 1, func(c *sim.Config) {
		c.Second = &sim.Second{Name: "other", Profile: load(t, other), Wire: load(t, "wire"), Group: other == "hf-2400", Price: 2 * gateway.UsualPrice}
		c.Committed = func(n *sim.Node, out api.Output) {
			if !counts || len(out.Records) == 0 || n != w.Nodes[victim] {
				return
			}
			if commits++; commits != kill {
				return
			}
			w.Cut(1, w.Nodes[1], !sent)
			w.At(0, func() {
				w.Cut(1, w.Nodes[1], false)
				w.Kill(n, down)
				w.At(down+back, func() { w.Cut(0, w.Nodes[1], false) })
			})
		}
	})
	hq, ship := w.Nodes[0], w.Nodes[1]
	up := tracks(w, ship, []uint16{1}, 12_000/octets, octets, time.Duration(octets)*5*time.Millisecond)
	w.At(5500*time.Millisecond, func() { w.Cut(0, ship, true); counts = true })
	w.At(3*time.Minute, func() { w.Cut(0, ship, false); counts = false })
	w.Run(20 * time.Minute)
	judge := air.Once
	if other == "hf-2400" {
		judge = air.Each
	}
	onceEach(t, name, judge, w, hq.Site, 2, *up)
	return commits
}

// HF is the cheaper bearer and is cut amid 20 kB over P_Mul with reports at the same time, to one site and to several: the satellite goes on,
// whichever gateway dies at that moment. All arrive once and in order, soon after the cut, and HF's queue goes on when it is back.
func TestTheSatelliteGoesOnForPMul(t *testing.T) {
	for seed := range max(3, seeds(20)) {
		for _, to := range [][]uint16{{1}, {1, 3, 4}} {
			for victim := range 3 {
				in := fmt.Sprintf("seed %d, to %v, node %d dies", seed+1, to, victim)
				w := twoBearers(t, 4, "iridium-certus-100", seed+1, func(c *sim.Config) { c.Second.Price = 0.1 })
				ship := w.Nodes[1]
				sent := []offered{}
				say := func(at time.Duration, octets int) {
					w.At(at, func() {
						m := air.Track(2, pipeHQ, len(sent), octets)
						if octets > 1000 { // short messages may overtake a long one
							m.From = peerID(99)
						}
						sent = append(sent, offered{At: w.Now, Message: m})
						ship.Site.Send(w, m, to...)
					})
				}
				for i := range 8 {
					say(time.Duration(i)*20*time.Second, 200)
				}
				say(150*time.Second, 20_000)
				for i := range 6 {
					say(time.Duration(155+10*i)*time.Second, 200)
				}
				w.At(190*time.Second, func() {
					for _, n := range w.Nodes {
						w.Cut(1, n, true)
					}
					if victim > 0 {
						w.Kill(w.Nodes[victim-1], 3*time.Second)
					}
				})
				w.Run(8 * time.Minute)
				for _, id := range to {
					check.Equal(t, fmt.Sprint(in, ": there before HF is back, at node ", id), len(w.Nodes[id-1].Site.Got), len(sent))
				}
				for _, n := range w.Nodes {
					w.Cut(1, n, false)
				}
				say(20*time.Minute, 200)
				before, _ := w.OctetsOn(1, ship)
				w.Run(40 * time.Minute)
				after, _ := w.OctetsOn(1, ship)
				t.Logf("%s: %d octets on HF after it was back", in, after-before)
				for _, id := range to {
					onceEach(t, in, air.Once, w, w.Nodes[id-1].Site, 2, sent)
				}
			}
		}
	}
}

// A gateway starts again while the better bearer is cut. Messages that it numbers there go on over HF, with marks; when the bearer is
// back, the other gateway does not take these numbers for those of an older copy of its data.
func TestADeathWhileTheBetterBearerIsCut(t *testing.T) {
	for seed := range seeds(20) {
		w := twoBearers(t, 2, "iridium-certus-100", seed+1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		there := tracks(w, hq, []uint16{2}, 400, 200, 7*time.Second)
		back := tracks(w, ship, []uint16{1}, 400, 200, 7*time.Second)
		for i := range 8 {
			at := time.Duration(5*i+2) * time.Minute
			w.At(at, func() { w.Cut(0, ship, true) })
			w.At(at+time.Minute, func() { w.Kill(w.Nodes[i%2], time.Duration(2+i)*time.Second) })
			w.At(at+3*time.Minute, func() { w.Cut(0, ship, false) })
		}
		w.Run(time.Hour)
		once(t, w, ship.Site, 1, *there)
		once(t, w, hq.Site, 2, *back)
		log := strings.Join(w.Notes, "\n")
		check.True(t, fmt.Sprint("seed ", seed+1, ": nobody takes it for an older copy"), !strings.Contains(log, "older copy"), tail(w.Notes))
	}
}
