package carriernet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/lab/linkemu"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// Node is one gateway's carriers and custody.
type Node struct {
	ID   uint16
	Name string
	*life
	Got         []Arrival // messages of the peers, once they are durable here
	Ended       []Ending  // the fates of this node's own messages, once they are durable
	Far         map[uint16]map[string]site.Item
	Drops       map[string]int // discarded datagrams, by reason
	Incarnation uint32         // number of the present or last start
	Own         []site.Item

	network *Network
	store   uint32 // the journal's store number
	disk    disk
	silent  bool // an order of silence holds, also after a restart
}

// Arrival is a message of a peer.
type Arrival struct {
	At      time.Time
	From    uint16
	Place   mail.TransmissionID
	Payload *site.Message
}

// Ending is the fate of a message of this node for one peer.
type Ending struct {
	At      time.Time
	To      uint16
	Payload *site.Message // nil: the message was state
	Fate    mail.Fate
}

// life is the part of a node that dies with the process.
type life struct {
	Bearer     *carriage.Bearer
	Store      *mail.Store
	Replica    *replica.Replica
	Peers      []*mail.Peer // by id
	Refused    []*mail.Peer // the peers for which the last Say was refused
	Unreadable []mail.TransmissionID
	Lacked     []mail.TransmissionID // messages that a peer asked for again and that no node has any more

	coder   compact.Coder
	heard   map[uint16]heard
	counter uint32
	due     time.Time
	child   *child
	spins   int       // Steps at one time,
	idle    int       // how many of them in a row had no result,
	spun    time.Time // and that time
	now     time.Time
	records []api.Record
	onAir   []outgoing
	orders  []api.NormCommand
	durable []func() // to be called once the journal has the records
}

type outgoing struct {
	to   netip.AddrPort
	data []byte
}

// disk is the part of a node that outlives the process.
type disk struct {
	journal map[string]api.Record
	heard   map[uint16]heard
	held    map[uint16]map[string]replica.Version
}

func newDisk() disk {
	return disk{map[string]api.Record{}, map[uint16]heard{}, map[uint16]map[string]replica.Version{}}
}

func (d disk) clone() disk {
	c := disk{maps.Clone(d.journal), maps.Clone(d.heard), map[uint16]map[string]replica.Version{}}
	for id, held := range d.held {
		c.held[id] = maps.Clone(held)
	}
	return c
}

func (n *Node) up() bool { return n.life != nil }

// Addr is a node's address on the link.
func (n *Node) Addr() netip.AddrPort { return Address(n.ID) }

// Address is the address of the node with this id, whether there is one or not.
func Address(id uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, byte(id >> 8), byte(id)}), 7142)
}

// Peer is a node's record of another node.
func (n *Node) Peer(id uint16) *mail.Peer {
	at := slices.IndexFunc(n.Peers, func(p *mail.Peer) bool { return p.ID == id })
	if at < 0 {
		return nil
	}
	return n.Peers[at]
}

// start makes a node's carriers from its journal, and starts them.
func (n *Node) start() error {
	w := n.network
	n.Incarnation = max(n.Incarnation+1, uint32(w.Now.Unix()))
	n.life = &life{now: w.Now, heard: maps.Clone(n.disk.heard)}
	n.Store = mail.NewStore(n, n.Incarnation, w.cfg.Most, n.ended)
	var ids []uint16
	for _, other := range w.Nodes {
		if other == n {
			continue
		}
		p := mail.NewPeer(other.ID, other.Name, other.Addr(), n, w.cfg.Profile.Transport == profile.PMul)
		n.Peers, ids = append(n.Peers, p), append(ids, p.ID)
	}
	n.Replica = replica.New(ids)
	cfg := carriage.Config{
		Common: mail.Common{
			Self: n.ID, Peers: slices.Clone(n.Peers), Services: n, Store: n.Store, Replica: n.Replica, Coder: &n.coder,
			Group: group, Behind: func(uint16) bool { return false },
		},
		Profile: w.cfg.Profile, Incarnation: n.Incarnation, Keepalive: w.cfg.Keepalive, Shore: n.ID == 1 && w.cfg.Ashore != nil,
		Lacks: func(uint16) bool { return false }, Proven: func() int { return 0 }, Holds: func(*site.Message) bool { return false },
		Records: n.Journal(),
	}
	if w.cfg.Bearer != nil {
		w.cfg.Bearer(n, &cfg)
	}
	var err error
	if n.Bearer, err = carriage.New(cfg); err != nil {
		return err
	}
	if err := n.restore(); err != nil {
		return err
	}
	n.step(func(now time.Time) {
		for _, it := range n.Own {
			n.Replica.Put(it)
		}
		for _, c := range n.Bearer.Carriers {
			c.Start(now)
			c.Silence(now, n.silent)
			for _, p := range n.Peers {
				if p.Link.Listening() {
					c.PeerSilent(now, p, true)
				}
			}
		}
	})
	return nil
}

