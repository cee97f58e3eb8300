package pair

import "time"

// Machine is one of the two. It is not for concurrent use.
type Machine struct {
	witness bool // there is one
	stored  Stored
	role    Role
	peer    *Hello // of the connection; nil: there is none
	now     time.Duration
	out     *Output
	seq     func() (run, seq uint64)

	follower  bool // a leader has told the other machine that it is whole, so that this one may lead
	followed  bool // a leader: the other machine has answered a beat of this epoch, on this connection
	ready     bool // likewise, and its journal is whole
	lease     time.Duration
	beat      uint64
	beats     [16]time.Duration // when the last beats were sent
	nextBeat  time.Duration
	answered  time.Duration // when the follower answered last, or came
	promise   time.Duration // until then a follower asks for no vote
	greeted   time.Duration // until then a start waits for the other machine
	heard     time.Duration // when the other machine said something last
	idle      time.Duration // since when nobody is known to lead
	candidate uint64        // epoch that is asked for; 0: none
	outdone   bool          // candidate was given to nobody: a greater epoch is asked for next
	nextAsk   time.Duration
	wanted    time.Duration // until then the order to lead counts; 0: there is none
	askLead   time.Duration // when the leader is asked again to hand over
	owed      uint64        // epoch of an order that the witness has not answered; 0: none
}

// New makes a machine that has just started. position says with which commit its journal ends.
func New(now time.Duration, stored Stored, witness bool, position func() (run, seq uint64)) *Machine {
	m := &Machine{witness: witness, stored: stored, now: now, seq: position, greeted: now + Greet, idle: now}
	if !stored.Led {
		m.promise = now + Promise // it may have answered a beat just before it ended
	}
	return m
}

// Step brings the machine to now and applies ev.
func (m *Machine) Step(now time.Duration, ev Event) (out Output) {
	if now-m.now > Lost { // it was stopped: messages that have come meanwhile are heard first
		m.answered, m.greeted = now, max(m.greeted, now+Lost)
	}
	m.now, m.out = now, &out
	before := m.stored
	switch ev := ev.(type) {
	case Met:
		m.met(ev.Hello)
	case Parted:
		m.peer, m.followed, m.ready = nil, false, false
		m.answered = min(m.answered, now-Lost)
	case Message:
		if m.peer != nil {
			m.heard = now
			m.hear(ev)
		}
	case Verdict:
		m.verdict(ev)
	case Caught:
		m.whole()
	case Lead:
		m.force()
	case Retire:
		m.retire()
	}
	m.pass()
	if m.stored != before {
		s := m.stored
		out.Store = &s
	}
	out.Deadline = m.due()
	return out
}

// Hello is the state that this machine sends first on a connection.
func (m *Machine) Hello() Hello {
	h := Hello{Stored: m.stored, Leads: m.role == Leading}
	h.Run, h.Seq = m.seq()
	return h
}

// Role is what the machine is now.
func (m *Machine) Role() Role { return m.role }

// Stored is the state on its disk, once the last Output is carried out.
func (m *Machine) Stored() Stored { return m.stored }

// Alone says of a leader that no other machine has the commits that it confirms.
func (m *Machine) Alone() bool { return m.role == Leading && !m.follower }

// Lease is until when a leader may transmit; forever says that nobody else can lead.
func (m *Machine) Lease() (until time.Duration, forever bool) {
	if m.role != Leading {
		return 0, false
	}
	return m.lease, !m.follower
}

// Followed says of a leader that the other machine follows it, and is sent the records.
func (m *Machine) Followed() bool { return m.role == Leading && m.followed }

// Wants says of a leader that it waits for Caught.
func (m *Machine) Wants() bool { return m.Followed() && !m.follower && m.candidate == 0 }

// Accepts says whether this machine takes records of the leader of an epoch. A machine that does not ends the connection: the next one
// begins with the records that it lacks.
func (m *Machine) Accepts(epoch uint64) bool { return m.role == Following && epoch == m.stored.Voted }

// Stuck says that neither machine may ask for votes: each may lack commits that the other has confirmed.
func (m *Machine) Stuck() bool {
	return m.role == Waiting && !m.eligible() && (m.peer == nil || !m.peer.Whole && !m.peer.Leads)
}

func (m *Machine) send(x Message) { m.out.Send = append(m.out.Send, x) }

// met takes the hello of the other machine.
func (m *Machine) met(h Hello) {
	m.peer, m.heard, m.nextBeat, m.followed, m.ready = &h, m.now, m.now, false, false
	m.answered = min(m.answered, m.now-Lost) // which messages were under way on another connection is not known
	switch {
	case h.Leads && m.role == Leading: // an operator has deposed one of them
		if h.Epoch > m.stored.Epoch || h.Epoch == m.stored.Epoch && h.Machine < m.stored.Machine {
			m.standDown(h.Epoch)
		} else {
			m.peer.Leads = false // it hears of this one now
		}
	case h.Leads && h.Epoch >= m.stored.Voted:
		m.candidate = 0
		m.behind(h.Epoch)
		m.role, m.promise = Following, m.now+Promise
	case m.role == Following:
		m.wait()
	}
}

// wait ends this machine's role: it knows no leader.
func (m *Machine) wait() {
	m.role, m.follower, m.candidate, m.owed, m.idle = Waiting, false, 0, 0, m.now
	if m.peer != nil {
		m.peer.Leads = false
	}
}

// hear takes a message of the other machine.
func (m *Machine) hear(x Message) {
	switch x.Kind {
	case KindBeat:
		m.hearBeat(x)
	case KindAnswer:
		m.hearAnswer(x)
	case KindClaim:
		m.vote(x)
	case KindVote:
		m.hearVote(x)
	case KindWhole:
		if m.role == Following && x.Epoch == m.stored.Voted {
			m.stored.Epoch, m.stored.Whole, m.stored.Led = x.Epoch, true, false
			m.promise = m.now + Promise
		}
	case KindYield:
		if m.role != Leading && m.stored.Whole && m.stored.Epoch < x.Epoch && m.stored.Voted < x.Epoch {
			m.lead(x.Epoch)
		}
	case KindRetire:
		m.retire()
	}
}

// pass does what time brings.
func (m *Machine) pass() {
	if m.role == Leading {
		m.passLeading()
		return
	}
	if m.role == Following && m.now >= m.promise {
		m.wait()
	}
	if m.wishes(); m.role != Leading {
		m.seek()
	}
}

// due is when Step wants to be called at the latest.
func (m *Machine) due() time.Duration {
	at := m.now + Ask
	if m.role == Leading && m.peer != nil {
		at = min(at, m.nextBeat)
	}
	return max(at, m.now+time.Millisecond)
}
