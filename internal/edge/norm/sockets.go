package norm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// legSockets are the supervisor's two addresses of one leg.
type legSockets struct {
	all, peer *net.UDPConn
	child     netip.AddrPort // libnorm receives here
	from      netip.AddrPort // and sends from here
}

func udpAddr(netNo, index, member, port int) *net.UDPAddr {
	return &net.UDPAddr{IP: net.IPv4(127, byte(netNo), byte(index+1), byte(member)), Port: port}
}

// openSockets binds both addresses of each leg in the first free loopback net, and makes sure that the child's addresses are
// free too. try is the net to begin with.
func openSockets(try, legs int) (netNo int, sockets []legSockets, err error) {
	var errs []error
	for n := range lastNet - firstNet + 1 {
		netNo = firstNet + (try-firstNet+n)%(lastNet-firstNet+1)
		if sockets, err = openNet(netNo, legs); err == nil {
			return netNo, sockets, nil
		}
		errs = append(errs, err)
	}
	return 0, nil, fmt.Errorf("norm: no free loopback net 127.%d to 127.%d: %w", firstNet, lastNet,
		errors.Join(errs[0], errs[len(errs)-1]))
}

func openNet(netNo, legs int) (sockets []legSockets, err error) {
	defer func() {
		if err != nil {
			closeSockets(sockets)
			sockets = nil
		}
	}()
	for i := range legs {
		var l legSockets
		if l.all, err = net.ListenUDP("udp4", udpAddr(netNo, i, memberAll, portSession)); err != nil {
			return sockets, err
		}
		if l.peer, err = net.ListenUDP("udp4", udpAddr(netNo, i, memberPeer, portSession)); err != nil {
			l.all.Close()
			return sockets, err
		}
		l.child = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(netNo), byte(i + 1), memberSelf}), portSession)
		l.from = netip.AddrPortFrom(l.child.Addr(), portTx)
		sockets = append(sockets, l)
	}
	// Only now: the supervisor that holds the addresses above owns the net, so two supervisors never probe the same net.
	for i := range legs {
		for _, port := range []int{portSession, portTx} {
			probe, err := net.ListenUDP("udp4", udpAddr(netNo, i, memberSelf, port))
			if err != nil {
				return sockets, err
			}
			probe.Close()
		}
	}
	return sockets, nil
}

func closeSockets(sockets []legSockets) {
	for _, l := range sockets {
		l.all.Close()
		l.peer.Close()
	}
}

func (l legSockets) inject(packet []byte) { l.peer.WriteToUDPAddrPort(packet, l.child) }
