package quorum

import (
	"fmt"
	"math/rand/v2"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"aldis/internal/gateway/pair"
)

// Machine is one of the members. It is not for concurrent use.
type Machine struct {
	cfg Config
	pulse
	handing
	chance  *rand.Rand
	stored  Stored
	at      At // the last entry that the library has given out to be applied
	node    *raft.RawNode
	log     *raft.MemoryStorage
	logged  recent
	members []member // by number
	role    pair.Role
	out     *Output
	work    *Work // that is being done
	dirty   bool  // stored has changed without the library
	forgot  bool  // a leader has said that this machine has acknowledged more than it has

	now     time.Duration
	guard   time.Duration // until then a machine that has started votes for nobody: what it promised before is not known
	promise time.Duration // until then it asks for no vote, and votes for nobody
	nextAsk time.Duration
	settled uint64 // the newest term of which an entry was committed
	term    uint64 // in which it leads
	leader  int    // the member whose beat was answered last; -1: none
	wish
	handed uint64 // the last entry of a Work: no member can have more of this machine
}

// wish is the order that this machine leads. The leader may be out of reach when it is given.
type wish struct {
	wanted time.Duration // the order counts until then
	ask    time.Duration // when the leader is asked again to hand over
}

// wishTime is how long the order to lead counts.
const wishTime = 8 * time.Second

// pulse is a leader's right to transmit.
type pulse struct {
	lease    time.Duration
	nextBeat time.Duration
	beat     uint64
	beats    [16]time.Duration // when the last beats were sent
}

// handing is a leadership that is given up.
type handing struct {
	retired uint64 // its term
	target  int    // the member that gets it; -1: the best
	tries   int
}

// mostTries is how often the leadership is offered to the member that was named.
const mostTries = 4

// member is another machine, as this one knows it.
type member struct {
	hello     Hello
	acked     At // the last entry that it is known to have acknowledged, on any connection
	connected bool
	lacks     bool // it is given a copy before anything else
	copying   bool
	beat      time.Duration // when the newest beat was sent that it has answered in this term
	heard     time.Duration
}

// New makes a machine that has just started, whose journal has all entries until at, and whose log has the entries behind that.
func New(now time.Duration, cfg Config, stored Stored, at At, entries []Entry) (*Machine, error) {
	m := &Machine{cfg: cfg, chance: rand.New(rand.NewPCG(cfg.Chance, uint64(cfg.Self))), stored: stored, at: at, members: make([]member, cfg.Members), now: now, guard: now + pair.Promise, leader: -1}
	m.nextAsk = m.guard + m.turn(cfg.Self)
	return m, m.boot(entries)
}

// turn is how long this machine leaves it to others to ask for votes first, place by place behind a member: two that ask at the same time
// divide the votes.
func (m *Machine) turn(place int) time.Duration {
	return time.Duration(place)*(Ask/4) + m.wait(Ask/8)
}

// wait draws a time below most.
func (m *Machine) wait(most time.Duration) time.Duration {
	return time.Duration(m.chance.Int64N(int64(most)))
}