// restore gives each record of the journal to its owner.
func (n *Node) restore() error {
	records := n.Journal()
	first := func(r api.Record) int {
		if r.Bucket == "peer" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(records, func(a, b api.Record) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), slices.Compare(a.Key, b.Key))
	})
	for _, r := range records {
		if err := n.restoreRecord(r); err != nil {
			return fmt.Errorf("bucket %s, key %x: %w", r.Bucket, r.Key, err)
		}
	}
	for id, held := range n.disk.held {
		for key, version := range held {
			n.Replica.RestoreHeld(id, key, version)
		}
	}
	list, err := n.Store.Restore(records, func(_ api.Record, err error) error { return err })
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b mail.Restored) int { return int(int64(a.At.Number - b.At.Number)) })
	for _, r := range list {
		p := n.Peer(r.Peer)
		if p == nil || !slices.ContainsFunc(n.Bearer.Carriers, func(c mail.Carrier) bool { return c.Resume(r, p) }) {
			n.Store.Leave(r)
		}
	}
	n.Store.Restarted()
	return nil
}

func (n *Node) restoreRecord(r api.Record) error {
	for _, c := range n.Bearer.Carriers {
		if taken, err := c.Restore(r); taken {
			return err
		}
	}
	if len(r.Key) < 2 {
		return nil
	}
	p := n.Peer(binary.BigEndian.Uint16(r.Key))
	if p == nil {
		return nil
	}
	_, err := p.Reader.Restore(r.Bucket, r.Key[2:], r.Value)
	return err
}

// Limits on the Steps that a carrier may want at one time: in all, and in a row without a result.
const (
	mostSpins = 5000
	mostIdle  = 200
)

// step runs a Step of a node: it calls do, lets the carriers work, and carries out the result: first the journal, then the air. It says
// whether the result is durable.
func (n *Node) step(do func(now time.Time)) (committed bool) {
	if !n.up() {
		return false
	}
	l, w := n.life, n.network
	now := w.Now
	l.now = now
	n.Store.Turn(now)
	if do != nil {
		do(now)
	}
	for _, p := range n.Peers {
		n.Store.Expire(now, p)
	}
	for _, c := range n.Bearer.Carriers {
		c.Step(now)
	}
	for _, c := range n.Bearer.Carriers {
		if !n.silent {
			c.Pump(now)
		}
	}
	l.due = n.deadline(now)
	if w.Crash > 0 && len(l.records) > 0 && w.rng.Float64() < w.Crash {
		committed = w.rng.IntN(2) == 0
		if committed {
			n.commit()
		}
		w.Kill(n, 3*time.Second)
		return committed
	}
	came := len(l.onAir)+len(l.records) > 0
	n.commit()
	n.transmit()
	n.mind(now, came)
	return true
}

// deadline is the time at which a node wants its next Step.
func (n *Node) deadline(now time.Time) (at time.Time) {
	for _, p := range n.Peers {
		at = due.Earliest(at, n.Store.Due(p))
	}
	for _, c := range n.Bearer.Carriers {
		at = due.Earliest(at, c.Due(now, n.silent))
	}
	return at
}

// mind panics when a deadline of the carriers stays in the past. came says whether the Step had a result.
func (n *Node) mind(now time.Time, came bool) {
	l := n.life
	if !now.Equal(l.spun) {
		l.spins, l.idle, l.spun = 0, 0, now
	}
	l.spins++
	l.idle++
	if came || !due.Reached(now, l.due) {
		l.idle = 0
	}
	if l.idle > mostIdle || l.spins > mostSpins {
		panic(fmt.Sprintf("carriernet: %s: what is due at %v stays in the past at %v", n.Name, l.due, now))
	}
}

func (n *Node) commit() {
	for _, r := range n.records {
		key := r.Bucket + "\x00" + string(r.Key)
		if r.Value == nil {
			delete(n.disk.journal, key)
		} else {
			n.disk.journal[key] = r
		}
	}
	for _, f := range n.durable {
		f()
	}
	n.records, n.durable = nil, nil
}

