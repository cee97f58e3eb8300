package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"aldis/internal/edge/norm"
	"aldis/internal/gateway/api"
	"aldis/internal/link/elide"
	"aldis/internal/link/profile"
)

const (
	group    = "239.1.1.1"
	normAddr = "239.1.1.7:7001"
	normPort = 7000
	tcpPort  = 7002
	uftpPort = 1044
)

// receiver starts a node's receiver and waits until it listens.
func (f *grid) receiver(node int) error {
	dir := filepath.Join(f.dir, fmt.Sprint("in", node))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	switch f.Transport {
	case "p_mul":
		return f.expect(node, f.binary, "pmul", "receive", "--group", group, "--id", addr(node), "--into", dir, "--profile", f.Link, "--json")
	case "norm":
		return f.expect(node, self, "role", "norm-receive", f.Link, fmt.Sprint(node+1), dir)
	case "tcp":
		return f.expect(node, self, "role", "tcp-receive", dir)
	}
	if err := f.start(node, func(string) {}, "uftpd", "-d", "-t", "-I", addr(node), "-U", uftpID(node), "-D", dir); err != nil {
		return err
	}
	if err := f.uftpListens(node); err != nil {
		return err
	}
	f.procs.Add(1)
	go func() { // it reports nothing when a file is there
		defer f.procs.Done()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-f.ctx.Done():
				return
			case <-tick.C:
				if b, err := os.ReadFile(filepath.Join(dir, "payload")); err == nil && string(b) == string(f.want) {
					f.done <- node
					return
				}
			}
		}
	}()
	return nil
}

func uftpID(node int) string {
	return fmt.Sprintf("0x%08X", binary.BigEndian.Uint32(net.ParseIP(addr(node)).To4()))
}

// uftpListens waits for the daemon's socket.
func (f *grid) uftpListens(node int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-tick.C {
		if b, err := f.command(node, "cat", "/proc/net/udp").Output(); err == nil && strings.Contains(string(b), fmt.Sprintf(":%04X ", uftpPort)) {
			return nil
		}
	}
	return fmt.Errorf("node %d: uftpd does not listen", node)
}

// sender makes the sender ready and returns a function that hands the file over. uftp runs with the settings of the baseline
// (transport 1).
func (f *grid) sender(res *result) (func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(f.dir, "payload")
	var to, ids []string
	for node := 1; node <= receivers; node++ {
		to, ids = append(to, addr(node)), append(ids, uftpID(node))
	}
	rate := f.p.Down.RateBps
	switch f.Transport {
	case "p_mul":
		args := []string{f.binary, "pmul", "send", "--group", group, "--id", addr(0), "--to", strings.Join(to, ","), "--profile", f.Link, "--json", file}
		if !f.p.Shared {
			args = append(args, "--shore")
		}
		return func() error {
			return f.start(0, func(line string) {
				if _, seconds, ok := strings.Cut(line, `"event":"end"`); ok {
					if _, seconds, ok = strings.Cut(seconds, `"seconds":`); ok {
						seconds, _, _ = strings.Cut(seconds, ",")
						res.Known, _ = strconv.ParseFloat(seconds, 64)
					}
				}
			}, args...)
		}, nil
	case "tcp":
		return func() error {
			return f.start(0, func(string) {}, self, "role", "tcp-send", file, strings.Join(to, ","))
		}, nil
	case "uftp":
		grtt := "5"
		if f.p.Shared {
			grtt = "9"
		}
		return func() error {
			return f.start(0, func(string) {}, "uftp", "-R", strconv.Itoa(rate/1000), "-b", "1000", "-r", grtt+":2:20", "-s", "10", "-t", "8",
				"-I", addr(0), "-H", strings.Join(ids, ","), file)
		}, nil
	}
	cmd := f.command(0, self, "role", "norm-send", f.Link, file)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f.procs.Add(1)
	ready := make(chan bool, 1)
	go func() {
		defer f.procs.Done()
		s := bufio.NewScanner(out)
		ready <- s.Scan()
		for s.Scan() {
		}
		_ = cmd.Wait() // it is killed with the run
	}()
	select {
	case ok := <-ready:
		if !ok {
			return nil, errors.New("the NORM sender ended")
		}
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
	return func() error { _, err := io.WriteString(in, "go\n"); return err }, nil
}

// role is a process of this program inside a namespace.
func role(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "tcp-receive":
		return tcpReceive(args[1])
	case len(args) == 3 && args[0] == "tcp-send":
		return tcpSend(args[1], strings.Split(args[2], ","))
	case len(args) == 4 && args[0] == "norm-receive":
		id, err := strconv.ParseUint(args[2], 10, 16)
		if err != nil {
			return err
		}
		return normReceive(args[1], uint16(id), args[3])
	case len(args) == 3 && args[0] == "norm-send":
		return normSend(args[1], args[2])
	}
	return fmt.Errorf("no role %q", args)
}

func tcpReceive(dir string) error {
	ln, err := net.Listen("tcp4", fmt.Sprint(":", tcpPort))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		b, err := io.ReadAll(c)
		c.Close()
		if err != nil {
			return err
		}
		if err := arrived(dir, b); err != nil {
			return err
		}
	}
}

