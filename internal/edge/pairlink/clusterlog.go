package pairlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/pair"
	"aldis/internal/gateway/quorum"
)

// The log is in the journal's file: one commit of the journal appends entries, and applies earlier entries that a majority has. So each
// entry costs one sync, as on one machine.

// logState is the journal's part of the log.
type logState struct {
	at      quorum.At // the journal has applied the entries up to this one
	first   uint64    // index of the first entry in the log; 0: the log is empty
	last    uint64
	pending []quorum.Entry // committed, and not applied yet
	putBack uint64         // the last entry of a copy that was put back; 0: none was put back
	takes   time.Duration  // mean time of the last few commits
	trouble string         // why the journal cannot be written; "": it can
}

// slowDisk is the mean time of a commit above which a disk is reported as slow.
const slowDisk = 100 * time.Millisecond

// idle is how long entries wait to be applied with the next commit.
const idle = 50 * time.Millisecond

// mostPending bounds the entries that wait to be applied, in octets.
const mostPending = 16 << 20

// Kinds of entries. Each begins with the leadership and the number of its commit.
const (
	entryOps   = 0 // operations of the journal
	entryStart = 1 // the number of a start of the gateway
)

// votedOctets is the length of a member's stored vote. A machine of two stores less.
const votedOctets = 5 * 8

func appendVoted(s quorum.Stored) []byte {
	return numbers(s.Machine, s.Term, s.Vote, s.Commit, flag(s.Whole))
}

func parseVoted(b []byte) (s quorum.Stored, ok bool) {
	var whole uint64
	rest, err := cutNumbers(b, &s.Machine, &s.Term, &s.Vote, &s.Commit, &whole)
	s.Whole = whole == 1
	return s, err == nil && len(rest) == 0
}

// restore reads this machine's stored vote, and its log.
func (c *Cluster) restore() (err error) {
	j := c.cfg.Journal
	vote, position := j.Pair()
	stored, ok := parseVoted(vote)
	switch two, was := parseStored(vote); {
	case ok && stored.Term == 0:
	case ok:
		if rest, err := cutNumbers(position, &c.state.at.Index, &c.state.at.Term); (err != nil || len(rest) > 0) && stored.Whole {
			return errors.New("pairlink: the journal does not say readably with which entry it ends: run gateway journal check")
		}
	case vote != nil && !was:
		return errors.New("pairlink: the journal does not say readably what this machine has voted: run gateway journal check")
	case was:
		stored = quorum.Stored{Machine: two.Machine, Whole: two.Whole && j.Incarnation() > 0}
		err = j.SetVote(appendVoted(stored))
	default: // a gateway that was alone until now, or a journal that was put back
		if c.state.putBack, err = putBack(j, position); err != nil {
			return err
		}
		stored = quorum.Stored{Machine: draw(), Whole: j.Incarnation() > 0}
		err = j.SetVote(appendVoted(stored))
	}
	if err != nil {
		return err
	}
	entries, err := readLog(j)
	if err != nil {
		return err
	}
	if n := len(entries); n > 0 {
		c.state.first, c.state.last = entries[0].Index, entries[n-1].Index
	}
	return c.begin(stored, entries)
}

// putBack settles a journal without a vote, and returns the last entry of a site's log that it has; 0: it was never a member's.
func putBack(j *journal.Journal, position []byte) (last uint64, err error) {
	if _, err := cutNumbers(position, &last); err != nil {
		last = 0
	}
	entries, err := readLog(j)
	if n := len(entries); n > 0 {
		last = max(last, entries[n-1].Index)
	}
	return last, errors.Join(err, Settle(j))
}

// begin makes the machine. The caller holds mu, unless no other goroutine runs yet.
func (c *Cluster) begin(stored quorum.Stored, entries []quorum.Entry) (err error) {
	c.m, err = quorum.New(now(), quorum.Config{Self: c.self, Members: len(c.members), Chance: draw()}, stored, c.state.at, entries)
	return err
}

