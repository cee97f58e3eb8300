package tlslink

import (
	"bufio"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/gateway/api"
)

// conn is one connection with a peer that has shown its key.
type conn struct {
	link   *Link
	raw    net.Conn
	over   *tls.Conn
	in     *bufio.Reader
	peer   uint16
	key    ed25519.PublicKey
	at     netip.AddrPort // the address at which the gateway believes the peer to be; through a proxy, the address in the request
	called bool           // the peer has called
	since  time.Time
	wake   chan struct{} // datagrams wait, or the connection is closed

	mu      sync.Mutex
	waiting []byte // datagrams, each behind its length
	closed  bool
}

func newConn(l *Link, raw net.Conn, over *tls.Conn, peer uint16, key ed25519.PublicKey, at netip.AddrPort, called bool) *conn {
	if t, ok := raw.(*net.TCPConn); ok {
		t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: false}) // an idle link carries nothing
		if c, err := t.SyscallConn(); err == nil {
			c.Control(func(fd uintptr) {
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(l.cfg.Stall.Milliseconds()))
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, writeMost)
			})
		}
	}
	return &conn{link: l, raw: raw, over: over, in: bufio.NewReaderSize(over, 4096), peer: peer, key: key, at: at, called: called, since: time.Now(), wake: make(chan struct{}, 1)}
}

var errNoWelcome = errors.New("it does not welcome this node")

// welcomed waits for the welcome of the node that was called.
func (n *conn) welcomed() error {
	var word [2]byte
	if _, err := io.ReadFull(n.in, word[:]); err != nil {
		return err
	}
	if word != [2]byte{} {
		return errNoWelcome
	}
	return nil
}

// read posts datagrams until the connection is closed. reason is "" if that is nobody's fault.
func (n *conn) read() (reason string, err error) {
	l := n.link
	for {
		if _, err := n.in.Peek(1); err != nil {
			return "", nil
		}
		n.raw.SetReadDeadline(time.Now().Add(l.cfg.Half))
		var word [2]byte
		if _, err = io.ReadFull(n.in, word[:]); err != nil {
			break
		}
		size := int(binary.BigEndian.Uint16(word[:]))
		if size == 0 || size > l.cfg.Largest {
			return "length", fmt.Errorf("a datagram of %d octets, at most %d", size, l.cfg.Largest)
		}
		data := make([]byte, size)
		if _, err = io.ReadFull(n.in, data); err != nil {
			break
		}
		n.raw.SetReadDeadline(time.Time{})
		l.receivedDatagrams.Add(1)
		l.receivedOctets.Add(uint64(size))
		if !l.cfg.Post(api.Datagram{Bearer: l.cfg.Bearer, Addr: n.at, Data: data}) {
			l.dropped.Add(1)
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "half", err
	}
	return "", nil
}

// queue queues a datagram; false: there is no room, or the connection is closed.
func (n *conn) queue(data []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || len(n.waiting)+2+len(data) > maxQueue {
		return false
	}
	n.waiting = append(binary.BigEndian.AppendUint16(n.waiting, uint16(len(data))), data...)
	n.nudge()
	return true
}

// finish accepts no more datagrams, and closes the connection once the queue has been written.
func (n *conn) finish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	n.nudge()
}

func (n *conn) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// writeMost is how many octets are written at once: a TLS record holds as many.
const writeMost = 16 << 10

// write writes the queue until the connection is closed, and closes it if the peer does not read.
func (n *conn) write() {
	defer n.raw.Close()
	for range n.wake {
		n.mu.Lock()
		batch, closed := n.waiting, n.closed
		n.waiting = nil
		n.mu.Unlock()
		for len(batch) > 0 {
			part := batch[:min(len(batch), writeMost)]
			batch = batch[len(part):]
			if n.link.cfg.May != nil && !n.link.cfg.May() {
				n.finish() // the rest of the stream could not be read
				return
			}
			n.raw.SetWriteDeadline(time.Now().Add(n.link.cfg.Stall))
			if _, err := n.over.Write(part); err != nil {
				n.finish()
				return
			}
		}
		if closed {
			return
		}
	}
}
