package pairlink

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"aldis/internal/edge/journal"
	"aldis/internal/gateway/pair"
)

// recent are the last commits of a leadership, for a follower that was away for a moment or is getting a snapshot.
type recent struct {
	first  uint64 // number of the first commit
	frames [][]byte
	octets int
}

const mostRecent = 32 << 20 // octets

func (r *recent) add(seq uint64, ops []byte) {
	if len(r.frames) == 0 {
		r.first = seq
	}
	r.frames = append(r.frames, ops)
	r.octets += len(ops)
	for r.octets > mostRecent && len(r.frames) > 1 {
		r.octets -= len(r.frames[0])
		r.frames[0] = nil
		r.frames, r.first = r.frames[1:], r.first+1
	}
}

// after are the commits behind seq; false: some of them are no longer kept.
func (r *recent) after(seq, last uint64) ([][]byte, bool) {
	if seq == last {
		return nil, true
	}
	if seq > last || len(r.frames) == 0 || seq+1 < r.first {
		return nil, false
	}
	return r.frames[seq+1-r.first:], true
}

// standing counts the commits that are on one disk only.
type standing struct {
	since           time.Time
	commits, octets uint64
}

// Begin says that the gateway of a leadership has been made: from now on a follower may get the whole journal.
func (l *Link) Begin(run uint64) error {
	l.applies.Lock() // wait for a write that began before this machine led
	defer l.applies.Unlock()
	if err := l.cfg.Journal.CommitAt(nil, numbers(run, 0)); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run != run {
		return ErrDeposed
	}
	l.begun = true
	l.step(nil)
	l.nudge()
	return nil
}

// Keep makes operations durable before the gateway of a leadership has begun: the follower gets them with the snapshot.
func (l *Link) Keep(_ uint64, ops []journal.Op) error { return l.cfg.Journal.Commit(ops) }

// Commit makes operations durable here, and on the follower's disk if the follower is whole. It waits for both, or until this machine is
// alone. most bounds the wait while the gateway stops; nil: nothing bounds it.
func (l *Link) Commit(run uint64, ops []journal.Op, most <-chan struct{}) error {
	if len(ops) == 0 {
		return nil
	}
	seq, err := l.commit(run, ops)
	for err == nil {
		var changed chan struct{}
		l.mu.Lock()
		done := l.m.Alone() || l.conn != nil && l.conn.acked >= seq
		switch {
		case l.run != run:
			err = ErrDeposed
		case l.failed != nil:
			err = l.failed
		case !done:
			changed = l.changed
		}
		l.mu.Unlock()
		if err != nil || changed == nil {
			break
		}
		select {
		case <-changed:
		case <-most:
			return errors.New("pairlink: the other machine has not answered")
		}
	}
	return err
}

// commit writes operations here, and sends them to the follower.
func (l *Link) commit(run uint64, ops []journal.Op) (seq uint64, err error) {
	frame := appendOps(nil, ops)
	l.commits.Lock()
	defer l.commits.Unlock()
	l.mu.Lock()
	if l.run != run {
		l.mu.Unlock()
		return 0, ErrDeposed
	}
	seq = l.pos.seq + 1
	if c := l.conn; c != nil && c.acked == l.pos.seq {
		c.behind = time.Now()
	}
	l.pos.seq = seq
	l.recent.add(seq, frame)
	if l.conn != nil && l.conn.attached {
		l.say(appendFrame(nil, kindRecords, at{l.m.Stored().Epoch, run, seq}.append(), frame))
	}
	if !l.alone.since.IsZero() {
		l.alone.commits++
		l.alone.octets += uint64(len(frame))
	}
	l.mu.Unlock()
	err = l.cfg.Journal.CommitAt(ops, numbers(run, seq))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch since := now() - l.broken; {
	case err == nil:
		l.broken = 0
	case l.broken == 0:
		l.broken = now()
	case since > brokenTime && !l.m.Alone() && l.cfg.Witness.IsValid():
		l.fail(fmt.Errorf("pairlink: the journal cannot be written, and the other machine has all of it: %w", err))
	}
	return seq, err
}

// brokenTime is how long a leader whose disk fails stays leader while the other machine could lead.
const brokenTime = 3 * time.Second

// stream sends a follower the commits that it lacks, or a snapshot, and then each new commit.
func (l *Link) stream(c *conn) {
	defer l.wait.Done()
	from, err := c.hello, error(nil)
	l.mu.Lock()
	run := l.run
	_, here := l.recent.after(from.Seq, l.pos.seq)
	if from.Run != run || !here {
		l.mu.Unlock()
		from.Seq, err = l.snapshot(c, run)
		l.mu.Lock()
	}
	if err == nil {
		frames, there := l.recent.after(from.Seq, l.pos.seq)
		if l.run != run || l.conn != c || !there {
			err = errors.New("the follower cannot be brought up")
		} else {
			for i, frame := range frames {
				l.say(appendFrame(nil, kindRecords, at{l.m.Stored().Epoch, run, from.Seq + 1 + uint64(i)}.append(), frame))
			}
			c.attached = true
			if from.Run == run && c.acked == 0 {
				c.acked = c.hello.Seq
			}
			l.caught(c)
		}
	}
	l.mu.Unlock()
	if err != nil {
		c.close()
		l.warn("snapshot", "the other machine of the site could not be brought up; it is tried again", "error", err)
	}
}

