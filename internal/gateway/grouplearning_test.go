package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/lab/sim"
	"aldis/internal/site"
)

// trackRecords makes texts of 200 octets, of records of three tracks that go on from text to text.
func trackRecords(seed uint64) func() []byte {
	r := rand.New(rand.NewPCG(seed, 0xa1d15))
	type track struct {
		name                     string
		seq, lat, lon, up, right int // 1e-5 degrees, and the steps from record to record
		course                   float64
		kind, is                 string
	}
	var tracks []*track
	for range 3 {
		t := &track{fmt.Sprintf("%c-%d", 'A'+r.IntN(26), 100+r.IntN(900)), r.IntN(400), 5000000 + r.IntN(2500000), 200000 + r.IntN(2800000),
			r.IntN(301) - 150, r.IntN(601) - 300, float64(r.IntN(3600)) / 10, "", ""}
		t.kind, t.is = []string{"SURF", "AIR", "SUBS", "LAND"}[r.IntN(4)], []string{"UNK", "FRD", "HOS", "NEU", "PND"}[r.IntN(5)]
		tracks = append(tracks, t)
	}
	noisy := func(v int) string { return fmt.Sprintf("%d.%05d", v/100000, v%100000/100*100+r.IntN(100)) }
	return func() (b []byte) {
		for i := 0; len(b) < 200; i++ {
			t := tracks[i%3]
			t.seq, t.lat, t.lon = t.seq+1, t.lat+t.up, t.lon+t.right
			b = fmt.Appendf(b, "TRK;%s;seq=%d;lat=%s;lon=%s;crs=%.1f;spd=%.1f;typ=%s;idn=%s;qual=%d\n",
				t.name, t.seq, noisy(t.lat), noisy(t.lon), t.course, float64(r.IntN(350))/10, t.kind, t.is, r.IntN(10))
		}
		return b[:200]
	}
}

// recordTracks lets from send n texts of 200 octets to to: records of three tracks, each like those in the text before.
func recordTracks(w *sim.World, from *sim.Node, to []uint16, n int, every time.Duration) *[]offered {
	next := trackRecords(uint64(from.ID))
	sent := &[]offered{}
	for i := range n {
		p := site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeHQ, From: peerID(from.ID), ID: fmt.Sprint(from.ID, i),
			Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: next()}}}
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{At: w.Now, Message: p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

func aired(w *sim.World) (octets int64) {
	for _, n := range w.Nodes {
		up, _ := w.Octets(n)
		octets += up
	}
	return octets
}

// eachOnce is once where order may suffer: a gap is not waited for for ever.
func eachOnce(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) {
	t.Helper()
	want := map[string]int{}
	for _, o := range sent {
		want[string(o.Message.Parts[0].Data)]++
	}
	n := 0
	for _, g := range at.Got {
		if g.From == from {
			n++
			want[string(g.Payload.Parts[0].Data)]--
		}
	}
	for text, left := range want {
		if left != 0 {
			t.Errorf("%s: a message of node %d came %d times too few: %.40q\n%s", at.Node.Name, from, left, text, tail(w.Notes))
			return
		}
	}
	if n != len(sent) {
		t.Errorf("%s: %d messages of node %d, want %d", at.Node.Name, n, from, len(sent))
	}
}

// A message to a group costs what is new in it: three nodes on hf-2400, each sends 200 octets to both others every 20 s.
func TestMulGroupLearns(t *testing.T) {
	for seed := range seeds(3) {
		w := mulWorld(t, 3, seed+1)
		hq, a, b := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		w.Run(3 * time.Minute)
		before := aired(w)
		const n = 45
		of1 := recordTracks(w, hq, []uint16{2, 3}, n, 20*time.Second)
		of2 := recordTracks(w, a, []uint16{1, 3}, n, 20*time.Second)
		of3 := recordTracks(w, b, []uint16{1, 2}, n, 20*time.Second)
		w.Run(30 * time.Minute)
		for _, x := range []struct {
			at   *sim.Node
			from uint16
			sent *[]offered
		}{{hq, 2, of2}, {hq, 3, of3}, {a, 1, of1}, {a, 3, of3}, {b, 1, of1}, {b, 2, of2}} {
			once(t, w, x.at.Site, x.from, *x.sent)
		}
		allRead(t, w)
		mean := float64(aired(w)-before) / (3 * n)
		t.Logf("seed %d: %.1f octets on the air for each message of 200 to two others, acknowledgements and repeats counted", seed+1, mean)
		if mean > 265 { // 288 to 293 where nothing is learned; most is headers of acknowledgements
			t.Errorf("%.1f octets for each message, want at most 265", mean)
		}
	}
}

// Loss, crashes, a silent ship, one that joins late and one that loses its store: every message arrives once and whole.
func TestMulLearningSurvivesEverything(t *testing.T) {
	for seed := range seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := mulWorld(t, 4, seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.005, 0.005 })
			hq, a, quiet, late := w.Nodes[0], w.Nodes[1], w.Nodes[2], w.Nodes[3]
			rng := rand.New(rand.NewPCG(seed, 9))
			begun := w.Now
			w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
				if rng.IntN(8) == 0 || (from == late || to == late) && w.Now.Sub(begun) < 10*time.Minute {
					return nil
				}
				return [][]byte{data}
			}
			w.Run(3 * time.Minute)
			order(w, quiet, api.Silence{On: true, Until: w.Now.Add(time.Hour), Announce: true})
			all := recordTracks(w, hq, []uint16{2, 3, 4}, 60, 30*time.Second)
			w.Run(9 * time.Minute)
			two := recordTracks(w, a, []uint16{1, 4}, 60, 20*time.Second)
			w.Run(40 * time.Minute)
			w.EndCrashes()
			w.Tap = nil
			w.Run(8 * time.Hour)
			for _, n := range []*sim.Node{a, quiet, late} {
				eachOnce(t, w, n.Site, 1, *all)
			}
			eachOnce(t, w, hq.Site, 2, *two)
			eachOnce(t, w, late.Site, 2, *two)

			w.LoseStore(late)
			w.Kill(late, time.Second)
			w.Run(10 * time.Minute)
			for _, n := range w.Nodes {
				n.Site.Got = nil
			}
			all = recordTracks(w, hq, []uint16{2, 3, 4}, 20, 20*time.Second)
			w.Run(30 * time.Minute)
			for _, n := range []*sim.Node{a, quiet, late} {
				eachOnce(t, w, n.Site, 1, *all)
			}
			allRead(t, w)
		})
	}
}