func readLog(j *journal.Journal) (list []quorum.Entry, err error) {
	err = j.Log(func(index uint64, value []byte) error {
		e := quorum.Entry{At: quorum.At{Index: index}}
		rest, err := cutNumbers(value, &e.Term)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			e.Data = bytes.Clone(rest)
		}
		list = append(list, e)
		return nil
	})
	return list, err
}

// Settle turns the journal of a member into that of a gateway that is alone: it applies the entries of its log, which the member has
// acknowledged. A copy that was put back has no vote.
func Settle(j *journal.Journal) error {
	vote, _ := j.Pair()
	if vote != nil && len(vote) != votedOctets {
		return nil
	}
	entries, err := readLog(j)
	if err != nil || vote == nil && len(entries) == 0 {
		return err
	}
	var all journal.Logged
	var ops []journal.Op
	for _, e := range entries {
		all.Drop = append(all.Drop, e.Index)
		if ops, err = applied(ops, &all, e); err != nil {
			return err
		}
	}
	if err := j.CommitLogged(ops, all); err != nil {
		return err
	}
	return j.Leave()
}

// applied adds the changes of an entry to ops and to.
func applied(ops []journal.Op, to *journal.Logged, e quorum.Entry) ([]journal.Op, error) {
	if len(e.Data) == 0 {
		return ops, nil
	}
	if len(e.Data) < 17 {
		return nil, errFrame
	}
	switch what, rest := e.Data[16], e.Data[17:]; what {
	case entryOps:
		list, err := parseOps(rest)
		if err != nil {
			return nil, err
		}
		return append(ops, list...), nil
	case entryStart:
		if len(rest) != 4 {
			return nil, errFrame
		}
		to.Start = max(to.Start, binary.BigEndian.Uint32(rest))
		return ops, nil
	}
	return nil, fmt.Errorf("%w: entry %d of a newer gateway", errFrame, e.Index)
}

// write makes the machine's work durable, and applies committed entries, until this member stops.
func (c *Cluster) write() {
	defer c.wait.Done()
	var settle <-chan time.Time
	for {
		force := false
		select {
		case <-c.life.Done():
			c.writes.Lock()
			_ = c.flush()
			c.writes.Unlock()
			return
		case <-settle:
			force = true
		case <-c.wake:
		}
		settle = nil
		c.mu.Lock()
		rising := c.m.Role() == pair.Leading && c.run == 0
		gives := c.gives
		c.gives = nil
		c.mu.Unlock()
		for c.turn() {
		}
		c.mu.Lock()
		octets := 0
		for _, e := range c.state.pending {
			octets += len(e.Data)
		}
		waits := len(c.state.pending) > 0
		c.mu.Unlock()
		if waits && !force && !rising && len(gives) == 0 && octets < mostPending {
			settle = time.After(idle)
			continue
		}
		c.writes.Lock()
		if c.flush() == nil {
			c.give(gives)
		} else {
			c.partFrom(gives)
		}
		c.writes.Unlock()
		c.mu.Lock()
		c.rise()
		c.mu.Unlock()
	}
}

