package pair

// Jump is by how much an operator's order goes beyond the epochs that this machine knows of.
const Jump = 1 << 20

// empty says of a journal that nothing has ever been in it.
func (s Stored) empty() bool { return s.Epoch == 0 && !s.Whole }

// eligible says whether this machine may ask for votes.
func (m *Machine) eligible() bool {
	return m.stored.Whole || m.peer != nil && m.stored.empty() && m.peer.empty()
}

// first says which of two machines in touch asks for votes: the one with the newer journal.
func (m *Machine) first() bool {
	p := m.peer
	run, seq := m.seq()
	switch {
	case m.stored.Whole != p.Whole:
		return m.stored.Whole
	case m.stored.Epoch != p.Epoch:
		return m.stored.Epoch > p.Epoch
	case run == p.Run && seq != p.Seq:
		return seq > p.Seq
	}
	return m.stored.Machine < p.Machine
}

// overdue is how long the machine that should ask for votes is waited for.
const overdue = 3 * Lost

// seek asks for votes where this machine may lead and nobody does.
func (m *Machine) seek() {
	touch := m.peer != nil && m.now-m.heard < Lost
	switch {
	case !m.eligible() || m.role == Following:
		m.candidate = 0
	case m.peer != nil && m.peer.Leads && touch:
	case touch && (m.first() || m.now-m.idle >= overdue):
		m.claim(false)
	case touch:
		m.candidate = 0
	case m.now < m.greeted || m.now < m.promise:
	case m.witness, m.stored.Led && m.stored.Epoch > 0: // without a witness nobody else leads by himself
		m.claim(true)
	}
}

// claim asks for the votes of a new epoch. cut: the other machine is not heard, so that the witness is asked.
func (m *Machine) claim(cut bool) {
	if m.now < m.nextAsk {
		return
	}
	if cut && !m.witness && m.stored.Led {
		m.lead(m.stored.Voted + 1)
		return
	}
	newest := m.stored.Voted
	if m.peer != nil {
		newest = max(newest, m.peer.Voted)
	}
	if m.candidate == 0 || m.outdone {
		m.candidate, m.outdone = newest+1, false
		m.stored.Voted, m.stored.Other = m.candidate, false
	}
	m.nextAsk = m.now + Ask
	if m.peer != nil {
		m.send(Message{Kind: KindClaim, Epoch: m.candidate, From: m.stored.Epoch})
	}
	if cut && m.witness {
		m.out.Ask = &Claim{Machine: m.stored.Machine, Epoch: m.candidate, From: m.stored.Epoch}
	}
}

// vote answers a claim of the other machine. A vote is a promise never to lead before the other one has made this one whole.
func (m *Machine) vote(x Message) {
	again := m.stored.Other && x.Epoch == m.stored.Voted
	granted := m.role != Leading && (again || x.Epoch > m.stored.Voted && x.From >= m.stored.Epoch)
	m.peer.Voted, m.idle = max(m.peer.Voted, x.Epoch), m.now
	if granted {
		m.candidate = 0
		m.behind(x.Epoch)
	}
	m.send(Message{Kind: KindVote, Epoch: x.Epoch, Granted: granted, Voted: m.stored.Voted})
}

func (m *Machine) hearVote(x Message) {
	m.peer.Voted = max(m.peer.Voted, x.Voted)
	if m.candidate == 0 || x.Epoch != m.candidate {
		return
	}
	switch {
	case x.Granted:
		m.peer.Whole = false
		m.lead(x.Epoch)
	case x.Voted >= m.candidate:
		m.outdone = true
	}
}

func (m *Machine) verdict(v Verdict) {
	switch {
	case m.candidate == 0 || v.Epoch != m.candidate:
	case v.Granted:
		m.lead(v.Epoch)
	case m.role == Leading:
		m.standDown(v.Newest)
	default: // the other machine has led since
		m.candidate = 0
		m.behind(v.Newest)
	}
}

// force leads without votes. The operator has said that the other machine is off; if it is not, it hears of this epoch first.
func (m *Machine) force() {
	switch {
	case m.role == Leading && !(m.follower && m.now-m.answered >= Lost):
		return
	case m.role == Following && m.peer != nil:
		m.retire()
		return
	}
	epoch := m.stored.Voted + Jump
	m.lead(epoch)
	if m.witness {
		m.out.Ask = &Claim{Machine: m.stored.Machine, Epoch: epoch, From: epoch, Forced: true}
	}
}
