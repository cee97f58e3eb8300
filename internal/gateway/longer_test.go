package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/compact"
)

// manifests lets a site send long documents of a kind that no corpus has, one after the other, and returns what was sent.
func manifests(w *sim.World, from *sim.Node, to []uint16, n, octets int, every time.Duration) *[]offered {
	sent := &[]offered{}
	r := rand.New(rand.NewPCG(uint64(from.ID), 77))
	goods := []string{"tarred hemp", "winch spares", "dry stores", "lamp oil", "signal flares", "deck planking", "galley copper", "sailcloth"}
	for i := range n {
		p := textTrack(from.ID, pipeShip, i)
		text := []byte("<holdManifest keeper=\"purser\" berth=\"" + fmt.Sprint(3+i) + "\">\n")
		for j := 0; len(text) < octets; j++ {
			text = fmt.Appendf(text, "  <stowage tier=\"%d\" row=\"%c\">\n    <goods>%s</goods>\n    <tally unit=\"bale\">%d</tally>\n    <sealedBy>mate %x</sealedBy>\n  </stowage>\n",
				j%7, 'A'+byte(r.IntN(20)), goods[r.IntN(len(goods))], 1+r.IntN(900), r.Uint64())
		}
		p.Parts[0].Data = append(text, "</holdManifest>\n"...)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// keptLong is how many long documents a node keeps of those that it was sent.
func keptLong(n *sim.Node) (kept int) {
	for _, r := range n.Journal() {
		kept += btoi(r.Bucket == "before" && len(r.Value) > compact.MaxLearned)
	}
	return kept
}

// The second long document of a flow costs less than the first, in segments, by NORM and to a group.
func TestSecondLongDocument(t *testing.T) {
	for _, tt := range []struct {
		link  string
		group bool
	}{{"iridium-directip", false}, {"iridium-certus-100", false}, {"hf-2400", true}} {
		w := world(t, 2, tt.link, 1, func(c *sim.Config) { c.Group = tt.group })
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		var costs []int64
		const every = 10 * time.Minute
		sent := manifests(w, ship, []uint16{1}, 3, 30_000, every)
		for range 3 {
			before, _ := w.Octets(ship)
			w.Run(every)
			after, _ := w.Octets(ship)
			costs = append(costs, after-before)
		}
		w.Run(5 * time.Minute)
		once(t, w, hq.Site, 2, *sent)
		t.Logf("%s: three documents of %d octets: %d", tt.link, len((*sent)[0].Message.Parts[0].Data), costs)
		if n := keptLong(hq); n != 3 {
			t.Errorf("%s: %d documents are kept to learn from, want 3", tt.link, n)
		}
		if costs[1] > costs[0]*96/100 || costs[2] > costs[0]*96/100 {
			t.Errorf("%s: octets %d: later ones have nothing of the first", tt.link, costs)
		}
	}
}

// Losses, restarts and forgotten messages never make a long document unreadable that was coded after another.
func TestLongLearningSurvivesEverything(t *testing.T) {
	for seed := range seeds(4) {
		for _, group := range []bool{false, true} {
			link := []string{"iridium-certus-100", "vhf-cnr-16k"}[btoi(group)]
			w := world(t, 2, link, 30+seed, func(c *sim.Config) {
				c.CrashAfterCommit, c.CrashBeforeCommit, c.Group = 0.005, 0.005, group
			})
			hq, ship := w.Nodes[0], w.Nodes[1]
			loseEveryNinth(w)
			down := manifests(w, hq, []uint16{2}, 6, 30_000, 20*time.Second)
			up := manifests(w, ship, []uint16{1}, 9, 22_000, 14*time.Second)
			w.At(75*time.Second, func() { w.LoseBucket(ship, "before"); w.Kill(ship, time.Second) })
			w.At(110*time.Second, func() { w.Kill(hq, time.Second) })
			w.Run(20 * time.Minute)
			w.EndCrashes()
			w.Run(20 * time.Minute)
			for _, c := range []struct {
				at   *sim.Node
				from uint16
				sent []offered
			}{{ship, 1, *down}, {hq, 2, *up}} {
				if _, err := air.Each(c.at.Site.Got, c.from, c.sent); err != nil {
					t.Errorf("seed %d, group %t, at %s: %v\n%v", seed, group, c.at.Name, err, tail(w.Notes))
				}
			}
			allRead(check.In(t, fmt.Sprintf("seed %d, group %t", seed, group)), w)
			for _, node := range w.Nodes {
				if n := keptLong(node); n < 1 || n > 4 {
					t.Errorf("seed %d, group %t: %s keeps %d documents to learn from", seed, group, node.Name, n)
				}
			}
		}
	}
}

// A long document coded after one that the receiver has lost is asked for again, and coded by itself.
func TestForgottenLongDocument(t *testing.T) {
	for _, link := range []string{"iridium-directip", "iridium-certus-100", "vhf-cnr-16k"} {
		w := world(t, 2, link, 2, func(c *sim.Config) { c.Group = c.Profile.Shared })
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		down := manifests(w, hq, []uint16{2}, 4, 20_000, 5*time.Minute)
		w.Run(8 * time.Minute)
		w.LoseBucket(ship, "before")
		w.Kill(ship, 100*time.Millisecond)
		w.Run(20 * time.Minute)
		once(t, w, ship.Site, 1, *down)
		if !strings.Contains(strings.Join(w.Notes, "\n"), "asks for it again") {
			t.Errorf("%s: nothing was asked for again: the test shows nothing", link)
		}
		allRead(check.In(t, link), w)
	}
}