// boot starts the library, where this machine has what it needs.
func (m *Machine) boot(entries []Entry) (err error) {
	if m.stored.Term == 0 || !m.stored.Whole {
		return nil
	}
	voters := make([]uint64, m.cfg.Members)
	for i := range voters {
		voters[i] = uint64(i + 1)
	}
	m.log = raft.NewMemoryStorage()
	base := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: &m.at.Index, Term: &m.at.Term, ConfState: &raftpb.ConfState{Voters: voters}}}
	if err = m.log.ApplySnapshot(base); err != nil {
		return err
	}
	last := m.at
	list := make([]*raftpb.Entry, 0, len(entries))
	for _, e := range entries {
		if e.Index <= m.at.Index {
			continue
		}
		if e.Index != last.Index+1 || e.Term < last.Term {
			return fmt.Errorf("quorum: entry %d of term %d stands behind entry %d of term %d", e.Index, e.Term, last.Index, last.Term)
		}
		last = e.At
		list = append(list, &raftpb.Entry{Index: &e.Index, Term: &e.Term, Data: e.Data})
	}
	if err = m.log.Append(list); err != nil {
		return err
	}
	m.handed = last.Index
	commit := min(max(m.stored.Commit, m.at.Index), last.Index)
	if err = m.log.SetHardState(&raftpb.HardState{Term: &m.stored.Term, Vote: &m.stored.Vote, Commit: &commit}); err != nil {
		return err
	}
	m.node, err = raft.NewRawNode(&raft.Config{
		ID: uint64(m.cfg.Self + 1), Storage: m.log, Applied: m.at.Index, ElectionTick: 1 << 30, HeartbeatTick: 1, PreVote: true, DisableProposalForwarding: true,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 256, MaxUncommittedEntriesSize: 64 << 20, Logger: silent{},
	})
	return err
}

// Hello is the state that this machine sends first on a connection.
func (m *Machine) Hello() Hello {
	h := Hello{Machine: m.stored.Machine, Term: m.stored.Term, Whole: m.stored.Whole, Last: m.at}
	if m.log != nil {
		h.Last = m.last()
	}
	return h
}

// last is the entry with which the log ends.
func (m *Machine) last() (at At) {
	at.Index, _ = m.log.LastIndex()
	at.Term, _ = m.log.Term(at.Index)
	return at
}

// Role is what the machine is now.
func (m *Machine) Role() pair.Role { return m.role }

// Stored is the state on its disk once its work is done.
func (m *Machine) Stored() Stored { return m.stored }

// Leader is the number of the member that leads, as far as this machine knows; -1: none.
func (m *Machine) Leader() int {
	switch {
	case m.role == pair.Leading:
		return m.cfg.Self
	case m.role == pair.Following:
		return m.leader
	}
	return -1
}

// Step brings the machine to now and applies ev.
func (m *Machine) Step(now time.Duration, ev Event) (out Output) {
	if now-m.now > pair.Lost { // it was stopped: messages that have come meanwhile are heard first
		m.nextAsk = max(m.nextAsk, now+pair.Lost)
	}
	m.now, m.out = now, &out
	switch ev := ev.(type) {
	case Met:
		m.met(ev)
	case Parted:
		m.members[ev.From] = member{acked: m.members[ev.From].acked}
		if m.node != nil {
			m.node.ReportUnreachable(uint64(ev.From + 1))
		}
	case Heard:
		if m.members[ev.From].connected {
			m.members[ev.From].heard = now
			m.hear(ev.From, ev.Message)
		}
	case Retire:
		m.retire(ev.To)
	case Lead:
		m.wish = wish{wanted: now + wishTime, ask: now}
	}
	m.found()
	if m.node != nil {
		m.pass()
	}
	out.Deadline = m.now + pair.Beat/3
	return out
}

func (m *Machine) send(to int, x Message) {
	if m.members[to].connected {
		m.out.Send = append(m.out.Send, Sent{to, x})
	}
}

// leads says whether the library takes this machine for the leader, of a term that it has not given up.
func (m *Machine) leads() (term uint64, leads bool) {
	s := m.node.BasicStatus()
	return s.GetTerm(), s.RaftState == raft.StateLeader && s.GetTerm() != m.retired
}

// hear takes a message of a member.
func (m *Machine) hear(from int, x Message) {
	switch x.Kind {
	case KindForgot:
		m.forgot = m.node != nil
	case KindRetire:
		m.retire(from)
	case KindBeat, KindAnswer, KindRaft:
		if m.node == nil || m.members[from].lacks {
			return
		}
		switch x.Kind {
		case KindBeat:
			m.hearBeat(from, x)
		case KindAnswer:
			m.hearAnswer(from, x)
		case KindRaft:
			m.hearRaft(from, x.Raft)
		}
	}
}