// turn does one piece of work; false: there is none.
func (c *Cluster) turn() bool {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.mu.Lock()
	m := c.m
	w := m.Work()
	if w == nil {
		c.mu.Unlock()
		return false
	}
	for _, e := range w.Committed { // a majority has it, this machine included
		c.acknowledge(e)
	}
	c.state.pending = append(c.state.pending, w.Committed...)
	c.gives = append(c.gives, w.Copy...)
	c.send(w.Early)
	c.look()
	c.mu.Unlock()
	if w.Sync || len(w.Entries) > 0 {
		if !c.store(w) {
			return false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.send(m.Done())
	if w.Stored != nil && !w.Stored.Whole {
		c.cfg.Log.Warn("this machine lacks what it has acknowledged: its disk is an old one. It is given a copy of the leader's journal")
		c.partAll()
	}
	c.step(nil)
	return true
}

// store makes a piece of work durable, and tries again if the disk fails; false: this member stops.
func (c *Cluster) store(w *quorum.Work) bool {
	for {
		began := now()
		err := c.append(w)
		c.mu.Lock()
		if err == nil {
			c.state.takes += (now() - began - c.state.takes) / 8
		}
		takes := c.state.takes
		switch {
		case err == nil:
			c.state.trouble, c.broken = "", 0
		case c.broken == 0:
			c.state.trouble, c.broken = err.Error(), now()
		case now()-c.broken > brokenTime && c.run != 0:
			c.step(quorum.Retire{To: -1})
		}
		c.mu.Unlock()
		if err == nil {
			if takes > slowDisk {
				c.warn("slow", "the disk of this member of the site is slow: with it what the others acknowledge waits where it is needed", "takes", takes.Round(time.Millisecond))
			}
			return true
		}
		c.warn("disk", "this member of the site cannot write its journal: it acknowledges nothing until it can", "error", err)
		select {
		case <-c.life.Done():
			return false
		case <-time.After(pair.Beat):
		}
	}
}

// append is one commit of the journal: the entries of w, and the entries that wait to be applied. If w is nil, only the latter.
// The caller holds writes.
func (c *Cluster) append(w *quorum.Work) error {
	var ops []journal.Op
	var all journal.Logged
	var err error
	c.mu.Lock()
	s, apply := c.state, c.state.pending
	c.mu.Unlock()
	if w != nil {
		if w.Stored != nil {
			all.Vote = appendVoted(*w.Stored)
		}
		if at, founded := w.Base(); founded {
			s.at = at
		}
		all.Add = map[uint64][]byte{}
		for _, e := range w.Entries {
			all.Add[e.Index] = append(numbers(e.Term), e.Data...)
		}
		if n := len(w.Entries); n > 0 {
			first, last := w.Entries[0].Index, w.Entries[n-1].Index
			for i := last + 1; i <= s.last && s.first > 0; i++ { // entries of another leader, which no majority has
				all.Drop = append(all.Drop, i)
			}
			if s.first == 0 {
				s.first = first
			}
			s.last = last
		}
	}
	done := 0
	for _, e := range apply {
		if _, added := all.Add[e.Index]; added { // a majority without this machine has it: it goes into this log first
			break
		}
		if ops, err = applied(ops, &all, e); err != nil {
			return err
		}
		if s.first > 0 && e.Index >= s.first {
			all.Drop = append(all.Drop, e.Index)
			s.first = e.Index + 1
		}
		s.at = e.At
		done++
	}
	if s.first > s.last {
		s.first, s.last = 0, 0
	}
	all.Position = numbers(s.at.Index, s.at.Term)
	if err := c.cfg.Journal.CommitLogged(ops, all); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.at, c.state.first, c.state.last = s.at, s.first, s.last
	c.state.pending = c.state.pending[done:]
	return nil
}

// flush applies the committed entries. The caller holds writes.
func (c *Cluster) flush() (err error) {
	c.mu.Lock()
	waits := len(c.state.pending) > 0
	c.mu.Unlock()
	if waits {
		err = c.append(nil)
	}
	if err != nil {
		c.warn("disk", "this member of the site cannot write its journal: it acknowledges nothing until it can", "error", err)
	}
	return err
}

// acknowledge wakes the Commit that waits for an entry. The caller holds mu.
func (c *Cluster) acknowledge(e quorum.Entry) {
	var run, seq uint64
	if _, err := cutNumbers(e.Data, &run, &seq); err == nil && run == c.run && c.waiting[seq] != nil {
		close(c.waiting[seq])
		delete(c.waiting, seq)
	}
}

// Begin makes the number of a start durable on a majority.
func (c *Cluster) Begin(run uint64) error {
	start := binary.BigEndian.AppendUint32(nil, c.cfg.Journal.Incarnation())
	return c.propose(run, entryStart, start, nil)
}

// Keep makes operations durable before the gateway of a leadership has begun.
func (c *Cluster) Keep(run uint64, ops []journal.Op) error { return c.Commit(run, ops, nil) }

// Commit makes operations durable on a majority. It waits for that, or until this machine no longer leads. most bounds the wait while
// the gateway stops; nil: nothing bounds it.
func (c *Cluster) Commit(run uint64, ops []journal.Op, most <-chan struct{}) error {
	if len(ops) == 0 {
		return nil
	}
	return c.propose(run, entryOps, appendOps(nil, ops), most)
}

func (c *Cluster) propose(run uint64, what byte, content []byte, most <-chan struct{}) error {
	c.mu.Lock()
	if c.run != run {
		c.mu.Unlock()
		return ErrDeposed
	}
	c.seq++
	seq, done := c.seq, make(chan error)
	if err := c.m.Propose(append(append(numbers(run, seq), what), content...)); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrNoMajority, err)
	}
	c.waiting[seq] = done
	c.nudge()
	changed := c.changed
	c.mu.Unlock()
	for {
		select {
		case <-done:
			return nil
		case <-most:
			return ErrNoMajority
		case <-c.life.Done():
			return ErrDeposed
		case <-changed:
			c.mu.Lock()
			over := c.run != run
			changed = c.changed
			c.mu.Unlock()
			select {
			case <-done:
				return nil
			default:
			}
			if over {
				return ErrDeposed
			}
		}
	}
}

