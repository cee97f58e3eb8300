package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"aldis/internal/lab/field"
	"aldis/internal/link/profile"
)

// tail is how long the link is watched after the last receiver has the file: octets in that time count too.
const tail = 60 * time.Second

// settle is how long all wait before the file is handed over, as in the baseline.
const settle = 20 * time.Second

// grid is one run's namespaces, link, files and processes; node 0 sends.
type grid struct {
	run
	dir    string
	binary string
	p      profile.Profile
	spaces []string
	hub    *field.Hub
	want   []byte
	ctx    context.Context
	done   chan int // a receiver has the file
	procs  sync.WaitGroup
}

func addr(node int) string { return fmt.Sprintf("10.79.0.%d", node+1) }

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// transfer plays one run and cleans up.
func transfer(r run, serial int, binary string, stop <-chan struct{}) (res result, err error) {
	f := &grid{run: r, binary: binary, done: make(chan int, receivers)}
	ctx, cancel := context.WithTimeout(context.Background(), giveUp(r.Octets)+settle+2*tail)
	f.ctx = ctx
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	if f.dir, err = os.MkdirTemp("", "aldis-transfer-"); err != nil {
		return res, err
	}
	defer func() {
		cancel()
		f.procs.Wait()
		if f.hub != nil {
			err = errors.Join(err, f.hub.Close())
		}
		for _, ns := range f.spaces {
			err = errors.Join(err, ip("netns", "del", ns))
		}
		err = errors.Join(err, os.RemoveAll(f.dir))
	}()
	if err := f.lay(serial); err != nil {
		return res, err
	}
	f.want = make([]byte, r.Octets)
	rng := rand.New(rand.NewPCG(r.Seed, uint64(r.Octets)))
	for i := range f.want {
		f.want[i] = byte(rng.Uint32())
	}
	if err := os.WriteFile(filepath.Join(f.dir, "payload"), f.want, 0o644); err != nil {
		return res, err
	}
	return f.play()
}

// lay makes the namespaces and the link between them. On a star node 0 is the shore, without a radio of its own.
func (f *grid) lay(serial int) (err error) {
	if f.p, err = profile.Load(f.Link, os.ReadFile); err != nil {
		return err
	}
	wire, err := profile.Load("wire", os.ReadFile)
	if err != nil {
		return err
	}
	cfg := field.HubConfig{Seed: f.Seed, StaticGroups: true}
	for i := range receivers + 1 {
		ns := fmt.Sprintf("aldis-tp-%d-%d-%d", os.Getpid(), serial, i)
		if err := ip("netns", "add", ns); err != nil {
			return err
		}
		f.spaces = append(f.spaces, ns)
		p := f.p
		if i == 0 && !p.Shared {
			p = wire
		}
		cfg.Nodes = append(cfg.Nodes, field.HubNode{Name: fmt.Sprint("node", i), Netns: ns, Profile: p, Addr: netip.PrefixFrom(netip.MustParseAddr(addr(i)), 24)})
		if out, err := exec.Command("ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1").CombinedOutput(); err != nil {
			return fmt.Errorf("sysctl: %w: %s", err, out)
		}
		if err := ip("-n", ns, "link", "set", "lo", "up"); err != nil {
			return err
		}
	}
	if f.hub, err = field.StartHub(cfg); err != nil {
		return err
	}
	for _, ns := range f.spaces {
		if err := ip("-n", ns, "route", "add", "224.0.0.0/4", "dev", "link0"); err != nil {
			return err
		}
	}
	return nil
}

