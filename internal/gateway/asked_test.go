package gateway_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/sim"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// seafarer is an edge peer at a node, in front of the real bridge.
type seafarer struct {
	*edgepeer.Peer
	w       *sim.World
	n       *sim.Node
	conn    site.ConnID
	due     time.Time
	answers map[string]time.Time // name of a document that was found -> when first
	heard   []string             // on its pipes
}

// crews are the peers at each node, by connection, and the bridges before which they are.
type crews struct {
	at      map[uint16]map[site.ConnID]*seafarer
	bridges map[uint16]*jxtabridge.Bridge
}

// peopled is a world of two gateways with real bridges, and a peer at each.
func peopled(t *testing.T, name string, rules func(id uint16) []filter.Rule) (w *sim.World, hq, ship *seafarer) {
	t.Helper()
	w, peers := crowded(t, 2, name, rules, jxtabridge.Complete)
	return w, peers.at[1][1], peers.at[2][2]
}

// crowded is peopled with more gateways and a view that all of them have, for tests where more peers come.
func crowded(t *testing.T, gateways int, name string, rules func(id uint16) []filter.Rule, view jxtabridge.View) (w *sim.World, peers crews) {
	t.Helper()
	peers = crews{map[uint16]map[site.ConnID]*seafarer{}, map[uint16]*jxtabridge.Bridge{}}
	for i := range gateways {
		peers.at[uint16(i+1)] = map[site.ConnID]*seafarer{}
	}
	w = world(t, gateways, name, 31, func(c *sim.Config) {
		c.Group = gateways > 2
		c.Configure = func(n *sim.Node, g *gateway.Config) {
			parts := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte{0xa1, 0xd1, 15: byte(n.ID)}}
			g.Filter = filter.New(rules(n.ID))
			cfg := jxtabridge.Config{Name: n.Name, Site: n.ID, Address: fmt.Sprintf("10.20.%d.1:9701", n.ID), Identity: jxtabridge.Identity{Peer: parts.Unique()},
				Hold: gateway.Hold(c.Profile), AskAfter: gateway.AskAfter(c.Profile), Filter: g.Filter, View: view, MaxPeers: 20_000}
			g.Adapters[site.JXTA] = func(memories []site.Memory) (gateway.Adapter, error) {
				peers.bridges[n.ID] = jxtabridge.New(cfg, memories)
				return peers.bridges[n.ID], nil
			}
		}
		c.LAN = func(n *sim.Node, out api.Output) {
			for _, o := range out.LAN {
				conn, _ := o.Order.Concerns()
				p := peers.at[n.ID][conn]
				switch o := o.Order.(type) {
				case jxtabridge.Welcome:
					p.w.At(0, func() { p.step(edgepeer.Welcomed{Welcome: o.Line}) })
				case jxtabridge.Send:
					body := slices.Clone(o.Body)
					p.w.At(0, func() {
						p.step(edgepeer.Received{Body: body})
						p.w.DeliverJXTA(n, jxtabridge.Written{Conn: o.Conn, Token: o.Token})
					})
				}
			}
		}
	})
	for i, n := range w.Nodes {
		peers.come(w, n, i+1, n.Name)
	}
	w.Run(2 * time.Minute)
	return w, peers
}

// crewID is the id of the peer with this number.
func crewID(number int) string {
	if number < 256 {
		return peerID(uint16(number))
	}
	parts := jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID}
	rng := rand.New(rand.NewPCG(31, uint64(number)))
	binary.BigEndian.PutUint64(parts.UUID[:8], rng.Uint64())
	binary.BigEndian.PutUint64(parts.UUID[8:], rng.Uint64())
	return parts.Unique()
}

