package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/envelope"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Each mistake of a fleet is reported in one line, by gateway check or in the log, and nothing is lost.
func TestBadInputOfAFleet(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1, "")
	checked := func(change ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			text := fmt.Sprintf("[node]\nid = 1\nname = \"hq\"\ndata_dir = %q\n[lan]\ntcp = \"127.0.0.1:9701\"\n[[link]]\nname = \"sat\"\nprofile = \"iridium-certus-100\"\nlisten = \"127.0.0.1:7142\"\nkey_file = \"net.key\"\n"+
				"[[link.peer]]\nid = 2\nname = \"ship1\"\naddress = \"10.0.0.2:7142\"\n[[link.peer]]\nid = 3\nname = \"ship2\"\n"+
				"[[link]]\nname = \"hf\"\nprofile = \"hf-2400\"\nprice = 2\nlisten = \"127.0.0.1:7143\"\n[[link.peer]]\nid = 2\naddress = \"10.0.1.2:7142\"\n", s.dir+"/data")
			file := t.TempDir() + "/gateway.toml"
			check.NoError(check.Fatal(t), os.WriteFile(file, []byte(strings.NewReplacer(change...).Replace(text)), 0o600))
			key, err := os.ReadFile(s.dir + "/net.key")
			check.NoError(check.Fatal(t), err)
			check.NoError(check.Fatal(t), os.WriteFile(file[:strings.LastIndex(file, "/")]+"/net.key", key, 0o600))
			_, out, errs := run(t, "check", "-c", file)
			return out + errs
		}
	}
	const last = "address = \"10.0.1.2:7142\"\n"
	for _, tt := range []struct {
		name, want string
		play       func(*testing.T) string // returns the gateway's output
	}{
		{"two bearers with one address", "link.listen: 127.0.0.1:7142 is there twice, first in line 10", checked("127.0.0.1:7143", "127.0.0.1:7142")},
		{"an address of another's bearer", "link.peer.address: 10.0.0.2:7142 is there twice", checked("10.0.1.2", "10.0.0.2")},
		{"a rule that no bearer meets", "no link that it names reaches ship2", checked(last, last+"[[route]]\nsites = \"ship2\"\nlinks = \"hf\"\n")},
		{"a rule that no bearer meets in time", "asks for 1s, and the fastest link that it names takes", checked(last, last+"[[route]]\nlinks = \"hf\"\nwithin = \"1s\"\n")},
		{"a circle of relays", "are a circle: each goes via the other", checked("address = \"10.0.0.2:7142\"", "via = \"ship2\"", "name = \"ship2\"", "name = \"ship2\"\nvia = \"ship1\"", last, "")},
		{"a bearer whose network is gone", "the network of a link is not there; the link is used once it is", absentNetwork},
		{"a roster that is older", "not newer than the one in use", oldRoster},
		{"a roster of another authority, and one that names an id twice", "a new node brought a roster that was rejected", forgedRosters},
		{"an address of another in a roster", "the roster gives a new peer the address of another", takenAddress},
		{"a hop count that lies", "it says that four gateways have had it", lyingHops},
		{"clocks a day apart", "a peer's start lies ahead of this clock", clocksApart},
	} {
		t.Run(tt.name, func(t *testing.T) {
			said := tt.play(t)
			check.Equal(t, "lines that say so in\n"+said, strings.Count(said, tt.want), 1)
		})
	}
}

// absentNetwork runs two gateways, one of which has a cheaper bearer on an address that does not exist: messages take the other
// bearer.
func absentNetwork(t *testing.T) string {
	sat := newCable(t)
	_, gateways := linked(t, func(i int) string {
		more := fmt.Sprintf("[[link]]\nname = \"uhf\"\nprofile = \"vhf-cnr-16k\"\nlisten = \"198.51.100.%d:7142\"\n[[link.peer]]\nid = %d\naddress = \"198.51.100.%d:7142\"\n", i+1, 2-i, 2-i)
		return sat.of(i, "sat", "iridium-certus-100", "key_file = \"net.key\"\nprice = 3\n") + more
	})
	a, b := gateways[0], gateways[1]
	b.until(t, "its peer is up", func() bool { return b.peer(t).Bearers[0].Link == "up" })
	k := newTalk(t, a, b)
	b.until(t, "the listener is known", func() bool { return b.peer(t).FarItems > 0 })
	check.NoError(check.Fatal(t), k.say("text-0"))
	a.until(t, "it arrives by the other bearer", func() bool { return k.there.all() == "text-0" })
	check.Equal(t, "exit", b.stop(t, syscall.SIGTERM), 0)
	return b.logged()
}

