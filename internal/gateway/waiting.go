package gateway

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// What waits for a peer is in order of precedence, each precedence in the order of acceptance. A message has no number
// yet, so it can be dropped, replaced and overtaken; docs/decisions/precedence.md.

// urgentRoom is how many messages above routine may be under way beyond the window.
const urgentRoom = 4

var routine = site.Routine.Rank()

// rank is how urgent a message is; state is routine.
func (m *message) rank() int {
	if m.content.Payload == nil {
		return routine
	}
	return site.Precedence(m.content.Payload.Precedence).Rank()
}

// expires is when the message is not sent any more; zero: never.
func (m *message) expires() time.Time {
	if m.content.Payload == nil {
		return time.Time{}
	}
	return m.content.Payload.Expires
}

// supersedes names what the message is about; "" when it replaces nothing.
func (m *message) supersedes() string {
	if m.content.Payload == nil {
		return ""
	}
	return m.content.Payload.Supersedes
}

// push puts a message that has its seq and lane among those that wait.
func (p *peer) push(m *message) {
	// Behind all that are as urgent; seq differs from the order of arrival where it was taken over from an older message.
	at, _ := p.place(m)
	p.waiting[m.lane] = slices.Insert(p.waiting[m.lane], at, m)
	p.octets += len(m.full)
	if key := m.supersedes(); key != "" {
		p.latest[key] = m
	}
	p.expiry = earlier(p.expiry, m.expires())
}

// place is where m is, or would be, among those that wait in its lane.
func (p *peer) place(m *message) (at int, there bool) {
	return slices.BinarySearchFunc(p.waiting[m.lane], m, func(a, b *message) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.seq, b.seq))
	})
}

// first is the next message of a lane; nil when none waits, or there is no room for it under way.
func (p *peer) first(lane frame.Lane) *message {
	if len(p.waiting[lane]) == 0 {
		return nil
	}
	m := p.waiting[lane][0]
	extra := 0
	if m.rank() > routine {
		extra = urgentRoom
	}
	if !p.sender.RoomFor(lane, extra) {
		return nil
	}
	return m
}

// shift takes the first message of a lane, which has got its number, out of those that wait. Its octets are counted on.
func (p *peer) shift(lane frame.Lane) {
	m := p.waiting[lane][0]
	p.waiting[lane][0] = nil
	p.waiting[lane] = p.waiting[lane][1:]
	if key := m.supersedes(); p.latest[key] == m {
		delete(p.latest, key)
	}
}

// toBulk moves the first of the direct lane, which is m, to the other one.
func (p *peer) toBulk(m *message) {
	p.shift(m.lane)
	p.octets -= len(m.full) // push counts it again
	m.lane = frame.Bulk
	p.push(m)
}

// drop takes a message that waits out for good; the caller says what has become of it.
func (g *Gateway) drop(p *peer, m *message) {
	if at, there := p.place(m); there {
		p.waiting[m.lane] = slices.Delete(p.waiting[m.lane], at, at+1)
	}
	g.forget(p, m)
}

// forget is drop for a message that has been taken out of its lane.
func (g *Gateway) forget(p *peer, m *message) {
	p.octets -= len(m.full)
	if key := m.supersedes(); p.latest[key] == m {
		delete(p.latest, key)
	}
	g.record(bucketWaiting, seqKey(p.ID, m.seq), nil)
	g.ended(m.content.Payload, true)
}

// makeRoom drops what is less urgent than m, the least urgent and newest first, until octets more have room. It drops
// nothing when that would not do.
func (g *Gateway) makeRoom(now time.Time, p *peer, m *message, octets int) bool {
	over := p.octets + octets - g.cfg.MaxWaiting
	if over <= 0 {
		return true
	}
	var less []*message // from the ends of both lanes
	var end [frame.Lanes]int
	for lane, q := range p.waiting {
		end[lane] = len(q)
	}
	for over > 0 {
		var least *message
		for lane, q := range p.waiting {
			for end[lane] > 0 && q[end[lane]-1].content.Payload == nil { // state stays
				end[lane]--
			}
			if end[lane] == 0 {
				continue
			}
			o := q[end[lane]-1]
			if o.rank() < m.rank() && (least == nil || o.rank() < least.rank() || o.rank() == least.rank() && o.seq > least.seq) {
				least = o
			}
		}
		if least == nil {
			return false
		}
		less = append(less, least)
		end[least.lane]--
		over -= len(least.full)
	}
	for _, o := range less {
		g.drop(p, o)
		p.count.Withdrawn++
	}
	if p.gaveUp += len(less); now.Sub(p.gaveUpSaid) >= time.Minute {
		g.note("warn", "messages that waited were given up for more urgent ones: what waits for the peer is at its bound",
			"peer", p.Name, "given_up", p.gaveUp, "waiting_octets", p.octets)
		p.gaveUp, p.gaveUpSaid = 0, now
	}
	return true
}

// expire drops what is not worth sending any more.
func (g *Gateway) expire(now time.Time) {
	for _, p := range g.peers {
		if p.expiry.IsZero() || now.Before(p.expiry) {
			continue
		}
		p.expiry = time.Time{}
		var over []*message
		for lane, q := range p.waiting {
			p.waiting[lane] = slices.DeleteFunc(q, func(m *message) bool {
				at := m.expires()
				if at.IsZero() || now.Before(at) {
					p.expiry = earlier(p.expiry, at)
					return false
				}
				over = append(over, m)
				return true
			})
		}
		for _, m := range over {
			g.forget(p, m)
			p.count.Expired++
			p.expired++
		}
		if p.expired > 0 && now.Sub(p.expiredSaid) >= time.Minute {
			g.note("warn", "messages were not worth sending any more when their turn came", "peer", p.Name, "expired", p.expired)
			p.expired, p.expiredSaid = 0, now
		}
	}
	g.tellFates(now)
}