func (m *Machine) hearRaft(from int, text []byte) {
	x := &raftpb.Message{}
	if err := proto.Unmarshal(text, x); err != nil {
		m.out.Strange = err.Error()
	} else if m.out.Strange = m.strange(from, x); m.out.Strange == "" && !m.bound(x) {
		_ = m.node.Step(x) // a message that it does not take is old
	}
}

// pass does what time brings.
func (m *Machine) pass() {
	term, leads := m.leads()
	is := m.node.BasicStatus().RaftState
	if is == raft.StateLeader && m.now >= m.nextBeat {
		m.nextBeat = m.now + pair.Beat
		m.node.Tick()
		if leads {
			m.sendBeats(term)
		}
	}
	switch {
	case m.role == pair.Leading && leads && term == m.term && m.now < m.lease+standDown:
	case leads && m.settled == term && m.at == m.last() && m.now < m.lease: // what it proposed before its lease lapsed is settled first
		m.role, m.term = pair.Leading, term
	case m.now < m.promise:
		m.role = pair.Following
	default:
		m.role = pair.Waiting
	}
	m.copies()
	m.wishes()
	if m.now < m.nextAsk {
		return
	}
	switch {
	case is != raft.StateLeader && m.now >= max(m.promise, m.guard):
		m.nextAsk = m.now + Ask + m.wait(Ask)
		_ = m.node.Campaign()
	case is == raft.StateLeader && !leads:
		m.nextAsk = m.now + Ask
		m.handOver()
	}
}

// wishes asks the leader to hand over, until this machine leads or the order has aged.
func (m *Machine) wishes() {
	switch at := m.Leader(); {
	case m.now >= m.wanted || at == m.cfg.Self:
		m.wish = wish{}
	case at >= 0 && m.now >= m.ask:
		m.ask = m.now + pair.Promise
		m.send(at, Message{Kind: KindRetire})
	}
}

// retire ends this machine's leadership of a term, for good, before it asks another one to lead.
func (m *Machine) retire(target int) {
	if m.node == nil || m.best(target) < 0 {
		return
	}
	if term, leads := m.leads(); leads {
		m.handing = handing{retired: term, target: target}
		m.lease, m.nextAsk = 0, m.now
	}
}

// handOver asks another member to lead. Each time it is one that has all of the log.
func (m *Machine) handOver() {
	to := m.best(m.target)
	if m.tries++; m.tries == mostTries {
		m.target = -1
	}
	if to >= 0 {
		m.node.TransferLeader(uint64(to + 1))
	}
}

// best is the member that could lead soonest; -1: none is there.
func (m *Machine) best(wanted int) (to int) {
	to = -1
	var most uint64
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, pr progress) {
		i := int(id - 1)
		p := m.members[i]
		if i == m.cfg.Self || !p.connected || p.lacks || i != wanted && m.now-p.heard > pair.Lost {
			return
		}
		if i == wanted || to < 0 || to != wanted && pr.Match > most {
			to, most = i, pr.Match
		}
	})
	return to
}

// CouldRetire says of a leader that another member could lead at once: to, or -1 for any.
func (m *Machine) CouldRetire(to int) bool {
	if m.role != pair.Leading {
		return false
	}
	best := m.best(to)
	return best >= 0 && (to < 0 || best == to)
}

// silent takes the library's log lines. A fault of the library ends the process, since the log is not to be trusted then.
type silent struct{}

func (silent) Debug(...any)            {}
func (silent) Debugf(string, ...any)   {}
func (silent) Error(...any)            {}
func (silent) Errorf(string, ...any)   {}
func (silent) Info(...any)             {}
func (silent) Infof(string, ...any)    {}
func (silent) Warning(...any)          {}
func (silent) Warningf(string, ...any) {}
func (silent) Fatal(v ...any)          { panic(fmt.Sprint(v...)) }
func (silent) Fatalf(f string, v ...any) {
	panic(fmt.Sprintf(f, v...))
}
func (silent) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (silent) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