// partFrom closes the connections with members that get no copy now: on the next connection they ask again.
func (c *Cluster) partFrom(list []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range list {
		if k := c.members[i].conn; k != nil {
			k.close()
		}
	}
}

// partAll closes all connections, so that this machine reports anew how much it has. The caller holds mu.
func (c *Cluster) partAll() {
	for i := range c.members {
		if k := c.members[i].conn; k != nil {
			k.close()
		}
	}
}

// give sends members a copy of the journal. The caller holds writes, so that nothing is written meanwhile.
func (c *Cluster) give(to []int) {
	for _, i := range to {
		c.mu.Lock()
		k := c.members[i].conn
		is := at{epoch: c.m.Stored().Term, run: c.state.at.Term, seq: c.state.at.Index}
		c.mu.Unlock()
		if k == nil {
			continue
		}
		j := c.cfg.Journal
		copied, err := j.Backup()
		if err != nil {
			k.close()
			c.warn("copy", "the other machine of the site could not be brought up; it is tried again", "error", err)
			continue
		}
		own := numbers(uint64(j.StoreID()), uint64(j.Incarnation()))
		c.wait.Add(1)
		go func() {
			defer c.wait.Done()
			if err := c.sendCopy(k, copied, is, own); err != nil {
				k.close()
			}
		}()
	}
}

// endCopy replaces this machine's journal with a copy. A journal that a gateway wrote while it was alone is kept under another name.
func (c *Cluster) endCopy(from int, k *conn) error {
	f := k.filling
	if f == nil {
		return errFrame
	}
	k.filling = nil
	c.writes.Lock()
	defer c.writes.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[from].conn != k || c.m.Role() == pair.Leading || f.seq < c.state.at.Index && !c.m.Forgetful() {
		f.refill.Abandon()
		return errNotFollowed
	}
	before := c.m.Stored()
	at := quorum.At{Index: f.seq, Term: f.run}
	stored := before.Given(at, f.epoch)
	old, err := f.refill.Finish(uint32(f.store), uint32(f.start), appendVoted(stored), numbers(at.Index, at.Term), before.Term == 0 && c.cfg.Journal.Incarnation() > 0)
	if err != nil {
		return err
	}
	if old != "" {
		c.cfg.Log.Warn("the journal that this machine had without the other one was put aside; messages in it may have gone nowhere", "file", old)
	}
	lacked := at.Index - min(at.Index, max(c.state.at.Index, c.state.last, c.state.putBack))
	c.state = logState{at: at, takes: c.state.takes}
	if err := c.begin(stored, nil); err != nil {
		return err
	}
	c.look()
	c.cfg.Log.Info("this machine of the site has the journal of the other", "octets", c.cfg.Journal.Size(), "lacked_commits", lacked)
	c.partAll()
	return nil
}
