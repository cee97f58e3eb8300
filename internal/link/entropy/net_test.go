package entropy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"aldis/internal/link/hearing"
)

// radio is a channel of a test: shared by all its nodes, or a star around the first.
type radio struct {
	nodes  []int
	shared bool
	bps    int
	trip   time.Duration
	loss   float64 // in bursts
	bad    map[[2]int]time.Time
	deaf   map[[2]int]bool // the first node does not hear the second
	free   map[int]time.Time
	sent   int // octets above UDP
	items  int // octets of messages, sent first and again
	repair int
}

const overhead = 28 + 19

// fleet is nodes in virtual time.
type fleet struct {
	t        *testing.T
	now      time.Time
	start    time.Time
	rand     *rand.Rand
	nodes    []*Engine
	hears    []*hearing.Net
	silenced map[int]bool  // nodes that no node hears
	lies     map[int][]int // nodes that a node claims to hear, against the truth
	radios   []*radio
	events   []event
	got      []map[Name]int
	away     map[int]bool
	drops    map[string]int
	next     map[int]uint64
	life     time.Duration
}

type event struct {
	at time.Time
	do func()
}

const tag = Tag(7)

func newFleet(t *testing.T, n int, seed uint64, radios ...*radio) *fleet {
	f := &fleet{t: t, now: time.Unix(1e9, 0), rand: rand.New(rand.NewPCG(seed, 1)), radios: radios, away: map[int]bool{}, drops: map[string]int{}, next: map[int]uint64{}, life: 12 * time.Hour}
	f.start = f.now
	for i := range n {
		f.hears = append(f.hears, hearing.New(hearing.Name{ID: uint16(i + 1), Start: f.startOf(i)}))
		f.got = append(f.got, map[Name]int{})
		f.nodes = append(f.nodes, New(Config{Self: uint16(i + 1), Most: 1 << 20, Keep: func(k, v []byte) {}, Rand: rand.New(rand.NewPCG(seed, uint64(i+2))), Hearing: f.hears[i],
			Verify: func(it *Item) Verdict {
				if string(it.Body[:4]) != "true" {
					return Forged
				}
				return Genuine
			}}))
		f.nodes[i].Step(f.now)
		f.nodes[i].Join(f.now, tag)
	}
	for _, r := range radios {
		r.bad, r.free = map[[2]int]time.Time{}, map[int]time.Time{}
	}
	f.ports()
	return f
}

// ports tells every node whom it reaches.
func (f *fleet) ports() {
	f.greet()
	for i, e := range f.nodes {
		var list []Port
		for k, r := range f.radios {
			at := slices.Index(r.nodes, i)
			if at < 0 {
				continue
			}
			up := func(j int) bool { return j != i && !f.away[j] && !f.away[i] && !r.deaf[[2]int{i, j}] }
			if r.shared {
				p := Port{ID: PortID(k << 16), Channel: k, Shared: true, Trip: r.trip, Bps: r.bps}
				for _, j := range r.nodes {
					if up(j) {
						p.Peers = append(p.Peers, uint16(j+1))
					}
				}
				list = append(list, p)
				continue
			}
			for n, j := range r.nodes {
				if up(j) && (at == 0 || n == 0) {
					list = append(list, Port{ID: PortID(k<<16 | j + 1), Channel: k, Peers: []uint16{uint16(j + 1)}, Hub: n == 0, Spreads: at == 0, Trip: r.trip, Bps: r.bps})
				}
			}
		}
		e.Ports(f.now, list)
	}
}

// startOf is when a node started: the first has been up longest.
func (f *fleet) startOf(node int) uint32 { return uint32(f.start.Unix()) - 10_000 + uint32(node)*60 }

// greet makes all nodes of shared channels say whom they hear.
func (f *fleet) greet() {
	for k, r := range f.radios {
		if !r.shared {
			for _, i := range r.nodes {
				for _, j := range r.nodes {
					f.hears[i].Present(f.now, k, hearing.Name{ID: uint16(j + 1)}, !f.away[j])
				}
			}
			continue
		}
		hears := func(i, j int) bool { return i != j && !f.away[i] && !f.away[j] && !r.deaf[[2]int{i, j}] }
		for _, i := range r.nodes {
			for _, j := range r.nodes {
				if hears(i, j) {
					f.hears[i].Present(f.now, k, hearing.Name{ID: uint16(j + 1), Start: f.startOf(j)}, true)
				} else if i != j {
					f.hears[i].Present(f.now, k, hearing.Name{ID: uint16(j + 1)}, false)
				}
			}
		}
		for _, i := range r.nodes {
			for _, j := range r.nodes {
				if !hears(i, j) {
					continue
				}
				var names []hearing.Name
				for _, other := range r.nodes {
					if lie := f.lies[j]; lie != nil && slices.Contains(lie, other) || lie == nil && hears(j, other) {
						names = append(names, hearing.Name{ID: uint16(other + 1), Start: f.startOf(other)})
					}
				}
				f.hears[i].Greets(f.now.Add(time.Second), k, hearing.Name{ID: uint16(j + 1), Start: f.startOf(j)}, names, true)
			}
		}
	}
}

