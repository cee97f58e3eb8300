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

// If the leader writes to a peer through another machine, that machine's kernel acknowledges the octets, and they are lost if it dies. So
// the machine tells the leader how many octets each peer's own machine has acknowledged, and the leader counts no others as delivered
// (lan.Config.Passed).

// passage is a connection of a local peer that this machine passes on.
type passage struct {
	peer   net.Conn
	leader netip.AddrPort // this machine's end of the connection to the leader; invalid: there is none yet
	agreed chan struct{}  // closed when the leader knows of the passage
	known  bool           // agreed is closed
	given  atomic.Uint64  // octets of the leader that were written to the peer's socket
	told   uint64         // acknowledged octets that were reported to the leader
}

// passages are the connections that this machine passes on.
type passages struct {
	passing map[net.Conn]*passage
	gave    chan struct{} // octets were written to a peer's socket
	toldTo  *conn         // the connection of the last report
}

// passedOctets is the size of one connection in a report: its address and port at the leader, and octets.
const passedOctets = 16 + 2 + 8

// taken is the leader's knowledge of a connection that another machine passes on.
type taken struct {
	by    *conn
	has   uint64 // octets that the peer has
	ended bool
	since time.Time // of the last report
}

// taking are the connections that others pass on, by the address that the leader sees.
type taking struct {
	mu   sync.Mutex
	list map[netip.AddrPort]taken
}

const (
	firstTold, lastTold = time.Millisecond, 32 * time.Millisecond
	// keptTaken is how long the leader remembers a connection that was reported as closed, or whose machine is gone: the leader's own
	// end may still be open.
	keptTaken = 10 * time.Minute
	ended     = 1 << 63 // of octets: the connection is closed
)

var errNotAgreed = errors.New("pairlink: the leader does not answer that it knows of the connection")

// agree tells the leader that a connection is passed on, and waits until it confirms.
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

// endPassage forgets a connection, and tells the leader. The caller holds mu.
func (l *base) endPassage(peer net.Conn) {
	p := l.passages.passing[peer]
	delete(l.passages.passing, peer)
	if to := l.toLeader(); to != nil && p.leader.IsValid() {
		to.say(appendFrame(nil, kindPassed, appendPassed(nil, p.leader, p.told|ended)))
	}
}

// give copies the leader's octets to the peer, and counts them.
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

// tell reports to the leader how many octets peers have acknowledged, until the machine stops.
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
			pause = time.Second // the leader may be connected anew by then
		}
		l.mu.Unlock()
	}
}

// tell reports changes, and returns whether peers must still acknowledge octets. The caller holds mu.
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

// unacknowledged is the number of octets that the kernel still keeps of those written to a socket.
func unacknowledged(c net.Conn) (octets uint64) {
	tcp, is := c.(*net.TCPConn)
	if !is {
		return 0
	}
	octets = 1 << 62 // a closed socket does not say
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

// parsePassed reads one connection that appendPassed wrote; b has at least passedOctets.
func parsePassed(b []byte) (at netip.AddrPort, octets uint64) {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), binary.BigEndian.Uint16(b[16:])), binary.BigEndian.Uint64(b[18:])
}

// hear reads another machine's report about connections that it passes on, and confirms those that are new.
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

// agreed reads the leader's confirmation. mu is the machine's, which the caller does not hold.
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

// Passed says whether another machine passes on a connection to this one, and then how many of this machine's octets the peer has.
func (l *base) Passed(remote netip.AddrPort) (has uint64, passed bool) {
	l.taking.mu.Lock()
	defer l.taking.mu.Unlock()
	x, passed := l.taking.list[netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())]
	return x.has, passed
}