// come brings a peer to a node: it dials in and takes a lease.
func (a crews) come(w *sim.World, n *sim.Node, number int, name string) *seafarer {
	p := &seafarer{w: w, n: n, conn: site.ConnID(number), answers: map[string]time.Time{}}
	p.Peer = edgepeer.New(edgepeer.Config{ID: crewID(number), Name: name, Rand: rand.New(rand.NewPCG(31, uint64(number-1)))})
	a.at[n.ID][p.conn] = p
	local := fmt.Sprintf("10.20.%d.2:%d", n.ID, 4710+number)
	w.DeliverJXTA(n, jxtabridge.Opened{Conn: p.conn, Remote: local})
	p.step(edgepeer.Dialled{Remote: fmt.Sprintf("10.20.%d.1:9701", n.ID), Local: local})
	return p
}

func (p *seafarer) step(ev edgepeer.Event) {
	out := p.Step(p.w.Now, ev)
	if line := out.Welcome; line != nil {
		p.w.At(0, func() { p.w.DeliverJXTA(p.n, jxtabridge.Welcomed{Conn: p.conn, Welcome: *line}) })
	}
	for _, body := range out.Send {
		p.w.At(0, func() { p.w.DeliverJXTA(p.n, jxtabridge.Received{Conn: p.conn, Body: body}) })
	}
	if at := out.Deadline; !at.IsZero() && !at.Equal(p.due) {
		p.due = at
		p.w.At(max(0, at.Sub(p.w.Now)), func() {
			if p.due.Equal(at) {
				p.due = time.Time{}
				p.step(nil)
			}
		})
	}
	for _, n := range out.Notices {
		if m, ok := n.(edgepeer.Message); ok {
			p.heard = append(p.heard, string(m.Elements[0].Data))
		}
		a, ok := n.(edgepeer.Answer)
		if !ok {
			continue
		}
		found, err := a.Found()
		if err != nil {
			panic(err)
		}
		for _, f := range found {
			_, rest, _ := strings.Cut(f.Doc, "<Name>")
			name, _, _ := strings.Cut(rest, "</Name>")
			if _, known := p.answers[name]; !known {
				p.answers[name] = p.w.Now
			}
		}
	}
}

func (p *seafarer) publish(doc string) {
	p.step(edgepeer.Publish{Doc: doc, Life: 2 * time.Hour})
}

// look asks as an application does, every 30 s, until found or d is over, and answers how long it took; 0: not found.
func (p *seafarer) look(value string, d time.Duration) time.Duration {
	return p.find(edgepeer.Query{Type: jxta.TypeAdv, Attr: "Name", Value: value, Threshold: 10}, value, d)
}

// find is look for documents with a name like this, by another question.
func (p *seafarer) find(q edgepeer.Query, pattern string, d time.Duration) time.Duration {
	begun := p.w.Now
	for p.w.Now.Sub(begun) < d {
		p.step(q)
		p.w.Run(30 * time.Second)
		for name, at := range p.answers {
			if filter.Match(pattern, name) {
				return max(time.Millisecond, at.Sub(begun))
			}
		}
	}
	return 0
}

