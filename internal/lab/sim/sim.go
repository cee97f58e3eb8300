// Package sim plays whole gateways in virtual time: real Steps, the emulated link, a journal that survives crashes.
// The same seed gives the same run. A Site replaces the LAN side; the test decides what the Site sends.
//
// libnorm has a thread and a clock of its own, so a model replaces it here (norm.go). The model sends the same packets at the same rate
// and asks for repair as libnorm does. Tests with real processes test libnorm itself.
//
// Files: sim.go the World; squeeze.go turns that are late; site.go its LAN sides; clock.go clocks that are wrong; journal.go journals that are lost or put back;
// rewrite.go journals of other versions; norm.go the model of libnorm; trust.go keys of single nodes.
package sim

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

var group = netip.MustParseAddrPort("239.1.1.1:7142")

// Epoch is the time at which every World begins.
var Epoch = time.Unix(1_800_000_000, 0).UTC()

// Setup is the configuration of a node's gateway.
type Setup = gateway.Config

// Adapter is an adapter of a node's gateway.
type Adapter = gateway.Adapter

// Bridge is the settings that a JXTA bridge of a node takes from its gateway.
func Bridge(c *Setup) jxtabridge.Config {
	return jxtabridge.Config{Name: c.Name, Site: c.ID, Hold: gateway.Hold(c.Profile), AskAfter: gateway.AskAfter(c.Profile)}
}

// Node is one gateway in a World.
type Node struct {
	ID   uint16
	Name string
	Site *Site
	GW   *gateway.Gateway // nil while it is down

	cfg         gateway.Config
	journal     map[string]api.Record
	undo        []taken // of its last commits
	incarnation uint32
	due         time.Time
	addr        netip.AddrPort
	library     *library
	clock       clock
	inbox       []arrived // events that wait for the next turn, if turns are late
	turning     bool      // a turn is planned
	commits     int
}

// Addr is the node's address on the link.
func (n *Node) Addr() netip.AddrPort { return n.addr }

// Incarnation is the number of the node's present or last start.
func (n *Node) Incarnation() uint32 { return n.incarnation }

// Config of a World. Nodes[0] is ashore on an unlimited leg; the others are terminals with Profile.
type Config struct {
	Nodes   int
	Profile profile.Profile
	Wire    profile.Profile
	Seed    uint64
	// CrashBeforeCommit and CrashAfterCommit are chances, per Step that has records, of a kill -9 at that point.
	CrashBeforeCommit, CrashAfterCommit float64
	Down                                time.Duration                                 // how long a crashed gateway stays down
	Downs                               func() time.Duration                          // instead of Down; nil: Down
	Roster                              bool                                          // each node has a key of its own, and a roster names all
	Group                               bool                                          // the channel has a group's address
	Later                               int                                           // how many of the last nodes are in no first roster, and start with World.Begin
	Ways                                func(n *Node) (ways []roster.Way, relay bool) // the ways and the relay flag of a node in rosters; nil: none
	Second, Third, Fourth               *Second                                       // other bearers of all nodes; nil: there are none
	Ashore                              bool                                          // the terminals know that Nodes[0] is ashore
	Wild                                linkemu.Wild                                  // faults of the link that no profile has
	Names                               []string                                      // of the nodes; nil: hq, ship1, ship2... The link's fates follow from seed and name
	// Known saves the nodes the work on models that one of them has already done, and changes nothing else; nil: each does its own.
	Known *compact.Known
	// Late, when set, is by how much the next turn of a node's loop is late, because its machine is busy. All events until then are
	// handled in that turn.
	Late func(n *Node) time.Duration
	// Configure may change a node's setup, above all its bridge: without Configure the LAN side is a Site.
	Configure func(n *Node, c *gateway.Config)
	// LAN is called with the output of a node's committed Step towards its peers; nil: there are none.
	LAN func(n *Node, out api.Output)
	// Crash says whether a node is killed at its commit with this number, counted over all its starts: before it, or after it and before
	// its output goes out; nil: it is not.
	Crash func(n *Node, commit int) (before, after bool)
	// Committed is called with the output of every durable Step, even if the node crashes after it; nil: no calls.
	Committed func(n *Node, out api.Output)
}

