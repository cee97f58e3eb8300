package pmul

import (
	"time"

	"aldis/internal/ground/due"
)

// noteLone notes whether a message begins while no other node transmits on a shared channel. On a channel of two members a
// message never counts as lone: the node that is asked answers, and repeats would cost more air than they save time.
func noteLone(now time.Time, s *Sender, m *outgoing) {
	m.lone = s.cfg.Hears && len(s.cfg.Peers) > 1 && s.cfg.Coding == Compact && m.total() == 1 && now.Sub(s.channel.end) >= s.cfg.Delay+loneTurns*s.cfg.Turnaround
}

// noteTrain notes whether a message is one of a train. Then the answers to earlier ones wait for the last.
func noteTrain(now time.Time, s *Sender, m *outgoing) {
	if s.spaced++; m.prompt || m.total() > 1 || !s.cfg.inTrain(now.Sub(s.begun), 2) {
		s.spaced = 0
	}
	if s.spaced >= trainFrom && !s.floor.taken(now, &s.cfg) && now.Sub(s.channel.loud) > s.cfg.AckHold {
		for _, id := range s.Messages() {
			o := s.messages[id]
			if o.closed || o.prompt || o.total() > 1 || o != m && !o.begun || o.train > 0 {
				continue
			}
			by := s.cfg.trainHold(len(o.dests))*3/2 - s.cfg.hold(len(o.dests))
			if o != m && o.idle() && o.polls == 0 {
				o.await(now, by)
				s.arm(o)
			}
			o.train = by
		}
	}
	s.begun = now
}

// askedInTrain tells whether a message of a train goes again because some node lacks it, to be acknowledged at once. Other
// nodes that may lack it are asked soon after: several nodes often lose the same message of a train.
func (m *outgoing) askedInTrain() bool { return m.train > 0 && m.polls > 0 && !m.amid }

// loneTurns is for how many changes of talker no other node must have been heard before a lone message.
const loneTurns = 2

// alone tells whether a short message stands alone on a shared channel: no message of this node waits or has gone since, no
// other node has sent more than acknowledgements since, and no nodes take turns. Then no later message shows that it was
// lost, and repeats take only air that nobody else needs.
func alone(now time.Time, s *Sender, m *outgoing) bool {
	if !m.lone || len(m.dests) > few || s.Queued() || s.floor.taken(now, &s.cfg) {
		return false
	}
	for _, o := range s.messages { // in any order
		if o != m && o.begun && !o.closed && int32(o.id-m.id) > 0 {
			return false
		}
	}
	return true
}

// notAlone is called when another node has sent more than acknowledgements. Messages that stood alone no longer do, and the
// sender waits as long for their answers as for those of other messages.
func notAlone(s *Sender) {
	for _, id := range s.Messages() {
		m := s.messages[id]
		if !m.lone {
			continue
		}
		m.lone = false
		if m.prompt || m.passEnd.IsZero() || !m.idle() {
			continue
		}
		by := m.passEnd.Add(s.cfg.ackWait(m.dests.active(), m.total()) + m.train + s.late)
		for _, d := range m.dests {
			if d.answers() {
				d.dueAt = due.Latest(d.dueAt, by)
			}
		}
		m.pollAt = m.dests.pollTime()
		s.arm(m)
	}
}

// sayAtOnce lets the receivers of a repeated message acknowledge it at once: no other Ack would share their datagram.
func sayAtOnce(m *outgoing) {
	for i := range m.address {
		m.address[i].AtOnce = true
	}
}

// answeredBy is when all answers to a pass of a message have come or begun to come, if it stands alone or is acknowledged
// at once; zero: it does neither. Once answers come, each is followed by the next one within settle.
func answeredBy(end time.Time, s *Sender, m *outgoing) time.Time {
	if !m.prompt && !m.askedInTrain() && !alone(end, s, m) {
		return time.Time{}
	}
	wait := max(s.cfg.oneWay()+s.cfg.spread(m.dests.named()), s.cfg.Turnaround) + s.cfg.oneWay() + s.cfg.ackAir() + s.cfg.slack()
	switch {
	case m.prompt, m.askedInTrain(): // all nodes may have been told to, and other nodes transmit between
		wait += time.Duration(m.dests.named()-1) * (s.cfg.Turnaround + s.cfg.ackAir())
	case m.polls == 0:
		wait += s.cfg.hold(len(m.dests)) + m.train
	}
	return end.Add(wait)
}
