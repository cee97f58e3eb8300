package doctor

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/config"
	"aldis/internal/edge/radio"
)

// ports checks that each listening address is free, or held by the gateway itself. Nothing listens during the check.
func (f *findings) ports(c *config.Config, run *Running) {
	for _, l := range c.Listens() {
		f.port(l.Key, true, l.At, run)
	}
	for _, l := range c.Bearers() {
		if !l.TLS {
			f.port(config.LinkKey(l, "listen"), false, l.Listen, run)
		}
	}
}

func (f *findings) port(key string, tcp bool, at netip.AddrPort, run *Running) {
	const check = "port"
	name := "UDP " + at.String()
	if tcp {
		name = "TCP " + at.String()
	}
	switch err := bind(tcp, at); {
	case err == nil && run != nil:
		f.warn(check, key, "restart the gateway: it runs with another configuration", "%s is free although a gateway runs", name)
	case err == nil:
		f.ok(check, key, "%s is free", name)
	case errors.Is(err, unix.EADDRINUSE):
		f.held(key, name, holders(tcp, at), run)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		f.fault(check, key, fmt.Sprintf("set another %s, or bring its interface up (ip address)", key), "%s is no address of this machine", at.Addr())
	case errors.Is(err, unix.EACCES):
		f.fault(check, key, fmt.Sprintf("set %s to a port above 1023", key), "%s may not have %s: ports below 1024 need root", userName(os.Geteuid()), name)
	default:
		f.fault(check, key, fmt.Sprintf("set another %s", key), "%s cannot be had: %v", name, err)
	}
}

// held reports whether a port in use is held by the gateway.
func (f *findings) held(key, name string, by []int, run *Running) {
	const check = "port"
	other := slices.DeleteFunc(slices.Clone(by), func(pid int) bool { return pid == 1 || run != nil && (pid == run.PID || pid == Parent(run.PID)) })
	switch {
	case len(by) == 0 && run != nil:
		f.warn(check, key, "run gateway doctor as root, or as the user that runs the gateway", "%s is held, and %s may not see whether by the gateway", name, userName(os.Geteuid()))
	case run != nil && slices.Contains(by, run.PID):
		f.ok(check, key, "%s is held by the gateway", name)
	case slices.Contains(by, 1) && len(other) == 0:
		f.ok(check, key, "%s is held open by systemd for the gateway", name)
	case len(other) == 0:
		f.fault(check, key, fmt.Sprintf("ss -lpn as root names it: stop that one, or set another %s", key), "%s is used by another program, which %s may not see", name, userName(os.Geteuid()))
	default:
		f.fault(check, key, fmt.Sprintf("stop that one, or set another %s", key), "%s is used by another program: %q (process %d)", name, strings.TrimSpace(procFile(other[0], "comm")), other[0])
	}
}

// bind tries to bind an address, and releases it. Without listen(2) no peer can connect to it.
func bind(tcp bool, at netip.AddrPort) error {
	fd, to, err := socket(tcp, at)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if tcp { // leftovers of closed connections do not matter
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
			return err
		}
	}
	return unix.Bind(fd, to)
}

// socket makes a socket of the address's family, and the address for the kernel.
func socket(tcp bool, at netip.AddrPort) (fd int, to unix.Sockaddr, err error) {
	family, kind := unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC
	if tcp {
		kind = unix.SOCK_STREAM | unix.SOCK_CLOEXEC
	}
	if a := at.Addr().Unmap(); a.Is4() {
		to = &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}
	} else {
		family = unix.AF_INET6
		six := &unix.SockaddrInet6{Port: int(at.Port()), Addr: a.As16()}
		if i, err := net.InterfaceByName(a.Zone()); err == nil {
			six.ZoneId = uint32(i.Index)
		}
		to = six
	}
	fd, err = unix.Socket(family, kind, 0)
	return fd, to, err
}

// holders are the processes that have a listening socket at an address, as far as this user may see.
func holders(tcp bool, at netip.AddrPort) (pids []int) {
	inodes := map[string]bool{}
	for _, table := range map[bool][]string{true: {"tcp", "tcp6"}, false: {"udp", "udp6"}}[tcp] {
		file, err := os.Open("/proc/net/" + table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			w := strings.Fields(lines.Text())
			if len(w) < 10 || tcp && w[3] != "0A" { // TCP_LISTEN
				continue
			}
			if local, ok := address(w[1]); ok && local.Port() == at.Port() && (local.Addr() == at.Addr() || local.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
				inodes["socket:["+w[9]+"]"] = true
			}
		}
		file.Close()
	}
	if len(inodes) == 0 {
		return nil
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/fd")
	for _, dir := range processes {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && inodes[to] {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// address parses an address of /proc/net: words of four octets, each in the machine's order, and a port.
func address(text string) (at netip.AddrPort, ok bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	n, perr := strconv.ParseUint(port, 16, 16)
	if err != nil || perr != nil || len(raw) != 4 && len(raw) != 16 {
		return at, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4]) // amd64 and arm64 are little-endian
	}
	a, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), true
}

// Parent is the process that started another; 0: not known.
func Parent(pid int) int {
	_, rest, _ := strings.Cut(procFile(pid, "stat"), ") ")
	if w := strings.Fields(rest); len(w) > 1 {
		n, _ := strconv.Atoi(w[1])
		return n
	}
	return 0
}

// multicast checks the interfaces on which groups are heard.
func (f *findings) multicast(c *config.Config) {
	if g := c.LAN.Multicast; g.IsValid() {
		at := c.LAN.TCP.Addr()
		if !at.IsValid() {
			at = c.LAN.HTTP.Addr()
		}
		f.group("lan.multicast", g, radio.InterfaceWith(at), "JXTA peers without a seed are not heard there: give them the seed, or set lan.tcp to an address of another interface")
	}
	if mesh, err := netip.ParseAddr(c.TAK.Mesh); err == nil {
		f.group("tak.mesh", c.TAK.Events, radio.InterfaceWith(mesh), "devices of the mesh are not heard: set tak.mesh to this machine's address on their network")
	}
	if g := c.Link.Group; g.IsValid() {
		var on *net.Interface
		if c.Link.GroupIface != "" {
			on, _ = net.InterfaceByName(c.Link.GroupIface)
		} else {
			for _, p := range c.Link.Peers {
				if local, _, err := routeTo(p.Address); on == nil && p.Address.IsValid() && err == nil {
					on = radio.InterfaceWith(local)
				}
			}
		}
		f.group("link.group", g, on, "set link.group_interface to the interface that leads to the radio")
	}
}

func (f *findings) group(key string, group netip.AddrPort, on *net.Interface, out string) {
	const check = "multicast"
	switch {
	case on == nil:
		f.fault(check, key, out, "no interface leads to %s", group)
	case on.Flags&net.FlagUp == 0:
		f.fault(check, key, "ip link set "+on.Name+" up", "%s is down, where %s should be heard", on.Name, group)
	case on.Flags&net.FlagMulticast == 0 && on.Flags&net.FlagLoopback == 0:
		f.fault(check, key, out+", or: ip link set "+on.Name+" multicast on", "%s takes no multicast, so that %s is not heard", on.Name, group)
	default:
		f.ok(check, key, "%s takes multicast, for %s", on.Name, group)
	}
}
