package pmul

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// negotiation is the state of the negotiation of a dynamic group for one message (p-mul 8). It costs two turns; fixed
// groups cost none.
type negotiation struct {
	settled   bool // the group is ours and announced
	asked     bool
	announced int
	tried     int
}

// announceCount is ANNOUNCE_CT.
const announceCount = 2

// ready says that the message itself goes out now, not its negotiation.
func (n *negotiation) ready() bool { return n == nil || n.settled }

// negotiate takes the next step of a message's group: Request, wait for a Reject, Announce, wait, send.
func (s *Sender) negotiate(now time.Time, m *outgoing) {
	g := m.dynamic
	wait := 2*s.cfg.oneWay() + 2*s.cfg.Turnaround + 2*s.cfg.ackAir() + 4*s.cfg.fullAir() + s.cfg.slack() // WAIT_FOR_REJECT_TIME: others talk too
	switch {
	case s.silent:
		m.pollAt = now // when silence ends
	case !g.asked:
		if g.tried > 0 || m.group == 0 || m.group == s.cfg.Group {
			m.group = s.freeGroup(g.tried)
		}
		g.asked = true
		m.pollAt = now.Add(wait)
		s.control(Packet{Port: RequestPort, PDUs: []PDU{RequestPDU{s.cfg.Self, m.id, m.group}}})
	case g.announced < announceCount:
		g.announced++
		m.pollAt = now.Add(s.cfg.oneWay() + s.cfg.air(announceHeader+4*len(m.dests)) + s.cfg.slack())
		s.announce(m, (*destination).lacks)
	default:
		g.settled = true
		m.pollAt = time.Time{}
		s.begin(now, m)
	}
}

// announce asks destinations to join the message's group, in as many PDUs as they need.
func (s *Sender) announce(m *outgoing, named func(*destination) bool) {
	var pdus []AnnouncePDU
	for some := range slices.Chunk(m.dests.which(func(d *destination) bool { return d.lacks() && named(d) }), max(1, (s.cfg.DatagramOctets-announceHeader)/4)) {
		p := AnnouncePDU{Source: s.cfg.Self, Message: m.id, Expiry: m.expiry, Group: m.group}
		for _, d := range some {
			p.Destinations = append(p.Destinations, d.node)
		}
		if n := len(pdus); n > 0 {
			p.MAP = NotFirst
			pdus[n-1].MAP |= NotLast
		}
		pdus = append(pdus, p)
	}
	for _, p := range pdus {
		s.control(Packet{Port: AnnouncePort, PDUs: []PDU{p}})
	}
}

// control sends a PDU of few octets, outside of the pace of the messages.
func (s *Sender) control(p Packet) {
	if !s.silent {
		s.out.Send = append(s.out.Send, p)
	}
}

// freeGroup picks from the pool a group that no message of this node uses.
func (s *Sender) freeGroup(tried int) GroupAddr {
	pool := s.cfg.GroupPool
	if len(pool) == 0 {
		return s.cfg.Group
	}
	at := tried
	if s.cfg.Rand != nil {
		at = s.cfg.Rand.IntN(len(pool))
	}
	for i := range pool {
		if g := pool[(at+i)%len(pool)]; !s.owns(g) {
			return g
		}
	}
	return pool[at%len(pool)]
}

// owns tells whether a dynamic message of this node uses the group.
func (s *Sender) owns(g GroupAddr) bool {
	for _, m := range s.messages {
		if m.dynamic != nil && m.dynamic.asked && m.group == g && !m.closed {
			return true
		}
	}
	return false
}

// requested answers a node that asks for a group, if this node uses it.
func (s *Sender) requested(now time.Time, p RequestPDU) {
	if p.Source == s.cfg.Self || !s.cfg.knows(p.Source) || s.silent || !s.owns(p.Group) {
		s.stats.PassedBy++
		return
	}
	for _, id := range s.Messages() { // if two nodes ask at the same time, the lower Source_ID keeps the group
		m := s.messages[id]
		if m.dynamic != nil && m.group == p.Group && m.dynamic.announced == 0 && p.Source < s.cfg.Self {
			s.stats.PassedBy++
			return
		}
	}
	if now.Before(s.rejectAt) { // a node that floods this one with Request_PDUs gets few answers
		s.stats.PassedBy++
		return
	}
	s.rejectAt = now.Add(10*s.cfg.ackAir() + s.cfg.slack())
	s.out.Send = append(s.out.Send, Packet{To: p.Source, Port: RequestPort, PDUs: []PDU{RejectPDU{s.cfg.Self, p.Message, p.Group}}})
}

// rejected notes that the group is not free. A Reject_PDU is matched by group or Message_ID, and only while this node waits for one.
func (s *Sender) rejected(now time.Time, p RejectPDU) {
	s.stats.Rejected++
	for _, id := range s.Messages() {
		m := s.messages[id]
		if g := m.dynamic; g == nil || !g.asked || g.announced > 0 || m.group != p.Group && m.id != p.Message {
			continue
		}
		s.control(Packet{Port: RequestPort, PDUs: []PDU{ReleasePDU{s.cfg.Self, m.id, m.group}}})
		m.dynamic.asked = false
		m.dynamic.tried++
		wait := time.Duration(min(m.dynamic.tried, 16)) * (s.cfg.Turnaround + s.cfg.ackAir())
		m.pollAt = now.Add(wait)
		s.arm(m)
		return
	}
}

// release gives a dynamic group back.
func (s *Sender) release(m *outgoing) {
	if m.dynamic != nil && m.dynamic.asked {
		shared := slices.ContainsFunc(s.Messages(), func(id MessageID) bool {
			o := s.messages[id]
			return o != m && !o.closed && o.dynamic != nil && o.group == m.group
		})
		if !shared {
			s.control(Packet{Port: RequestPort, PDUs: []PDU{ReleasePDU{s.cfg.Self, m.id, m.group}}})
		}
	}
}

// announce joins a group for a message (p-mul 8). A silent node does not join, since its host would report the membership.
func (r *Receiver) announce(now time.Time, p AnnouncePDU) {
	switch {
	case r.silent, !slices.Contains(p.Destinations, r.cfg.Self), now.After(p.Expiry.Add(r.cfg.ClockError)):
		return
	case p.Group>>28 != 0xe: // 224.0.0.0/4
		r.stats.Illegal++
		return
	case r.groups[p.Group] == nil:
		if len(r.groups) >= r.cfg.Limits.IncomingSource {
			r.stats.Full++
			return
		}
		r.groups[p.Group] = map[Key]time.Time{}
		r.out.Join = append(r.out.Join, p.Group)
	}
	users := r.groups[p.Group]
	key := Key{p.Source, p.Message}
	if _, known := users[key]; known || len(users) < r.cfg.Limits.Incoming {
		users[key] = due.Earliest(p.Expiry.Add(r.cfg.ClockError), now.Add(r.cfg.RememberFor))
	}
}

// leave ends the use of a group for a message; a silent node leaves with the first sweep after silence.
func (r *Receiver) leave(g GroupAddr, key Key) {
	users := r.groups[g]
	if _, known := users[key]; !known {
		return
	}
	if r.silent {
		users[key] = time.Time{}
		return
	}
	delete(users, key)
	if len(users) == 0 {
		delete(r.groups, g)
		r.out.Leave = append(r.out.Leave, g)
	}
}

// unjoin leaves the groups that were joined for a message.
func (r *Receiver) unjoin(key Key) {
	for _, g := range slices.Sorted(maps.Keys(r.groups)) {
		r.leave(g, key)
	}
}
