package pairlink

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Octets that the leader writes to a peer through another machine are acknowledged by that machine's kernel, and would die with it. So the
// machine tells the leader how much each peer's own machine has acknowledged, and the leader takes nothing else for delivered
// (lan.Config.Passed).

// passage is a connection of a local peer that this machine passes on.
type passage struct {
	peer   net.Conn
	leader netip.AddrPort // this machine's end of the connection to the leader; invalid: there is none yet
	agreed chan struct{}  // closed when the leader knows it
	known  bool           // agreed is closed
	given  atomic.Uint64  // octets of the leader that the peer's socket was given
	told   uint64         // octets that the leader was told of
}

// passages are what this machine passes on.
type passages struct {
	passing map[net.Conn]*passage
	gave    chan struct{} // some socket was given something
	toldTo  *conn         // where the leader was told last
}

// passedOctets is the size of what is said of a connection: its address and port at the leader, and octets.
const passedOctets = 16 + 2 + 8

// taken is what the leader knows of a connection that another machine passes on.
type taken struct {
	by    *conn
	has   uint64 // octets that the peer has
	ended bool
	since time.Time // of what was said last
}

// taking are these connections, by the address that the leader sees.
type taking struct {
	mu   sync.Mutex
	list map[netip.AddrPort]taken
}

const (
	firstTold, lastTold = time.Millisecond, 32 * time.Millisecond
	// keptTaken is how long the leader remembers a connection whose end it was told of, or whose machine is gone: its own end of it may
	// not have ended yet.
	keptTaken = 10 * time.Minute
	ended     = 1 << 63 // of octets: the connection has ended
)

var errNotAgreed = errors.New("pairlink: the leader does not answer that it knows of the connection")

// agree tells the leader that a connection is passed on, and waits until it knows.
func (l *base) agree(peer, leader net.Conn) error {
	from, err := netip.ParseAddrPort(leader.LocalAddr().String())
	if err != nil {
		return err
	}
	l.mu.Lock()
	p, to := l.passages.passing[peer], l.toLeader()
	p.leader = from
	if to != nil {
		to.say(appendFrame(nil, kindPassed, appendPassed(nil, from, 0)))
	}
	l.mu.Unlock()
	select {
	case <-p.agreed:
		return nil
	case <-l.life.Done():
	case <-time.After(passTime):
	}
	return errNotAgreed
}

// endPassage forgets a connection, and tells the leader so. The caller holds mu.
func (l *base) endPassage(peer net.Conn) {
	p := l.passages.passing[peer]
	delete(l.passages.passing, peer)
	if to := l.toLeader(); to != nil && p.leader.IsValid() {
		to.say(appendFrame(nil, kindPassed, appendPassed(nil, p.leader, p.told|ended)))
	}
}

// give copies what the leader says to the peer, and counts it.
func (l *base) give(peer, leader net.Conn) (n int64, err error) {
	l.mu.Lock()
	p := l.passages.passing[peer]
	l.mu.Unlock()
	buffer := make([]byte, 32<<10)
	for {
		got, err := leader.Read(buffer)
		if got > 0 {
			if _, err := peer.Write(buffer[:got]); err != nil {
				return n, err
			}
			n += int64(got)
			p.given.Store(uint64(n))
			select {
			case l.passages.gave <- struct{}{}:
			default:
			}
		}
		if err != nil {
			return n, err
		}
	}
}

// tell says to the leader what peers have acknowledged, until the machine ends.
func (l *base) tell() {
	defer l.wait.Done()
	pause := time.Hour
	for {
		select {
		case <-l.life.Done():
			return
		case <-l.passages.gave:
			pause = firstTold
		case <-time.After(pause):
			pause = min(2*pause, lastTold)
		}
		l.mu.Lock()
		to := l.toLeader()
		if to == nil || !l.passages.tell(to) {
			pause = time.Second // the connection to the leader may be another one by then
		}
		l.mu.Unlock()
	}
}

// tell says what is new, and answers whether peers still have to acknowledge something. The caller holds mu.
func (s *passages) tell(to *conn) (more bool) {
	again := to != s.toldTo
	s.toldTo = to
	var list []byte
	for _, p := range s.passing {
		given := p.given.Load()
		if !p.leader.IsValid() || p.told == given && !again {
			continue
		}
		has := given - min(given, unacknowledged(p.peer))
		if has > p.told || again {
			p.told = max(p.told, has)
			list = appendPassed(list, p.leader, p.told)
		}
		more = more || p.told < given
	}
	if len(list) > 0 {
		to.say(appendFrame(nil, kindPassed, list))
	}
	return more
}

// unacknowledged is how many octets the kernel keeps of what a socket was given.
func unacknowledged(c net.Conn) (octets uint64) {
	tcp, is := c.(*net.TCPConn)
	if !is {
		return 0
	}
	octets = 1 << 62 // of a socket that is gone nobody knows
	if raw, err := tcp.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			if n, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); err == nil {
				octets = uint64(n)
			}
		})
	}
	return octets
}

func appendPassed(b []byte, at netip.AddrPort, octets uint64) []byte {
	a := at.Addr().As16()
	b = binary.BigEndian.AppendUint16(append(b, a[:]...), at.Port())
	return binary.BigEndian.AppendUint64(b, octets)
}

// parsePassed reads what appendPassed wrote, passedOctets at least.
func parsePassed(b []byte) (at netip.AddrPort, octets uint64) {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), binary.BigEndian.Uint16(b[16:])), binary.BigEndian.Uint64(b[18:])
}

// hear takes what another machine says of connections that it passes on, and answers for those that are new.
func (t *taking) hear(c *conn, content []byte) error {
	if len(content) == 0 || len(content)%passedOctets != 0 {
		return errFrame
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var news []byte
	for ; len(content) > 0; content = content[passedOctets:] {
		at, octets := parsePassed(content)
		old, there := t.list[at]
		// Nothing comes of a connection that was not agreed: the other machine ends it before its peer has said anything.
		if !there && (octets&ended != 0 || octets == 0 && len(t.list) >= 4*mostPassing) {
			continue
		}
		if octets == 0 && (!there || old.ended || old.by != c) { // a port may be used again
			old = taken{}
		}
		if !there || old == (taken{}) {
			news = append(news, content[:passedOctets]...)
		}
		t.list[at] = taken{by: c, has: max(old.has, octets&^ended), ended: octets&ended != 0, since: now}
	}
	if len(t.list) > mostPassing {
		for at, x := range t.list {
			if now.Sub(x.since) > keptTaken && (x.ended || x.by.over()) {
				delete(t.list, at)
			}
		}
		if len(t.list) > 4*mostPassing {
			return errFrame
		}
	}
	if len(news) > 0 {
		c.say(appendFrame(nil, kindTaken, news))
	}
	return nil
}

// agreed takes the leader's answer. mu is the machine's, which the caller does not hold.
func (s *passages) agreed(mu *sync.Mutex, content []byte) error {
	if len(content)%passedOctets != 0 {
		return errFrame
	}
	mu.Lock()
	defer mu.Unlock()
	for ; len(content) > 0; content = content[passedOctets:] {
		at, _ := parsePassed(content)
		for _, p := range s.passing {
			if p.leader == at && !p.known {
				p.known = true
				close(p.agreed)
			}
		}
	}
	return nil
}

// Passed says of a connection to this machine whether another one passes it on, and then how many octets of this machine's its peer has.
func (l *base) Passed(remote netip.AddrPort) (has uint64, passed bool) {
	l.taking.mu.Lock()
	defer l.taking.mu.Unlock()
	x, passed := l.taking.list[netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())]
	return x.has, passed
}
