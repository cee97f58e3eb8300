package lan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
)

// Limits of the multicast datagrams that are read: a second, and at once, of one host and of all. A JXTA peer that starts sends
// some twenty within a minute; one that sends a message to everybody each second sends one more a second.
const (
	hostRate, hostBurst = 200, 400
	allRate, allBurst   = 1000, 2000
	maxHosts            = 1024 // whose rates are kept
	multicastBuffer     = 1 << 20
	logAgain            = 10 * time.Second // between two log lines about datagrams
)

// multicast is the multicast socket of a LAN.
type multicast struct {
	mu    sync.Mutex
	conn  *net.UDPConn // nil: none
	group netip.AddrPort

	// Only the receiving goroutine uses these.
	hosts  due.Each[netip.Addr]
	others due.Bucket // of the hosts beyond maxHosts
	all    due.Bucket
	logged time.Time
}

// ListenMulticast joins an IPv4 group on the interface that has the address at. Other programs of this machine may have
// the same port, as JXTA peers do.
func ListenMulticast(group netip.AddrPort, at netip.Addr) (*net.UDPConn, error) {
	iface, err := interfaceWith(at)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var inner error
		err := c.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		return errors.Join(err, inner)
	}}
	// Bound to the group's address, the socket receives nothing that is sent to this machine alone.
	pc, err := lc.ListenPacket(context.Background(), "udp4", group.String())
	if err != nil {
		return nil, err
	}
	conn := pc.(*net.UDPConn)
	raw, err := conn.SyscallConn()
	if err == nil {
		var inner error
		err = raw.Control(func(fd uintptr) {
			s := int(fd)
			inner = errors.Join(
				unix.SetsockoptIPMreqn(s, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Address: at.As4(), Ifindex: int32(iface.Index)}),
				unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0), // no datagrams of this group from other interfaces
				unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1),
				unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 1), // peers on this machine hear it too
				unix.SetsockoptIPMreqn(s, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.Addr().As4(), Ifindex: int32(iface.Index)}))
		})
		err = errors.Join(err, inner)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("multicast on %s: %w", iface.Name, err)
	}
	conn.SetReadBuffer(multicastBuffer)
	return conn, nil
}

func interfaceWith(at netip.Addr) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		if slices.ContainsFunc(addrs, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(net.IP(at.AsSlice()))
		}) {
			return &i, nil
		}
	}
	return nil, fmt.Errorf("no interface has the address %s", at)
}

// ServeMulticast receives the datagrams of a group until the socket is closed, by Shutdown or from outside; then it returns
// nil. Shout sends to the same group.
func (l *LAN) ServeMulticast(conn *net.UDPConn, group netip.AddrPort) error {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.wait.Add(1)
		l.multicast.mu.Lock()
		l.multicast.conn, l.multicast.group = conn, group
		l.multicast.mu.Unlock()
	}
	l.mu.Unlock()
	if closed {
		conn.Close()
		return nil
	}
	defer l.wait.Done()
	buf := make([]byte, jxta.MaxDatagram+1)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("lan: multicast: %w", err)
		}
		l.datagram(buf[:n], from)
	}
}

// datagram posts the message in a datagram, if it is valid and within the rates.
func (l *LAN) datagram(b []byte, from netip.AddrPort) {
	l.metrics.Octets.WithLabelValues("in").Add(float64(len(b)))
	now := time.Now()
	if !l.host(from.Addr(), now).Allow(now, hostRate, hostBurst) || !l.multicast.all.Allow(now, allRate, allBurst) {
		l.refuseDatagram(now, "multicast_rate", from, nil)
		return
	}
	body, err := jxta.ParseDatagram(b)
	if err != nil {
		l.refuseDatagram(now, "multicast_datagram", from, err)
		return
	}
	l.metrics.Messages.WithLabelValues("in").Inc()
	// The next datagram comes into the same buffer, and the loop keeps this one after post returns, so it is copied.
	l.post(jxtabridge.Heard{Remote: from.String(), Body: slices.Clone(body)})
}

// host is the bucket of one source address.
func (l *LAN) host(a netip.Addr, now time.Time) *due.Bucket {
	if h := l.multicast.hosts.Of(now, a); h != nil {
		return h
	}
	return &l.multicast.others
}

// refuseDatagram counts each refused datagram, and logs one now and then.
func (l *LAN) refuseDatagram(now time.Time, reason string, from netip.AddrPort, err error) {
	if now.Sub(l.multicast.logged) < logAgain {
		l.metrics.Refused.WithLabelValues(reason).Inc()
		return
	}
	l.multicast.logged = now
	l.refuse(reason, from.String(), err)
}

// Shout sends one datagram to the group; without multicast it does nothing.
func (l *LAN) Shout(s jxtabridge.Shout) {
	l.multicast.mu.Lock()
	conn, group := l.multicast.conn, l.multicast.group
	l.multicast.mu.Unlock()
	if conn == nil {
		return
	}
	b, err := jxta.AppendDatagram(nil, s.Body, s.Message)
	if err == nil {
		_, err = conn.WriteToUDPAddrPort(b, group) // if the send buffer is full the datagram is lost, as it might be on the LAN
	}
	if err != nil {
		l.refuse("own_multicast", group.String(), err)
		return
	}
	l.metrics.Octets.WithLabelValues("out").Add(float64(len(b)))
	l.metrics.Messages.WithLabelValues("out").Inc()
}
