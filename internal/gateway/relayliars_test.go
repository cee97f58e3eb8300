package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// relayLiar is a relay's hand in the custody of its gateway: it sends capsules of its own making on, with the relay's valid key.
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

// lie makes one lie of what the relay has seen, and says to whom it goes.
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
	case 4: // in the name of another, and of nobody
		m.From = []string{"2", "4", "9", "65535"}[l.rng.IntN(4)]
	case 5: // given back to its origin as the other's
		m.From, m.To, to = m.To, m.From, 4-to
	case 6: // with other words in clear
		m.Precedence = site.Precedence(1 + l.rng.IntN(5))
		if m.Param != "" {
			m.Param = fmt.Sprint(1 + l.rng.IntN(9))
		}
	}
	return m, to
}

// A relay with a valid key changes, invents and replays messages and receipts as fast as it can. None is taken, each kind is counted and
// its relay named, and everything arrives, by another relay or when the lies have ended.
func TestARelayLies(t *testing.T) {
	lies := 3000
	if seeds(2) > 1 {
		lies = 100_000
	}
	for seed := range seeds(20) {
		var l *relayLiar
		w := world(t, 4, "wire", seed+1, func(c *sim.Config) {
			c.Roster = true
			l = &relayLiar{rng: rand.New(rand.NewPCG(seed, 8))}
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 2 || n.ID == 4
				for i := range g.Peers {
					if p := &g.Peers[i]; (n.ID + p.ID) == 4 {
						p.Addr, p.Via = netip.AddrPort{}, []uint16{2, 4}
					}
				}
				if n.ID == 2 {
					g.Adapters[site.Relay] = func([]site.Memory) (gateway.Adapter, error) { return l, nil }
				}
			}
			c.Committed = func(n *sim.Node, out api.Output) {
				if n.ID == 2 {
					l.see(out)
				}
			}
		})
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from.ID+to.ID == 4 {
				return nil
			}
			return [][]byte{data}
		}
		a, b, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		there, back := tracks(w, a, []uint16{3}, 20, 200, 20*time.Second), tracks(w, c, []uint16{1}, 20, 200, 20*time.Second)
		w.Run(100 * time.Second)
		for n := range lies {
			w.At(time.Duration(n)*10*time.Millisecond, func() {
				m, to := l.lie(n)
				l.todo = append(l.todo, site.Carry{Sites: []uint16{to}, Message: m})
				w.DeliverLAN(b, site.Relay, lied{})
			})
		}
		w.Run(10*time.Hour + time.Duration(lies)*10*time.Millisecond)
		once(t, w, c.Site, 1, *there)
		once(t, w, a.Site, 3, *back)
		ends(t, w, a, 3, 20)
		ends(t, w, c, 1, 20)
		log := strings.Join(w.Notes, "\n")
		for _, n := range []*sim.Node{a, c} {
			t.Log(n.Name, n.GW.Status(w.Now).Dropped)
			for _, kind := range []string{"relay_changed", "relay_replayed", "relay_stranger"} {
				check.True(t, n.Name+" counts "+kind, n.GW.Status(w.Now).Dropped[kind] > 0)
			}
		}
		for _, words := range []string{"a relay has passed on what its origin did not seal so [relay ship1 origin ", "a relay has passed on what had come before [relay ship1",
			"a relay has passed on what is of no known node [relay ship1"} {
			check.True(t, "the log names it: "+words, strings.Contains(log, words))
		}
	}
}

// A relay that takes messages and drops them is told by what it does: they stay under way with its name, and go by the next.
func TestARelayDrops(t *testing.T) {
	for seed := range seeds(20) {
		w := world(t, 4, "wire", seed+1, func(c *sim.Config) {
			c.Roster = true
			c.Configure = func(n *sim.Node, g *gateway.Config) {
				g.Relay = n.ID == 4
				for i := range g.Peers {
					if p := &g.Peers[i]; (n.ID + p.ID) == 4 {
						p.Addr, p.Via = netip.AddrPort{}, []uint16{2, 4}
					}
				}
			}
		})
		drops := false
		w.Reconfigure(w.Nodes[1], func(g *gateway.Config) { g.Relay = true })
		w.Kill(w.Nodes[1], time.Second)
		w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
			if from.ID+to.ID == 4 {
				return nil
			}
			return [][]byte{data}
		}
		a, b, c := w.Nodes[0], w.Nodes[1], w.Nodes[2]
		there := tracks(w, a, []uint16{3}, 30, 200, 20*time.Second)
		w.At(5*time.Minute, func() { // from now on it takes and drops
			drops = true
			w.Reconfigure(b, func(g *gateway.Config) { g.Relay = false })
			w.Kill(b, time.Second)
		})
		w.Run(12 * time.Minute)
		check.True(t, "it drops", drops && len(c.Site.Got) < 30, len(c.Site.Got))
		shown := false
		list := a.GW.Messages()
		for _, id := range list.IDs() {
			if row, ok := list.Row(id); ok && row.State == "under_way" {
				shown = slices.ContainsFunc(row.Life, func(l api.LifeRow) bool { return l.What == "passed" && l.Detail == "ship1" && !l.At.IsZero() })
			}
		}
		check.True(t, "the message is under way, and its life says that the relay has it", shown)
		w.Run(3 * time.Hour)
		once(t, w, c.Site, 1, *there)
		ends(t, w, a, 3, 30)
	}
}

