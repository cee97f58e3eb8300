package bench

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"syscall"
)

// capture counts the IPv4 octets on loopback from and to some ports.
type capture struct {
	fd     int
	octets atomic.Int64
	ended  atomic.Bool
	done   chan struct{}
	err    error
}

// watchPorts begins a capture. It needs the right to see packets; stop reports if that is missing.
func watchPorts(ports []int) *capture {
	c := &capture{done: make(chan struct{})}
	const ipv4 = syscall.ETH_P_IP
	swapped := ipv4<<8&0xff00 | ipv4>>8 // the byte order of networks
	if c.fd, c.err = syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, swapped); c.err != nil {
		c.err = fmt.Errorf("packets are not seen: %w", c.err)
		close(c.done)
		return c
	}
	// A timeout, so that the loop notices its end, and a buffer for bursts.
	_ = syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 50_000})
	_ = syscall.SetsockoptInt(c.fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<20)
	go c.read(ports)
	return c
}

func (c *capture) read(ports []int) {
	defer close(c.done)
	head := make([]byte, 64)
	for !c.ended.Load() {
		n, from, err := syscall.Recvfrom(c.fd, head, syscall.MSG_TRUNC)
		at, ok := from.(*syscall.SockaddrLinklayer)
		const outgoing = 4 // loopback may show each packet twice
		if err != nil || !ok || at.Pkttype == outgoing || n < 20 || head[9] != syscall.IPPROTO_TCP {
			continue
		}
		ip := int(head[0]&15) * 4
		if min(n, len(head)) < ip+4 {
			continue
		}
		for _, p := range [][]byte{head[ip:], head[ip+2:]} {
			if slices.Contains(ports, int(binary.BigEndian.Uint16(p))) {
				c.octets.Add(int64(n))
				break
			}
		}
	}
	syscall.Close(c.fd)
}

// stop ends the capture and returns the octets.
func (c *capture) stop() (int64, error) {
	c.ended.Store(true)
	<-c.done
	return c.octets.Load(), c.err
}
