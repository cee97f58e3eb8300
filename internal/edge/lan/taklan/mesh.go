package taklan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/edge/lan"
	"aldis/internal/ground/due"
)

// Limits of the mesh's datagrams that are read: a second, and at once, of one host and of all.
const (
	hostRate, hostBurst = 100, 400
	allRate, allBurst   = 1000, 2000
	maxHosts            = 1024 // whose rates are kept
)

// Mesh are the groups of a LAN's mesh, on the interface with the address At.
type Mesh struct {
	At            netip.Addr
	Events, Chats netip.AddrPort
	events, chats *net.UDPConn
	hosts         due.Each[netip.Addr]
	all           due.Bucket
	own           [2]netip.AddrPort
}

// OpenMesh joins both groups.
func (l *LAN) OpenMesh(m Mesh) (err error) {
	if m.events, err = lan.ListenMulticast(m.Events, m.At); err != nil {
		return err
	}
	if m.chats, err = lan.ListenMulticast(m.Chats, m.At); err != nil {
		m.events.Close()
		return err
	}
	m.own = [2]netip.AddrPort{netip.AddrPortFrom(m.At, m.Events.Port()), netip.AddrPortFrom(m.At, m.Chats.Port())}
	m.hosts = due.Each[netip.Addr]{Rate: hostRate, Burst: hostBurst, Most: maxHosts}
	l.mu.Lock()
	l.mesh = &m
	l.mu.Unlock()
	return nil
}

// ServeMesh receives the datagrams of both groups until Shutdown; then it returns nil.
func (l *LAN) ServeMesh() error {
	l.mu.Lock()
	m := l.mesh
	l.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- l.hear(m, m.chats) }()
	err := l.hear(m, m.events)
	return errors.Join(err, <-ended)
}

func (l *LAN) hear(m *Mesh, conn *net.UDPConn) error {
	buf := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("taklan: mesh: %w", err)
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if from == m.own[0] || from == m.own[1] {
			continue // our own
		}
		l.metrics.octets.WithLabelValues("in").Add(float64(n))
		if !l.takes(m, from.Addr()) {
			l.refuse("mesh_rate", from.String(), nil)
			continue
		}
		l.metrics.events.Inc()
		l.post(tak.Overheard{Remote: from.String(), Data: slices.Clone(buf[:n])})
	}
}

// takes says whether a datagram of a host is within the rates.
func (l *LAN) takes(m *Mesh, host netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	h := m.hosts.Of(now, host)
	return h != nil && h.Allow(now, hostRate, hostBurst) && m.all.Allow(now, allRate, allBurst)
}

// shout sends a datagram to a group. If the send buffer is full it is lost, as it might be on the LAN.
func (l *LAN) shout(o tak.Shout) {
	l.mu.Lock()
	m := l.mesh
	l.mu.Unlock()
	if m == nil {
		return
	}
	conn, group := m.events, m.Events
	if o.Chat {
		conn, group = m.chats, m.Chats
	}
	if _, err := conn.WriteToUDPAddrPort(o.Data, group); err != nil {
		l.refuse("own_multicast", group.String(), err)
		return
	}
	l.metrics.octets.WithLabelValues("out").Add(float64(len(o.Data)))
}

// close leaves both groups.
func (m *Mesh) close() {
	m.events.Close()
	m.chats.Close()
}