func (c *Config) down() time.Duration {
	if c.Downs != nil {
		return c.Downs()
	}
	return c.Down
}

// Second is a bearer besides the first, over a link of its own. Nodes[0] is on its wire.
type Second struct {
	Name    string
	Profile profile.Profile
	Wire    profile.Profile
	Group   bool    // the channel has a group's address
	Price   float64 // of 1,000 octets
}

// World is gateways on a link.
type World struct {
	Now   time.Time
	Nodes []*Node
	Link  *linkemu.Link
	Notes []string
	// Tap, when set, is on the air: the datagrams that it returns arrive in place of data.
	Tap func(from, to *Node, data []byte) [][]byte

	cfg    Config
	rng    *rand.Rand
	first  *roster.Roster
	chance *rand.Rand // for keys, so that everything else is the same with and without them
	events eventHeap
	serial int
	linkAt [4]time.Time
	byAddr map[netip.AddrPort]*Node
	Links  [4]*linkemu.Link // Link, and those of the other bearers; nil: no such bearer
}

// New builds the world; every gateway starts at Epoch.
func New(cfg Config) (*World, error) {
	w := &World{Now: Epoch, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 2004)), chance: rand.New(rand.NewPCG(cfg.Seed, 13)), byAddr: map[netip.AddrPort]*Node{}}
	link := linkemu.Config{Seed: cfg.Seed, Wild: cfg.Wild}
	for i := range cfg.Nodes {
		n := &Node{ID: uint16(i + 1), Name: fmt.Sprintf("ship%d", i), Site: &Site{}, journal: map[string]api.Record{},
			addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, byte((i + 1) >> 8), byte(i + 1)}), 7142)}
		p := cfg.Profile
		if i == 0 {
			n.Name, p = "hq", cfg.Wire
			if cfg.Profile.Shared {
				p = cfg.Profile
			}
		}
		if cfg.Names != nil {
			n.Name = cfg.Names[i]
		}
		n.Site.Node = n
		link.Nodes = append(link.Nodes, linkemu.Node{Name: n.Name, Profile: p})
		w.Nodes = append(w.Nodes, n)
		w.byAddr[n.addr] = n
	}
	var err error
	if w.Link, err = linkemu.New(link); err != nil {
		return nil, err
	}
	w.Links[0] = w.Link
	for k, s := range cfg.others() {
		link.Seed, link.Nodes = cfg.Seed+uint64(k+1)*1_000_000, slices.Clone(link.Nodes)
		for i := range link.Nodes {
			if link.Nodes[i].Profile = s.Profile; i == 0 && !s.Profile.Shared {
				link.Nodes[i].Profile = s.Wire
			}
		}
		if w.Links[k+1], err = linkemu.New(link); err != nil {
			return nil, err
		}
	}
	if cfg.Roster {
		w.first = w.Roster(nil, time.Time{}, w.Nodes[:cfg.Nodes-cfg.Later]...)
	}
	for i, n := range w.Nodes {
		n.cfg = gateway.Config{ID: n.ID, Name: n.Name, Profile: cfg.Profile, Shore: n.ID == 1 && !cfg.Profile.Shared,
			Key: seal.Key{1, 2, 3}, Store: w.rng.Uint32(), Known: cfg.Known,
			Adapters: map[site.Adapter]func([]site.Memory) (gateway.Adapter, error){
				site.JXTA: func([]site.Memory) (gateway.Adapter, error) { n.Site.restated = false; return n.Site, nil }}}
		if cfg.Group {
			n.cfg.Group = group
		}
		n.cfg.Rand = rand.New(rand.NewPCG(cfg.Seed, uint64(n.ID)))
		for _, p := range w.Nodes {
			if p != n {
				n.cfg.Peers = append(n.cfg.Peers, gateway.PeerConfig{ID: p.ID, Name: p.Name, Addr: p.addr, Shore: cfg.Ashore && p.ID == 1})
			}
		}
		for k, s := range cfg.others() {
			b := gateway.BearerConfig{Name: s.Name, Profile: s.Profile, Shore: n.ID == 1 && !s.Profile.Shared, Price: s.Price, Peers: map[uint16]netip.AddrPort{}}
			if s.Group {
				b.Group = group
			}
			for _, p := range w.Nodes {
				if p != n {
					b.Peers[p.ID] = other(p.addr, k+1)
				}
			}
			n.cfg.More = append(n.cfg.More, b)
		}
		n.cfg.Trust = w.trust(n.ID)
		if cfg.Configure != nil {
			cfg.Configure(n, &n.cfg)
		}
		if i >= cfg.Nodes-cfg.Later {
			continue
		}
		if err := w.start(n); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Begin starts a node that joins later, with a roster that names it.
func (w *World) Begin(n *Node, r *roster.Roster) error {
	trust := *n.cfg.Trust
	trust.Roster = r
	n.cfg.Trust = &trust
	return w.start(n)
}

// others are the bearers after the first.
func (c *Config) others() (list []*Second) {
	for _, s := range []*Second{c.Second, c.Third, c.Fourth} {
		if s != nil {
			list = append(list, s)
		}
	}
	return list
}

// other is the address on a bearer of the gateway that has this one on the first.
func other(first netip.AddrPort, bearer int) netip.AddrPort {
	a := first.Addr().As4()
	a[1] += byte(bearer)
	return netip.AddrPortFrom(netip.AddrFrom4(a), first.Port())
}

// start starts a gateway from its journal, with the next incarnation.
func (w *World) start(n *Node) error {
	n.clock.begin(w.Now)
	n.incarnation = max(n.incarnation+1, uint32(n.clock.now.Unix()))
	n.cfg.Incarnation = seal.Incarnation{Number: n.incarnation, Salt: uint16(w.rng.Uint32())}
	var records []api.Record
	for _, key := range slices.Sorted(maps.Keys(n.journal)) {
		records = append(records, n.journal[key])
	}
	gw, err := gateway.New(n.cfg, records)
	if err != nil {
		return err
	}
	n.GW = gw
	w.step(n, nil)
	return nil
}

// Squeeze makes the turns of all loops late from now on, or punctual again: late is as in Config.
func (w *World) Squeeze(late func(n *Node) time.Duration) { w.cfg.Late = late }

// Kill stops a gateway at once, as kill -9 does, and starts it again after d.
func (w *World) Kill(n *Node, d time.Duration) {
	n.GW, n.due, n.library, n.inbox = nil, time.Time{}, nil, nil
	w.At(d, func() {
		if n.GW == nil {
			if err := w.start(n); err != nil {
				panic(err) // a journal of our own that we cannot read
			}
		}
	})
}

// EndCrashes ends random crashes of gateways.
func (w *World) EndCrashes() { w.cfg.CrashAfterCommit, w.cfg.CrashBeforeCommit = 0, 0 }

// Reconfigure changes the setup for the next start of n.
func (w *World) Reconfigure(n *Node, change func(*gateway.Config)) { change(&n.cfg) }

// LoseBucket makes the next start of n one without a bucket of its journal.
func (w *World) LoseBucket(n *Node, bucket string) {
	for key, r := range n.journal {
		if r.Bucket == bucket {
			delete(n.journal, key)
		}
	}
}

// At calls f at a time from now.
func (w *World) At(d time.Duration, f func()) {
	w.serial++
	heap.Push(&w.events, event{w.Now.Add(d), w.serial, f})
}

// Run plays d of virtual time.
func (w *World) Run(d time.Duration) {
	until := w.Now.Add(d)
	for {
		next := until
		for _, n := range w.Nodes {
			if !n.due.IsZero() && n.due.Before(next) {
				next = n.due
			}
		}
		if len(w.events) > 0 && w.events[0].at.Before(next) {
			next = w.events[0].at
		}
		for _, at := range w.linkAt {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if next.After(w.Now) {
			w.Now = next
		}
		if !next.Before(until) {
			return
		}
		if len(w.events) > 0 && !w.events[0].at.After(w.Now) {
			heap.Pop(&w.events).(event).do()
			continue
		}
		if on := slices.IndexFunc(w.linkAt[:], func(at time.Time) bool { return !at.IsZero() && !at.After(w.Now) }); on >= 0 {
			w.link(on, nil)
			continue
		}
		for _, n := range w.Nodes {
			if n.GW != nil && !n.due.IsZero() && !n.due.After(w.Now) {
				w.step(n, nil)
				break
			}
		}
	}
}

// step gives n an event, at once or in its next turn.
func (w *World) step(n *Node, ev api.Event) {
	if w.cfg.Late != nil && n.GW != nil {
		w.squeezed(n, ev)
		return
	}
	w.turn(n, ev)
}

// turn runs a Step of n for an event and carries out its output, as the daemon does.
func (w *World) turn(n *Node, ev api.Event) {
	if n.GW == nil {
		return
	}
	now := n.clock.advance(w.Now)
	if ev != nil && n.clock.news {
		w.turn(n, nil)
	}
	if ev == nil {
		ev = n.clock.event(w.Now)
	}
	if n.GW == nil {
		return
	}
	out := n.GW.Step(now, ev)
	before, after := false, false
	if len(out.Records) > 0 && w.cfg.Crash != nil {
		n.commits++
		before, after = w.cfg.Crash(n, n.commits)
	}
	if before || len(out.Records) > 0 && w.rng.Float64() < w.cfg.CrashBeforeCommit {
		n.Site.forget()
		w.Kill(n, w.cfg.down())
		return
	}
	n.commit(out.Records)
	n.Site.commit()
	if w.cfg.Committed != nil {
		w.cfg.Committed(n, out)
	}
	if after || len(out.Records) > 0 && w.rng.Float64() < w.cfg.CrashAfterCommit {
		w.Kill(n, w.cfg.down())
		return
	}
	n.due = n.clock.wake(out.Deadline)
	for _, note := range out.Notes {
		w.Notes = append(w.Notes, fmt.Sprintf("%8.3f %s %s: %s %v", w.Now.Sub(Epoch).Seconds(), n.Name, note.Level, note.Text, note.Attrs))
	}
	for _, d := range out.Datagrams {
		most := n.cfg.Profile.Largest()
		if d.Bearer > 0 {
			most = n.cfg.More[d.Bearer-1].Profile.Largest()
		}
		if len(d.Data) > most {
			panic(fmt.Sprintf("sim: %s sent a datagram of %d octets, the profile allows %d", n.Name, len(d.Data), most))
		}
		if d.Addr == group {
			w.link(d.Bearer, linkemu.Frame{From: n.Name, Octets: len(d.Data) + profile.IPUDPOctets, Data: d.Data})
			continue
		}
		to := w.byAddr[d.Addr]
		if d.Bearer > 0 {
			to = nil
			for _, m := range w.Nodes {
				if other(m.addr, d.Bearer) == d.Addr {
					to = m
				}
			}
		}
		if to == nil {
			continue
		}
		w.link(d.Bearer, linkemu.Frame{From: n.Name, To: to.Name, Octets: len(d.Data) + profile.IPUDPOctets, Data: d.Data})
	}
	for _, c := range out.Norm {
		w.norm(n, c)
	}
	if w.cfg.LAN != nil {
		w.cfg.LAN(n, out)
	}
}

// DeliverJXTA gives a node's JXTA adapter an event of its LAN, now.
func (w *World) DeliverJXTA(n *Node, ev site.Event) { w.DeliverLAN(n, site.JXTA, ev) }

// Give gives a node's gateway an event that comes neither from its LAN nor from the link, but from its operator.
func (w *World) Give(n *Node, ev api.Event) { w.step(n, ev) }

// DeliverLAN gives one of a node's adapters an event of its LAN, now.
func (w *World) DeliverLAN(n *Node, adapter site.Adapter, ev site.Event) {
	w.step(n, api.LAN{Adapter: adapter, Event: ev})
}

// link steps the emulator and delivers.
func (w *World) link(on int, ev linkemu.Event) {
	out, err := w.Links[on].Step(w.Now, ev)
	if err != nil {
		panic(err) // impossible: New made all nodes
	}
	w.linkAt[on] = out.Deadline
	for _, d := range out.Deliver {
		from, to := w.named(d.Frame.From), w.named(d.Node)
		arriving := [][]byte{d.Frame.Data}
		if w.Tap != nil {
			arriving = w.Tap(from, to, d.Frame.Data)
		}
		for _, data := range arriving {
			addr := from.addr
			if on > 0 {
				addr = other(addr, on)
			}
			w.At(0, func() { w.step(to, api.Datagram{Bearer: on, Addr: addr, Data: data}) })
		}
	}
}

// Outage takes a node off the air for d from now.
func (w *World) Outage(n *Node, d time.Duration) {
	w.Cut(0, n, true)
	w.At(d, func() { w.Cut(0, n, false) })
}

// Cut takes a node off the air of a bearer, if there is one, or puts it back.
func (w *World) Cut(bearer int, n *Node, down bool) {
	if w.Links[bearer] == nil {
		return
	}
	w.link(bearer, linkemu.Outage{Node: n.Name, Down: down})
}

// SetRate gives a node's leg on a bearer another rate, in both directions and in bits per second.
func (w *World) SetRate(bearer int, n *Node, bps int) {
	w.link(bearer, linkemu.Rate{Node: n.Name, Bps: bps})
}

func (w *World) named(name string) *Node {
	for _, n := range w.Nodes {
		if n.Name == name {
			return n
		}
	}
	panic("sim: no node " + name)
}

// Inject gives a node a datagram from an address that no node has.
func (w *World) Inject(to *Node, data []byte) {
	stranger := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), 9)
	w.At(0, func() { w.step(to, api.Datagram{Addr: stranger, Data: data}) })
}