// snapshot sends the whole journal, and returns the commit at which it ends.
func (l *Link) snapshot(c *conn, run uint64) (seq uint64, err error) {
	l.commits.Lock()
	l.mu.Lock()
	is := at{l.m.Stored().Epoch, l.run, l.pos.seq}
	l.mu.Unlock()
	if is.run != run {
		l.commits.Unlock()
		return 0, ErrDeposed
	}
	copied, err := l.cfg.Journal.Backup()
	store, start := l.cfg.Journal.StoreID(), l.cfg.Journal.Incarnation()
	l.commits.Unlock()
	if err != nil {
		return 0, err
	}
	err = l.sendCopy(c, copied, is, numbers(uint64(store), uint64(start)))
	return is.seq, err
}

// sendCopy sends the records of a copy of the journal, and closes the copy.
func (l *base) sendCopy(c *conn, copied *os.File, is at, own []byte) error {
	began := time.Now()
	if err := c.push(appendFrame(nil, kindBegin, is.append(), own)); err != nil {
		copied.Close()
		return err
	}
	var part []byte
	octets := 0
	err := l.cfg.Journal.Records(copied, func(op journal.Op) error {
		part = appendOps(part, []journal.Op{op})
		if len(part) < partOctets {
			return nil
		}
		octets += len(part)
		err := c.push(appendFrame(nil, kindPart, part))
		part = part[:0]
		return err
	})
	if err == nil {
		err = c.push(append(appendFrame(nil, kindPart, part), appendFrame(nil, kindEnd)...))
	}
	if err == nil {
		l.cfg.Log.Info("the other machine of the site was sent the whole journal", "octets", octets+len(part), "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// lagging is how many commits a follower may lack when it learns that it is whole: they precede that message on its connection.
const lagging = 16

// caught checks whether the follower has nearly everything. The caller holds mu.
func (l *Link) caught(c *conn) {
	if c == l.conn && c.attached && l.m.Wants() && l.pos.seq-c.acked <= lagging {
		l.step(pair.Caught{})
	}
}

// hearAcked records which commit the follower has made durable.
func (l *Link) hearAcked(c *conn, content []byte) error {
	is, rest, err := cutAt(content)
	if err != nil || len(rest) > 0 {
		return errFrame
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run != is.run || c != l.conn || is.seq > l.pos.seq {
		return nil
	}
	c.acked = max(c.acked, is.seq)
	l.caught(c)
	l.broadcast()
	return nil
}

var errNotFollowed = errors.New("records of a machine that this one does not follow")

// write writes a commit of the leader.
func (l *Link) write(c *conn, content []byte) error {
	is, rest, err := cutAt(content)
	if err != nil {
		return err
	}
	ops, err := parseOps(rest)
	if err != nil {
		return err
	}
	l.applies.Lock()
	defer l.applies.Unlock()
	l.mu.Lock()
	fits := c == l.conn && l.m.Accepts(is.epoch) && is.run == l.pos.run && is.seq == l.pos.seq+1
	l.mu.Unlock()
	if !fits {
		return errNotFollowed
	}
	if err := l.cfg.Journal.CommitAt(ops, numbers(is.run, is.seq)); err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.run == 0 {
		l.pos = at{run: is.run, seq: is.seq}
		l.metrics.written.Inc()
		l.say(appendFrame(nil, kindAcked, is.append()))
	}
	return nil
}

// filling is a snapshot that is arriving.
type filling struct {
	at
	store, start uint64
	refill       *journal.Refill
}

func (l *Link) beginFilling(c *conn, content []byte) error {
	return l.beginCopy(c, content, func(is at) bool { return c == l.conn && l.m.Accepts(is.epoch) })
}

// beginCopy reads the beginning of a copy. fits says whether this machine wants the copy; it is called with mu held.
func (l *base) beginCopy(c *conn, content []byte, fits func(at) bool) (err error) {
	f := &filling{}
	rest := []byte(nil)
	if f.at, rest, err = cutAt(content); err == nil {
		rest, err = cutNumbers(rest, &f.store, &f.start)
	}
	if err != nil || len(rest) > 0 || c.filling != nil {
		return errFrame
	}
	l.mu.Lock()
	wanted := fits(f.at)
	l.mu.Unlock()
	if !wanted {
		return errNotFollowed
	}
	if f.refill, err = l.cfg.Journal.Refill(); err != nil {
		return err
	}
	c.filling = f
	return nil
}

func (l *base) fill(c *conn, content []byte) error {
	ops, err := parseOps(content)
	if err != nil || c.filling == nil {
		return errFrame
	}
	for _, op := range ops {
		op.Key = bytes.Clone(op.Key)
		if op.Value == nil {
			return errFrame
		}
		op.Value = bytes.Clone(op.Value)
		if err := c.filling.refill.Add(op); err != nil {
			return err
		}
	}
	return nil
}

// endFilling replaces the journal with a snapshot. A journal that may have records which no other machine has is kept under
// another name.
func (l *Link) endFilling(c *conn) error {
	f := c.filling
	if f == nil {
		return errFrame
	}
	c.filling = nil
	l.applies.Lock()
	defer l.applies.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.m.Stored()
	if c != l.conn || !l.m.Accepts(f.epoch) || s.Whole {
		f.refill.Abandon()
		return errNotFollowed
	}
	apart := s.Epoch == 0 && l.cfg.Journal.Incarnation() > 0 || s.Epoch > 0 && f.epoch-s.Epoch >= pair.Jump
	old, err := f.refill.Finish(uint32(f.store), uint32(f.start), appendStored(s), numbers(f.run, f.seq), apart)
	if err != nil {
		return err
	}
	if old != "" {
		l.cfg.Log.Warn("the journal that this machine had without the other one was put aside; messages in it may have gone nowhere", "file", old)
	}
	l.pos = at{run: f.run, seq: f.seq}
	l.say(appendFrame(nil, kindAcked, f.append()))
	l.cfg.Log.Info("this machine of the site has the journal of the other", "octets", l.cfg.Journal.Size())
	return nil
}
