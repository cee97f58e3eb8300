package gateway_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// channelUse is where the air of a shared channel goes, in octets but for the times.
type channelUse struct {
	payload   int // of fragments that go for the first time
	again     int // of fragments that go again, and of shards
	addresses int // names of messages and of their recipients, besides fragments
	riding    int // acknowledgements beside fragments
	headers   int // IP, UDP, seals and heads of frames of the datagrams with fragments
	acks      int // datagrams with acknowledgements and nothing else
	asks      int // datagrams with questions and without fragments
	copies    int // datagrams of which every node has had another copy
	rest      int // all others: HELLOs, greetings

	datagrams, full, messages, repeats int // with fragments; with two messages; messages and repeats in them
	ackDatagrams, askDatagrams         int

	lasting          time.Duration
	busy, turnaround time.Duration
	turns            int64
}

// listener adds up what nodes hand to the channel.
type listener struct {
	ears ears
	sent map[pmul.Key]map[uint16]bool // fragments that have gone
	use  channelUse
}

func (l *listener) committed(n *sim.Node, out api.Output) {
	for _, d := range out.Datagrams {
		octets := len(d.Data) + profile.IPUDPOctets
		by, _, frames := l.ears.open(n.ID, d)
		if by == 0 {
			l.use.copies += octets
			continue
		}
		l.datagram(n.ID, by, octets, frames)
	}
}

func (l *listener) datagram(from, by uint16, octets int, frames []frame.Frame) {
	u := &l.use
	var payload, again, addresses, riding, messages, repeats int
	for _, f := range frames {
		body, ok := f.(frame.PMul)
		if !ok {
			continue
		}
		pdus, err := pmul.ParseCompact(body.Body, pmul.NodeID(from), pmul.NodeID(by))
		if err != nil {
			panic(err)
		}
		fragments := 0
		for _, p := range pdus {
			switch p := p.(type) {
			case pmul.DataPDU:
				key := pmul.Key{Source: p.Source, Message: p.Message}
				if l.sent[key] == nil {
					l.sent[key] = map[uint16]bool{}
				}
				if l.sent[key][p.Number] {
					again += len(p.Fragment)
					repeats++
				} else {
					payload += len(p.Fragment)
					messages++
				}
				l.sent[key][p.Number] = true
				fragments += len(p.Fragment)
			case pmul.ParityPDU:
				again += len(p.Shard)
				fragments += len(p.Shard)
			case pmul.AckPDU:
				b, err := pmul.AppendCompact(nil, pmul.NodeID(from), 0, p)
				if err != nil {
					panic(err)
				}
				riding += len(b)
			}
		}
		addresses += len(body.Body) - fragments - riding
	}
	switch {
	case payload+again > 0:
		u.payload, u.again, u.addresses, u.riding = u.payload+payload, u.again+again, u.addresses+addresses, u.riding+riding
		u.headers += octets - payload - again - addresses - riding
		u.datagrams++
		if messages+repeats > 1 {
			u.full++
		}
		u.messages, u.repeats = u.messages+messages, u.repeats+repeats
	case addresses > 0:
		u.asks += octets
		u.askDatagrams++
	case riding > 0:
		u.acks += octets
		u.ackDatagrams++
	default:
		u.rest += octets
	}
}

// String is a line for each part, in percent of the time.
func (u channelUse) String() string {
	p, err := profile.Load("hf-2400", nil)
	if err != nil {
		panic(err)
	}
	share := func(octets int) float64 {
		return 100 * profile.Airtime(octets, p.Up.RateBps).Seconds() / u.lasting.Seconds()
	}
	idle := u.lasting - u.busy - u.turnaround
	return fmt.Sprintf("payload %.1f %%, again %.1f, addresses %.1f, headers %.1f, acks riding %.1f; acks alone %.1f (%d datagrams), questions %.1f (%d), copies %.1f, rest %.1f; changes of talker %.1f (%d, %.1f s of talk each), idle %.1f; %d datagrams with fragments, %d with two or more, %d messages, %d repeats",
		share(u.payload), share(u.again), share(u.addresses), share(u.headers), share(u.riding), share(u.acks), u.ackDatagrams, share(u.asks), u.askDatagrams, share(u.copies), share(u.rest),
		100*u.turnaround.Seconds()/u.lasting.Seconds(), u.turns, u.busy.Seconds()/float64(max(u.turns, 1)), 100*idle.Seconds()/u.lasting.Seconds(),
		u.datagrams, u.full, u.messages, u.repeats)
}

