package pair

import "time"

// lead makes this machine the leader of an epoch, alone until the other one is whole.
func (m *Machine) lead(epoch uint64) {
	m.stored.Epoch, m.stored.Voted, m.stored.Whole, m.stored.Led = epoch, max(m.stored.Voted, epoch), true, true
	m.stored.Other = false
	m.role, m.follower, m.candidate, m.nextBeat = Leading, false, 0, m.now
	m.followed, m.outdone, m.ready, m.wanted, m.owed = false, false, false, 0, 0
	if m.peer != nil {
		m.peer.Leads = false
	}
}

// standDown ends a leadership: another machine leads epoch, or may.
func (m *Machine) standDown(epoch uint64) {
	m.wait()
	m.stored.Whole, m.stored.Led = false, false
	m.behind(epoch)
}

// behind notes that the other machine leads an epoch.
func (m *Machine) behind(epoch uint64) {
	if epoch > m.stored.Epoch {
		m.stored.Whole, m.stored.Led = false, false
	}
	if epoch > m.stored.Voted {
		m.stored.Voted, m.stored.Other = epoch, true
	}
}

func (m *Machine) passLeading() {
	if m.peer != nil && m.now >= m.nextBeat {
		m.beat++
		m.beats[m.beat%uint64(len(m.beats))], m.nextBeat = m.now, m.now+Beat
		m.send(Message{Kind: KindBeat, Epoch: m.stored.Epoch, N: m.beat})
	}
	lost := m.follower && (m.now-m.answered >= Lost || m.candidate != 0) // a claim that was begun goes on to its end
	// The other machine has asked for votes meanwhile. Its vote for this machine's claim ends that.
	overtaken := m.peer != nil && !m.peer.Leads && m.peer.Voted > m.stored.Epoch
	if lost || overtaken {
		m.claim(lost)
	}
	if m.owed != 0 && m.candidate == 0 && m.now >= m.nextAsk {
		m.nextAsk = m.now + Ask
		m.out.Ask = &Claim{Machine: m.stored.Machine, Epoch: m.owed, From: m.owed, Forced: true}
	}
}

func (m *Machine) hearBeat(x Message) {
	switch {
	case m.role == Leading, x.Epoch < m.stored.Voted: // the leader shall know why it gets no answer
		m.send(Message{Kind: KindVote, Voted: m.stored.Voted})
		return
	}
	m.peer.Leads, m.peer.Epoch = true, x.Epoch
	m.behind(x.Epoch)
	m.role, m.candidate, m.promise = Following, 0, m.now+Promise
	m.send(Message{Kind: KindAnswer, Epoch: x.Epoch, N: x.N, Granted: m.stored.Whole && m.stored.Epoch == x.Epoch})
}

func (m *Machine) hearAnswer(x Message) {
	if m.role != Leading || x.Epoch != m.stored.Epoch || x.N > m.beat || m.beat-x.N >= uint64(len(m.beats)) {
		return
	}
	m.answered, m.followed, m.ready = m.now, true, x.Granted
	if m.candidate == 0 {
		m.lease = max(m.lease, m.beats[x.N%uint64(len(m.beats))]+Lease)
	}
}

// whole tells a follower that it has all commits that were confirmed. From now on no commit is confirmed that it lacks.
func (m *Machine) whole() {
	if !m.Wants() {
		return
	}
	m.follower, m.lease, m.answered = true, m.now+Lease, m.now
	m.send(Message{Kind: KindWhole, Epoch: m.stored.Epoch})
}

// Ready says of a leader that the other machine could lead at once. That machine has said so itself: a message to it may be lost.
func (m *Machine) Ready() bool {
	return m.role == Leading && m.follower && m.ready && m.peer != nil && m.candidate == 0
}

// retire hands the leadership over, to a follower that is whole; a follower asks the leader to do so.
func (m *Machine) retire() {
	switch {
	case m.Ready():
		epoch := m.stored.Voted + 1
		m.standDown(epoch)
		m.peer.Whole = true
		m.send(Message{Kind: KindYield, Epoch: epoch})
	case m.role == Following && m.stored.Whole && m.peer != nil:
		m.send(Message{Kind: KindRetire})
	}
}

// MayTransmit says whether the leader may put something on the link now.
func (m *Machine) MayTransmit(now time.Duration) bool {
	until, forever := m.Lease()
	return forever || now < until
}
