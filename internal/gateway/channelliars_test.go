package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/pmul"
)

// channelLiar is a fifth member of four on hf-2400. Once it has a voice, nothing that it says comes from a gateway.
type channelLiar struct {
	*sim.World
	t      *testing.T
	node   *sim.Node
	sealer *seal.Sealer
	rng    *rand.Rand
	number uint8                         // of its turn
	latest map[uint16]pmul.MessageID     // the highest of each of the others that it has heard
	lost   func(from, to *sim.Node) bool // on the air; nil: nothing besides
	deaf   uint16                        // nodes up to this one do not hear each other; 0: all do
}

// voice ends the fifth gateway, and lets the liar speak in its name.
func (l *channelLiar) voice() {
	l.Kill(l.node, 1000*time.Hour)
	l.sealer = seal.NewSealer(seal.Key{1, 2, 3}, l.node.ID, seal.Incarnation{Number: l.node.Incarnation() + 1, Salt: 7})
}

// say transmits PDUs to all.
func (l *channelLiar) say(pdus ...pmul.PDU) {
	body, err := pmul.AppendCompact(nil, pmul.NodeID(l.node.ID), 0, pdus...)
	check.NoError(check.Fatal(l.t), err)
	data, err := l.sealer.Seal(nil, seal.Group, true, frame.Append(nil, frame.PMul{Body: body}, true))
	check.NoError(check.Fatal(l.t), err)
	l.Transmit(l.node, data)
}

// turn says whose turn it is.
func (l *channelLiar) turn(left time.Duration, next uint16) {
	l.say(pmul.TurnPDU{Source: pmul.NodeID(l.node.ID), Number: l.number, Left: left, Next: pmul.NodeID(next), More: true})
}

// every lets something happen again and again until the load is over.
func (l *channelLiar) every(d time.Duration, do func()) {
	for at := d; at < liarsFor; at += d {
		l.At(at, do)
	}
}

// liar is what a member, or an accident, does to the others.
type liar struct {
	name  string
	too   bool   // it is a receiver of all messages
	named string // in one line of the log of each of the others; "": nobody can know
	setUp func(*sim.Config)
	lie   func(l *channelLiar)
}

var channelLiars = []liar{
	{name: "never gives the floor up", named: "takes turn after turn", lie: func(l *channelLiar) {
		l.voice()
		l.every(5*time.Second, func() { l.number++; l.turn(time.Minute, l.node.ID) })
	}},
	{name: "repeats one turn for ever", lie: func(l *channelLiar) { // the next turn of another overtakes it
		l.voice()
		l.every(20*time.Second, func() { l.turn(time.Minute, l.node.ID) })
	}},
	{name: "takes every turn", named: "takes turn after turn", lie: func(l *channelLiar) {
		l.voice()
		l.every(10*time.Second, func() { l.number += 3; l.turn(45*time.Second, 1) })
	}},
	{name: "acknowledges what it has not", too: true, named: "acknowledges messages that this node has not sent", lie: func(l *channelLiar) {
		l.voice()
		l.every(20*time.Second, func() {
			for of, id := range l.latest {
				ack := pmul.AckPDU{Source: pmul.NodeID(l.node.ID), Runs: true}
				for k := range pmul.MessageID(100) {
					ack.Entries = append(ack.Entries, pmul.AckEntry{Source: pmul.NodeID(of), Message: id + 5 + k})
				}
				l.say(ack)
			}
		})
	}},
	{name: "believes in a rate a hundred times too high", setUp: func(c *sim.Config) {
		told := c.Profile
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			if n.ID == 5 {
				g.Profile = told
				g.Profile.Up.RateBps, g.Profile.Down.RateBps = 100*told.Up.RateBps, 100*told.Down.RateBps
			}
		}
	}, lie: func(l *channelLiar) {
		tracks(l.World, l.node, []uint16{1, 2, 3, 4}, 120, 200, 10*time.Second)
	}},
	{name: "two believe to be first", lie: func(l *channelLiar) {
		until := l.Now.Add(liarsFor / 2)
		l.deaf = 2
		l.lost = func(from, to *sim.Node) bool { return l.Now.Before(until) && from.ID+to.ID == 3 }
	}},
	{name: "a clock runs one percent fast", lie: func(l *channelLiar) {
		l.every(time.Second, func() { l.SetClock(l.Nodes[1], 10*time.Millisecond) })
	}},
	{name: "a third radio talks over both", lie: func(l *channelLiar) {
		l.voice()
		var until time.Time
		l.lost = func(_, _ *sim.Node) bool { return l.Now.Before(until) }
		l.every(time.Minute, func() { until = l.Now.Add(5 * time.Second) }) // whatever ends then was on the air meanwhile
	}},
}