// TestChannelUse: where the air of a shared channel goes when four sites offer messages to all. While all have much to say, turns
// are long, and neither acknowledgements nor questions need datagrams of their own.
func TestChannelUse(t *testing.T) {
	t.Parallel()
	for _, share := range []float64{0.5, 1, 3} {
		use := channelUseOf(t, 4, 1, share, 10*time.Minute)
		t.Logf("hf-2400, 4 sites, %.0f %% offered: %v", 100*share, use)
		if share >= 1 && (use.busy < time.Duration(use.turns)*15*time.Second || 50*(use.acks+use.asks) > use.payload) {
			t.Errorf("%.0f %% offered: %v", 100*share, use)
		}
	}
}

// A site that goes silent while all have much to say sends nothing, the others go on, and all arrives in the end.
func TestChannelWithASilentSite(t *testing.T) {
	w := onChannel(t, 4, 1)
	silent := w.Nodes[2]
	n := offerAll(w, 1, 5*time.Minute, load(t, "hf-2400"))
	w.Run(2 * time.Minute)
	order(w, silent, api.Silence{On: true})
	w.Run(time.Minute) // what its radio has leaves
	another := func() int64 { return w.Link.Stats().Node(w.Nodes[1].Name).Up.OnAir.Octets }
	before, others := frames(w, silent), another()
	w.Run(5 * time.Minute)
	check.Equal(t, "datagrams of the silent site", frames(w, silent)-before, 0)
	check.True(t, "octets of another, 20 datagrams of the usual size", another()-others > 20*508, another()-others)
	order(w, silent, api.Silence{})
	w.Run(time.Hour)
	for _, at := range w.Nodes {
		count := map[string]int{}
		for _, g := range at.Site.Got {
			count[string(g.Payload.Parts[0].Data)]++
		}
		check.Equal(t, at.Name+" has different messages", len(count), 3*n)
		check.Equal(t, at.Name+" has messages", len(at.Site.Got), 3*n)
	}
}

func channelUseOf(t *testing.T, nodes int, seed uint64, share float64, lasting time.Duration) channelUse {
	l := &listener{ears: newEars(nodes), sent: map[pmul.Key]map[uint16]bool{}}
	var w *sim.World
	var before, after channelUse
	note := func(u *channelUse) {
		*u = l.use
		s := w.Link.Stats().Channel
		u.busy, u.turnaround, u.turns = s.Busy, s.Turnaround, s.Turns
	}
	w = onChannel(t, nodes, seed, func(c *sim.Config) { c.Committed = l.committed })
	note(&before)
	offerAll(w, share, lasting, load(t, "hf-2400"))
	w.Run(lasting + time.Second)
	note(&after)
	return after.since(before, lasting)
}

func (u channelUse) since(b channelUse, lasting time.Duration) channelUse {
	u.payload, u.again, u.addresses, u.riding, u.headers = u.payload-b.payload, u.again-b.again, u.addresses-b.addresses, u.riding-b.riding, u.headers-b.headers
	u.acks, u.asks, u.copies, u.rest = u.acks-b.acks, u.asks-b.asks, u.copies-b.copies, u.rest-b.rest
	u.busy, u.turnaround, u.turns, u.lasting = u.busy-b.busy, u.turnaround-b.turnaround, u.turns-b.turns, lasting
	return u
}