// Origin, relay and recipient die at any commit: nothing is lost, nothing comes twice.
func TestARelayAndItsEndsDie(t *testing.T) {
	for seed := range seeds(20) {
		for _, name := range []string{"iridium-certus-100", "hf-2400"} {
			w := chain(t, 3, name, seed+1, func(c *sim.Config) { c.CrashBeforeCommit, c.CrashAfterCommit = 0.02, 0.02 })
			a, c := w.Nodes[0], w.Nodes[2]
			there, back := tracks(w, a, []uint16{3}, 40, 200, 20*time.Second), tracks(w, c, []uint16{1}, 40, 200, 20*time.Second)
			w.Run(time.Hour)
			w.EndCrashes()
			w.Run(9 * time.Hour)
			once(t, w, c.Site, 1, *there)
			once(t, w, a.Site, 3, *back)
		}
	}
}

// ring is nodes that all hear each other, each named as relay for every other, one of them with a way that leads back.
func ring(t *testing.T, nodes int, seed uint64, second bool) *sim.World {
	t.Helper()
	return world(t, nodes, "iridium-certus-100", seed, func(c *sim.Config) {
		c.Roster = true
		if second {
			c.Second = &sim.Second{Name: "other", Profile: load(t, "iridium-certus-100"), Wire: load(t, "wire"), Price: 2}
		}
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = true
			for i := range g.Peers {
				for _, other := range g.Peers {
					if other.ID != g.Peers[i].ID {
						g.Peers[i].Via = append(g.Peers[i].Via, other.ID)
					}
				}
			}
		}
	})
}

// A ring of three, and a full mesh of five with two bearers, cost nothing while idle, and a message arrives once, also while links fail.
func TestARelayRing(t *testing.T) {
	for seed := range seeds(20) {
		for _, nodes := range []int{3, 5} {
			w := ring(t, nodes, seed+1, nodes == 5)
			all := func() (octets int64) {
				for bearer := range nodes / 2 {
					for _, n := range w.Nodes {
						octets += octetsOn(w, bearer, n)
					}
				}
				return octets
			}
			w.Run(time.Hour)
			before := all()
			w.Run(time.Hour)
			check.Equal(t, fmt.Sprintf("%d nodes: octets of an idle hour", nodes), all()-before, 0)
			to := []uint16{2, 3, 4, 5}[:nodes-1]
			sent := tracks(w, w.Nodes[0], to, 10, 200, time.Minute)
			w.At(3*time.Minute+30*time.Second, func() { w.Cut(0, w.Nodes[1], true) })
			w.At(8*time.Minute, func() { w.Cut(0, w.Nodes[1], false) })
			w.Run(5 * time.Hour)
			for _, id := range to {
				once(t, w, w.Nodes[id-1].Site, 1, *sent)
			}
			before = all()
			w.Run(time.Hour)
			check.Equal(t, fmt.Sprintf("%d nodes: octets of an idle hour after messages", nodes), all()-before, 0)
		}
	}
}

// The via keys of two relays name each other: a message for a third goes round once at the most, one line says so, and it waits for its
// recipient, whom one of them hears later.
func TestARelayCircle(t *testing.T) {
	w := world(t, 4, "wire", 1, func(c *sim.Config) {
		c.Roster = true
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			g.Relay = true
			for i := range g.Peers {
				if p := &g.Peers[i]; p.ID == 4 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{map[uint16]uint16{1: 2, 2: 3, 3: 2}[n.ID]}
				} else if n.ID+p.ID == 4 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{2}
				} else if n.ID == 4 && p.ID != 3 {
					p.Addr, p.Via = netip.AddrPort{}, []uint16{3}
				}
			}
		}
	})
	apart := true
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if apart && from.ID+to.ID >= 5 && (from.ID == 4 || to.ID == 4) || from.ID+to.ID == 4 {
			return nil
		}
		return [][]byte{data}
	}
	sent := tracks(w, w.Nodes[0], []uint16{4}, 1, 200, time.Minute)
	w.Run(30 * time.Minute)
	dropped := w.Nodes[2].GW.Status(w.Now).Dropped
	log := strings.Join(w.Notes, "\n")
	check.True(t, "it is told", strings.Contains(log, "ship2 warn: a message would go back to where it came from"), log)
	check.True(t, "it goes round no more than its origin sends", dropped["relay_back"] <= 12, dropped)
	apart = false
	w.Run(5 * time.Hour)
	once(t, w, w.Nodes[3].Site, 1, *sent)
}
