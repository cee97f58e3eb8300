package radio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// groupTTL is how many routers a datagram to the group may cross: the ones between a gateway and its radio.
const groupTTL = 16

// ErrInterface says that the interface to the radio net is not known.
var ErrInterface = errors.New("which interface leads to the group is not known: name it in link.group_interface, or give a peer's address")

// Join makes the radio a member of an IPv4 group on one interface: the named one, or that of the route to one of the peers.
// Datagrams to the group leave on it. Call Join once, before the first Send.
func (r *Radio) Join(group netip.AddrPort, name string, peers []netip.AddrPort) error {
	if !r.ipv4 {
		return errors.New("radio: a group needs an IPv4 link.listen")
	}
	iface, err := interfaceFor(name, peers)
	if err != nil {
		return fmt.Errorf("radio: %w", err)
	}
	if err := r.control(r.conn, func(fd int) error {
		return errors.Join(
			unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(iface.Index)}),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, groupTTL),
			unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0))
	}); err != nil {
		return fmt.Errorf("radio: multicast on %s: %w", iface.Name, err)
	}
	member := &unix.IPMreqn{Multiaddr: group.Addr().As4(), Ifindex: int32(iface.Index)}
	join := func(fd int) error { return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, member) }
	if own := r.Addr(); own.Addr().IsUnspecified() && own.Port() == group.Port() {
		err = r.control(r.conn, join)
	} else { // bound to one address or another port, the socket receives no datagrams for the group
		err = r.listenGroup(group, join)
	}
	if err != nil {
		return fmt.Errorf("radio: cannot join %s on %s: %w", group, iface.Name, err)
	}
	return nil
}

// listenGroup opens a socket that receives only datagrams for the group. Package net would bind it to any address, which the
// radio's own socket forbids if both have the same port.
func (r *Radio) listenGroup(group netip.AddrPort, join func(int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "group")
	defer f.Close() // conn has a descriptor of its own
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(group.Port()), Addr: group.Addr().As4()}); err != nil {
		return err
	}
	if err := join(fd); err != nil {
		return err
	}
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return err
	}
	if r.group, err = r.listen(conn.(*net.UDPConn)); err != nil {
		conn.Close()
	}
	return err
}

func (r *Radio) control(conn *net.UDPConn, f func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	return errors.Join(err, inner)
}

// interfaceFor finds the interface by name, or by the kernel's route to a peer; it sends nothing.
func interfaceFor(name string, peers []netip.AddrPort) (*net.Interface, error) {
	if name != "" {
		return net.InterfaceByName(name)
	}
	for _, p := range peers {
		if !p.IsValid() {
			continue
		}
		c, err := net.Dial("udp4", p.String())
		if err != nil {
			continue
		}
		local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		c.Close()
		if i := InterfaceWith(local); i != nil {
			return i, nil
		}
	}
	return nil, ErrInterface
}

// InterfaceWith is the interface of this machine that has an address; nil: none.
func InterfaceWith(a netip.Addr) *net.Interface {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, x := range addrs {
			if n, ok := x.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == a.Unmap() {
					return &i
				}
			}
		}
	}
	return nil
}
