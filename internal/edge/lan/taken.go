package lan

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// taken knows what of a connection's octets the peer's machine has acknowledged. Octets that only the own kernel has die
// with this process or the connection: some megabytes where a peer reads slowly. So Written is said of octets that the
// peer has.
type taken struct {
	conn *conn
	raw  interface{ Control(func(fd uintptr)) error } // nil: no TCP, and what is written is taken
	from netip.AddrPort

	mu      sync.Mutex
	sent    uint64 // octets that the socket was given
	waiting []sent // in order
	timer   *time.Timer
	pause   time.Duration // until the next look
	has     uint64        // octets that the peer has acknowledged
	since   time.Time     // of the last of these, or of the first that waits
	ended   bool
}

// sent is a batch, and the count of octets up to its end.
type sent struct {
	batch []outgoing
	end   uint64
}

const (
	// A peer that has nothing to send acknowledges late: Linux after 40 ms, others after 200.
	firstLook, lastLook = time.Millisecond, 32 * time.Millisecond
	// lastTaken is how long a connection that closes waits for the acknowledgement of its last octets.
	lastTaken = time.Second
)

func (t *taken) init(n *conn) {
	t.conn = n
	if tcp, is := n.net.(*net.TCPConn); is {
		if raw, err := tcp.SyscallConn(); err == nil {
			t.raw = raw
			t.from, _ = netip.ParseAddrPort(n.remote)
		}
	}
	t.timer = time.AfterFunc(time.Hour, t.check)
	t.timer.Stop()
}

// wrote notes a batch that the socket has been given, and answers its octets.
func (t *taken) wrote(batch []outgoing) int {
	size := sizeOf(batch)
	t.mu.Lock()
	t.sent += uint64(size)
	if len(t.waiting) == 0 {
		t.since = time.Now()
	}
	t.waiting = append(t.waiting, sent{batch, t.sent})
	t.pause = firstLook
	t.mu.Unlock()
	t.check()
	return size
}

// check tells of what has been acknowledged, and comes again while something has not.
func (t *taken) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.reportWritten()
	switch {
	case len(t.waiting) == 0:
		return
	case !t.conn.over() && time.Since(t.since) > t.conn.lan.cfg.WriteStall:
		t.conn.stalled()
		return
	}
	t.timer.Reset(t.pause)
	t.pause = min(2*t.pause, lastLook)
}

// reportWritten says Written of what has been acknowledged. The lock is held: Written stays in order.
func (t *taken) reportWritten() {
	if has := t.sent - t.unacknowledged(); has > t.has {
		t.has, t.since = has, time.Now()
	}
	for len(t.waiting) > 0 && t.waiting[0].end <= t.has {
		t.conn.written(t.waiting[0].batch)
		t.waiting[0] = sent{}
		t.waiting = t.waiting[1:]
	}
}

// unacknowledged are the octets that the kernel keeps of what it was given.
func (t *taken) unacknowledged() (octets uint64) {
	if t.raw == nil {
		return 0
	}
	octets = t.sent // of a socket that is gone nobody knows
	t.raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		octets = min(uint64(n), t.sent)
		if err != nil {
			octets = 0 // a kernel that does not tell: what is written is taken
		}
	})
	if t.conn.lan.cfg.Passed != nil {
		if has, passed := t.conn.lan.cfg.Passed(t.from); passed { // the kernel tells of the machine between
			octets = max(octets, t.sent-min(t.sent, has))
		}
	}
	return octets
}

// last waits for the acknowledgement of what was written last, for a while.
func (t *taken) last() {
	for end := time.Now().Add(lastTaken); time.Now().Before(end) && t.open(); {
		select {
		case <-t.conn.gone:
			return
		case <-time.After(firstLook):
		}
	}
}

// open reports whether something has not been acknowledged.
func (t *taken) open() bool {
	t.check()
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

// end lets nothing be said any more.
func (t *taken) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.timer.Stop()
	t.waiting = nil
}
