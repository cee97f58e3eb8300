package gateway_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

const (
	pipeHQ   = "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04"
	pipeShip = "uuid-59616261646162614E504720503250337B1F8E4DA2F95C6D9E3F2A4B5C6D7E8F04"
)

func peerID(n uint16) string {
	return fmt.Sprintf("cbid-59616261646162614A78746150325033%02X569155EBF440C2B9C89E114D3E269303", n)
}

func track(from uint16, pipe string, i, octets int) site.Message {
	body := bytes.Repeat([]byte{'x'}, octets)
	rng := uint32(i)*2654435761 + uint32(from)
	for k := range body { // incompressible, so that the figures are those of any text
		rng = rng*1664525 + 1013904223
		body[k] = byte(rng >> 24)
	}
	copy(body, fmt.Sprintf("%d;%d;", from, i))
	return site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipe, From: peerID(from), ID: fmt.Sprint(from, i),
		Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: body}}}
}

// textTrack is a report as a ship would send it: readable, and like the one before.
func textTrack(from uint16, pipe string, i int) site.Message {
	p := track(from, pipe, i, 1)
	p.Parts[0].Data = fmt.Appendf(nil, "TRK;ship%d;%06d;2026-11-20T12:%02d:%02dZ;N59.%04d;E005.%04d;course=%03d;speed=%02d.%d;depth=%d;status=under way using engine;source=own sensor;remark=none to report",
		from, i, i/12%60, i*5%60, 1234+7*i, 4321+11*i, (45+i)%360, 12+i%3, i%10, 80+i%17)
	return p
}

func pipeItem(n uint16, pipe string) site.Item {
	return site.Item{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peerID(n), ID: pipe, Sub: jxtabridge.PipePropagate}
}

