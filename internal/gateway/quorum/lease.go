package quorum

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"aldis/internal/gateway/pair"
)

type progress = tracker.Progress

// A leader may transmit for a Lease after it has sent the last beat that a majority answered. Whoever answers votes for nobody until its
// Promise ends, which is later. Any two majorities have a member in common: so no other leader is elected while a lease holds. A
// leader that hands over has ended its lease before, for good.

func (m *Machine) sendBeats(term uint64) {
	m.beat++
	m.beats[m.beat%uint64(len(m.beats))] = m.now
	m.note()
	acked := make([]At, len(m.members))
	for i := range acked {
		acked[i] = m.members[i].acked
	}
	for i := range m.members {
		if !m.members[i].lacks {
			m.send(i, Message{Kind: KindBeat, Term: term, N: m.beat, Acked: acked})
		}
	}
}

func (m *Machine) hearBeat(from int, x Message) {
	s := m.node.BasicStatus()
	for _, a := range x.Acked {
		if a.Term > s.GetTerm()+mostAhead {
			m.out.Strange = fmt.Sprintf("a beat that tells of term %d, in term %d", a.Term, s.GetTerm())
			return
		}
	}
	for i := range min(len(x.Acked), len(m.members)) {
		if m.members[i].acked.before(x.Acked[i]) {
			m.members[i].acked = x.Acked[i]
		}
	}
	if s.GetTerm() != x.Term || s.Lead != uint64(from+1) {
		return
	}
	m.leader, m.promise = from, m.now+pair.Promise
	m.nextAsk = m.promise + m.turn((m.cfg.Self-from-1+m.cfg.Members)%m.cfg.Members)
	m.send(from, Message{Kind: KindAnswer, Term: x.Term, N: x.N})
}

func (m *Machine) hearAnswer(from int, x Message) {
	term, leads := m.leads()
	if !leads || x.Term != term || x.N > m.beat || m.beat-x.N >= uint64(len(m.beats)) {
		return
	}
	p := &m.members[from]
	p.beat = max(p.beat, m.beats[x.N%uint64(len(m.beats))])
	var sent []time.Duration
	for i := range m.members {
		if i != m.cfg.Self {
			sent = append(sent, m.members[i].beat)
		}
	}
	slices.Sort(sent)
	if oldest := sent[len(sent)-m.cfg.Members/2]; oldest > 0 {
		m.lease = max(m.lease, oldest+pair.Lease)
	}
}

// bound says whether a message is a claim to votes that this machine's promise forbids. A claim that a leader has asked for, as it hands
// over, is not forbidden: the leader's lease has ended.
func (m *Machine) bound(x *raftpb.Message) bool {
	return claims(x) && m.now < max(m.promise, m.guard) && !bytes.Equal(x.GetContext(), handingOver)
}

// claims says whether a message asks for a vote.
func claims(x *raftpb.Message) bool {
	return x.GetType() == raftpb.MsgVote || x.GetType() == raftpb.MsgPreVote
}

// handingOver is how the library marks a claim that a leader has asked for.
var handingOver = []byte("CampaignTransfer")

// Lease is until when a leader may transmit.
func (m *Machine) Lease() time.Duration {
	if m.role != pair.Leading || m.node == nil {
		return 0
	}
	if _, leads := m.leads(); !leads {
		return 0
	}
	return m.lease
}

// begin forgets the answers of another term.
func (m *Machine) begin(s *raft.SoftState) {
	if s != nil {
		m.lease, m.nextBeat = 0, m.now
		for i := range m.members {
			m.members[i].beat = 0
		}
	}
}

// waiting is the state of a member that waits for a copy; keepsUp, of one that is sent each entry at once.
const (
	waiting = tracker.StateSnapshot
	keepsUp = tracker.StateReplicate
)
