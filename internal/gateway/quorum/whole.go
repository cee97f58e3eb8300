package quorum

import "aldis/internal/gateway/pair"

// A member that has lost its disk, or has an old one, may have given votes that it does not know of, and have acknowledged entries that it
// lacks. It votes for nobody and acknowledges nothing until a leader has given it a copy of the leader's journal, which has all entries
// that were ever committed.

func (m *Machine) met(ev Met) {
	p := &m.members[ev.From]
	if m.node != nil {
		m.note()
	}
	*p = member{hello: ev.Hello, acked: p.acked, connected: true, lacks: !ev.Whole || ev.Term == 0, heard: m.now}
	switch {
	case m.node == nil:
	case !p.lacks && ev.Last.before(p.acked):
		p.lacks = true
		m.send(ev.From, Message{Kind: KindForgot})
	default:
		if _, state := m.progress(ev.From); state == waiting {
			m.node.ReportSnapshot(uint64(ev.From+1), given)
		}
	}
}

// note keeps how far the members have acknowledged the log, as a leader knows it.
func (m *Machine) note() {
	if _, leads := m.leads(); !leads {
		return
	}
	for i := range m.members {
		match, _ := m.progress(i)
		if term, err := m.log.Term(match); err == nil && m.members[i].acked.before(At{match, term}) {
			m.members[i].acked = At{match, term}
		}
	}
}

// forget notes that this machine has acknowledged more than it has.
func (m *Machine) forget() {
	m.stored.Whole, m.dirty, m.forgot = false, true, false
	m.node, m.log, m.role = nil, nil, pair.Waiting
}

// Forgetful says that this machine is given a copy before it counts.
func (m *Machine) Forgetful() bool { return m.node == nil }

// Founded says that this machine is a member of a site, or will be once it has a copy.
func (m *Machine) Founded() bool { return m.stored.Term > 0 }

// copies asks for copies to members that lack entries that they had.
func (m *Machine) copies() {
	may := m.role == pair.Leading && m.now < m.Lease()
	for i := range m.members {
		p := &m.members[i]
		if !p.connected || !p.lacks || p.copying || p.hello.Whole && p.hello.Term > 0 {
			continue
		}
		if may && !m.at.before(p.acked) || m.founded() {
			p.copying = true
			m.out.Copy = append(m.out.Copy, i)
		}
	}
}

// found makes the site, once: all members are there, and none has ever been a member of a site. The member whose journal a gateway has
// written is the first in the site; if there is none, the first of the list is.
func (m *Machine) found() {
	if m.stored.Term > 0 || m.dirty {
		return
	}
	first, kept := 0, m.stored.Whole
	for i := range m.members {
		p := &m.members[i]
		if i == m.cfg.Self {
			continue
		}
		if !p.connected || p.hello.Term > 0 || p.hello.Whole && kept {
			return
		}
		kept = kept || p.hello.Whole
		if p.hello.Whole {
			first = i
		}
	}
	if m.stored.Whole || !kept && first == m.cfg.Self {
		m.stored.Term, m.stored.Commit, m.stored.Whole, m.dirty = 1, 1, true, true
		m.at = At{1, 1}
	}
}

// founded says that this machine has the site's first journal, in which nothing was ever committed: all members are there and say so.
func (m *Machine) founded() bool {
	if m.last().Index != 1 {
		return false
	}
	for i := range m.members {
		if p := &m.members[i]; i != m.cfg.Self && (!p.connected || p.hello.Last.Index > 1) {
			return false
		}
	}
	return true
}

// Given is the state that a machine stores when it has been given a copy of a leader's journal in a term.
func (s Stored) Given(at At, term uint64) Stored {
	s.Whole, s.Commit = true, at.Index
	if term > s.Term {
		s.Term, s.Vote = term, 0
	}
	return s
}