func load(t *testing.T, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func world(t *testing.T, nodes int, name string, seed uint64, change ...func(*sim.Config)) *sim.World {
	t.Helper()
	cfg := sim.Config{Nodes: nodes, Profile: load(t, name), Wire: load(t, "wire"), Seed: seed, Down: 3 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

type offered struct {
	at      time.Time
	payload site.Message
}

// tracks lets from send n tracks to to, one every interval, and returns what it will have sent.
func tracks(w *sim.World, from *sim.Node, to []uint16, n, octets int, every time.Duration) *[]offered {
	sent := &[]offered{}
	for i := range n {
		p := track(from.ID, pipeHQ, i, octets)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{w.Now, p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

// once wants every message offered at the site exactly once, whole, and in order; it returns the latencies.
func once(t *testing.T, w *sim.World, at *sim.Site, from uint16, sent []offered) []time.Duration {
	t.Helper()
	var got []sim.Got
	for _, g := range at.Got {
		if g.From == from {
			got = append(got, g)
		}
	}
	if len(got) != len(sent) {
		t.Fatalf("%d of %d messages of node %d\n%v", len(got), len(sent), from, tail(w.Notes))
	}
	var latency []time.Duration
	for i, g := range got {
		want := sent[i].payload
		want.ID = g.Payload.ID
		if !reflect.DeepEqual(g.Payload, want) {
			t.Fatalf("message %d of node %d arrived as %+v", i, from, g.Payload)
		}
		latency = append(latency, g.At.Sub(sent[i].at))
	}
	slices.Sort(latency)
	return latency
}

func tail(notes []string) string {
	var b bytes.Buffer
	for _, n := range notes[max(0, len(notes)-12):] {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func TestTracksOverIridium(t *testing.T) {
	for _, tt := range []struct {
		profile string
		median  time.Duration
	}{{"iridium-directip", 3500 * time.Millisecond}, {"iridium-dialup", 5 * time.Second}} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(tt.profile, seed), func(t *testing.T) {
				w := world(t, 2, tt.profile, seed+1)
				hq, ship := w.Nodes[0], w.Nodes[1]
				hq.Site.Put(w, pipeItem(1, pipeHQ))
				ship.Site.Put(w, pipeItem(2, pipeShip))
				down := tracks(w, hq, []uint16{2}, 60, 200, 5*time.Second)
				up := tracks(w, ship, []uint16{1}, 60, 200, 5*time.Second)
				w.Run(330 * time.Second)
				a, b := once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)
				octUp, octDown := w.Octets(ship)
				ratio := 100 * 24000 / float64(octUp+octDown)
				t.Logf("median %v down, %v up; worst %v, %v; %d + %d octets, ratio %.1f %%",
					a[30], b[30], a[59], b[59], octUp, octDown, ratio)
				if a[30] > tt.median || b[30] > tt.median {
					t.Errorf("median latency %v and %v, want at most %v", a[30], b[30], tt.median)
				}
				if ratio < 60 {
					t.Errorf("application octets %.1f %% of the link's, want 60", ratio)
				}
				if far := len(ship.Site.Far[1]); far != 1 {
					t.Errorf("the ship knows %d items of HQ, want 1", far)
				}
			})
		}
	}
}

// TestLedgerAgreesWithTheAir: every octet on the link has a cause (design 8).
func TestLedgerAgreesWithTheAir(t *testing.T) {
	w := world(t, 3, "iridium-dialup", 11)
	hq, ship := w.Nodes[0], w.Nodes[1]
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	ship.Site.Put(w, pipeItem(2, pipeShip))
	tracks(w, hq, []uint16{2, 3}, 60, 200, 3*time.Second)
	tracks(w, ship, []uint16{1}, 60, 150, 2*time.Second)
	w.At(time.Minute, func() { w.Outage(ship, 40*time.Second) })
	w.Run(10 * time.Minute)
	for _, n := range w.Nodes {
		var sent, payload uint64
		for _, row := range n.GW.Status(w.Now).Ledger {
			if row.Direction == "sent" {
				sent += row.Octets
				if row.Kind == "payload" {
					payload += row.Octets
				}
			}
		}
		if up, _ := w.Octets(n); sent != uint64(up) {
			t.Errorf("%s: the ledger has %d octets sent, the air %d", n.Name, sent, up)
		}
		if n == ship && payload < 60*150 {
			t.Errorf("the ship's ledger has %d octets of payload, want those of 60 messages of 150", payload)
		}
	}
}

// textTracks lets from send n text tracks to to.
func textTracks(w *sim.World, from *sim.Node, to []uint16, n int, every time.Duration) *[]offered {
	sent := &[]offered{}
	for i := range n {
		p := textTrack(from.ID, pipeHQ, i)
		w.At(time.Duration(i)*every+time.Second, func() {
			*sent = append(*sent, offered{w.Now, p})
			from.Site.Send(w, p, to...)
		})
	}
	return sent
}

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
	t.Logf("%d octets up, %d down, %d for each message of %d with IP, UDP, seal and receipts", up1-up0, down1-down0, each, len((*up)[5].payload.Parts[0].Data))
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
			rng := 0
			w.Tap = func(_, _ *sim.Node, data []byte) [][]byte {
				if rng++; rng%9 == 0 {
					return nil
				}
				return [][]byte{data}
			}
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
			for _, n := range w.Nodes {
				if u := n.GW.Status(w.Now).Peers[0].Unreadable; u != 0 {
					t.Errorf("%s could not read %d messages\n%s", n.Name, u, tail(w.Notes))
				}
			}
		})
	}
}

// TestForgottenHistory: what was coded after messages that the receiver has lost is asked for again, and coded by itself.
func TestForgottenHistory(t *testing.T) {
	w := world(t, 2, "iridium-directip", 2)
	hq, ship := w.Nodes[0], w.Nodes[1]
	down := textTracks(w, hq, []uint16{2}, 30, 4*time.Second)
	w.Run(62 * time.Second)
	w.LoseBucket(ship, "before")
	w.Kill(ship, 100*time.Millisecond)
	w.Run(3 * time.Minute)
	once(t, w, ship.Site, 1, *down)
	if !strings.Contains(strings.Join(w.Notes, "\n"), "asked for again") {
		t.Error("nothing was asked for again: the test shows nothing")
	}
}

func TestIdleCostsNothing(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	w.Nodes[0].Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	up, down := w.Octets(w.Nodes[1])
	w.Run(10 * time.Minute)
	up2, down2 := w.Octets(w.Nodes[1])
	if up2 != up || down2 != down {
		t.Errorf("ten quiet minutes: %d octets up, %d down; want none\n%s", up2-up, down2-down, tail(w.Notes))
	}
}

func TestOutageOfAMinute(t *testing.T) {
	for seed := range uint64(5) {
		w := world(t, 2, "iridium-directip", seed)
		hq, ship := w.Nodes[0], w.Nodes[1]
		down := tracks(w, hq, []uint16{2}, 40, 200, 5*time.Second)
		up := tracks(w, ship, []uint16{1}, 40, 200, 5*time.Second)
		w.At(60*time.Second, func() { w.Outage(ship, 60*time.Second) })
		w.Run(300 * time.Second)
		a, b := once(t, w, ship.Site, 1, *down), once(t, w, hq.Site, 2, *up)
		t.Logf("seed %d: worst %v down, %v up", seed, a[39], b[39])
		if a[39] > 90*time.Second || b[39] > 90*time.Second {
			t.Errorf("seed %d: worst latency %v, %v over an outage of 60 s", seed, a[39], b[39])
		}
	}
}