// fleetWorld is gateways in virtual time that know each other from rosters; the last ones, as many as later says, join later.
func fleetWorld(t *testing.T, nodes, later int, configure func(*sim.Node, *gateway.Config), change func(*sim.Config)) *sim.World {
	p, err := profile.Load("iridium-certus-100", nil)
	check.NoError(check.Fatal(t), err)
	wire, err := profile.Load("wire", nil)
	check.NoError(check.Fatal(t), err)
	cfg := sim.Config{Nodes: nodes, Profile: p, Wire: wire, Seed: 1, Roster: true, Later: later, Configure: configure}
	if change != nil {
		change(&cfg)
	}
	w, err := sim.New(cfg)
	check.NoError(check.Fatal(t), err)
	return w
}

// arrives sends a message from one node to another, and checks that it arrives within a time.
func arrives(t *testing.T, w *sim.World, from, to *sim.Node, within time.Duration) {
	t.Helper()
	before := len(to.Site.Got)
	from.Site.Send(w, air.Track(from.ID, air.Pipe, before, 200), to.ID)
	w.Run(within)
	check.Equal(t, "messages that arrived", len(to.Site.Got), before+1)
}

func said(w *sim.World) string { return strings.Join(w.Notes, "\n") }

// issue signs a roster that names nodes.
func issue(t *testing.T, before *roster.Roster, list []roster.Node, by *seal.SigningKey) *roster.Roster {
	t.Helper()
	r, err := roster.Issue("sim", before, list, sim.Epoch, time.Time{}, [roster.RandomForIssue]byte{9}, by)
	check.NoError(check.Fatal(t), err)
	return r
}

func oldRoster(t *testing.T) string {
	w := fleetWorld(t, 2, 0, nil, nil)
	w.Run(time.Minute)
	w.Give(w.Nodes[0], gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
	w.Run(10 * time.Minute)
	w.Give(w.Nodes[0], gateway.NewRoster{Roster: w.First()})
	arrives(t, w, w.Nodes[1], w.Nodes[0], time.Minute)
	return w.Nodes[0].GW.Status(w.Now).Roster.Refusal + "\n"
}

func forgedRosters(t *testing.T) string {
	w := fleetWorld(t, 3, 1, nil, nil)
	w.Run(time.Minute)
	var list []roster.Node
	for _, n := range w.Nodes {
		list = append(list, roster.Node{ID: n.ID, Name: n.Name, Public: sim.NodeKey(n.ID).Public()})
	}
	forged := issue(t, w.First(), list, seal.NewSigningKey([32]byte{7}))
	e, err := forged.Epoch(3, sim.NodeKey(3))
	check.NoError(check.Fatal(t), err)
	for range 20 {
		for _, data := range seal.IntroParts(forged.Introduction(0, e.Secret), 480) {
			w.Inject(w.Nodes[0], data)
		}
		w.Run(2 * time.Second)
	}
	list[2].ID = 2
	if _, err := roster.Issue("sim", w.First(), list, sim.Epoch, time.Time{}, [roster.RandomForIssue]byte{9}, sim.Authority()); err == nil {
		t.Error("an authority signs a roster that names an id twice")
	}
	arrives(t, w, w.Nodes[1], w.Nodes[0], time.Minute)
	return said(w)
}

func takenAddress(t *testing.T) string {
	at := func(n byte) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, 0, n}), 7142) }
	w := fleetWorld(t, 3, 1, func(n *sim.Node, g *gateway.Config) {
		g.Peers = slices.DeleteFunc(g.Peers, func(p gateway.PeerConfig) bool { return p.ID == 3 })
	}, func(c *sim.Config) {
		c.Ways = func(n *sim.Node) ([]roster.Way, bool) { // node 3 claims to be at node 1's configured address
			return []roster.Way{{Addr: at(map[uint16]byte{1: 9, 2: 2, 3: 1}[n.ID])}}, false
		}
	})
	w.Run(time.Minute)
	w.Give(w.Nodes[1], gateway.NewRoster{Roster: w.Roster(w.First(), time.Time{}, w.Nodes...)})
	w.Run(time.Minute)
	arrives(t, w, w.Nodes[1], w.Nodes[0], time.Minute)
	return said(w)
}

