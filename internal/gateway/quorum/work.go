package quorum

import (
	"math"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"
)

// given says of a copy that it arrived.
const given = raft.SnapshotFinish

// Work is the work that must be done before Done: first Early is sent, then Stored and Entries are made durable.
type Work struct {
	Early  []Sent  // by a leader, whose members write while it does
	Stored *Stored // nil: as before
	Sync   bool    // Stored and Entries must be durable; otherwise they may wait
	// Entries go to the end of the log. Entries that it already has from the first of them on are dropped.
	Entries []Entry
	// Committed are entries that a majority has on its disks, this machine among it. A journal takes them by and by: the log keeps them
	// until then.
	Committed []Entry
	Copy      []int // as in Output

	late  []Sent
	ready *raft.Ready
	base  bool // the site is founded with this machine's journal
}

// Base is the place of this machine's journal in the log, where the site is founded with that journal.
func (w *Work) Base() (At, bool) { return At{1, 1}, w.base }

// Work is the next work, which is to be made durable; nil: there is none.
func (m *Machine) Work() *Work {
	if m.work == nil && m.forgot {
		m.forget()
	}
	switch {
	case m.work != nil:
		return nil
	case m.dirty:
		s := m.stored
		m.work = &Work{Stored: &s, Sync: true, base: s.Whole}
		return m.work
	case m.node == nil || !m.node.HasReady():
		return nil
	}
	rd := m.node.Ready()
	w := &Work{ready: &rd, Sync: rd.MustSync, Entries: entries(rd.Entries), Committed: entries(rd.CommittedEntries)}
	if n := len(w.Entries); n > 0 {
		m.handed = w.Entries[n-1].Index
	}
	_, leads := m.leads()
	early := m.node.BasicStatus().RaftState == raft.StateLeader
	more := false // a majority has more entries than before
	if h := rd.HardState; h != nil {
		more = h.GetCommit() > m.stored.Commit
		early = early && h.GetTerm() == m.stored.Term && h.GetVote() == m.stored.Vote
		m.stored.Term, m.stored.Vote, m.stored.Commit = h.GetTerm(), h.GetVote(), h.GetCommit()
		s := m.stored
		w.Stored = &s
	}
	m.begin(rd.SoftState)
	for _, x := range rd.Messages {
		to := int(x.GetTo()) - 1
		p := &m.members[to]
		if x.GetType() == raftpb.MsgSnap && p.connected && !p.copying && leads {
			p.copying, p.lacks = true, true
			w.Copy = append(w.Copy, to)
		}
		if !p.connected || p.lacks || x.GetType() == raftpb.MsgSnap || m.bound(x) || more && m.spared(x) {
			continue
		}
		text, err := proto.Marshal(x)
		if err != nil {
			continue
		}
		s := Sent{to, Message{Kind: KindRaft, Raft: text}}
		if early {
			w.Early = append(w.Early, s)
		} else {
			w.late = append(w.late, s)
		}
	}
	m.work = w
	return w
}

// spared says whether a message has no entries, for a member that keeps up. The library tells it so that a majority has more entries.
// The next entries say the same, or the next beat does, and no answer is needed.
func (m *Machine) spared(x *raftpb.Message) bool {
	if x.GetType() != raftpb.MsgApp || len(x.GetEntries()) > 0 {
		return false
	}
	_, state := m.progress(int(x.GetTo()) - 1)
	return state == keepsUp
}

// Done says that the work is durable, and returns the messages that are sent now.
func (m *Machine) Done() []Sent {
	w := m.work
	m.work = nil
	if w.ready == nil {
		m.dirty = false
		if m.node == nil {
			_ = m.boot(nil) // there is no entry that could be wrong
		}
		return nil
	}
	if w.ready.HardState != nil {
		_ = m.log.SetHardState(w.ready.HardState)
	}
	_ = m.log.Append(w.ready.Entries)
	for _, e := range w.Committed {
		m.at = e.At
		m.settled = e.Term
	}
	m.node.Advance(*w.ready)
	m.logged.trim(m, w.Entries)
	var late []Sent
	for _, s := range w.late {
		if p := &m.members[s.To]; p.connected && !p.lacks {
			late = append(late, s)
		}
	}
	return late
}

// Propose has the leader append an entry.
func (m *Machine) Propose(data []byte) error {
	if m.node == nil {
		return raft.ErrProposalDropped
	}
	return m.node.Propose(data)
}

func entries(list []*raftpb.Entry) []Entry {
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = Entry{At{e.GetIndex(), e.GetTerm()}, e.GetData()}
	}
	return out
}

// recent bounds the entries that the log keeps in memory for members that were away for a moment.
type recent struct {
	octets int // since mark
	mark   uint64
}

const mostRecent = 16 << 20 // octets of one half

func (r *recent) trim(m *Machine, added []Entry) {
	for _, e := range added {
		r.octets += len(e.Data)
	}
	if r.octets < mostRecent {
		return
	}
	if to := min(r.mark, m.at.Index); to > 0 {
		if _, err := m.log.CreateSnapshot(to, nil, nil); err == nil {
			_ = m.log.Compact(to)
		}
	}
	r.octets, r.mark = 0, m.at.Index
}

// Behind is how many entries a member lacks, as its leader knows it.
func (m *Machine) Behind(of int) uint64 {
	if m.node == nil || of == m.cfg.Self {
		return 0
	}
	match, _ := m.progress(of)
	last, _ := m.log.LastIndex()
	return last - min(last, match)
}

// BehindOctets is the length of these entries, as far as the leader has them in memory; a member that lacks more gets a copy.
func (m *Machine) BehindOctets(of int) (octets uint64) {
	n := m.Behind(of)
	if n == 0 {
		return 0
	}
	first, _ := m.log.FirstIndex()
	last, _ := m.log.LastIndex()
	list, _ := m.log.Entries(max(first, last-n+1), last+1, math.MaxUint64)
	for _, e := range list {
		octets += uint64(len(e.Data))
	}
	return octets
}

// progress is how far a leader knows that a member's log goes, and how the leader sends it entries.
func (m *Machine) progress(of int) (match uint64, state tracker.StateType) {
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, pr progress) {
		if id == uint64(of+1) {
			match, state = pr.Match, pr.State
		}
	})
	return match, state
}
