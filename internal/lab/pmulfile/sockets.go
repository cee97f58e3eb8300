package pmulfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"aldis/internal/pmul"
)

// UDP ports (p-mul 3).
const (
	requestPort  = 2751 // TPORT
	announcePort = 2752 // RPORT
	dataPort     = 2753 // DPORT
	ackPort      = 2754 // APORT
)

var ports = map[pmul.Port]uint16{pmul.RequestPort: requestPort, pmul.AnnouncePort: announcePort, pmul.DataPort: dataPort, pmul.AckPort: ackPort}

// allNodes is GG.
var allNodes = netip.AddrFrom4([4]byte{239, 1, 1, 1})

// hops is the TTL of multicast datagrams: enough for a ship's routers, but not for the world's.
const hops = 8

// received is a datagram as it came in.
type received struct {
	from netip.Addr
	own  bool // it came to an address of ours and not to a group
	data []byte
}

// sockets of one end. Readers put datagrams into inbox; they drop and count when it is full.
type sockets struct {
	inbox   chan received
	ifindex int
	out     *net.UDPConn
	conns   map[netip.AddrPort]*net.UDPConn
	readers sync.WaitGroup
	done    chan struct{}
}

// openSockets opens the socket from which all datagrams are sent: port 0 is any. id chooses the interface if one has it as its address;
// otherwise routes do.
func openSockets(id netip.Addr, port uint16) (*sockets, error) {
	s := &sockets{inbox: make(chan received, 256), conns: map[netip.AddrPort]*net.UDPConn{}, done: make(chan struct{})}
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("pmulfile: %w", err)
	}
	for _, ifi := range ifs {
		addrs, err := ifi.Addrs()
		if err != nil {
			continue // it went away
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == id {
				s.ifindex = ifi.Index
			}
		}
	}
	if s.out, err = s.listen(netip.AddrPortFrom(netip.IPv4Unspecified(), port)); err != nil {
		return nil, err
	}
	if err := ownOnly(s.out); err != nil {
		s.out.Close()
		return nil, fmt.Errorf("pmulfile: %w", err)
	}
	s.read(s.out, true)
	return s, nil
}

// ownOnly keeps datagrams to groups that other programs on this machine have joined off a socket.
func ownOnly(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0) })
	return errors.Join(err, serr)
}

// listen binds with SO_REUSEADDR: a sender and receivers may share a machine.
func (s *sockets) listen(at netip.AddrPort) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, hops))
			if s.ifindex != 0 {
				err = errors.Join(err, unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(s.ifindex)}))
			}
		})
		return errors.Join(cerr, err)
	}}
	c, err := lc.ListenPacket(context.Background(), "udp4", at.String())
	if err != nil {
		return nil, fmt.Errorf("pmulfile: %w", err)
	}
	return c.(*net.UDPConn), nil
}

// join listens to a group on a port. The socket is bound to the group, so that nothing else arrives on it.
func (s *sockets) join(group netip.Addr, port uint16) error {
	at := netip.AddrPortFrom(group, port)
	if s.conns[at] != nil {
		return nil
	}
	c, err := s.listen(at)
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		var serr error
		err = raw.Control(func(fd uintptr) {
			serr = unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(s.ifindex)})
		})
		err = errors.Join(err, serr)
	}
	if err != nil {
		c.Close()
		return fmt.Errorf("pmulfile: join %v: %w; is there an interface with the node's address, or a route for it?", group, err)
	}
	s.conns[at] = c
	s.read(c, false)
	return nil
}

// leave undoes join.
func (s *sockets) leave(group netip.Addr, port uint16) {
	at := netip.AddrPortFrom(group, port)
	if c := s.conns[at]; c != nil {
		c.Close()
		delete(s.conns, at)
	}
}

func (s *sockets) read(c *net.UDPConn, own bool) {
	s.readers.Add(1)
	go func() {
		defer s.readers.Done()
		buf := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // an ICMP error for a datagram that we sent
			}
			select {
			case s.inbox <- received{from.Addr().Unmap(), own, append([]byte(nil), buf[:n]...)}:
			case <-s.done:
				return
			}
		}
	}()
}

func (s *sockets) send(to netip.Addr, port uint16, data []byte) error {
	_, err := s.out.WriteToUDPAddrPort(data, netip.AddrPortFrom(to, port))
	return err
}

func (s *sockets) close() {
	close(s.done)
	s.out.Close()
	for _, c := range s.conns {
		c.Close()
	}
	s.readers.Wait()
}

// Node is a node number written as an IPv4 address.
func Node(a netip.Addr) pmul.NodeID {
	b := a.As4()
	return pmul.NodeID(binary.BigEndian.Uint32(b[:]))
}

func addrOf(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], n)
	return netip.AddrFrom4(b)
}
