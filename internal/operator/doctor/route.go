package doctor

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/config"
	"aldis/internal/link/profile"
)

// routes asks the kernel for the route to each far gateway, and the MTU on it. It connects a datagram socket, which sends
// nothing.
func (f *findings) routes(c *config.Config, run *Running) {
	for _, p := range c.Link.Peers {
		at := p.Address
		if run != nil && run.Report != nil {
			for _, s := range run.Report.Peers {
				if known, err := netip.ParseAddrPort(s.Address); s.ID == p.ID && err == nil {
					at = known
				}
			}
		}
		if at.IsValid() {
			f.route(p.Name, at, c.Link.Profile)
		}
	}
	if c.Link.Group.IsValid() {
		f.route("the group", c.Link.Group, c.Link.Profile)
	}
}

func (f *findings) route(name string, at netip.AddrPort, p profile.Profile) {
	_, mtu, err := routeTo(at)
	if err != nil {
		f.fault("route", name, "bring the interface of the link up, or add a route (ip route get "+at.Addr().String()+")", "there is no way to %s at %s: %v", name, at.Addr(), err)
		return
	}
	headers := profile.IPUDPOctets
	if !at.Addr().Unmap().Is4() {
		headers += 20 // the IPv6 header is longer
	}
	const check = "mtu"
	if whole := p.Largest() + headers; whole > mtu {
		f.fault(check, name, "choose a profile with smaller datagrams, the same at both ends (gateway profiles; [gateway] datagram_octets, large_datagram_octets), or a greater MTU of the interface",
			"the way to %s takes packets of %d octets, and profile %s makes packets of %d: the long ones go in pieces, and one lost piece loses all", name, mtu, p.Name, whole)
		return
	}
	f.ok(check, name, "packets of profile %s have at most %d octets, and the way to %s takes %d", p.Name, p.Largest()+headers, name, mtu)
}

// routeTo is this machine's address on the route to another, and the longest IP packet on it that the kernel knows of.
func routeTo(at netip.AddrPort) (local netip.Addr, mtu int, err error) {
	fd, to, err := socket(false, at)
	if err != nil {
		return local, 0, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		if errors.Is(err, unix.ENETUNREACH) {
			err = errors.New("the kernel has no route")
		}
		return local, 0, err
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	own, err := unix.Getsockname(fd)
	if err != nil {
		return local, 0, err
	}
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		local = netip.AddrFrom4(own.Addr)
	case *unix.SockaddrInet6:
		local, level, option = netip.AddrFrom16(own.Addr), unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err = unix.GetsockoptInt(fd, level, option)
	return local, mtu, err
}
