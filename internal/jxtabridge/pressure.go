package jxtabridge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/site"
)

// Between local peers nothing is in custody: a message waits only in the receiver's queue. When a sender is faster than
// its receiver, the gateway stops reading from the sender until the queue is shorter. TCP slows the sender, and nothing
// is lost. Senders wait for jamMost at the longest. After that the gateway drops the oldest messages of a full queue, as
// an overrun JXTA rendezvous does, and counts them.
const (
	jamMost = 5 * time.Second
	// Shares of a peer's queue (Config.MaxQueue, MaxQueueOctets) from which senders wait, and below which they go on. Messages
	// that lan has already read come on top of the first.
	jamFrom, jamTo = 8, 16
)

// Gate tells the LAN to stop reading from a connection, or to go on.
type Gate struct {
	Conn site.ConnID
	Shut bool
}

// jam is the state of a peer's queue for which senders have to wait.
type jam struct {
	feeders map[*conn]bool // connections that wait
	until   time.Time      // how long they wait; zero: none waits
	slow    bool           // they have waited long enough: none waits again until the queue has become shorter
}

func (o *outlets) above(p *peer, share int) bool {
	return len(p.queue) > o.cfg.MaxQueue/share || p.queued > o.cfg.MaxQueueOctets/share
}

// throttle makes the sender of the message being handled wait if too much waits for p.
func (o *outlets) throttle(p *peer) {
	c := o.source
	if c == nil || c.scheme != "tcp" || p.jam.slow || p.jam.feeders[c] || !o.above(p, jamFrom) || p.newest() == nil {
		return
	}
	if p.jam.feeders == nil {
		p.jam.feeders = map[*conn]bool{}
	}
	if c.feeds == nil {
		c.feeds = map[*peer]bool{}
	}
	p.jam.feeders[c] = true
	c.feeds[p] = true
	if len(c.feeds) == 1 {
		o.stats.Throttled++
		o.post(Gate{c.id, true})
	}
	if p.jam.until.IsZero() {
		p.jam.until = o.now.Add(jamMost)
		o.peerAt(p, p.jam.until)
	}
}

// unjam lets the senders go on when there is room again, or the peer has no connection.
func (o *outlets) unjam(p *peer) {
	if !p.jam.slow && len(p.jam.feeders) == 0 {
		return
	}
	if !o.above(p, jamTo) {
		p.jam.slow = false
	} else if p.newest() != nil {
		return
	}
	o.letGo(p)
}

// jammed ends the senders' waiting when it has lasted long enough.
func (o *outlets) jammed(p *peer) {
	if p.jam.until.IsZero() || o.now.Before(p.jam.until) {
		return
	}
	p.jam.slow = true
	o.note("warn", "a local peer reads too slowly; the gateway drops its oldest messages, and its senders no longer wait", "peer", p.id, "waiting", len(p.queue), "octets", p.queued)
	o.letGo(p)
}

func (o *outlets) letGo(p *peer) {
	for _, c := range slices.SortedFunc(maps.Keys(p.jam.feeders), func(x, y *conn) int { return cmp.Compare(x.id, y.id) }) {
		delete(c.feeds, p)
		if len(c.feeds) == 0 {
			o.post(Gate{c.id, false})
		}
	}
	clear(p.jam.feeders)
	p.jam.until = time.Time{}
}

// unfeed forgets a connection that has closed.
func (o *outlets) unfeed(c *conn) {
	for p := range c.feeds {
		delete(p.jam.feeders, c)
		if len(p.jam.feeders) == 0 {
			p.jam.until = time.Time{}
		}
	}
	c.feeds = nil
}

// The messages of this site that wait for peers, or are under way to them, have maxLocal octets of memory together. Beyond that a peer
// gets one only if with it at most littleWaits octets wait for the peer.
const (
	maxLocal    = 256 << 20
	littleWaits = 64 << 10
)

// sharedFrom is the length from which the data of an element counts once, however many messages have it.
const sharedFrom = 4 << 10

// stock is the memory of messages.
type stock struct {
	most, octets int
	shared       map[*byte]int // the messages that have these data
}

// stocked is the part of a message in a stock: octets of its own, and whether it has shared data. Messages to signed peers are written as
// a whole, and share nothing.
type stocked struct {
	octets int
	shares bool
}

func (s *stock) take(m *message, shares bool) {
	m.stocked = stocked{m.size, shares}
	if shares {
		for _, e := range m.elements {
			if n := len(e.Data); n >= sharedFrom {
				m.stocked.octets -= n
				if s.shared[&e.Data[0]]++; s.shared[&e.Data[0]] == 1 {
					s.octets += n
				}
			}
		}
	}
	s.octets += m.stocked.octets
}

// release takes a message out again, if it is there.
func (s *stock) release(m *message) {
	s.octets -= m.stocked.octets
	if m.shares {
		for _, e := range m.elements {
			if n := len(e.Data); n >= sharedFrom {
				if s.shared[&e.Data[0]]--; s.shared[&e.Data[0]] == 0 {
					delete(s.shared, &e.Data[0])
					s.octets -= n
				}
			}
		}
	}
	m.stocked = stocked{}
}

// roomFor takes a message for a peer into the stock, and says whether there was room.
func (o *outlets) roomFor(p *peer, m *message) bool {
	o.local.take(m, !p.signed)
	waits := p.queued + m.size
	if p.out != nil {
		waits += p.out.octets
	}
	if o.local.octets > o.local.most && waits > littleWaits {
		o.local.release(m)
		return false
	}
	return true
}