func (f *fleet) at(after time.Duration, do func()) {
	f.events = append(f.events, event{f.now.Add(after), do})
}

// say makes a node send a message to the group.
func (f *fleet) say(node, octets int) Name {
	n := Name{uint16(node + 1), max(f.nodes[node].NextNumber(tag), FirstNumber(1))}
	body := append([]byte("true"), make([]byte, octets-4)...)
	f.got[node][n]++
	f.nodes[node].Say(f.now, Item{Tag: tag, Name: n, Life: Life(f.life), Body: body, Hops: MostHops, Expires: f.now.Add(f.life)})
	return n
}

// run lets time pass.
func (f *fleet) run(until time.Duration) {
	end := f.start.Add(until)
	for f.now.Before(end) {
		for i, e := range f.nodes {
			if f.away[i] {
				continue
			}
			e.Step(f.now)
			f.pump(i, e)
		}
		next := end
		for i, e := range f.nodes {
			if f.away[i] {
				continue
			}
			if at := e.Due(); !at.IsZero() && at.Before(next) {
				next = at
			}
			for _, p := range e.ports {
				if at := e.Waiting(p.ID); !at.IsZero() && len(p.Peers) > 0 {
					if free := f.radios[p.Channel].free[f.lane(i, p)]; free.After(at) {
						at = free
					}
					if at.Before(next) {
						next = at
					}
				}
			}
		}
		for _, ev := range f.events {
			if ev.at.Before(next) {
				next = ev.at
			}
		}
		if !next.After(f.now) {
			next = f.now.Add(time.Millisecond)
		}
		f.now = next
		due := slices.Clone(f.events)
		f.events = slices.DeleteFunc(f.events, func(ev event) bool { return !ev.at.After(f.now) })
		for _, ev := range due {
			if !ev.at.After(f.now) {
				ev.do()
			}
		}
	}
}

// lane is the node whose sending delays a port's frames; -1: all nodes of a shared channel.
func (f *fleet) lane(node int, p *port) int {
	if p.Shared {
		return -1
	}
	return node
}

func (f *fleet) pump(i int, e *Engine) {
	for _, p := range e.ports {
		r := f.radios[p.Channel]
		for !r.free[f.lane(i, p)].After(f.now) {
			s, ok := e.Next(f.now, p.ID, 480)
			if !ok {
				break
			}
			f.send(i, p, r, s)
		}
	}
}

func (f *fleet) send(i int, p *port, r *radio, s Say) {
	octets := len(s.Body) + overhead
	if s.Body == nil {
		octets += 5
	}
	r.sent += octets
	r.repair += s.Repairs
	if len(s.Body) > 0 && s.Body[0] >= kindItem {
		r.items += len(s.Body) - s.Repairs
	}
	air := time.Duration(octets*8) * time.Second / time.Duration(r.bps)
	r.free[f.lane(i, p)] = f.now.Add(air)
	for _, id := range p.Peers {
		j := int(id) - 1
		if s.To != 0 && s.To != id || f.away[j] || f.silenced[i] || f.lost(r, i, j) {
			continue
		}
		far := f.nodes[j]
		port := PortID(p.Channel << 16)
		if !p.Shared {
			port |= PortID(i + 1)
		}
		f.at(air+r.trip/4, func() {
			if f.away[j] {
				return
			}
			if s.Body == nil {
				far.Digest(f.now, port, uint16(i+1), s.Tag, s.Hash, s.Fresh)
				return
			}
			f.take(j, far.Receive(f.now, port, uint16(i+1), s.Body))
		})
	}
}

func (f *fleet) take(node int, got Result) {
	for _, it := range got.New {
		f.got[node][it.Name]++
		if string(it.Body[:4]) != "true" {
			f.t.Errorf("node %d took a forged message", node)
		}
	}
	for _, reason := range got.Dropped {
		f.drops[reason]++
	}
}

// lost says whether a datagram is lost: in bursts of 4 s on average, at the channel's rate of loss.
func (f *fleet) lost(r *radio, i, j int) bool {
	if r.loss == 0 {
		return false
	}
	key := [2]int{i, j}
	if r.bad[key].After(f.now) {
		return true
	}
	if f.rand.Float64() < r.loss/2 {
		r.bad[key] = f.now.Add(time.Duration(f.rand.ExpFloat64() * float64(4*time.Second)))
		return true
	}
	return f.rand.Float64() < r.loss/2
}

// missing lists the messages that each living node lacks.
func (f *fleet) missing(names []Name) (list []string) {
	for i := range f.nodes {
		for _, n := range names {
			if !f.away[i] && f.got[i][n] != 1 {
				list = append(list, fmt.Sprintf("node %d has %v %d times", i, n, f.got[i][n]))
			}
		}
	}
	return list
}

func hf(nodes ...int) *radio {
	return &radio{nodes: nodes, shared: true, bps: 2400, trip: 8 * time.Second}
}
func sat(nodes ...int) *radio { return &radio{nodes: nodes, bps: 9600, trip: 2 * time.Second} }
