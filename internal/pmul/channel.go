package pmul

import (
	"time"

	"aldis/internal/ground/due"
)

// Busy tells the Sender of a datagram that another node has sent on a shared channel and that has just come in. With By its
// own number, it is a datagram that this node sends outside of the Sender. Config.Hears says that the caller reports all
// such datagrams.
type Busy struct {
	By  NodeID
	Air time.Duration // of the whole datagram
}

// Company says that this node's own messages wait for their turn on the channel: until then, acknowledgements of complete
// messages wait to go along with them.
func (r *Receiver) Company(until time.Time) { r.company = until }

// hold is how long a complete Ack waits for others to the same sender. If each of many nodes acknowledged each message by
// itself, that would fill the channel: hold is so long that acknowledgements take half of it at the most. A node that lacks
// a message says so at once.
func (c *Config) hold(nodes int) time.Duration {
	if !c.Hears || nodes <= few {
		return c.AckHold
	}
	return max(c.AckHold, holdShare*time.Duration(nodes)*(c.Turnaround+c.ackAir()))
}

// inTrain tells whether a short message is one of a train, by the time since the one before began or came: messages of a
// train come now and then, with pauses between. A node that lacks one learns it from the next and says so at once. So the
// other acknowledgements can wait for each other: each would take the pause in which the next message may begin. A sender
// allows a little more time.
func (c *Config) inTrain(since time.Duration, longer int) bool {
	return c.Hears && c.Coding == Compact && !c.Reorder && since > c.pause() && since <= time.Duration(1+longer)*c.AckHold
}

// trainHold is the shortest wait of a complete Ack in a train, and two thirds of the longest.
func (c *Config) trainHold(nodes int) time.Duration {
	return max(c.hold(nodes), trainShare*time.Duration(nodes)*(c.Turnaround+c.ackAir()))
}

// othersTalk is how much longer the answer to a question waits for the sender's turn, if there is much to send.
func (r *Receiver) othersTalk(now time.Time) time.Duration {
	if !now.Before(r.company) {
		return 0
	}
	return 2 * r.cfg.Hold
}

// Queued says that a message waits for the channel.
func (s *Sender) Queued() bool { return len(s.queue) > 0 && !s.silent }

// turns says which node has the channel, as far as this node hears: datagrams in its radio leave when other nodes let them.
type turns struct {
	talker  NodeID    // the node that spoke last; 0: none yet
	end     time.Time // when the last datagram heard of others ended
	since   time.Time // when the talker began its turn, as far as is known
	loud    time.Time // when another node last sent more than acknowledgements
	dry     time.Time // when the radio last held no datagram
	counted time.Time // until when the turn of another counts in airAt already
	// The air of all datagrams handed to the radio, and how much of that has surely left it, when an Ack_PDU names a later message.
	handed, left time.Duration
	speaker      NodeID      // the node that was heard at loud
	changes      []time.Time // of talker among others, the latest crowdMost of them
}

const (
	// crowdMost changes of talker within crowdIn profile turns make a crowd: its nodes take turns even before one of them
	// has more to send than one datagram holds.
	crowdMost = 2
	crowdIn   = 2
	// aheadAir is how many full datagrams the radio may get before they leave: so many that it does not run dry in its turn
	// while other nodes' datagrams are still arriving, and so few that urgent messages, or repeats that prove useless, do
	// not wait behind them.
	aheadAir = 3
	// breathAir is after how many full datagrams of a turn the radio should be empty for a moment, so that a node with an
	// urgent message can transmit it.
	breathAir = 2
	// holdShare is the least part of the channel, one in so many, that all acknowledgements together leave free.
	holdShare = 2
	// trainFrom is how many messages in a row begin a train: a burst has single pauses too.
	trainFrom = 2
	// trainShare is the part of the channel, one in so many, that the acknowledgements of a train take at the most.
	trainShare = 8
	// putOffMost bounds, in turns of other nodes, how long their talk puts off the questions about a message.
	putOffMost = 8
	// unsureAhead is how many full datagrams beyond a turn the radio may hold at the most, going by what has surely left.
	unsureAhead = 5
	// loudAcks is the largest airtime of a datagram, in Ack_PDUs, that still counts as an acknowledgement.
	loudAcks = 2
	// unsureMost is for how many turns the sender believes that datagrams have not left the radio, if no acknowledgement shows it.
	unsureMost = 4
)

// spoken is when a datagram that is handed over now has left.
func (s *Sender) spoken(now time.Time, air time.Duration) time.Time {
	if !s.airAt.After(now) {
		s.channel.dry = now
	}
	s.airAt = due.Latest(s.airAt, now)
	if s.channel.talker != 0 {
		s.airAt = due.Latest(s.airAt, s.channel.end.Add(s.cfg.Turnaround))
	}
	if f := &s.floor; f.holder != s.cfg.Self && f.taken(now, &s.cfg) { // the holder's last datagrams may not have come
		s.airAt = due.Latest(s.airAt, f.end.Add(s.cfg.Turnaround))
		s.channel.counted = f.end
	}
	s.channel.left = s.channel.handed - s.channel.held(now, s.airAt, s.cfg.Hold)
	s.airAt = s.airAt.Add(air)
	s.channel.handed += air
	return s.airAt
}

