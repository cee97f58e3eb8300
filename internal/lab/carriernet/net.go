// Package carriernet plays carriers and custody over an emulated link in virtual time, without a gateway around them.
//
// A Node has a mail.Services, a mail.Store, a replica of its site and a journal, as a gateway gives them to its carriers. Around the
// carriers it acts as internal/gateway does, without protocol adapters, rules and keys. It wraps datagrams instead of sealing them, with
// as many octets. It notes the messages of peers in Got. Runs with the same seed are equal.
//
// Files: net.go the Network: time, link, starts and deaths; node.go a Node and its Steps; receive.go datagrams that arrive; services.go
// the calls of the carriers; wrap.go datagrams on the air; child.go a model of the process that runs
// libnorm; words.go the messages of the nodes; spoil.go records of a bad disk.
package carriernet

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/ground/due"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

// Epoch is the time at which every Network begins.
var Epoch = time.Unix(1_800_000_000, 0).UTC()

// NoAddress is an address that no node has.
var NoAddress netip.AddrPort

// group is the address of a shared channel.
var group = netip.MustParseAddrPort("239.1.1.1:7142")

// Config describes a Network.
type Config struct {
	Nodes     int             // 2 or more
	Profile   profile.Profile // of each node's leg, or of the channel
	Seed      uint64
	Wild      linkemu.Wild
	Ashore    *profile.Profile // the leg of node 1, which is then ashore; nil: node 1 is a terminal like the others
	Most      int              // how many octets a store holds for one peer; 0: a mebibyte
	Keepalive time.Duration    // 0: no keepalives
	Old       bool             // HELLOs do not say that their sender understands segments of long messages
	Plain     bool             // the model codes nothing, which otherwise takes most of a test's time
	Spoilt    bool             // the test spoils journals: a datagram that is too long for the profile is lost and causes no panic
	// Bearer may change the configuration of a node's bearer, before each start of the node; nil: nothing is changed.
	Bearer func(n *Node, c *carriage.Config)
}

// Datagram is a datagram that went on the air.
type Datagram struct {
	At      time.Time
	From    uint16
	To      uint16 // 0: to all nodes
	Long    bool
	Octets  int // of the UDP payload
	Counter uint32
	Body    []byte // its frames
}

// Network is nodes on a link.
type Network struct {
	Now   time.Time
	Nodes []*Node
	Link  *linkemu.Link
	Sent  []Datagram // all datagrams that went on the air
	Notes []string   // the entries of the operators' logs
	// Fate, when set, decides about a datagram that arrives at a node: how late, and whether it is lost.
	Fate func(d Datagram, to *Node) (late time.Duration, lost bool)
	// Crash is the probability that a Step which changes the journal is the last before a crash: half of these crashes come before the
	// commit, half after it. The node starts again after three seconds.
	Crash float64

	cfg    Config
	rng    *rand.Rand
	events due.Heap[event]
	serial uint64
	linkAt time.Time
}

