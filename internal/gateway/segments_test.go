package gateway_test

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/seal"
	"aldis/internal/link/segment"
	"aldis/internal/site"
)

// heard counts the frames of a node by what they carry.
type heard struct{ data, segments, norm int }

func listening(t *testing.T, link string, of uint16, change ...func(*sim.Config)) (*sim.World, *heard) {
	h, e := &heard{}, newEars(2)
	change = append(change, func(c *sim.Config) {
		c.LAN = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams {
				_, _, frames := e.open(n.ID, d)
				for _, f := range frames {
					switch f.(type) {
					case frame.Data:
						h.data += btoi(n.ID == of)
					case frame.Segment:
						h.segments += btoi(n.ID == of)
					case frame.NORM:
						h.norm += btoi(n.ID == of)
					}
				}
			}
		}
	})
	return world(t, 2, link, 3, change...), h
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Long messages of all sizes that go in segments arrive once, whole and in order, both ways, while one datagram in ten is lost, and
// either gateway crashes in the middle of a turn or is killed, wherever it stands.
func TestSegmentsWhateverHappens(t *testing.T) {
	for seed := range 3 * seeds(10) {
		w := world(t, 2, []string{"iridium-directip", "iridium-certus-100"}[seed%2], 100+seed, func(c *sim.Config) {
			c.Profile.Up.LossPct, c.Profile.Down.LossPct = 10, 10
			c.CrashBeforeCommit, c.CrashAfterCommit = 0.01, 0.01
		})
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		sent := map[uint16][]offered{}
		for i, octets := range []int{600, 1000, 4000, 600, 20_000, 485, 500, 2000, 600, 600, 3000, 9000, 700} {
			for _, x := range [][2]*sim.Node{{hq, ship}, {ship, hq}} {
				w.At(time.Duration(i)*7*time.Second, func() {
					m := track(x[0].ID, []string{pipeShip, pipeHQ}[x[0].ID-1], i, octets+600*int(seed%2)) // longer than a datagram
					sent[x[0].ID] = append(sent[x[0].ID], offered{At: w.Now, Message: m})
					x[0].Site.Send(w, m, x[1].ID)
				})
			}
		}
		for i := range 12 {
			w.At(time.Duration(10+11*i)*time.Second, func() { w.Kill(w.Nodes[i%2], time.Duration(1+i%4)*time.Second) })
		}
		w.Run(5 * time.Minute)
		w.EndCrashes()
		w.Run(15 * time.Minute)
		once(t, w, hq.Site, ship.ID, sent[ship.ID])
		once(t, w, ship.Site, hq.ID, sent[hq.ID])
		for _, n := range w.Nodes {
			for _, r := range n.Journal() {
				if r.Bucket == "cut" || r.Bucket == "piece" {
					t.Errorf("seed %d: %s keeps %s %x", seed, n.Name, r.Bucket, r.Key)
				}
			}
		}
	}
}

// A message of 60 kB holds a short one no longer than one datagram, also when a segment of it is lost: the short one need not wait
// for that. A more urgent message goes first, also when it is long.
func TestShortBesideSegments(t *testing.T) {
	w, h := listening(t, "iridium-directip", 2, func(c *sim.Config) { c.Profile.Up.LossPct = 5 })
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	long := track(2, pipeHQ, 1, 60_000)
	urgent := track(2, pipeHQ, 2, 3_000)
	urgent.Precedence = site.Flash
	w.At(0, func() { ship.Site.Send(w, long, 1) })
	var came time.Time
	w.At(20*time.Second, func() { came = w.Now; ship.Site.Send(w, urgent, 1) })
	var short []offered
	for i := range 20 {
		w.At(time.Duration(1+5*i)*time.Second, func() {
			m := track(3, pipeHQ, i, 100)
			short = append(short, offered{At: w.Now, Message: m})
			ship.Site.Send(w, m, 1)
		})
	}
	w.Run(10 * time.Minute)
	order := slices.IndexFunc(hq.Site.Got, func(g sim.Got) bool { return g.Payload.Precedence == site.Flash })
	last := slices.IndexFunc(hq.Site.Got, func(g sim.Got) bool { return len(g.Payload.Parts[0].Data) == 60_000 })
	if order < 0 || last < order || hq.Site.Got[order].At.Sub(came) > 14*time.Second {
		t.Errorf("the urgent message is number %d, the long one %d", order, last)
	}
	var took []time.Duration
	for _, o := range short {
		at := slices.IndexFunc(hq.Site.Got, func(g sim.Got) bool { return string(g.Payload.Parts[0].Data) == string(o.Message.Parts[0].Data) })
		if at < 0 {
			t.Fatal("a short message is missing")
		}
		took = append(took, hq.Site.Got[at].At.Sub(o.At))
	}
	slices.Sort(took)
	t.Logf("short messages took %v", took)
	// The datagram before it 0.9 s, the way up to 2 s, its own datagram with a segment 0.9 s: messages that were not lost are there in 4 s.
	check.True(t, "16 of 20 short messages are as fast as the link", took[15] < 4*time.Second, took[15])
	check.True(t, "segments, and no NORM", h.segments > 120 && h.norm == 0, *h)
}