// hopLiar replaces a relay's custody: it sends on the messages that it gets.
type hopLiar struct{ todo []site.Carry }

func (l *hopLiar) Step(time.Time, site.Event) (out site.Output) {
	out.Carry, l.todo = l.todo, nil
	return out
}
func (*hopLiar) DescribeItem(site.Item) site.Subject        { return site.Subject{} }
func (*hopLiar) DescribeMessage(*site.Message) site.Subject { return site.Subject{} }

type poke struct{}

func (poke) AdapterEvent() {}

// lyingHops is a chain of four, whose second gateway claims that seven gateways have had the messages that it passes on.
func lyingHops(t *testing.T) string {
	liar := &hopLiar{}
	var seen []site.Message
	w := fleetWorld(t, 4, 0, func(n *sim.Node, g *gateway.Config) {
		g.Relay = true
		for i := range g.Peers {
			p := &g.Peers[i]
			if d := int(p.ID) - int(n.ID); d > 1 {
				p.Addr, p.Via = netip.AddrPort{}, []uint16{n.ID + 1}
			} else if d < -1 {
				p.Addr, p.Via = netip.AddrPort{}, []uint16{n.ID - 1}
			}
		}
		if n.ID == 2 {
			g.Adapters[site.Relay] = func([]site.Memory) (gateway.Adapter, error) { return liar, nil }
		}
	}, func(c *sim.Config) {
		c.Committed = func(n *sim.Node, out api.Output) {
			for _, r := range out.Records {
				if n.ID != 2 || r.Bucket != "mail" || r.Value == nil {
					continue
				}
				full, _ := envelope.CutAccepted(r.Value)
				if m, _, _, err := envelope.Parse(full, nil); err == nil && m.Payload != nil && m.Payload.Adapter == site.Relay && m.Payload.To == "4" {
					seen = append(seen, *m.Payload)
				}
			}
		}
	})
	w.Tap = func(from, to *sim.Node, data []byte) [][]byte {
		if d := int(from.ID) - int(to.ID); d > 1 || d < -1 {
			return nil
		}
		return [][]byte{data}
	}
	arrives(t, w, w.Nodes[0], w.Nodes[3], 10*time.Minute)
	check.True(check.Fatal(t), "the relay has passed on capsules", len(seen) > 0, len(seen))
	for _, m := range seen {
		data := slices.Clone(m.Parts[0].Data)
		data[0] |= 7 // the hops, in the lowest bits
		m.Parts = []site.Part{{Type: m.Parts[0].Type, Data: data}}
		liar.todo = append(liar.todo, site.Carry{Sites: []uint16{3}, Message: m})
	}
	w.DeliverLAN(w.Nodes[1], site.Relay, poke{})
	w.Run(30 * time.Second)
	arrives(t, w, w.Nodes[0], w.Nodes[3], 10*time.Minute)
	return said(w)
}

func clocksApart(t *testing.T) string {
	w := fleetWorld(t, 2, 0, nil, nil)
	arrives(t, w, w.Nodes[1], w.Nodes[0], time.Minute)
	w.SetClock(w.Nodes[1], 26*time.Hour)
	w.Kill(w.Nodes[1], time.Second)
	w.Run(10 * time.Minute)
	text := said(w)
	w.Give(w.Nodes[0], api.Forget{Peer: 2, AnyStart: true})
	w.Run(10 * time.Minute)
	arrives(t, w, w.Nodes[1], w.Nodes[0], 10*time.Minute)
	return text
}
