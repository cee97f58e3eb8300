package radio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/gateway/api"
)

const (
	maxDatagram   = 65535
	receiveBuffer = 1 << 20 // octets that the kernel keeps while a turn of the loop takes long
)

// Stats are counters since the start.
type Stats struct {
	ReceivedDatagrams uint64 `json:"received_datagrams"`
	ReceivedOctets    uint64 `json:"received_octets"`
	DroppedDatagrams  uint64 `json:"dropped_datagrams"` // received, but the inbox was full
	SentDatagrams     uint64 `json:"sent_datagrams"`
	SentOctets        uint64 `json:"sent_octets"`
	UnsentDatagrams   uint64 `json:"unsent_datagrams"` // the kernel refused: no route, no room, too long
}

// Add returns the sums of the counters of two sockets.
func (s Stats) Add(o Stats) Stats {
	return Stats{s.ReceivedDatagrams + o.ReceivedDatagrams, s.ReceivedOctets + o.ReceivedOctets, s.DroppedDatagrams + o.DroppedDatagrams,
		s.SentDatagrams + o.SentDatagrams, s.SentOctets + o.SentOctets, s.UnsentDatagrams + o.UnsentDatagrams}
}

// Radio is an open socket.
type Radio struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	ipv4 bool
	post func(api.Datagram) bool
	own  *ear
	// If conn does not receive the group's datagrams: a socket that does.
	group *ear

	receivedDatagrams, receivedOctets, dropped atomic.Uint64
	sentDatagrams, sentOctets, unsent          atomic.Uint64
}

// ear reads a socket. A goroutine that reads from it posts its datagrams before another goroutine reads, so datagrams are
// posted in the order of arrival.
type ear struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	done chan struct{}

	reading sync.Mutex
	data    [maxDatagram]byte
	control [64]byte // the control message with the time of arrival takes a quarter of it
}

// Open binds listen and passes each datagram to post. post must not wait; it returns false if it has no room. 0.0.0.0 takes
// IPv4 only, [::] takes both.
func Open(listen netip.AddrPort, post func(api.Datagram) bool) (*Radio, error) {
	network := "udp"
	if listen.Addr().Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(listen))
	if err != nil {
		return nil, fmt.Errorf("radio: %w", err)
	}
	r := &Radio{conn: conn, ipv4: listen.Addr().Is4(), post: post}
	if r.own, err = r.listen(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("radio: %w", err)
	}
	r.raw = r.own.raw
	return r, nil
}

// listen starts to read a socket.
func (r *Radio) listen(conn *net.UDPConn) (*ear, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	conn.SetReadBuffer(receiveBuffer) // a smaller one only drops sooner
	// Without the kernel's time of arrival, the time of reading counts.
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	e := &ear{conn: conn, raw: raw, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		for raw.Read(func(fd uintptr) bool { return r.hear(e, fd, oneRound) > 0 }) == nil {
		}
	}()
	return e, nil
}

// oneRound is how many datagrams a goroutine reads before another one may read.
const oneRound = 64

// Gather posts up to most datagrams that wait in the kernel. A loop that wakes late calls it before it runs timers: the answer
// that it waits for may be among them.
func (r *Radio) Gather(most int) {
	for _, e := range []*ear{r.own, r.group} {
		if e != nil {
			e.raw.Control(func(fd uintptr) { most -= r.hear(e, fd, most) })
		}
	}
}

// hear reads and posts waiting datagrams, up to most, and returns their number.
func (r *Radio) hear(e *ear, fd uintptr, most int) (n int) {
	e.reading.Lock()
	defer e.reading.Unlock()
	for n < most {
		octets, control, _, from, err := unix.Recvmsg(int(fd), e.data[:], e.control[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EBADF):
			return n
		case err != nil: // an ICMP error for an earlier datagram; the socket still works
			n++
			continue
		}
		n++
		r.receivedDatagrams.Add(1)
		r.receivedOctets.Add(uint64(octets))
		d := api.Datagram{Addr: addrOf(from), Data: append([]byte(nil), e.data[:octets]...), Waited: waited(e.control[:control], time.Now())}
		if !r.post(d) {
			r.dropped.Add(1)
		}
	}
	return n
}

// addrOf is a socket address in the form that gateways use.
func addrOf(from unix.Sockaddr) netip.AddrPort {
	switch from := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(from.Addr), uint16(from.Port))
	case *unix.SockaddrInet6:
		a := netip.AddrFrom16(from.Addr).Unmap()
		if i, err := net.InterfaceByIndex(int(from.ZoneId)); from.ZoneId != 0 && err == nil {
			a = a.WithZone(i.Name)
		}
		return netip.AddrPortFrom(a, uint16(from.Port))
	}
	return netip.AddrPort{}
}

// waited is how long a datagram has waited in the kernel, according to its control message with the time of arrival: 0 if there is
// none, or if the clock was set since.
func waited(control []byte, now time.Time) time.Duration {
	const most = time.Minute
	const header = 16 // of a control message: its length in 8 octets, level and type in 4 each
	order := binary.NativeEndian
	if len(control) < header+16 || order.Uint32(control[8:]) != unix.SOL_SOCKET || order.Uint32(control[12:]) != unix.SO_TIMESTAMPNS {
		return 0
	}
	at := time.Unix(int64(order.Uint64(control[header:])), int64(order.Uint64(control[header+8:])))
	if d := now.Sub(at); d > 0 && d < most {
		return d
	}
	return 0
}

// Send passes datagrams to the kernel, in order. A datagram that the kernel does not take at once is lost, as on any link.
func (r *Radio) Send(datagrams []api.Datagram) {
	for _, d := range datagrams {
		if err := r.send(d); err != nil {
			r.unsent.Add(1)
			continue
		}
		r.sentDatagrams.Add(1)
		r.sentOctets.Add(uint64(len(d.Data)))
	}
}

// send tries once; net.UDPConn would wait for room.
func (r *Radio) send(d api.Datagram) error {
	to, err := r.sockaddr(d.Addr)
	if err != nil {
		return err
	}
	var sendErr error
	err = r.raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), d.Data, unix.MSG_DONTWAIT, to)
		return true // also if it would have to wait
	})
	return errors.Join(err, sendErr)
}

func (r *Radio) sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	ip := a.Addr().Unmap()
	switch {
	case !ip.IsValid():
		return nil, errors.New("no address")
	case r.ipv4 && !ip.Is4():
		return nil, errors.New("an IPv6 address, and link.listen is IPv4")
	case r.ipv4:
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, nil
	}
	to := &unix.SockaddrInet6{Port: int(a.Port()), Addr: ip.As16()}
	if zone := ip.Zone(); zone != "" {
		i, err := net.InterfaceByName(zone)
		if err != nil {
			return nil, err
		}
		to.ZoneId = uint32(i.Index)
	}
	return to, nil
}

// Addr is the address at which the socket listens.
func (r *Radio) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Stats are the counts so far; safe from every goroutine.
func (r *Radio) Stats() Stats {
	return Stats{
		ReceivedDatagrams: r.receivedDatagrams.Load(), ReceivedOctets: r.receivedOctets.Load(), DroppedDatagrams: r.dropped.Load(),
		SentDatagrams: r.sentDatagrams.Load(), SentOctets: r.sentOctets.Load(), UnsentDatagrams: r.unsent.Load(),
	}
}

// Close closes the sockets. After it returns, only Gather may still call post.
func (r *Radio) Close() error {
	err := r.conn.Close()
	<-r.own.done
	if r.group != nil {
		err = errors.Join(err, r.group.conn.Close())
		<-r.group.done
	}
	return err
}
