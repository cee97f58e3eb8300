package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

// gossip is JXTA peers at several gateways, which all send to all over one propagate pipe, and the fate of each message. Their
// gateways may die at any time; the peers dial again.
type gossip struct {
	pipe   string
	lans   []string
	local  map[int]int // talkers and listeners of one gateway: messages between them are not in custody
	mu     sync.Mutex
	said   [][]saying // by the talker
	deaths [][]time.Time
	leases map[string]int // how often each peer got a lease
	wrong  []string
	quiet  bool // nobody begins a new message
}

// saying is one message.
type saying struct {
	accepted bool // its gateway certainly has it in its journal
	heard    [][]hearing
}

// hearing is one arrival at a listener.
type hearing struct {
	at time.Time
	id string // MsgId, by which a peer recognises duplicates
}

const (
	gossipEvery = 150 * time.Millisecond
	// After renewEvery messages a talker asks for its lease again: the answer shows that all earlier ones are durable.
	renewEvery = 3
	// mostOpen messages of a talker may wait for some listener: gateways that die all the time carry less than they accept.
	mostOpen = 40
	redial   = 20 * time.Millisecond
	// deathSeen is how long after a gateway's death a listener may still read octets that it sent before.
	deathSeen = 2 * time.Second
)

// startGossip makes peers send at gateways with these LAN addresses, until the test ends.
func startGossip(t *testing.T, lans []string, seed uint64) *gossip {
	g := &gossip{pipe: edgepeer.NamedPipe("gossip"), lans: lans, said: make([][]saying, len(lans)), deaths: make([][]time.Time, len(lans)), leases: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range lans {
		all.Go(func() { g.again(ctx, i, seed, g.listen) })
		all.Go(func() { g.again(ctx, i, seed, g.talk) })
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return g
}

// again repeats something at gateway i until ctx ends.
func (g *gossip) again(ctx context.Context, i int, seed uint64, what func(ctx context.Context, i int, seed uint64)) {
	for n := uint64(0); ctx.Err() == nil; n++ {
		what(ctx, i, seed<<20+n)
		rest(ctx, redial)
	}
}

// rest returns after d, or when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (g *gossip) dial(ctx context.Context, i int, role string, seed uint64, pipes []edgepeer.Listen, hear func(*tcp.Peer, edgepeer.Notice)) *tcp.Peer {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := fmt.Sprint(role, i)
	p, err := tcp.Dial(within, tcp.Config{Address: g.lans[i], Pipes: pipes, Hear: hear,
		Edge: edgepeer.Config{ID: fixedPeer(role, i), Name: name, Rand: rand.New(rand.NewPCG(seed, uint64(i)<<8|uint64(len(name))))}})
	if err != nil {
		return nil
	}
	if p.WaitLease(within, "") != nil {
		p.Close()
		return nil
	}
	g.mu.Lock()
	g.leases[name]++
	g.mu.Unlock()
	return p
}

// fixedPeer is the id of a peer, the same whenever it dials.
func fixedPeer(role string, i int) string {
	return edgepeer.New(edgepeer.Config{Name: role, Rand: rand.New(rand.NewPCG(uint64(i), uint64(len(role))))}).ID()
}

// listen is one connection of the listener at gateway i.
func (g *gossip) listen(ctx context.Context, i int, seed uint64) {
	p := g.dial(ctx, i, "ear", seed, []edgepeer.Listen{{Pipe: g.pipe, Kind: jxta.PipeTypePropagate}}, func(_ *tcp.Peer, n edgepeer.Notice) {
		if m, ok := n.(edgepeer.Message); ok {
			g.hear(i, m)
		}
	})
	if p == nil {
		return
	}
	defer p.Close()
	select {
	case <-p.Done():
	case <-ctx.Done():
	}
}

func gossipText(i, n int) string { return fmt.Sprintf("%d;%d;%0160d", i, n, n*7919) }

func (g *gossip) hear(at int, m edgepeer.Message) {
	text := string(m.Elements[0].Data)
	var i, n int
	_, err := fmt.Sscanf(text, "%d;%d;", &i, &n)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || i < 0 || i >= len(g.said) || n < 0 || n >= len(g.said[i]) || text != gossipText(i, n) {
		g.wrong = append(g.wrong, fmt.Sprintf("nobody has said %.40q, which came at %d", text, at))
		return
	}
	g.said[i][n].heard[at] = append(g.said[i][n].heard[at], hearing{time.Now(), m.MsgID})
}

// open is how many messages of a talker have not reached all listeners.
func (g *gossip) open(i int) (n int) {
	for _, s := range g.said[i] {
		if s.accepted && len(g.missing(i, s)) > 0 {
			n++
		}
	}
	return n
}

// missing are the listeners that a message of talker i has not reached.
func (g *gossip) missing(i int, s saying) (list []int) {
	for at, h := range s.heard {
		if at != i && len(h) == 0 && (g.local == nil || g.local[at] != g.local[i]) {
			list = append(list, at)
		}
	}
	return list
}

// talk is one connection of the talker at gateway i.
func (g *gossip) talk(ctx context.Context, i int, seed uint64) {
	p := g.dial(ctx, i, "mouth", seed, nil, nil)
	if p == nil {
		return
	}
	defer p.Close()
	for ctx.Err() == nil {
		var fresh []int
		for range renewEvery {
			g.mu.Lock()
			n, full := len(g.said[i]), g.quiet || g.open(i) >= mostOpen
			if !full {
				g.said[i] = append(g.said[i], saying{heard: make([][]hearing, len(g.said))})
				fresh = append(fresh, n)
			}
			g.mu.Unlock()
			if !full {
				if _, err := p.Do(edgepeer.Send{Pipe: g.pipe, Kind: jxta.PipeTypePropagate, Elements: []jxta.Element{{Name: "text", Data: []byte(gossipText(i, n))}}}); err != nil {
					return
				}
			}
			select {
			case <-p.Done():
				return
			case <-ctx.Done():
				return
			case <-time.After(gossipEvery):
			}
		}
		if len(fresh) == 0 {
			continue
		}
		if p.Renew(ctx) != nil {
			return
		}
		g.mu.Lock()
		for _, n := range fresh {
			g.said[i][n].accepted = true
		}
		g.mu.Unlock()
	}
}

// meet waits until every listener has heard every other talker. Messages before that do not count: a listener may not have been
// known.
func (g *gossip) meet(t *testing.T, limit time.Duration) {
	t.Helper()
	g.until(t, limit, "all hear all", func() bool {
		for i := range g.said {
			some := make([]bool, len(g.said))
			for _, s := range g.said[i] {
				for at := range s.heard {
					some[at] = some[at] || len(s.heard[at]) > 0
				}
			}
			some[i] = true
			if slices.Contains(some, false) {
				return false
			}
		}
		for i := range g.said { // from now on
			for n := range g.said[i] {
				g.said[i][n].accepted = false
			}
		}
		return true
	})
}

// until waits for a condition, which is checked with the lock held.
func (g *gossip) until(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	for {
		g.mu.Lock()
		yes := ok()
		g.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("in %v not so: %s; %s", limit, what, g.summary())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// arrivals is the number of arrivals so far. The caller holds mu.
func (g *gossip) arrivals() (n int) {
	for i := range g.said {
		for _, s := range g.said[i] {
			for at, heard := range s.heard {
				if at != i && len(heard) > 0 {
					n++
				}
			}
		}
	}
	return n
}

// died records the death of gateway i.
func (g *gossip) died(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deaths[i] = append(g.deaths[i], time.Now())
}

// settle stops all talkers, and waits until all accepted messages have arrived.
func (g *gossip) settle(t *testing.T, limit time.Duration) {
	t.Helper()
	g.mu.Lock()
	g.quiet = true
	g.mu.Unlock()
	g.until(t, limit, "all that was accepted has come", func() bool {
		for i := range g.said {
			if g.open(i) > 0 {
				return false
			}
		}
		return true
	})
}

// tally counts: again is how often a message came a second time, with the MsgId by which a peer recognises it.
func (g *gossip) tally() (said, accepted, arrived, again int, faults []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	faults = slices.Clone(g.wrong)
	for i := range g.said {
		for n, s := range g.said[i] {
			said++
			if s.accepted {
				accepted++
				for _, at := range g.missing(i, s) {
					faults = append(faults, fmt.Sprintf("message %d of %d was accepted and did not come at %d", n, i, at))
				}
			}
			for at, heard := range s.heard {
				if at == i {
					continue
				}
				if len(heard) > 0 {
					arrived++
				}
				for k := 1; k < len(heard); k++ {
					again++
					if !g.explained(at, heard[k-1], heard[k]) {
						faults = append(faults, fmt.Sprintf("message %d of %d came twice at %d: %v", n, i, at, heard))
					}
				}
			}
		}
	}
	return said, accepted, arrived, again, faults
}

// explained says whether a duplicate is allowed: a gateway that dies between delivering a message and its commit delivers it
// again, and the peer recognises the copy by its MsgId (docs/limits.md, "The last metre").
func (g *gossip) explained(at int, first, second hearing) bool {
	return first.id == second.id && slices.ContainsFunc(g.deaths[at], func(d time.Time) bool {
		return d.After(first.at.Add(-deathSeen)) && d.Before(second.at)
	})
}

func (g *gossip) summary() string {
	said, accepted, arrived, again, faults := g.tally()
	return fmt.Sprintf("%d messages said, %d known to be accepted, %d arrivals, %d came again with their MsgId, %d faults", said, accepted, arrived, again, len(faults))
}
