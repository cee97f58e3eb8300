package radio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"aldis/internal/gateway"
)

const (
	maxDatagram   = 65535
	receiveBuffer = 1 << 20 // octets the kernel holds for us while a loop turn takes long
)

// Stats counts from the start; all grow only.
type Stats struct {
	ReceivedDatagrams uint64 `json:"received_datagrams"`
	ReceivedOctets    uint64 `json:"received_octets"`
	DroppedDatagrams  uint64 `json:"dropped_datagrams"` // received, but the inbox was full
	SentDatagrams     uint64 `json:"sent_datagrams"`
	SentOctets        uint64 `json:"sent_octets"`
	UnsentDatagrams   uint64 `json:"unsent_datagrams"` // the kernel refused: no route, no room, too long
}

// Radio is the open socket.
type Radio struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	ipv4 bool
	done chan struct{}
	// Where conn does not hear the group: a socket that does.
	group     *net.UDPConn
	groupDone chan struct{}

	receivedDatagrams, receivedOctets, dropped atomic.Uint64
	sentDatagrams, sentOctets, unsent          atomic.Uint64
}

// Open binds listen and hands every datagram to post, which must not wait; it answers false when it has no room.
// 0.0.0.0 takes IPv4 only, [::] takes both.
func Open(listen netip.AddrPort, post func(gateway.Event) bool) (*Radio, error) {
	network := "udp"
	if listen.Addr().Is4() {
		network = "udp4"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(listen))
	if err != nil {
		return nil, fmt.Errorf("radio: %w", err)
	}
	conn.SetReadBuffer(receiveBuffer) // a smaller one only drops sooner
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("radio: %w", err)
	}
	r := &Radio{conn: conn, raw: raw, ipv4: listen.Addr().Is4(), done: make(chan struct{})}
	go r.receive(conn, r.done, post)
	return r, nil
}

func (r *Radio) receive(conn *net.UDPConn, done chan struct{}, post func(gateway.Event) bool) {
	defer close(done)
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error of an earlier datagram; the socket goes on
		}
		r.receivedDatagrams.Add(1)
		r.receivedOctets.Add(uint64(n))
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if !post(gateway.Datagram{Addr: from, Data: append([]byte(nil), buf[:n]...)}) {
			r.dropped.Add(1)
		}
	}
}

// Send hands datagrams to the kernel, in order. What it does not take at once is lost, as on any link.
func (r *Radio) Send(datagrams []gateway.Datagram) {
	for _, d := range datagrams {
		if err := r.send(d); err != nil {
			r.unsent.Add(1)
			continue
		}
		r.sentDatagrams.Add(1)
		r.sentOctets.Add(uint64(len(d.Data)))
	}
}

// send asks the kernel once; net.UDPConn would wait for room.
func (r *Radio) send(d gateway.Datagram) error {
	to, err := r.sockaddr(d.Addr)
	if err != nil {
		return err
	}
	var sendErr error
	err = r.raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendto(int(fd), d.Data, unix.MSG_DONTWAIT, to)
		return true // also when it would have to wait
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

// Addr is where the socket listens.
func (r *Radio) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Stats are the counts so far; safe from every goroutine.
func (r *Radio) Stats() Stats {
	return Stats{
		ReceivedDatagrams: r.receivedDatagrams.Load(), ReceivedOctets: r.receivedOctets.Load(), DroppedDatagrams: r.dropped.Load(),
		SentDatagrams: r.sentDatagrams.Load(), SentOctets: r.sentOctets.Load(), UnsentDatagrams: r.unsent.Load(),
	}
}

// Close ends it; post is not called after it returns.
func (r *Radio) Close() error {
	err := r.conn.Close()
	<-r.done
	if r.group != nil {
		err = errors.Join(err, r.group.Close())
		<-r.groupDone
	}
	return err
}