func TestCrashesLoseNothingAndRepeatNothing(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-directip", seed, func(c *sim.Config) { c.CrashAfterCommit, c.CrashBeforeCommit = 0.02, 0.02 })
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			down := tracks(w, hq, []uint16{2}, 50, 200, 5*time.Second)
			up := tracks(w, ship, []uint16{1}, 50, 1500, 15*time.Second)
			w.Run(20 * time.Minute)
			w.EndCrashes()
			w.Run(10 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
				t.Errorf("the ship knows %v of HQ, want %v", ship.Site.Far[1], hq.Site.Items)
			}
		})
	}
}

func TestHandedOverAfterARestart(t *testing.T) {
	w := world(t, 2, "iridium-directip", 1)
	hq, ship := w.Nodes[0], w.Nodes[1]
	ship.Site.Keep = true // its peers are away
	down := tracks(w, hq, []uint16{2}, 5, 200, time.Second)
	w.Run(time.Minute)
	w.Kill(ship, time.Second)
	w.Run(time.Minute)
	once(t, w, ship.Site, 1, *down)
	if n := ship.GW.Status(w.Now).Peers[0].Pending; n != 5 {
		t.Errorf("%d messages wait for local peers after the restart, want 5", n)
	}
	ship.Site.Release(w)
	w.Run(time.Second)
	w.Kill(ship, time.Second)
	w.Run(time.Minute)
	if n := ship.GW.Status(w.Now).Peers[0].Pending; n != 0 {
		t.Errorf("%d messages wait after all were handed over, want none", n)
	}
}

func TestLostStore(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := world(t, 2, "iridium-directip", seed)
			hq, ship := w.Nodes[0], w.Nodes[1]
			hq.Site.Put(w, pipeItem(1, pipeHQ))
			ship.Site.Put(w, pipeItem(2, pipeShip))
			tracks(w, hq, []uint16{2}, 20, 200, time.Second)
			w.Run(40 * time.Second)
			lost := w.Nodes[seed%2]
			w.LoseStore(lost)
			w.Kill(lost, time.Second)
			w.Run(30 * time.Second)
			hq.Site.Got, ship.Site.Got = nil, nil
			down := tracks(w, hq, []uint16{2}, 20, 200, time.Second)
			up := tracks(w, ship, []uint16{1}, 20, 200, time.Second)
			w.Run(3 * time.Minute)
			once(t, w, ship.Site, 1, *down)
			once(t, w, hq.Site, 2, *up)
			if len(ship.Site.Far[1]) != 1 || len(hq.Site.Far[2]) != 1 {
				t.Errorf("after a lost store: %d and %d items known, want one each", len(ship.Site.Far[1]), len(hq.Site.Far[2]))
			}
		})
	}
}

func TestThreeShips(t *testing.T) {
	w := world(t, 4, "iridium-directip", 7)
	hq := w.Nodes[0]
	w.Run(30 * time.Second) // first words
	_, quiet := w.Octets(w.Nodes[3])
	down := tracks(w, hq, []uint16{2, 3}, 20, 200, 5*time.Second)
	w.Run(150 * time.Second)
	once(t, w, w.Nodes[1].Site, 1, *down)
	once(t, w, w.Nodes[2].Site, 1, *down)
	if _, now := w.Octets(w.Nodes[3]); now != quiet {
		t.Errorf("%d octets crossed to a ship without a listener", now-quiet)
	}
}

func TestStateFollowsChanges(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 3)
	hq, ship := w.Nodes[0], w.Nodes[1]
	adv := site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(1), ID: "uuid-0102", Sub: 2,
		Doc: bytes.Repeat([]byte("<Desc>a service</Desc>"), 200), Expires: sim.Epoch.Add(2 * time.Hour)}
	hq.Site.Put(w, adv)
	hq.Site.Put(w, pipeItem(1, pipeHQ))
	w.Run(time.Minute)
	if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
		t.Fatalf("after a minute the ship knows %d items of %d", len(ship.Site.Far[1]), len(hq.Site.Items))
	}
	gone := pipeItem(1, pipeHQ)
	gone.Gone = true
	w.Outage(ship, 5*time.Minute)
	hq.Site.Put(w, gone)
	adv.Doc = []byte("<Desc>moved</Desc>")
	hq.Site.Put(w, adv)
	w.Run(6 * time.Minute)
	if !reflect.DeepEqual(ship.Site.Far[1], hq.Site.Items) {
		t.Errorf("after an outage the ship knows %v, want %v", ship.Site.Far[1], hq.Site.Items)
	}
}

