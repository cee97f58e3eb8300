package quorum

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// The library takes its peers at their word: a message that no member of this version sends may end the process, or use up the terms. So
// each message is looked at first.

// mostAhead is by how much a term may exceed this machine's. At one election in 2.4 s the terms of a member that was away grow less in a
// century.
const mostAhead = 1 << 32

// Believes says whether a term can be one of the site's.
func (m *Machine) Believes(term uint64) bool { return term > 0 && term <= m.stored.Term+mostAhead }

// strange says why a message is none that a member sends; "": it is one. Messages of terms that have passed are not judged, as the library
// ignores them.
func (m *Machine) strange(from int, x *raftpb.Message) string {
	own := m.node.BasicStatus()
	kind, term := x.GetType(), x.GetTerm()
	switch {
	case x.GetFrom() != uint64(from+1) || x.GetTo() != uint64(m.cfg.Self+1):
		return fmt.Sprintf("%v says that it goes from member %d to member %d", kind, x.GetFrom(), x.GetTo())
	case !m.Believes(term):
		return fmt.Sprintf("%v of term %d, in term %d", kind, term, own.GetTerm())
	case term < own.GetTerm():
		return ""
	case len(x.GetContext()) > 0 && !claims(x):
		return fmt.Sprintf("%v with a context", kind)
	}
	switch kind {
	case raftpb.MsgVote, raftpb.MsgPreVote, raftpb.MsgVoteResp, raftpb.MsgPreVoteResp, raftpb.MsgHeartbeatResp:
		return ""
	case raftpb.MsgTimeoutNow:
		if own.Lead != x.GetFrom() {
			return "MsgTimeoutNow of a member that does not lead"
		}
		return ""
	case raftpb.MsgHeartbeat:
		if last := m.last().Index; x.GetCommit() > last {
			return fmt.Sprintf("MsgHeartbeat of entry %d, and this log ends with %d", x.GetCommit(), last)
		}
		return ""
	case raftpb.MsgAppResp:
		if !x.GetReject() && x.GetIndex() > m.handed && own.Lead == own.ID {
			return fmt.Sprintf("MsgAppResp of entry %d, and %d was the last that was sent", x.GetIndex(), m.handed)
		}
		return ""
	case raftpb.MsgApp:
		return strangeEntries(x)
	}
	return kind.String()
}

// strangeEntries looks whether entries follow each other.
func strangeEntries(x *raftpb.Message) string {
	at := At{x.GetIndex(), x.GetLogTerm()}
	for _, e := range x.GetEntries() {
		if e.GetType() != raftpb.EntryNormal || e.GetIndex() != at.Index+1 || e.GetTerm() < at.Term || e.GetTerm() > x.GetTerm() {
			return fmt.Sprintf("MsgApp of term %d: entry %d of term %d (%v) behind entry %d of term %d", x.GetTerm(), e.GetIndex(), e.GetTerm(), e.GetType(), at.Index, at.Term)
		}
		at = At{e.GetIndex(), e.GetTerm()}
	}
	return ""
}