// A gateway of an older version, which does not say that it understands segments, gets NORM; so does one that no longer says so.
func TestOlderGateway(t *testing.T) {
	for _, knows := range []bool{false, true} {
		w, h := listening(t, "iridium-directip", 1)
		hq, ship := w.Nodes[0], w.Nodes[1]
		w.Run(time.Minute)
		incarnation := ship.Incarnation()
		w.Kill(ship, 1000*time.Hour)
		w.Run(time.Second)
		s := seal.NewSealer(seal.Key{1, 2, 3}, ship.ID, seal.Incarnation{Number: incarnation + 1, Salt: 7})
		say := func(long bool, f frame.Frame) {
			d, err := s.Seal(nil, hq.ID, long, frame.Append(nil, f, true))
			check.NoError(t, err)
			w.Late(ship, hq, d)
			w.Run(5 * time.Second)
		}
		hello := frame.Hello{Store: 1, Stream: 1, HeardIncarnation: hq.Incarnation(), HeardStream: 1, First: [frame.Queues]uint16{1, 1}, Segments: knows}
		say(true, hello)
		hello.HeardStream = 2 // it has lost its store, so that a stream begins
		say(true, hello)
		*h = heard{}
		hq.Site.Send(w, track(1, pipeShip, 1, 3000), ship.ID)
		w.Run(10 * time.Second)
		check.True(t, "segments, or NORM", knows == (h.segments > 0) && knows == (h.norm == 0), knows, *h)
		if knows { // another version was installed
			*h = heard{}
			hello.Segments = false
			say(true, hello)
			w.Run(30 * time.Second)
			check.True(t, "NORM from now on", h.segments == 0 && h.norm > 0, *h)
		}
	}
}

// Whatever segments a member of the network sends, their traces in memory and journal are bounded, each refusal is counted, and the
// next honest message is read.
func TestHostileSegments(t *testing.T) {
	w := world(t, 2, "iridium-certus-100", 4)
	hq, ship := w.Nodes[0], w.Nodes[1]
	w.Run(time.Minute)
	incarnation := ship.Incarnation()
	w.Kill(ship, 1000*time.Hour)
	s := seal.NewSealer(seal.Key{1, 2, 3}, ship.ID, seal.Incarnation{Number: incarnation + 1, Salt: 7})
	number := uint16(0)
	say := func(long bool, list ...frame.Frame) {
		var body []byte
		for _, f := range list {
			body = frame.Append(body, f, false)
		}
		d, err := s.Seal(nil, hq.ID, long, body)
		check.NoError(t, err)
		w.Late(ship, hq, d)
		w.Run(100 * time.Millisecond)
	}
	say(true, frame.Hello{Store: 99, Stream: 1, HeardIncarnation: hq.Incarnation(), HeardStream: 1, First: [frame.Queues]uint16{1, 1}, Segments: true})
	part := func(object uint8, total, octets int) {
		number++
		say(false, frame.Segment{Number: number, Object: object, Total: total, Body: make([]byte, octets)})
	}
	part(1, 0, 10)                   // no first
	part(1, segment.MaxObject+1, 10) // too long
	part(1, 5, 10)                   // longer than it says
	for object := range uint8(60) {  // more than may be open
		part(object+1, segment.MaxObject, 60_000)
	}
	kept := 0
	for _, r := range hq.Journal() {
		if r.Bucket == "piece" || r.Bucket == "early" {
			kept += len(r.Value)
		}
	}
	dropped := hq.GW.Status(w.Now).Dropped
	check.True(t, "the journal is bounded", kept <= segment.MostHeld+segment.MaxObject, kept)
	check.Equal(t, "orphans", dropped["piece_orphan"], uint64(1))
	check.Equal(t, "too long", dropped["piece_large"], uint64(2))
	check.Equal(t, "given up for others", dropped["piece_room"], uint64(60-segment.MostOpen))
	got := len(hq.Site.Got)
	part(90, 40, 20)
	number++
	say(false, frame.Segment{Number: number, Object: 90, Body: make([]byte, 20)}) // no envelope: it is counted as unreadable, or beyond
	check.Equal(t, "delivered of it", len(hq.Site.Got), got)
}