// command is a program in a node's namespace; it ends with the run.
func (f *grid) command(node int, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.ctx, "ip", append([]string{"netns", "exec", f.spaces[node]}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(f.dir, "state"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Dir = f.dir
	return cmd
}

// start runs a program and passes on each line of its output.
func (f *grid) start(node int, said func(line string), args ...string) error {
	cmd := f.command(node, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	f.procs.Add(1)
	go func() {
		defer f.procs.Done()
		for s := bufio.NewScanner(out); s.Scan(); {
			said(s.Text())
		}
		if err := cmd.Wait(); err != nil && f.ctx.Err() == nil {
			fmt.Printf("%s: node %d: %s: %v: %s\n", f.name(), node, args[0], err, bytes.TrimSpace(errs.Bytes()))
		}
	}()
	return nil
}

// expect starts a receiver and waits until it listens. Its program prints ready, and file NAME for a file that is whole.
func (f *grid) expect(node int, args ...string) error {
	listening := make(chan struct{})
	var once, got sync.Once
	err := f.start(node, func(line string) {
		switch what, name := received(line); {
		case what == "ready":
			once.Do(func() { close(listening) })
		case what == "file":
			if b, err := os.ReadFile(name); err == nil && bytes.Equal(b, f.want) {
				got.Do(func() { f.done <- node })
			}
		}
	}, args...)
	if err != nil {
		return err
	}
	select {
	case <-listening:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	case <-time.After(20 * time.Second):
		return fmt.Errorf("node %d: %s does not begin to listen", node, args[0])
	}
}

// received reads a line of a receiver: of our roles, or of gateway pmul receive --json.
func received(line string) (what, name string) {
	var j struct{ Event, File string }
	switch {
	case json.Unmarshal([]byte(line), &j) != nil:
		what, name, _ = strings.Cut(line, " ")
	case j.Event == "ready":
		what = "ready"
	case j.Event == "received":
		what, name = "file", j.File
	}
	return what, name
}

// play starts receivers and sender and measures.
func (f *grid) play() (res result, err error) {
	res = result{run: f.run}
	rate, delay := f.p.Down.RateBps, f.p.Down.Delay+f.p.Down.Jitter/2
	res.Limit = (profile.Airtime(f.Octets, rate) + delay).Seconds()
	for node := 1; node <= receivers; node++ {
		if err := f.receiver(node); err != nil {
			return res, err
		}
	}
	handOver, err := f.sender(&res) // NORM's is up now and sends its marker
	if err != nil {
		return res, err
	}
	select {
	case <-time.After(settle):
	case <-f.ctx.Done():
		return res, f.ctx.Err()
	}
	settled := f.count()
	began := time.Now()
	if err := handOver(); err != nil {
		return res, err
	}
	give := time.NewTimer(giveUp(f.Octets))
	defer give.Stop()
	for res.Complete < receivers {
		select {
		case <-f.done:
			res.Complete++
			if res.Complete == receivers {
				res.Seconds = time.Since(began).Seconds()
			}
			continue
		case <-give.C:
		case <-f.ctx.Done():
			return res, f.ctx.Err()
		}
		break
	}
	if res.Complete == receivers {
		select {
		case <-time.After(tail):
		case <-f.ctx.Done():
			return res, f.ctx.Err()
		}
	}
	c := f.count()
	res.Data, res.Return, res.Lost = c.data-settled.data, c.back-settled.back, c.lost-settled.lost
	res.LateMS = float64(f.hub.Stats().LateMax) / float64(time.Millisecond)
	return res, nil
}

type counted struct{ data, back, lost int64 }

// count is the octets on the air: on a star the mean of the four terminals, each of which has its own link.
func (f *grid) count() (c counted) {
	stats := f.hub.Stats()
	for i := range receivers + 1 {
		n := stats.Link.Node(fmt.Sprint("node", i))
		c.lost += n.Down.DroppedLoss.Frames + n.Up.DroppedLoss.Frames
		switch {
		case i == 0 && f.p.Shared:
			c.data += n.Up.OnAir.Octets
		case i > 0 && f.p.Shared:
			c.back += n.Up.OnAir.Octets
		case i > 0:
			c.data += n.Down.OnAir.Octets / receivers
			c.back += n.Up.OnAir.Octets / receivers
		}
	}
	return c
}