// An advertisement that its peer publishes again every few minutes is told again for what is new: its lifetime, now and
// then, in six octets and the datagram around them.
func TestRepublishedAdvertisement(t *testing.T) {
	w := world(t, 2, "iridium-dialup", 5)
	hq, ship := w.Nodes[0], w.Nodes[1]
	adv := site.Item{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerID(1), ID: "uuid-0102", Sub: 2,
		Doc: track(1, pipeHQ, 1, 900).Parts[0].Data, To: []uint16{2}, Home: true}
	again := func() {
		adv.Expires = w.Now.Add(2 * time.Hour)
		hq.Site.Put(w, adv)
	}
	again()
	w.Run(time.Minute)
	up, _ := w.Octets(hq)
	for i := range 100 {
		w.At(time.Duration(i)*5*time.Minute, again)
	}
	for i := range 50 {
		w.Run(10 * time.Minute)
		it, ok := ship.Site.Far[1][adv.Key()]
		if !ok || !it.Expires.After(w.Now.Add(50*time.Minute)) || it.Expires.After(adv.Expires) || !bytes.Equal(it.Doc, adv.Doc) {
			t.Fatalf("after %v the ship has it %v until %v", w.Now.Sub(sim.Epoch), ok, it.Expires)
		}
		if i == 25 {
			w.Kill(hq, time.Second)
		}
	}
	now, _ := w.Octets(hq)
	t.Logf("%d octets in 500 minutes for an advertisement of %d octets that was published 100 times", now-up, len(adv.Doc))
	if now-up > 800 {
		t.Errorf("%d octets from HQ, want at most 800", now-up)
	}
	w.Run(2*time.Hour + 2*time.Minute)
	if _, ok := ship.Site.Far[1][adv.Key()]; ok && w.Now.Before(ship.Site.Far[1][adv.Key()].Expires) {
		t.Error("it outlives its last publication")
	}
}

// TestLateShipLearnsFast: a ship that starts long after HQ knows what HQ has within a few delays, whatever is lost.
func TestLateShipLearnsFast(t *testing.T) {
	var took []time.Duration
	for seed := range uint64(150) {
		w := world(t, 2, "iridium-directip", seed)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.LoseStore(ship)
		w.Kill(ship, time.Minute)
		hq.Site.Put(w, pipeItem(1, pipeHQ))
		w.Run(time.Minute)
		start := w.Now
		for len(ship.Site.Far[1]) == 0 && w.Now.Sub(start) < time.Minute {
			w.Run(50 * time.Millisecond)
		}
		took = append(took, w.Now.Sub(start))
	}
	slices.Sort(took)
	t.Logf("median %v, 98 of 100 %v, worst %v", took[75], took[147], took[149])
	if took[75] > 4*time.Second || took[147] > 9*time.Second || took[149] > 12*time.Second {
		t.Errorf("median %v, 98 of 100 %v, worst %v; want 4 s, 9 s, 12 s", took[75], took[147], took[149])
	}
}

// TestAnyOneDatagramLost: whichever one or two datagrams are lost, all messages arrive, the flow's definition included.
func TestAnyOneDatagramLost(t *testing.T) {
	for first := range 12 {
		for second := first; second < 12; second++ {
			w := world(t, 2, "iridium-certus-100", 2)
			n := 0
			w.Tap = func(from, _ *sim.Node, data []byte) [][]byte {
				if from.ID == 1 {
					if n++; n-1 == first || n-1 == second {
						return nil
					}
				}
				return [][]byte{data}
			}
			down := tracks(w, w.Nodes[0], []uint16{2}, 10, 200, 400*time.Millisecond)
			w.Run(2 * time.Minute)
			once(t, w, w.Nodes[1].Site, 1, *down)
			if u := w.Nodes[1].GW.Status(w.Now).Peers[0].Unreadable; u != 0 {
				t.Fatalf("%d and %d lost: %d messages unreadable", first, second, u)
			}
		}
	}
}
