package lan

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// taken knows how many octets of a connection the peer's machine has acknowledged. Octets that are only in our kernel are lost
// with this process or the connection: some megabytes if a peer reads slowly. Therefore Written is posted only for octets that
// the peer's machine has.
type taken struct {
	conn *conn
	raw  interface{ Control(func(fd uintptr)) error } // nil: not TCP, and written octets count as acknowledged
	from netip.AddrPort

	mu      sync.Mutex
	sent    uint64 // octets that were written to the socket
	waiting []sent // in order
	timer   *time.Timer
	pause   time.Duration // until the next check
	has     uint64        // octets that the peer has acknowledged
	since   time.Time     // when has last grown, or when the first waiting batch was written
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

// wrote records a batch that was written to the socket, and returns its octets.
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

// check reports acknowledged batches, and runs again later while some are not acknowledged.
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

// reportWritten posts Written for acknowledged batches. The lock is held: Written stays in order.
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

// unacknowledged are the written octets that the kernel still keeps.
func (t *taken) unacknowledged() (octets uint64) {
	if t.raw == nil {
		return 0
	}
	octets = t.sent // a closed socket does not say
	t.raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		octets = min(uint64(n), t.sent)
		if err != nil {
			octets = 0 // the kernel does not say: written octets count as acknowledged
		}
	})
	if t.conn.lan.cfg.Passed != nil {
		if has, passed := t.conn.lan.cfg.Passed(t.from); passed { // the kernel knows only of the machine between
			octets = max(octets, t.sent-min(t.sent, has))
		}
	}
	return octets
}

// last waits a while for the acknowledgement of the last octets.
func (t *taken) last() {
	for end := time.Now().Add(lastTaken); time.Now().Before(end) && t.open(); {
		select {
		case <-t.conn.gone:
			return
		case <-time.After(firstLook):
		}
	}
}

// open reports whether a batch is not acknowledged.
func (t *taken) open() bool {
	t.check()
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

// end stops all reports.
func (t *taken) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.timer.Stop()
	t.waiting = nil
}
