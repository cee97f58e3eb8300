package taklan

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/adapters/tak"
)

// taken posts Taken when the machine of a device has acknowledged events. What is only in our kernel is lost with the machine.
type taken struct {
	conn *conn
	raw  syscall.RawConn // nil: not TCP, and what was written counts as acknowledged
	from netip.AddrPort

	mu    sync.Mutex
	owed  []uint64 // tokens of events that were written
	timer *time.Timer
	pause time.Duration // until the next check
	ended bool
}

const firstLook, lastLook = time.Millisecond, time.Second

func (t *taken) init(n *conn) {
	t.conn = n
	c := n.net
	if over, is := c.(*tls.Conn); is {
		c = over.NetConn()
	}
	if tcp, is := c.(*net.TCPConn); is {
		if raw, err := tcp.SyscallConn(); err == nil {
			t.raw = raw
			t.from, _ = netip.ParseAddrPort(n.remote)
		}
	}
	t.timer = time.AfterFunc(time.Hour, t.check)
	t.timer.Stop()
}

// wrote notes the tokens of events that were written to the socket.
func (t *taken) wrote(tokens []uint64) {
	if len(tokens) == 0 {
		return
	}
	t.mu.Lock()
	t.owed = append(t.owed, tokens...)
	t.pause = firstLook
	t.mu.Unlock()
	t.check()
}

// check posts Taken for all that was written, or runs again later.
func (t *taken) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || len(t.owed) == 0 {
		return
	}
	if !t.all() {
		t.timer.Reset(t.pause)
		t.pause = min(2*t.pause, lastLook)
		return
	}
	for _, token := range t.owed {
		t.conn.lan.post(tak.Taken{Conn: t.conn.id, Token: token})
	}
	t.owed = nil
}

// all says whether the device's machine has acknowledged everything that was written.
func (t *taken) all() bool {
	if t.raw == nil {
		return true
	}
	all, octets := false, uint64(0) // a closed socket does not say
	t.raw.Control(func(fd uintptr) {
		kept, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		all = err != nil || kept == 0 // a kernel that does not say: what was written counts as acknowledged
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			octets = info.Bytes_acked // those of TLS as well
		}
	})
	if all && t.conn.lan.cfg.Passed != nil {
		if has, passed := t.conn.lan.cfg.Passed(t.from); passed { // the kernel knows only of the machine between
			return has >= octets
		}
	}
	return all
}

// end stops all reports.
func (t *taken) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.timer.Stop()
}