// A message that a recipient has acknowledged and cannot read, because the one that it was coded after is gone, is
// asked for again and arrives.
func TestMulForgottenHistory(t *testing.T) {
	w := mulWorld(t, 2, 5)
	hq, ship := w.Nodes[0], w.Nodes[1]
	sent := recordTracks(w, hq, []uint16{2}, 30, 20*time.Second)
	w.Run(5*time.Minute + 5*time.Second)
	w.LoseBucket(ship, "before")
	w.Kill(ship, time.Second)
	w.Run(30 * time.Minute)
	if !strings.Contains(strings.Join(w.Notes, "\n"), "asks for it again") {
		t.Error("nothing was asked for again: the test shows nothing")
	}
	once(t, w, ship.Site, 1, *sent)
	allRead(t, w)
}

// A recipient has acknowledged a message and cannot read it, and its sender, which has started since and has lost the record of it,
// no longer keeps it. It does not count as delivered: the sender says that it is undeliverable, once, and so does its log.
func TestMulMessageThatNobodyHasIsUndeliverable(t *testing.T) {
	w := mulWorld(t, 2, 5)
	hq, ship := w.Nodes[0], w.Nodes[1]
	sent := recordTracks(w, hq, []uint16{2}, 20, 20*time.Second)
	w.Run(100 * time.Second)
	w.LoseBucket(ship, "before")
	w.LoseBucket(ship, "inflow")
	w.Kill(ship, time.Second)
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte { // messages that the ship asks for come late, its acknowledgements do not
		if from == ship && len(data) >= 47 {
			return nil
		}
		return [][]byte{data}
	}
	for range 3000 { // hq starts anew when it has an acknowledgement of a message that the ship asks for again
		w.Run(100 * time.Millisecond)
		if n := hq.GW.Status(w.Now).Peers[0].Delivered; len(ship.Site.Got) < int(n) {
			w.LoseBucket(hq, "mul-ended")
			w.Kill(hq, 0)
			break
		}
	}
	w.Tap = nil
	w.Run(30 * time.Minute)
	p := hq.GW.Status(w.Now).Peers[0]
	missing := len(*sent) - len(ship.Site.Got)
	if missing == 0 {
		t.Fatal("nothing is missing: the test shows nothing")
	}
	if p.Undeliverable != uint64(missing) || p.Waiting+p.UnderWay != 0 {
		t.Errorf("%d messages did not come; hq says %d undeliverable, %d waiting, %d under way\n%s", missing, p.Undeliverable, p.Waiting, p.UnderWay, tail(w.Notes))
	}
	if !strings.Contains(strings.Join(w.Notes, "\n"), "reason it could not be read") {
		t.Errorf("hq's log does not say why\n%s", tail(w.Notes))
	}
}