// transmit puts the datagrams of the Step on the air.
func (n *Node) transmit() {
	w, onAir, orders := n.network, n.onAir, n.orders
	n.onAir, n.orders = nil, nil
	for _, o := range onAir {
		d, _ := unwrap(o.data)
		d.At = w.Now
		w.Sent = append(w.Sent, d)
		if most := w.cfg.Profile.Largest(); len(o.data) > most {
			if w.cfg.Spoilt {
				continue
			}
			panic(fmt.Sprintf("carriernet: %s sent a datagram of %d octets, the profile allows %d", n.Name, len(o.data), most))
		}
		f := linkemu.Frame{From: n.Name, Octets: len(o.data) + profile.IPUDPOctets, Data: o.data}
		if o.to != group {
			at := slices.IndexFunc(w.Nodes, func(to *Node) bool { return to.Addr() == o.to })
			if at < 0 {
				continue
			}
			f.To = w.Nodes[at].Name
		}
		w.carry(f)
	}
	for _, order := range orders {
		n.norm(order)
	}
}

// Do calls f in a Step of a node, as an operator's order does.
func (n *Node) Do(f func(now time.Time)) { n.step(f) }

// Say gives a message of this site into custody for some peers, and returns its ID; 0: the message was refused, or the node died before
// it was durable.
func (n *Node) Say(m site.Message, to ...uint16) (id uint64) {
	if !n.step(func(now time.Time) { id = n.accept(now, m, to) }) {
		return 0
	}
	return id
}

// SayAll is Say for several messages in one Step.
func (n *Node) SayAll(list []site.Message, to ...uint16) (ids []uint64) {
	n.step(func(now time.Time) {
		for _, m := range list {
			ids = append(ids, n.accept(now, m, to))
		}
	})
	return ids
}

func (n *Node) accept(now time.Time, m site.Message, to []uint16) (id uint64) {
	peers := make([]*mail.Peer, len(to))
	for i, id := range to {
		peers[i] = n.Peer(id)
	}
	before := n.Store.Newest()
	n.Refused = n.Bearer.Carrier().Accept(now, peers, envelope.Message{Payload: &m}, mail.Payload)
	if newest := n.Store.Newest(); newest != before && newest != nil {
		return newest.ID
	}
	return 0
}

// Entry is a message on its way to a peer; nil: the message has ended.
func (n *Node) Entry(id uint64, to uint16) *mail.Entry {
	m := n.Store.Get(id)
	if m == nil {
		return nil
	}
	return m.For(to)
}

// Put changes an item of this node's site.
func (n *Node) Put(it site.Item) {
	n.Own = append(slices.DeleteFunc(n.Own, func(o site.Item) bool { return o.Key() == it.Key() }), it)
	n.step(func(time.Time) { n.Replica.Put(it) })
}

// Leave removes a peer while this node works, as a gateway does when the operator no longer names the peer.
func (n *Node) Leave(p *mail.Peer, why string) {
	n.step(func(now time.Time) {
		p.Handshake.KnowsUs = false
		p.Handshake.Owe(now)
		for _, c := range n.Bearer.Members {
			c.Leave(now, p, why)
		}
		n.Replica.Leave(p.ID)
		n.Peers = slices.DeleteFunc(n.Peers, func(q *mail.Peer) bool { return q == p })
	})
}

// Join adds a peer while this node works.
func (n *Node) Join(p *mail.Peer) (err error) {
	n.step(func(now time.Time) {
		for _, c := range n.Bearer.Members {
			err = cmp.Or(err, c.Join(now, p))
		}
		n.Peers = append(n.Peers, p)
		n.Replica.Join(p.ID)
	})
	return err
}

// Silent begins or ends a node's silence; announce: the node announces it to the peers.
func (n *Node) Silent(on, announce bool) {
	n.step(func(now time.Time) {
		if on && announce {
			n.Bearer.Announce(now, frame.Silence{})
		}
		n.silent = on
		for _, c := range n.Bearer.Carriers {
			c.Silence(now, on)
		}
	})
}

// Held counts the messages that wait for a peer, and those under way to it.
func (n *Node) Held(to uint16) (waiting, underWay int) {
	waiting, underWay, _ = n.Peer(to).Box.Held(frame.Direct, frame.Bulk, mail.Group)
	return waiting, underWay
}

// Said returns the first parts of the messages that came from a peer, in the order in which they came.
func (n *Node) Said(from uint16) (texts []string) {
	for _, a := range n.Got {
		if a.From == from {
			texts = append(texts, string(a.Payload.Parts[0].Data))
		}
	}
	return texts
}

// Fates counts the fates of the messages of this node's applications.
func (n *Node) Fates(to uint16) map[mail.Fate]int {
	counts := map[mail.Fate]int{}
	for _, e := range n.Ended {
		if e.To == to && e.Payload != nil {
			counts[e.Fate]++
		}
	}
	return counts
}