// New makes a network; every node starts at Epoch.
func New(cfg Config) (*Network, error) {
	if cfg.Most == 0 {
		cfg.Most = 1 << 20
	}
	w := &Network{Now: Epoch, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1))}
	link := linkemu.Config{Seed: cfg.Seed, Wild: cfg.Wild}
	for i := range cfg.Nodes {
		n := &Node{ID: uint16(i + 1), Name: fmt.Sprintf("node%d", i+1), network: w, store: w.rng.Uint32() | 1, disk: newDisk()}
		p := cfg.Profile
		if i == 0 && cfg.Ashore != nil {
			p = *cfg.Ashore
		}
		link.Nodes = append(link.Nodes, linkemu.Node{Name: n.Name, Profile: p})
		w.Nodes = append(w.Nodes, n)
	}
	var err error
	if w.Link, err = linkemu.New(link); err != nil {
		return nil, err
	}
	for _, n := range w.Nodes {
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// At calls f at a time from now.
func (w *Network) At(d time.Duration, f func()) {
	w.serial++
	w.events.Push(event{w.Now.Add(d), w.serial, f})
}

// Run plays d of virtual time.
func (w *Network) Run(d time.Duration) {
	until := w.Now.Add(d)
	for {
		next := until
		for _, n := range w.Nodes {
			if n.up() && due.Reached(next, n.due) {
				next = n.due
			}
		}
		if len(w.events) > 0 && w.events[0].at.Before(next) {
			next = w.events[0].at
		}
		if due.Reached(next, w.linkAt) {
			next = w.linkAt
		}
		w.Now = due.Latest(w.Now, next)
		if !next.Before(until) {
			return
		}
		w.turn()
	}
}

// turn runs the first event that is due now.
func (w *Network) turn() {
	if len(w.events) > 0 && !w.events[0].at.After(w.Now) {
		w.events.Pop().do()
		return
	}
	if due.Reached(w.Now, w.linkAt) {
		w.carry(nil)
		return
	}
	for _, n := range w.Nodes {
		if n.up() && due.Reached(w.Now, n.due) {
			n.step(nil)
			return
		}
	}
}

// carry steps the link, and gives the nodes the datagrams that arrive.
func (w *Network) carry(ev linkemu.Event) {
	out, err := w.Link.Step(w.Now, ev)
	if err != nil {
		panic(err) // a node that New did not make
	}
	w.linkAt = out.Deadline
	for _, d := range out.Deliver {
		to, data := w.named(d.Node), d.Frame.Data
		late := time.Duration(0)
		if w.Fate != nil {
			what, _ := unwrap(data)
			lost := false
			late, lost = w.Fate(what, to)
			if lost {
				continue
			}
		}
		w.At(late, func() { to.step(func(now time.Time) { to.receive(now, data) }) })
	}
}

func (w *Network) named(name string) *Node {
	return w.Nodes[slices.IndexFunc(w.Nodes, func(n *Node) bool { return n.Name == name })]
}

// Outage takes a node off the air for d from now.
func (w *Network) Outage(n *Node, d time.Duration) {
	w.carry(linkemu.Outage{Node: n.Name, Down: true})
	w.At(d, func() { w.carry(linkemu.Outage{Node: n.Name}) })
}

// Kill ends a node at once, as kill -9 does, and starts it again after d.
func (w *Network) Kill(n *Node, d time.Duration) {
	n.life = nil
	w.At(d, func() {
		if n.up() {
			return
		}
		if err := n.start(); err != nil {
			panic(err) // a journal of our own that we cannot read
		}
	})
}

// Stop ends a node in order, so that it first sends the acknowledgements that it owes. It starts again after d.
func (w *Network) Stop(n *Node, d time.Duration) {
	n.step(func(now time.Time) {
		for _, c := range n.Bearer.Carriers {
			c.Settle(now)
		}
	})
	w.Kill(n, d)
}

// Copy is a node's data as they are now, for PutBack.
func (n *Node) Copy() Disk { return Disk{n.disk.clone()} }

// Disk is a copy of a node's data.
type Disk struct{ disk disk }

// PutBack ends a node and starts it after d with an older copy of its data.
func (w *Network) PutBack(n *Node, data Disk, d time.Duration) {
	n.disk = data.disk.clone()
	w.Kill(n, d)
}

// LoseStore ends a node and starts it after d with a new store.
func (w *Network) LoseStore(n *Node, d time.Duration) {
	n.disk, n.store = newDisk(), n.store+2
	w.Kill(n, d)
}

// StartWith ends a node and starts it at once with another journal. It returns an error of the start, when a carrier or the store does
// not understand a record.
func (w *Network) StartWith(n *Node, journal []api.Record) error {
	n.life, n.disk.journal = nil, map[string]api.Record{}
	for _, r := range journal {
		n.disk.journal[r.Bucket+"\x00"+string(r.Key)] = r
	}
	if err := n.start(); err != nil {
		n.life = nil
		return err
	}
	return nil
}

// Journal returns the records of a node's journal, in the order of buckets and keys.
func (n *Node) Journal() (records []api.Record) {
	for _, key := range slices.Sorted(maps.Keys(n.disk.journal)) {
		records = append(records, n.disk.journal[key])
	}
	return records
}

type event struct {
	at     time.Time
	serial uint64
	do     func()
}

// Before orders events by time, and at the same time by their creation.
func (e event) Before(o event) bool {
	return e.at.Before(o.at) || e.at.Equal(o.at) && e.serial < o.serial
}

// Placed is for heaps that remove elements from the middle.
func (e event) Placed(int) {}