// arrived puts a file where it is compared.
func arrived(dir string, b []byte) error {
	name := filepath.Join(dir, "received")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		return err
	}
	fmt.Println("file", name)
	return nil
}

// cubic is the usual default of a user's kernel; the machine of the test may have another one.
func cubic(_, _ string, c syscall.RawConn) (err error) {
	cerr := c.Control(func(fd uintptr) { err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic") })
	return errors.Join(cerr, err)
}

// tcpSend opens a connection to each receiver, all at once, and closes it after the file.
func tcpSend(file string, to []string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	errs := make(chan error, len(to))
	for _, a := range to {
		go func() {
			d := net.Dialer{Control: cubic}
			c, err := d.Dial("tcp4", fmt.Sprint(a, ":", tcpPort))
			if err == nil {
				if _, err = c.Write(b); err == nil {
					err = c.Close()
				}
			}
			errs <- err
		}()
	}
	err = nil
	for range to {
		err = errors.Join(err, <-errs)
	}
	return err
}

// normNode is libnorm in a child process, with its packets unchanged on a UDP socket, as other programs would see them.
type normNode struct {
	sup  *norm.Supervisor
	wire *elide.Session
	up   chan struct{}
}

func newNorm(link string, self, peer uint16, packet func(p []byte, info elide.Info), object func([]byte)) (*normNode, error) {
	p, err := profile.Load(link, os.ReadFile)
	if err != nil {
		return nil, err
	}
	const overhead = profile.IPUDPOctets + 32 // NORM_DATA with the object's size in every segment
	wire, err := elide.NewSession(elide.Config{Self: self, Peer: peer, Segment: p.SegmentOctets, GRTT: p.GRTT})
	if err != nil {
		return nil, err
	}
	n := &normNode{wire: wire, up: make(chan struct{}, 1)}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n.sup, err = norm.New(norm.Config{Self: self, Segment: p.SegmentOctets, GRTT: p.GRTT,
		TxRate:  0.95 * elide.TxRate(float64(p.Down.RateBps), p.SegmentOctets, overhead),
		Command: func() *exec.Cmd { return exec.Command(program, "norm-child") },
	}, func(ev api.Event) {
		switch ev := ev.(type) {
		case api.NormUp:
			n.wire.Restarted(ev.Generation)
			n.up <- struct{}{}
		case api.NormDown:
			fmt.Fprintln(os.Stderr, "libnorm is down:", ev.Reason)
		case api.NormPacket:
			if _, info, err := n.wire.Pack(nil, ev.Data); err == nil {
				packet(ev.Data, info)
			}
		case api.NormObject:
			object(ev.Data)
		}
	})
	if err == nil {
		n.sup.Do(api.NormStart{Generation: 1, Peers: []uint16{peer}})
		<-n.up
	}
	return n, err
}

// inject gives libnorm the packets from the network.
func (n *normNode) inject(c *net.UDPConn, peer uint16) {
	buf := make([]byte, 1<<16)
	for {
		k, _, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		n.sup.Do(api.NormInject{Peer: peer, Data: append([]byte(nil), buf[:k]...)})
	}
}

// normSend multicasts. libnorm repeats its FLUSH for minutes; four of them go out after the last segment, as with a robust factor of 4.
func normSend(link, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: normPort})
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_LOOP, 0) })
	}
	if err != nil {
		return err
	}
	to, err := net.ResolveUDPAddr("udp4", normAddr)
	if err != nil {
		return err
	}
	flushes := 0
	n, err := newNorm(link, 1, 2, func(p []byte, info elide.Info) {
		if info.Kind == elide.Flush {
			flushes++
			if flushes > 4 {
				return
			}
		} else {
			flushes = 0
		}
		_, _ = c.WriteToUDP(p, to) // a full queue loses it, as any link would
	}, func([]byte) {})
	if err != nil {
		return err
	}
	defer n.sup.Close()
	go n.inject(c, 2)
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	n.sup.Do(api.NormEnqueue{Peer: 2, Data: b})
	select {} // until the run ends
}

func normReceive(link string, id uint16, dir string) error {
	in, err := net.ResolveUDPAddr("udp4", normAddr)
	if err != nil {
		return err
	}
	ifi, err := net.InterfaceByName("link0")
	if err != nil {
		return err
	}
	c, err := net.ListenMulticastUDP("udp4", ifi, in)
	if err != nil {
		return err
	}
	back, err := net.Dial("udp4", fmt.Sprint(addr(0), ":", normPort))
	if err != nil {
		return err
	}
	n, err := newNorm(link, id, 1, func(p []byte, info elide.Info) {
		if info.Kind != elide.Flush && info.Kind != elide.Data { // a receiver has no objects of its own to send
			_, _ = back.Write(p) // ICMP of an earlier one
		}
	}, func(b []byte) {
		if err := arrived(dir, b); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	if err != nil {
		return err
	}
	defer n.sup.Close()
	fmt.Println("ready")
	n.inject(c, 1)
	return nil
}
