package node

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"aldis/internal/edge/config"
	"aldis/internal/edge/lan"
)

// Listening sockets may outlive the process: systemd passes them to it (sd_listen_fds(3)), and gateway run --keep-socket does
// the same. docs/decisions/sockets.md says why.

const (
	firstInherited = 3 // SD_LISTEN_FDS_START
	keeperEnv      = "ALDIS_KEEPER"
)

// inherited are the listening sockets that this process was started with, by their address. It removes the environment
// variables that describe them, so that no child trusts them.
func inherited() (map[netip.AddrPort]net.Listener, error) {
	pid, keeper, count := os.Getenv("LISTEN_PID"), os.Getenv(keeperEnv), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", keeperEnv} {
		os.Unsetenv(name)
	}
	if count == "" || pid != strconv.Itoa(os.Getpid()) && keeper != strconv.Itoa(os.Getppid()) {
		return nil, nil // there are none, or they are another process's
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 || n > 64 {
		return nil, fmt.Errorf("LISTEN_FDS is %q, not a number of sockets", count)
	}
	socks := map[netip.AddrPort]net.Listener{}
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		f := os.NewFile(uintptr(fd), fmt.Sprintf("inherited socket %d", fd))
		ln, err := net.FileListener(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("the inherited descriptor %d is not a listening socket: %w", fd, err)
		}
		if a, ok := ln.Addr().(*net.TCPAddr); ok {
			at := a.AddrPort()
			socks[netip.AddrPortFrom(at.Addr().Unmap(), at.Port())] = ln
		} else {
			ln.Close()
		}
	}
	return socks, nil
}

// sockets opens the sockets that a configuration wants, or takes inherited ones. The map is keyed by configuration key.
func sockets(c *config.Config, have map[netip.AddrPort]net.Listener) (open map[string]net.Listener, err error) {
	open = map[string]net.Listener{}
	for _, w := range c.Listens() {
		if ln := have[w.At]; ln != nil {
			open[w.Key] = ln
			delete(have, w.At)
			continue
		}
		ln, err := lan.Listen(w.At.String())
		if err != nil {
			for _, ln := range open {
				ln.Close()
			}
			return nil, listenError(w.Key, "TCP", w.At, err)
		}
		open[w.Key] = ln
	}
	return open, nil
}

// strays names inherited sockets that the configuration does not use, and closes them.
func strays(have map[netip.AddrPort]net.Listener) string {
	var names []string
	for at, ln := range have {
		names = append(names, at.String())
		ln.Close()
	}
	return strings.Join(names, ", ")
}
