package air

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// relayLiar acts for a relay that lies: it sends capsules of its own making, under the relay's valid key.
type relayLiar struct {
	rng  *rand.Rand
	seen []site.Message // capsules that the relay has had
	todo []site.Carry
}

func (l *relayLiar) Step(time.Time, site.Event) (out site.Output) {
	out.Carry, l.todo = l.todo, nil
	return out
}

func (l *relayLiar) DescribeItem(site.Item) site.Subject { return site.Subject{} }

func (l *relayLiar) DescribeMessage(*site.Message) site.Subject { return site.Subject{} }

type lied struct{}

func (lied) AdapterEvent() {}

// see keeps the capsules that the relay has in custody.
func (l *relayLiar) see(out api.Output) {
	for _, r := range out.Records {
		if r.Bucket != "mail" || r.Value == nil || len(l.seen) > 500 {
			continue
		}
		full, _ := envelope.CutAccepted(r.Value)
		if m, _, _, err := envelope.Parse(full, nil); err == nil && m.Payload != nil && m.Payload.Adapter == site.Relay {
			l.seen = append(l.seen, *m.Payload)
		}
	}
}

// lie forges one capsule from those the relay has seen, and names the node to which it goes.
func (l *relayLiar) lie(n int) (m site.Message, to uint16) {
	m = l.seen[l.rng.IntN(len(l.seen))]
	data := slices.Clone(m.Parts[0].Data)
	m.Parts = []site.Part{{Type: m.Parts[0].Type, Data: data}}
	to = 3
	if m.To == "1" {
		to = 1
	}
	any := func() { data[1+l.rng.IntN(len(data)-1)] ^= byte(1 + l.rng.IntN(255)) }
	switch n % 7 {
	case 0: // changed
		any()
	case 1: // replayed
	case 2: // another number
		data[2] += byte(1 + l.rng.IntN(100))
	case 3: // invented: a message or a receipt
		data = append(data[:0], byte(1|(n/7%4)<<4))
		for range 8 + l.rng.IntN(60) {
			data = append(data, byte(l.rng.Uint32()))
		}
		m.Parts[0].Data = data
		if data[0]>>4%3 == 0 {
			m.Param = "1"
		} else {
			m.Param = ""
		}
		if data[0]>>4 == 3 {
			m.Param = "1"
		}
	case 4: // in the name of another node, and of no node
		m.From = []string{"2", "4", "9", "65535"}[l.rng.IntN(4)]
	case 5: // given back to its origin as if it came from the other side
		m.From, m.To, to = m.To, m.From, 4-to
	case 6: // with other words in clear text
		m.Precedence = site.Precedence(1 + l.rng.IntN(5))
		if m.Param != "" {
			m.Param = fmt.Sprint(1 + l.rng.IntN(9))
		}
	}
	return m, to
}

// Lies lets two gateways send each other 20 messages through two relays, one of which lies so many times, a hundred times a second. It is an
// error if a gateway accepts a lie, if a kind of lie is neither counted nor logged with the relay's name, or if a message does not arrive
// exactly once and with one state.
func Lies(ctx Context, seed uint64, lies int) error {
	l := &relayLiar{rng: rand.New(rand.NewPCG(seed-1, 8))}
	s, err := newNet(ctx, "wire", 4, seed, through(func(id uint16) bool { return id == 2 || id == 4 }, func(id, peer uint16) []uint16 {
		if id+peer == 4 {
			return []uint16{2, 4}
		}
		return nil
	}), func(c *sim.Config) {
		configure := c.Configure
		c.Configure = func(n *sim.Node, g *sim.Setup) {
			if configure(n, g); n.ID == 2 {
				g.Adapters[site.Relay] = func([]site.Memory) (sim.Adapter, error) { return l, nil }
			}
		}
		c.Committed = func(n *sim.Node, out api.Output) {
			if n.ID == 2 {
				l.see(out)
			}
		}
	})
	if err != nil {
		return err
	}
	s.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if from.ID+to.ID == 4 {
			return nil
		}
		return [][]byte{data}
	}
	a, b, c := s.Nodes[0], s.Nodes[1], s.Nodes[2]
	there, back := say(s, a, []uint16{3}, 20, 200, 20*time.Second), say(s, c, []uint16{1}, 20, 200, 20*time.Second)
	s.run(100 * time.Second)
	for n := range lies {
		s.At(time.Duration(n)*10*time.Millisecond, func() {
			m, to := l.lie(n)
			l.todo = append(l.todo, site.Carry{Sites: []uint16{to}, Message: m})
			s.DeliverLAN(b, site.Relay, lied{})
		})
	}
	s.run(10*time.Hour + time.Duration(lies)*10*time.Millisecond)
	_, err = onceEnded(s, c, a, *there)
	_, err2 := onceEnded(s, a, c, *back)
	err = errors.Join(err, err2)
	for _, kind := range []string{"relay_changed", "relay_replayed", "relay_stranger"} {
		for _, n := range []*sim.Node{a, c} {
			if n.GW.Status(s.Now).Dropped[kind] == 0 {
				err = errors.Join(err, fmt.Errorf("%s does not count %s", n.Name, kind))
			}
		}
	}
	log := strings.Join(s.Notes, "\n")
	for _, words := range []string{"a relay has passed on what its origin did not seal so [relay ship1 origin ", "a relay has passed on what had come before [relay ship1",
		"a relay has passed on what is of no known node [relay ship1"} {
		if !strings.Contains(log, words) {
			err = errors.Join(err, errors.New("the log does not say: "+words))
		}
	}
	return err
}
