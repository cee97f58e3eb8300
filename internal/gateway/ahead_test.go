package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// lossless is a link that loses nothing by itself.
func lossless(c *sim.Config) { c.Profile.Up.LossPct, c.Profile.Down.LossPct = 0, 0 }

// Losses among messages of a local peer that floods the link hold up no other peer: the messages of others are read although those
// before them are missing, in at most twice the time that the slowest takes alone.
func TestLossesOfAnotherSource(t *testing.T) {
	for seed := range seeds(20) {
		slowest := map[bool]time.Duration{}
		for _, flooded := range []bool{false, true} {
			w := world(t, 2, "iridium-directip", seed+1, lossless)
			hq, ship := w.Nodes[0], w.Nodes[1]
			e, rng, dropped := newEars(2), rand.New(rand.NewPCG(seed, 5)), 0
			w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
				_, _, frames := e.open(from.ID, api.Datagram{Addr: to.Addr(), Data: data})
				large := 0
				for _, f := range frames {
					switch d, ok := f.(frame.Data); {
					case ok && len(d.Body) < 150: // it has a message of the peer that does not flood
						return [][]byte{data}
					case ok:
						large++
					}
				}
				if large > 0 && rng.IntN(12) == 0 {
					dropped++
					return nil
				}
				return [][]byte{data}
			}
			w.Run(time.Minute)
			if flooded {
				reports(w, ship, 7, 1000, 200, 300*time.Microsecond)
			}
			w.Run(time.Second)
			sent := reports(w, ship, 8, 45, 80, 2*time.Second)
			w.Run(110 * time.Second)
			list, inOrder := latencies(hq.Site, 8, sent)
			check.Equal(t, "messages of the one", len(list), len(sent))
			check.Equal(t, "they are in order", inOrder, true)
			_, inOrder = latencies(hq.Site, 7, map[int]time.Time{})
			check.Equal(t, "those of the other are in order", inOrder, true)
			slowest[flooded] = list[len(list)-1]
			if flooded && dropped == 0 {
				t.Errorf("seed %d: nothing was lost", seed+1)
			}
		}
		t.Logf("seed %d: the slowest within %v alone, within %v beside the other", seed+1, slowest[false], slowest[true])
		if slowest[true] > 2*slowest[false] {
			t.Errorf("seed %d: the slowest within %v alone, within %v beside the other; twice that at the most is wanted", seed+1, slowest[false], slowest[true])
		}
	}
}

// Read before their turn or in it, across losses and crashes: every message arrives once, each source's in order.
func TestReadAheadOnce(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 2, "iridium-directip", seed+1, func(c *sim.Config) {
			c.Profile.Up.LossPct, c.Profile.Down.LossPct = 10, 10
			c.CrashBeforeCommit, c.CrashAfterCommit = 0.002, 0.002
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(2 * time.Minute)
		reports(w, ship, 7, 300, 200, 300*time.Microsecond)
		reports(w, ship, 9, 30, 150, 4*time.Second)
		reports(w, ship, 8, 60, 80, 2*time.Second)
		w.Run(20 * time.Minute)
		w.EndCrashes()
		w.Run(20 * time.Minute)
		got, last := map[string]int{}, map[int]int{7: -1, 8: -1, 9: -1}
		for _, g := range hq.Site.Got {
			var from, i int
			fmt.Sscanf(string(g.Payload.Parts[0].Data), "%d;%d;", &from, &i)
			if got[fmt.Sprint(from, i)]++; i <= last[from] {
				t.Errorf("seed %d: message %d of %d came behind %d", seed+1, i, from, last[from])
			}
			last[from] = i
		}
		check.Equal(t, fmt.Sprintf("messages that arrived, seed %d", seed+1), len(got), 390)
		for name, n := range got {
			if n != 1 {
				t.Errorf("seed %d: message %s arrived %d times", seed+1, name, n)
			}
		}
	}
}

// A message that goes twice, because no loss may delay it, is not held up by the loss of another either: neither a flash message by
// messages of another peer, nor a batch of the site's units by an event. Messages of one source come in order.
func TestHurriesPastALoss(t *testing.T) {
	say := func(from, topic, text string, p site.Precedence, twice bool) *site.Message {
		return &site.Message{Published: true, From: from, Scope: "tak", Topic: topic, Parts: []site.Part{{Name: topic, Data: []byte(text)}},
			Mark: site.Mark{Precedence: p, Twice: twice}}
	}
	for name, pair := range map[string][2]*site.Message{
		"another peer's flash":        {say("7", "words", "the first", site.Routine, false), say("8", "words", "the second", site.Flash, false)},
		"the same peer's flash":       {say("7", "words", "the first", site.Routine, false), say("7", "words", "the second", site.Flash, false)},
		"the site's units":            {say("", "event", "the first", site.Flash, false), say("", "units", "the second", site.Routine, true)},
		"the site's units, in order":  {say("", "units", "the first", site.Routine, true), say("", "units", "the second", site.Routine, true)},
		"another peer's, not hurried": {say("7", "words", "the first", site.Routine, false), say("8", "words", "the second", site.Routine, false)},
	} {
		in := check.In(t, name)
		w := world(t, 2, "iridium-directip", 3, lossless)
		hq, ship := w.Nodes[0], w.Nodes[1]
		e, lost, first, begun := newEars(2), 0, uint16(0), w.Now.Add(time.Minute)
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			_, _, frames := e.open(from.ID, api.Datagram{Addr: to.Addr(), Data: data})
			for _, f := range frames {
				d, ok := f.(frame.Data)
				if ok && from == ship && w.Now.After(begun) && w.Now.Sub(begun) < 3*time.Second && (lost == 0 || d.Number == first) {
					lost, first = lost+1, d.Number // both copies
					return nil
				}
			}
			return [][]byte{data}
		}
		w.Run(time.Minute)
		ship.Site.Send(w, *pair[0], 1)
		w.Run(700 * time.Millisecond)
		at := w.Now
		ship.Site.Send(w, *pair[1], 1)
		w.Run(time.Minute)
		check.True(in, "the first is lost", lost > 0, lost)
		var got []string
		for _, g := range hq.Site.Got {
			got = append(got, string(g.Payload.Parts[0].Data))
		}
		passes := name == "another peer's flash" || name == "the site's units"
		want := []string{"the first", "the second"}
		if passes {
			want = []string{"the second", "the first"}
		}
		check.Equal(in, "in this order", fmt.Sprint(got), fmt.Sprint(want))
		if passes && len(hq.Site.Got) == 2 {
			check.True(in, "at once", hq.Site.Got[0].At.Sub(at) < 2*time.Second, hq.Site.Got[0].At.Sub(at))
		}
	}
}