// A document that nobody uses is found by a far peer that asks for it, one that is in use is there before; the rules may decide otherwise.
func TestFoundWhenAskedFor(t *testing.T) {
	none := func(uint16) []filter.Rule { return nil }
	for _, tt := range []struct {
		profile string
		within  time.Duration // an unused document, from the question
	}{{"iridium-directip", 12 * time.Second}, {"iridium-dialup", 12 * time.Second}, {"hf-2400", 25 * time.Second}} {
		w, hq, ship := peopled(t, tt.profile, none)
		hq.publish(edgepeer.Specification("used", pipeHQ, jxta.PipeTypePropagate))
		hq.step(edgepeer.Listen{Pipe: pipeHQ, Kind: jxta.PipeTypePropagate})
		for i := range 20 {
			hq.publish(edgepeer.Specification(fmt.Sprintf("unused %d", i), specPipe(i), jxta.PipeTypePropagate))
		}
		w.Run(time.Minute)
		if _, ok := ship.answers["used"]; !ok || len(ship.answers) != 1 {
			t.Fatalf("%s: unasked the ship has %v", tt.profile, ship.answers)
		}
		exact := ship.look("unused 7", 2*time.Minute)
		if exact == 0 || exact > tt.within || len(ship.answers) != 2 {
			t.Errorf("%s: found after %v; the ship has %d", tt.profile, exact, len(ship.answers))
		}
		pattern := ship.look("unused 1*", 2*time.Minute) // unused 1, 10 to 19
		w.Run(time.Minute)
		if pattern == 0 || len(ship.answers) != 13 {
			t.Errorf("%s: by pattern after %v; the ship has %d", tt.profile, pattern, len(ship.answers))
		}
		t.Logf("%s: what nobody uses is found %v after the question", tt.profile, exact)
		if missing := ship.look("nowhere", time.Minute); missing != 0 {
			t.Errorf("%s: found what is not there", tt.profile)
		}
	}
	w, hq, ship := peopled(t, "iridium-dialup", func(id uint16) []filter.Rule {
		if id != 1 {
			return nil
		}
		return []filter.Rule{{Name: "home*", Action: filter.Local}, {Name: "push*", Type: filter.Spec}}
	})
	for _, name := range []string{"home port", "push it", "plain"} {
		hq.publish(edgepeer.Specification(name, specPipe(len(name)), jxta.PipeTypePropagate))
	}
	w.Run(time.Minute)
	if _, ok := ship.answers["push it"]; !ok || len(ship.answers) != 1 {
		t.Errorf("unasked the ship has %v", ship.answers)
	}
	if d := ship.look("home port", 2*time.Minute); d != 0 {
		t.Errorf("what a rule keeps at home was found after %v", d)
	}
	if d := ship.look("plain", time.Minute); d == 0 {
		t.Error("what no rule is about was not found")
	}
}

// Pipes that peers only index (as the JXTA shell's talk has them), open or not, cost the link nothing until a far peer asks for
// one. Then it is there in ten seconds, by its name and by a pattern, at both sites.
func TestIndexedPipesAreFoundAcross(t *testing.T) {
	pipe := func(name string) string {
		return "<jxta:PipeAdvertisement><Id>" + jxta.URN(edgepeer.NamedPipe(name)) + "</Id><Type>JxtaUnicast</Type><Name>" + name + "</Name></jxta:PipeAdvertisement>"
	}
	play := func(indexed int) (w *sim.World, hq, ship *seafarer, octets int64) {
		w, hq, ship = peopled(t, "iridium-directip", func(uint16) []filter.Rule { return nil })
		for i := range indexed {
			for _, p := range []*seafarer{hq, ship} {
				name := fmt.Sprintf("JxtaTalkUserName.%s%d", p.n.Name, i)
				p.step(edgepeer.Publish{Doc: pipe(name), Index: true})
			}
		}
		w.Run(10 * time.Minute)
		up, down := w.Octets(w.Nodes[1])
		return w, hq, ship, up + down
	}
	_, _, _, plain := play(0)
	w, hq, ship, with := play(5)
	if with != plain {
		t.Errorf("indexed pipes that nobody asks for: %d octets, %d without them", with, plain)
	}
	for _, p := range []*seafarer{hq, ship} {
		other := map[*seafarer]string{hq: "ship1", ship: "hq"}[p]
		if took := p.look("JxtaTalkUserName."+other+"3", time.Minute); took == 0 || took > 10*time.Second {
			t.Errorf("%s: one by name found after %v", p.n.Name, took)
		}
		begun := w.Now
		p.look("JxtaTalkUserName.*", time.Minute)
		w.Run(time.Minute)
		last := slices.MaxFunc(slices.Collect(maps.Values(p.answers)), time.Time.Compare).Sub(begun)
		if len(p.answers) != 5 || last > 10*time.Second {
			t.Errorf("%s: by a pattern found after %v: %v", p.n.Name, last, p.answers)
		}
		t.Logf("%s: by a pattern found after %v", p.n.Name, last)
	}
	up, down := w.Octets(w.Nodes[1])
	t.Logf("two questions and five answers each way: %d octets", up+down-with)
}

func specPipe(i int) string {
	return fmt.Sprintf("uuid-59616261646162614E50472050325033%030X%02X04", 0xABCDEF, i+1)
}
