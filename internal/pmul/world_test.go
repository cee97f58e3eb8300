package pmul_test

import (
	"bytes"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
	"aldis/internal/pmul"
)

// epoch is when every world begins.
var epoch = time.Unix(1_800_000_000, 0).UTC()

// sealOctets is what the seal adds to a datagram of the gateway in its short form.
const sealOctets = 20

// node is a Sender and a Receiver with a journal that survives crashes.
type node struct {
	id        pmul.NodeID
	name      string
	cfg       pmul.Config
	sender    *pmul.Sender // nil while it is down
	receiver  *pmul.Receiver
	journal   map[string]pmul.Record
	delivered map[pmul.Key]time.Time // durable with the journal
	payload   map[pmul.Key][]byte
	got       map[pmul.Key]pmul.Message
	order     []pmul.Key
	accepted  []pmul.Accepted
	fates     []pmul.Fate
	twice     int
	acks      int // Ack_PDUs and octets of their datagrams on the air
	ackOctets int
	frames    int
	octets    int
	joined    map[pmul.GroupAddr]bool
	due       [2]time.Time
}

// world is nodes on an emulated link in virtual time: same seed, same run.
type world struct {
	t      testing.TB
	now    time.Time
	nodes  []*node
	link   *linkemu.Link
	seal   int
	rng    *rand.Rand
	linkAt time.Time
	agenda agenda
	serial int
	// crash is the chance of a kill -9 at each Step with records: half of the kills come before the commit.
	crash   float64
	crashes int
	down    time.Duration
	dies    func(n *node) (before, after bool)     // whether it is killed in this Step, before the commit or after it; nil: by chance (crash)
	batches bool                                   // all nodes know batches
	large   map[pmul.Key]bool                      // batches that were on the air
	tap     func(from, to *node, data []byte) bool // false: the datagram is lost
	sent    func(from *node, data []byte)
	packet  func(p pmul.Packet, data []byte)
	ride    bool // acknowledgements ride on datagrams to the group
	// stranger names itself as the sender of messages that it acknowledges. If it is nil, or acknowledges nothing, no node
	// does so.
	stranger *node
}

type setup struct {
	nodes   int
	p       profile.Profile
	coding  pmul.Coding
	seed    uint64
	change  func(*pmul.Config)
	batches bool
}