// besideLiar has four sites offer for liarsFor all that hf-2400 has, each to the three others, beside something that lie does. It
// returns the goodput in percent of the rate, of those that hear each other as if it were that of all, how many messages never came, and what was logged.
func besideLiar(t *testing.T, seed uint64, toAll bool, setUp func(*sim.Config), lie func(l *channelLiar)) (goodput float64, missing int, notes []string) {
	t.Helper()
	l := &channelLiar{t: t, rng: rand.New(rand.NewPCG(seed, 5)), latest: map[uint16]pmul.MessageID{}}
	ears := newEars(5)
	l.World = onChannel(t, 5, seed, func(c *sim.Config) {
		if setUp != nil {
			setUp(c)
		}
		c.LAN = func(n *sim.Node, out api.Output) {
			for _, d := range out.Datagrams {
				if _, _, frames := ears.open(n.ID, d); n.ID < 5 {
					l.hear(n, frames)
				}
			}
		}
	})
	l.node = l.Nodes[4]
	l.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if l.lost != nil && l.lost(from, to) {
			return nil
		}
		return [][]byte{data}
	}
	before := len(l.Notes)
	lie(l)
	every := time.Duration(float64(profile.Airtime(200, 2400)) * 4)
	n := int(liarsFor / every)
	for i, from := range l.Nodes[:4] {
		var to []uint16
		for _, o := range l.Nodes {
			if o != from && (o != l.node || toAll) {
				to = append(to, o.ID)
			}
		}
		l.At(every*time.Duration(i)/4, func() { tracks(l.World, from, to, n, 200, every) })
	}
	came := func(deaf uint16) (got int) {
		for _, n := range l.Nodes[:4] {
			for _, g := range n.Site.Got {
				if g.From != 5 && max(n.ID, g.From) > deaf {
					got++
				}
			}
		}
		return got
	}
	l.Run(liarsFor)
	pairs := 12
	if l.deaf > 0 {
		pairs -= int(l.deaf) * int(l.deaf-1)
	}
	goodput = 100 * float64(came(l.deaf)*200*8) * 4 / float64(pairs) / liarsFor.Seconds() / 2400
	for wait := 0; came(0) < 12*n && wait < 300; wait++ {
		l.Run(20 * time.Second)
	}
	return goodput, 12*n - came(0), l.Notes[before:]
}

// hear takes down the numbers of messages of another member.
func (l *channelLiar) hear(n *sim.Node, frames []frame.Frame) {
	for _, f := range frames {
		if p, ok := f.(frame.PMul); ok {
			pdus, err := pmul.ParseCompact(p.Body, pmul.NodeID(n.ID), 0)
			check.NoError(l.t, err)
			for _, pdu := range pdus {
				if a, ok := pdu.(pmul.AddressPDU); ok && a.Source == pmul.NodeID(n.ID) {
					l.latest[n.ID] = a.Message
				}
			}
		}
	}
}

// TestChannelLiars: whatever one member says of turns, acknowledgements and rates, and whatever accident befalls the channel, the others
// keep two thirds of their goodput, in the mean of the seeds, and lose nothing. A liar is named in one line of each log, where the others
// can know; nobody else is. Seed 1, for ten minutes; 1 to 5, for twenty, with the tag long.
func TestChannelLiars(t *testing.T) {
	var mu sync.Mutex
	var alone float64
	beside := make([]float64, len(channelLiars))
	t.Run("seeds", func(t *testing.T) {
		for seed := uint64(1); seed <= seeds(5); seed++ {
			silent, missing, notes := besideLiar(t, seed, false, nil, func(l *channelLiar) { l.voice() })
			check.Equal(t, "missing beside a member that is silent", missing, 0)
			check.Equal(t, "accused beside a member that is silent", len(accusing(notes)), 0)
			alone += silent
			for i, tt := range channelLiars {
				t.Run(fmt.Sprintf("%s, seed %d", tt.name, seed), func(t *testing.T) {
					t.Parallel()
					goodput, missing, notes := besideLiar(t, seed, tt.too, tt.setUp, tt.lie)
					t.Logf("%.1f %% of the rate; %.1f beside a member that is silent", goodput, silent)
					mu.Lock()
					beside[i] += goodput
					mu.Unlock()
					check.Equal(t, "messages that never came", missing, 0)
					tt.isNamed(t, accusing(notes))
				})
			}
		}
	})
	for i, tt := range channelLiars {
		check.True(t, tt.name+": two thirds of the goodput", beside[i] >= alone*2/3, beside[i]/alone)
	}
}

// isNamed checks who is accused.
func (l *liar) isNamed(t *testing.T, accusing []string) {
	t.Helper()
	if l.named == "" {
		check.Equal(t, "lines of accusation", len(accusing), 0)
		return
	}
	for _, name := range []string{"hq", "ship1", "ship2", "ship3"} {
		lines := 0
		for _, note := range accusing {
			if strings.Fields(note)[1] == name {
				lines++
				check.Contains(t, "the line of "+name, note, l.named)
				check.Contains(t, "the line of "+name, note, "peer ship4")
			}
		}
		check.Equal(t, "lines of "+name, lines, 1)
	}
}

// accusing are the lines of a log that name a peer for what it does on the channel.
func accusing(notes []string) (list []string) {
	for _, note := range notes {
		if strings.Contains(note, "warn: a peer takes turn after turn") || strings.Contains(note, "warn: a peer acknowledges messages") {
			list = append(list, note)
		}
	}
	return list
}
