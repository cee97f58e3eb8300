package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
)

// TestTracksCostWhatChanged: a track like the last one costs little more than the datagram around it.
func TestTracksCostWhatChanged(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	up0, down0 := w.Octets(ship)
	down := textTracks(w, hq, []uint16{2}, 60, 5*time.Second)
	up := textTracks(w, ship, []uint16{1}, 60, 5*time.Second)
	w.Run(330 * time.Second)
	once(t, w, ship.Site, 1, *down)
	once(t, w, hq.Site, 2, *up)
	up1, down1 := w.Octets(ship)
	each := (up1 - up0 + down1 - down0) / 120
	t.Logf("%d octets up, %d down, %d for each message of %d with IP, UDP, seal and acknowledgements", up1-up0, down1-down0, each, len((*up)[5].Message.Parts[0].Data))
	if each > 100 {
		t.Errorf("%d octets for each message, want at most 100", each)
	}
}

// TestLearningSurvivesEverything: losses, restarts and lost stores never make a message unreadable.
func TestLearningSurvivesEverything(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-certus-100", seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.01, 0.01 })
			hq, ship := w.Nodes[0], w.Nodes[1]
			loseEveryNinth(w)
			down := textTracks(w, hq, []uint16{2}, 100, 2*time.Second)
			up := textTracks(w, ship, []uint16{1}, 100, 2*time.Second)
			w.Run(20 * time.Minute)
			w.EndCrashes()
			w.Run(10 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			w.LoseStore(ship)
			w.Kill(ship, time.Second)
			w.Run(time.Minute)
			hq.Site.Got, ship.Site.Got = nil, nil
			down = textTracks(w, hq, []uint16{2}, 20, time.Second)
			up = textTracks(w, ship, []uint16{1}, 20, time.Second)
			w.Run(3 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			allRead(t, w)
		})
	}
}

// TestForgottenHistory: a message coded after others that the receiver has lost is asked for again, and coded by itself; so is
// one that names a flow by a number that the receiver has lost.
func TestForgottenHistory(t *testing.T) {
	for _, bucket := range []string{"before", "inflow"} {
		w := world(t, 2, "iridium-directip", 2)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := textTracks(w, hq, []uint16{2}, 30, 4*time.Second)
		w.Run(62 * time.Second)
		w.LoseBucket(ship, bucket)
		w.Kill(ship, 100*time.Millisecond)
		w.Run(3 * time.Minute)
		once(t, w, ship.Site, 1, *down)
		if !strings.Contains(strings.Join(w.Notes, "\n"), "asks for it again") {
			t.Errorf("without %s nothing was asked for again: the test shows nothing", bucket)
		}
		allRead(check.In(t, "without "+bucket), w)
	}
}

// chat lets a ship write to several partners at HQ in turn, each on a pipe of its own, and returns what was sent.
func chat(w *sim.World, from *sim.Node, to []uint16, partners, lines int, every time.Duration) *[]offered {
	sent := &[]offered{}
	said := []string{"We are alongside and take fuel until noon.", "The pilot boards at the outer buoy.", "Two contacts to the north, both fishing.", "Send the new chart before dark, please.",
		"Our radar is repaired.", "Helicopter is on deck, ready in five minutes."}
	for i := range partners * lines {
		p := textTrack(from.ID, fmt.Sprintf("uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C00%02XEE04", i/lines), i)
		p.Parts[0].Data = fmt.Appendf(nil, `<message from="bridge@ship%d.fleet" to="desk%d@hq.fleet" id="m%04x" type="chat"><body>%s</body><thread>%08x</thread><stamp>2026-11-20T12:%02d:%02dZ</stamp></message>`,
			from.ID, i/lines, 0x1a00+i*7, said[i*5%len(said)], uint32(i/lines)*2654435761, i/4, i*13%60)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// TestSecondPartner: the messages of one pipe make the first message on another one shorter.
func TestSecondPartner(t *testing.T) {
	for _, name := range []string{"iridium-directip", "hf-2400"} {
		w := world(t, 2, name, 1, func(c *sim.Config) { c.Group = c.Profile.Shared })
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		var costs []int64
		every := 40 * time.Second
		sent := chat(w, ship, []uint16{1}, 3, 6, every)
		for range 3 {
			before, _ := w.Octets(ship)
			w.Run(every)
			after, _ := w.Octets(ship)
			costs = append(costs, after-before)
			w.Run(5 * every)
		}
		w.Run(5 * time.Minute)
		once(t, w, hq.Site, 2, *sent)
		t.Logf("%s: the first message to each of three partners: octets %d", name, costs)
		if costs[1] > costs[0]-20 || costs[2] > costs[0]-20 {
			t.Errorf("octets of first messages %d: later ones have nothing of the first partner", costs)
		}
	}
}

// TestKinSurvivesEverything: losses, restarts and lost stores never make a first message unreadable that was coded after another flow.
func TestKinSurvivesEverything(t *testing.T) {
	for seed := range uint64(4) {
		w := world(t, 2, "iridium-certus-100", seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.01, 0.01 })
		hq, ship := w.Nodes[0], w.Nodes[1]
		loseEveryNinth(w)
		down := chat(w, hq, []uint16{2}, 40, 3, 2*time.Second)
		up := chat(w, ship, []uint16{1}, 90, 2, 2*time.Second)
		w.At(150*time.Second, func() { w.LoseBucket(ship, "before"); w.Kill(ship, time.Second) })
		w.Run(20 * time.Minute)
		w.EndCrashes()
		w.Run(10 * time.Minute)
		once(t, w, ship.Site, 1, *down)
		once(t, w, hq.Site, 2, *up)
		allRead(t, w)
	}
}

// TestKinOnAGroup: the same where several listen and messages overtake each other.
func TestKinOnAGroup(t *testing.T) {
	w := world(t, 3, "hf-2400", 1, func(c *sim.Config) { c.Group = true })
	hq, ship, other := w.Nodes[0], w.Nodes[1], w.Nodes[2]
	loseEveryNinth(w)
	down := chat(w, hq, []uint16{2, 3}, 20, 3, 30*time.Second)
	up := chat(w, ship, []uint16{1, 3}, 20, 2, 40*time.Second)
	w.At(400*time.Second, func() { w.Kill(other, time.Second) })
	w.At(700*time.Second, func() { w.Kill(hq, time.Second) })
	w.At(900*time.Second, func() { w.LoseBucket(other, "before"); w.Kill(other, time.Second) })
	w.Run(2 * time.Hour)
	for _, c := range []struct {
		at   *sim.Node
		from uint16
		sent []offered
	}{{ship, 1, *down}, {other, 1, *down}, {hq, 2, *up}, {other, 2, *up}} {
		if _, err := air.Each(c.at.Site.Got, c.from, c.sent); err != nil {
			t.Errorf("%s: %v\n%v", c.at.Name, err, tail(w.Notes))
		}
	}
}