func load(t testing.TB, name string) profile.Profile {
	t.Helper()
	p, err := profile.Load(name, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	w := &world{t: t, now: epoch, rng: rand.New(rand.NewPCG(s.seed, 142)), batches: s.batches, large: map[pmul.Key]bool{}}
	if s.coding == pmul.Compact {
		w.seal = sealOctets
	}
	link := linkemu.Config{Seed: s.seed}
	for i := range s.nodes {
		n := &node{id: pmul.NodeID(0x0a4d0001 + i), name: fmt.Sprintf("node%d", i), journal: map[string]pmul.Record{},
			delivered: map[pmul.Key]time.Time{}, payload: map[pmul.Key][]byte{}, got: map[pmul.Key]pmul.Message{}, joined: map[pmul.GroupAddr]bool{}}
		if s.coding == pmul.Compact {
			n.id = pmul.NodeID(i + 1)
		}
		n.cfg = pmul.ConfigFor(s.p, n.id, s.coding, w.seal, rand.New(rand.NewPCG(s.seed, uint64(i))))
		n.cfg.Group = 0xef010101
		if s.coding == pmul.Compact {
			n.cfg.FirstMessage = 1
		}
		if s.change != nil {
			s.change(&n.cfg)
		}
		link.Nodes = append(link.Nodes, linkemu.Node{Name: n.name, Profile: s.p})
		w.nodes = append(w.nodes, n)
		w.start(n)
	}
	var err error
	if w.link, err = linkemu.New(link); err != nil {
		t.Fatal(err)
	}
	return w
}

// start makes a node's engines from its journal.
func (w *world) start(n *node) {
	w.t.Helper()
	var records []pmul.Record
	for _, k := range slices.Sorted(maps.Keys(n.journal)) {
		records = append(records, n.journal[k])
	}
	var err error
	if n.sender, err = pmul.NewSender(n.cfg, records); err != nil {
		w.t.Fatal(err)
	}
	n.sender.Batch(w.batches)
	if n.receiver, err = pmul.NewReceiver(n.cfg, records); err != nil {
		w.t.Fatal(err)
	}
	n.due = [2]time.Time{w.now, w.now} // the steps left undone
}

func (w *world) kill(n *node) {
	if n.sender == nil {
		return
	}
	w.crashes++
	n.sender, n.receiver, n.due = nil, nil, [2]time.Time{}
	w.after(w.down, func() { w.start(n) })
}

func (w *world) after(d time.Duration, do func()) { w.at(w.now.Add(d), do) }

func (w *world) at(t time.Time, do func()) {
	w.serial++
	heap.Push(&w.agenda, entry{t, w.serial, do})
}

// sendStep and receiveStep give an event to one half of a node.
func (w *world) sendStep(n *node, ev pmul.Event) pmul.Output {
	if n.sender == nil {
		return pmul.Output{}
	}
	out := n.sender.Step(w.now, ev)
	n.due[0] = out.Deadline
	w.act(n, out)
	return out
}

func (w *world) receiveStep(n *node, ev pmul.Event) {
	if n.receiver == nil {
		return
	}
	out := n.receiver.Step(w.now, ev)
	n.due[1] = out.Deadline
	w.act(n, out)
}

// act commits, then carries out the rest; a kill -9 may come before, or between.
func (w *world) act(n *node, out pmul.Output) {
	crash := len(out.Records) > 0 && w.crash > 0 && w.rng.Float64() < w.crash
	before := crash && w.rng.IntN(2) == 0
	if w.dies != nil {
		before, crash = w.dies(n)
	}
	if before {
		w.kill(n)
		return
	}
	for _, r := range out.Records {
		k := r.Bucket + "\x00" + string(r.Key)
		if r.Value == nil {
			delete(n.journal, k)
		} else {
			n.journal[k] = pmul.Record{Bucket: r.Bucket, Key: bytes.Clone(r.Key), Value: append([]byte{}, r.Value...)}
		}
	}
	for _, m := range out.Deliver {
		if _, known := n.delivered[m.Key]; known {
			n.twice++
		}
		n.delivered[m.Key] = w.now
		n.payload[m.Key], n.got[m.Key] = m.Payload, m
		n.order = append(n.order, m.Key)
	}
	n.fates = append(n.fates, out.Fates...) // as in the journal
	if crash {
		w.kill(n)
		return
	}
	n.accepted = append(n.accepted, out.Accepted...)
	for _, g := range out.Join {
		n.joined[g] = true
	}
	for _, g := range out.Leave {
		delete(n.joined, g)
	}
	for _, p := range out.Send {
		if w.ride && p.To == 0 && n.receiver != nil {
			bare, err := n.cfg.Encode(nil, p)
			if err != nil {
				w.t.Fatal(err)
			}
			r := n.receiver.Step(w.now, pmul.Ride{Octets: n.cfg.DatagramOctets - len(bare)})
			n.due[1] = r.Deadline
			p.PDUs = append(r.Ride, p.PDUs...)
			if r.Ride = nil; len(r.Records)+len(r.Send) > 0 {
				w.act(n, r)
			}
		}
		data, err := n.cfg.Encode(nil, p)
		if err != nil {
			w.t.Fatal(err)
		}
		if most := w.most(n, p); len(data) > most {
			w.t.Fatalf("a datagram of %d octets, limit %d: %+v", len(data), most, p)
		}
		f := linkemu.Frame{From: n.name, Octets: len(data) + n.cfg.Overhead, Data: data}
		if p.To != 0 {
			if to := w.byID(p.To); to != nil {
				f.To = to.name
			}
		}
		if w.sent != nil {
			w.sent(n, data)
		}
		if w.packet != nil {
			w.packet(p, data)
		}
		n.frames++
		n.octets += f.Octets
		if p.Port == pmul.AckPort {
			n.acks++
			n.ackOctets += f.Octets
			if n.cfg.Hears {
				w.sendStep(n, pmul.Busy{By: n.id, Air: profile.Airtime(f.Octets, n.cfg.RateBps)})
			}
		}
		w.air(f)
	}
}

func (w *world) byID(id pmul.NodeID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func (w *world) byName(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (w *world) air(ev linkemu.Event) {
	out, err := w.link.Step(w.now, ev)
	if err != nil {
		w.t.Fatal(err)
	}
	w.linkAt = out.Deadline
	for _, d := range out.Deliver {
		w.arrive(w.byName(d.Frame.From), w.byName(d.Node), d.Frame.Data)
	}
}

// arrive reads a datagram as the edge would: each half gets its own PDUs.
func (w *world) arrive(from, to *node, data []byte) {
	if w.tap != nil && !w.tap(from, to, data) {
		return
	}
	var pdus []pmul.PDU
	var err error
	if to.cfg.Coding == pmul.Compact {
		pdus, err = pmul.ParseCompact(data, from.id, to.id)
	} else {
		var p pmul.PDU
		p, _, err = pmul.Parse(data)
		pdus = []pmul.PDU{p}
	}
	if err != nil {
		w.t.Fatalf("%v from %s to %s: %x", err, from.name, to.name, data)
	}
	if to.cfg.Hears {
		w.sendStep(to, pmul.Busy{By: from.id, Air: profile.Airtime(len(data)+to.cfg.Overhead, to.cfg.RateBps)})
	}
	for _, p := range pdus {
		switch p := p.(type) {
		case pmul.AckPDU:
			if from == w.stranger {
				for i := range p.Entries {
					p.Entries[i].Source = from.id
				}
				w.sendStep(to, pmul.Told{AckPDU: p})
				break
			}
			w.sendStep(to, p)
			w.receiveStep(to, p)
		case pmul.RequestPDU, pmul.RejectPDU, pmul.TurnPDU:
			w.sendStep(to, p)
		default:
			w.receiveStep(to, p)
		}
	}
}

// run plays until then, or until no event is left, or until done returns true.
func (w *world) run(d time.Duration, done func() bool) {
	until := epoch.Add(d)
	for done == nil || !done() {
		next := time.Time{}
		take := func(at time.Time) bool {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
				return true
			}
			return false
		}
		var who *node
		half := -1
		if len(w.agenda) > 0 {
			take(w.agenda[0].at)
		}
		if take(w.linkAt) {
			half = 2
		}
		for _, n := range w.nodes {
			for h := range 2 {
				if take(n.due[h]) {
					who, half = n, h
				}
			}
		}
		if next.IsZero() || next.After(until) {
			w.now = later(w.now, until)
			return
		}
		w.now = later(w.now, next)
		switch half {
		case 0:
			w.sendStep(who, nil)
		case 1:
			w.receiveStep(who, nil)
		case 2:
			w.air(nil)
		default:
			heap.Pop(&w.agenda).(entry).do()
		}
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// send submits a message from one node to others and gives its key.
func (w *world) send(from *node, payload []byte, priority uint8, lifetime time.Duration, to ...*node) pmul.Key {
	w.t.Helper()
	ev := pmul.Submit{Payload: payload, Priority: priority, Expires: w.now.Add(lifetime)}
	for _, n := range to {
		ev.To = append(ev.To, n.id)
	}
	out := w.sendStep(from, ev)
	if len(out.Accepted) != 1 || out.Accepted[0].Err != nil {
		w.t.Fatalf("submit: %+v", out.Accepted)
	}
	return pmul.Key{Source: from.id, Message: out.Accepted[0].Message}
}

// last is when the last of the nodes got the message; false when some do not have it.
func last(key pmul.Key, nodes ...*node) (time.Time, bool) {
	var at time.Time
	for _, n := range nodes {
		t, ok := n.delivered[key]
		if !ok {
			return at, false
		}
		at = later(at, t)
	}
	return at, true
}

func content(octets int, seed uint64) []byte {
	b := make([]byte, octets)
	rng := rand.New(rand.NewPCG(seed, 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

type entry struct {
	at     time.Time
	serial int
	do     func()
}

type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].serial < a[j].serial
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	*a = old[:len(old)-1]
	return e
}

// most is how many octets of a packet fit a datagram: more if it has a part of a batch.
func (w *world) most(n *node, p pmul.Packet) int {
	for _, pdu := range p.PDUs {
		key := pmul.Key{Source: n.cfg.Self}
		switch pdu := pdu.(type) {
		case pmul.AddressPDU:
			if key.Message = pdu.Message; pdu.Batch {
				w.large[key] = true
			}
		case pmul.DataPDU:
			key.Message = pdu.Message
		case pmul.ParityPDU:
			key.Message = pdu.Message
		}
		if w.large[key] {
			return n.cfg.LargeOctets
		}
	}
	return n.cfg.DatagramOctets
}
