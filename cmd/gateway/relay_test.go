package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/lab/check"
)

// relay is an emulated link between gateways on loopback, and sees every datagram. Gateway i knows one of the relay's sockets
// as the address of each peer, and its group is one on which only the relay listens. Datagrams are lost, late or doubled at
// random; the last gateway is slow, and may be off the air.
type relay struct {
	links  []netip.AddrPort // where the gateways listen
	legs   [][]*net.UDPConn // legs[i][j] is j's address as i knows it
	groups []member         // receives datagrams that i sends to all
	marker *net.UDPConn
	see    func(from int, to []int, data []byte) // called before a datagram is lost, delayed or passed on
	done   sync.WaitGroup

	mu     sync.Mutex
	rng    *rand.Rand
	passed int // datagrams seen
	away   []bool
	marks  chan struct{} // of the flush in progress
}

// member is a member of a multicast group.
type member struct {
	*net.UDPConn
	at netip.AddrPort // the group's address: the socket itself is bound to all
}

const (
	relayBuffer = 8 << 20
	relayLoss   = 0.02
	slowLoss    = 0.08
	slowDelay   = 400 * time.Millisecond
)

// newRelay opens the relay's sockets for n gateways, with a group or without.
func newRelay(t *testing.T, n int, group bool, seed uint64, see func(from int, to []int, data []byte)) *relay {
	t.Helper()
	r := &relay{see: see, rng: rand.New(rand.NewPCG(seed, 1)), away: make([]bool, n), marker: openUDP(t, "127.0.0.1:0")}
	onSocket(t, r.marker, func(fd int) error {
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(loopback(t).Index)})
	})
	for i := range n {
		r.links = append(r.links, netip.MustParseAddrPort(check.FreeAddress(t, "udp")))
		row := make([]*net.UDPConn, n)
		for j := range n {
			if j != i {
				row[j] = openUDP(t, "127.0.0.1:0")
			}
		}
		r.legs = append(r.legs, row)
		if group {
			r.groups = append(r.groups, joinGroup(t, fmt.Sprintf("239.77.%d.%d:%d", os.Getpid()%250, i+1, check.FreePort(t, "udp"))))
		}
	}
	for i := range n {
		for j := range n {
			if j != i {
				r.carry(r.legs[i][j], i, []int{j})
			}
		}
		if group {
			var all []int
			for j := range n {
				if j != i {
					all = append(all, j)
				}
			}
			r.carry(r.groups[i].UDPConn, i, all)
		}
	}
	t.Cleanup(func() {
		for i := range n {
			for j := range n {
				if j != i {
					r.legs[i][j].Close()
				}
			}
			if group {
				r.groups[i].Close()
			}
		}
		r.marker.Close()
		r.done.Wait()
	})
	return r
}

func openUDP(t *testing.T, at string) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err == nil {
		err = c.SetReadBuffer(relayBuffer)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// joinGroup joins a group on loopback.
func joinGroup(t *testing.T, at string) member {
	t.Helper()
	group := netip.MustParseAddrPort(at)
	c := openUDP(t, at)
	onSocket(t, c, func(fd int) error {
		return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.Addr().As4(), Ifindex: int32(loopback(t).Index)})
	})
	return member{c, group}
}

func loopback(t *testing.T) *net.Interface {
	t.Helper()
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	return lo
}

// onSocket does something to a socket.
func onSocket(t *testing.T, c *net.UDPConn, f func(fd int) error) {
	t.Helper()
	raw, err := c.SyscallConn()
	var inner error
	if err == nil {
		err = raw.Control(func(fd uintptr) { inner = f(int(fd)) })
	}
	if err = errors.Join(err, inner); err != nil {
		t.Fatal(err)
	}
}

// address is j's address in the configuration of gateway i.
func (r *relay) address(i, j int) string { return r.legs[i][j].LocalAddr().String() }

// carry reads a socket to which gateway i sends datagrams for these gateways.
func (r *relay) carry(c *net.UDPConn, i int, to []int) {
	r.done.Go(func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // an ICMP error: a gateway is down
			}
			data := append([]byte(nil), buf[:n]...)
			if from == r.marker.LocalAddr().(*net.UDPAddr).AddrPort() {
				r.marks <- struct{}{}
				continue
			}
			if from != r.links[i] {
				continue
			}
			r.see(i, to, data)
			for _, j := range to {
				r.forward(i, j, data)
			}
		}
	})
}

func (r *relay) forward(i, j int, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed++
	loss, delay := relayLoss, time.Duration(r.rng.IntN(20))*time.Millisecond
	if slow := len(r.links) - 1; i == slow || j == slow {
		loss, delay = slowLoss, delay+slowDelay
	}
	if r.rng.IntN(20) == 0 {
		delay += time.Duration(r.rng.IntN(500)) * time.Millisecond
	}
	copies := 1
	if r.rng.IntN(50) == 0 {
		copies = 2
	}
	if r.away[i] || r.away[j] || r.rng.Float64() < loss {
		return
	}
	for range copies {
		time.AfterFunc(delay, func() { r.legs[j][i].WriteToUDPAddrPort(data, r.links[j]) }) // if that gateway is down it is lost
		delay += time.Duration(r.rng.IntN(100)) * time.Millisecond
	}
}

// count is how many datagrams were forwarded or lost.
func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passed
}

// setAway takes a gateway off the air, or puts it back on.
func (r *relay) setAway(i int, away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away[i] = away
}

// flush returns once the relay has seen all datagrams that gateway i has sent so far.
func (r *relay) flush(t *testing.T, i int) {
	t.Helper()
	list := append([]*net.UDPConn(nil), r.legs[i]...)
	r.marks = make(chan struct{}, len(list)+1)
	want := 0
	for _, c := range list {
		if c != nil {
			want++
			r.mark(t, c.LocalAddr().(*net.UDPAddr).AddrPort())
		}
	}
	if r.groups != nil {
		want++
		r.mark(t, r.groups[i].at)
	}
	deadline := time.After(patience)
	for range want {
		select {
		case <-r.marks:
		case <-deadline:
			t.Fatal("a marker was lost")
		}
	}
}

func (r *relay) mark(t *testing.T, to netip.AddrPort) {
	t.Helper()
	if _, err := r.marker.WriteToUDPAddrPort([]byte("marker"), to); err != nil {
		t.Fatal(err)
	}
}

// lost is how many datagrams the kernel dropped before the relay saw them.
func (r *relay) lost(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]bool{}
	for _, row := range r.legs {
		for _, c := range row {
			if c != nil {
				ports[fmt.Sprintf("%04X", c.LocalAddr().(*net.UDPAddr).Port)] = true
			}
		}
	}
	for _, g := range r.groups {
		ports[fmt.Sprintf("%04X", g.at.Port())] = true
	}
	sum := 0
	for _, l := range strings.Split(string(text), "\n")[1:] {
		f := strings.Fields(l)
		if len(f) < 13 {
			continue
		}
		_, port, _ := strings.Cut(f[1], ":")
		var drops int
		if _, err := fmt.Sscan(f[len(f)-1], &drops); err == nil && ports[port] {
			sum += drops
		}
	}
	return sum
}