// held is the air of the datagrams that the radio may hold. If no other node was heard for the length of a turn, none has
// transmitted, and datagrams have left as soon as they could. The same holds if only acknowledgements were heard, and all
// datagrams should have left by now.
func (t *turns) held(now, airAt time.Time, turn time.Duration) time.Duration {
	held := t.handed - t.left
	if now.Sub(t.end) >= turn || now.Sub(t.loud) >= turn && !airAt.After(now) {
		held = min(held, max(0, airAt.Sub(now)))
	}
	return held
}

// crowd says whether other nodes have talked one after the other lately.
func (t *turns) crowd(now time.Time, c *Config) bool {
	return len(t.changes) == crowdMost && now.Sub(t.changes[0]) < crowdIn*c.Hold
}

// proved notes that a message has left the radio. whole: a node has all of it, which proves more.
func (t *turns) proved(m *outgoing, whole bool) {
	if t.left = max(t.left, m.handed); whole {
		t.left = max(t.left, m.handedAll)
	}
}

// unsure says whether the radio may hold more than it should.
func (s *Sender) unsure(now time.Time) bool {
	if s.channel.held(now, s.airAt, s.cfg.Hold) <= s.cfg.Hold+(unsureAhead+1)*s.cfg.fullAir()-s.cfg.largeAir() {
		return false
	}
	if !now.Before(s.airAt.Add(unsureMost * s.cfg.Hold)) {
		s.channel.left = s.channel.handed
		return false
	}
	return true
}

// roomAt is when the radio has room for another datagram.
func (s *Sender) roomAt(now time.Time) time.Time {
	if !s.cfg.Hears {
		return s.freeAt
	}
	ahead := time.Duration(aheadAir)
	if s.sources.several && len(s.queue) > 0 && s.queue[0].total() > 1 && !s.queue[0].batch { // a message that comes meanwhile goes next
		ahead = 0
	} else if s.batches && len(s.queue) > 0 && s.queue[0].joins(nil) { // a message that comes meanwhile shares the batch
		ahead = 1
	}
	at := s.airAt.Add(-ahead*s.cfg.fullAir() - s.cfg.oneWay())
	if len(s.queue) > 0 && s.queue[0].urgency() >= alarm {
		return s.urgent.mayGo(&s.cfg)
	}
	if s.queue.inTurn(&s.cfg) && s.floor.taken(now, &s.cfg) { // the turn bounds how many datagrams go ahead
		if now.Sub(s.urgent.heard) < s.floor.round(&s.cfg) && s.airAt.Sub(s.channel.dry) > breathAir*s.cfg.fullAir() {
			at = s.airAt
		}
		return due.Latest(at, s.floor.mayAt(now, &s.cfg))
	}
	if s.unsure(due.Latest(at, now)) {
		return s.airAt.Add(unsureMost * s.cfg.Hold)
	}
	return at
}

// busy counts the air of other nodes. The datagrams in the radio leave so much later, and the sender waits so much longer
// for answers.
func (s *Sender) busy(now time.Time, ev Busy) {
	if !s.cfg.Hears {
		return
	}
	if ev.By == s.cfg.Self {
		s.spoken(now, ev.Air)
		return
	}
	end := now.Add(-s.cfg.Delay)
	began := end.Add(-ev.Air)
	waits := s.airAt.After(began)
	again := s.channel.talker == ev.By && began.Sub(s.channel.end) < s.cfg.Turnaround
	if !again {
		s.channel.since = began
	}
	s.floor.spoke(&s.cfg, ev.By, end, ev.Air, again)
	if !waits && s.floor.taken(now, &s.cfg) {
		s.channel.left = s.channel.handed
	}
	by := ev.Air
	switch gap := began.Sub(s.channel.end); {
	case waits && gap >= 2*s.cfg.Turnaround: // this node transmitted between
		by += 2 * s.cfg.Turnaround
	case s.channel.talker != ev.By:
		by += s.cfg.Turnaround
	}
	s.channel.talker, s.channel.end = ev.By, end
	if ev.Air > loudAcks*s.cfg.ackAir() {
		if s.channel.speaker != ev.By {
			s.channel.changes = append(s.channel.changes, now)
			s.channel.changes = s.channel.changes[max(0, len(s.channel.changes)-crowdMost):]
		}
		s.channel.speaker, s.channel.loud = ev.By, now
		notAlone(s)
	}
	counted := ev.By == s.floor.holder && !end.After(s.channel.counted)
	if waits && !counted {
		s.airAt, s.channel.counted = s.airAt.Add(by), s.channel.counted.Add(by)
	}
	for _, id := range s.Messages() {
		m := s.messages[id]
		if m.closed || !m.begun {
			continue
		}
		if waits && (!m.idle() || !m.passEnd.Before(began)) {
			if !counted {
				m.shift(began, by)
			}
		} else if m.putOff < putOffMost*s.cfg.Hold {
			m.putOff += by
			m.await(now, by)
		} else {
			continue
		}
		s.arm(m)
	}
}

// await puts off the questions about a message.
func (m *outgoing) await(now time.Time, by time.Duration) {
	if m.pollAt.After(now) {
		m.pollAt = m.pollAt.Add(by)
	}
	for _, d := range m.dests {
		if d.dueAt.After(now) {
			d.dueAt = d.dueAt.Add(by)
		}
	}
}