// Transmit has the radio of a node transmit a datagram to all that its gateway did not make. It takes airtime as any datagram does.
func (w *World) Transmit(from *Node, data []byte) {
	w.link(0, linkemu.Frame{From: from.Name, Octets: len(data) + profile.IPUDPOctets, Data: data})
}

// Late gives a node a delayed datagram of another.
func (w *World) Late(from, to *Node, data []byte) {
	w.step(to, api.Datagram{Addr: from.addr, Data: data})
}

// Redial gives a node a new address; datagrams to the old one are lost.
func (w *World) Redial(n *Node) { w.Move(n, netip.AddrPortFrom(n.addr.Addr(), n.addr.Port()+1)) }

// Move gives a node this address; datagrams to the old one are lost.
func (w *World) Move(n *Node, to netip.AddrPort) {
	delete(w.byAddr, n.addr)
	n.addr = to
	w.byAddr[to] = n
}

// Octets is how much a node sent and received on the air, in IP octets.
func (w *World) Octets(n *Node) (up, down int64) { return w.OctetsOn(0, n) }

// OctetsOn is Octets for one bearer.
func (w *World) OctetsOn(bearer int, n *Node) (up, down int64) {
	s := w.Links[bearer].Stats().Node(n.Name)
	return s.Up.OnAir.Octets, s.Down.OnAir.Octets
}

type event struct {
	at     time.Time
	serial int
	do     func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{} // so that its contents are freed
	*h = old[:len(old)-1]
	return e
}
