package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aldis/internal/gateway/pair"
	"aldis/internal/lab/check"
)

// siteOfTwo is a site of two machines or more, its witness, a far gateway, and the wires between each machine and the far
// gateway.
type siteOfTwo struct {
	hq       *running
	sites    []*testSite
	machines []*running // nil: it is not running
	witness  *testSite
	votes    *running
	wires    []*wire
	listens  []string // of the machines, and of the witness
}

// wire joins a machine and the far gateway, and records when the machine transmits.
type wire struct {
	near, far *net.UDPConn
	mu        sync.Mutex
	sent      []time.Time
}

func newWire(t *testing.T, machine, hq string) *wire {
	t.Helper()
	w := &wire{near: openUDP(t, "127.0.0.1:0"), far: openUDP(t, "127.0.0.1:0")}
	t.Cleanup(func() { w.near.Close(); w.far.Close() })
	carry := func(from, out *net.UDPConn, to string, see func(netip.AddrPort)) {
		data, at := make([]byte, 65535), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to))
		for {
			n, source, err := from.ReadFromUDPAddrPort(data)
			if err != nil {
				return
			}
			see(source)
			out.WriteToUDP(data[:n], at)
		}
	}
	go carry(w.near, w.far, hq, func(source netip.AddrPort) {
		if source != netip.MustParseAddrPort(machine) {
			return // the machine that leads tries the addresses of the far gateway in its journal
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, time.Now())
	})
	go carry(w.far, w.near, machine, func(netip.AddrPort) {})
	return w
}

// last is the time of the machine's last transmission.
func (w *wire) last() (at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) > 0 {
		at = w.sent[len(w.sent)-1]
	}
	return at
}

// newTwo starts a far gateway, and makes the two machines of a site, with a witness or without.
func newTwo(t *testing.T, witness bool) *siteOfTwo {
	t.Helper()
	return newSiteOf(t, 2, witness)
}

// newSiteOf makes a site of n machines; three or more are members of a cluster.
func newSiteOf(t *testing.T, n int, witness bool) *siteOfTwo {
	t.Helper()
	w := &siteOfTwo{sites: make([]*testSite, n), machines: make([]*running, n), wires: make([]*wire, n)}
	hq := newSite(t, 1, "")
	profile := filepath.Join(hq.dir, "fast.toml")
	check.NoError(t, os.WriteFile(profile, []byte(fastStar), 0o644))
	hq.profile = profile
	hq.write(t, filepath.Join(hq.dir, "data"), "2")
	for len(w.listens) < 3 {
		if at := check.FreeAddress(t, "tcp"); !slices.Contains(w.listens, at) {
			w.listens = append(w.listens, at)
		}
	}
	listens := w.listens
	third := ""
	if witness {
		third = fmt.Sprintf("witness = %q\n", listens[2])
		w.witness = newSite(t, 2, hq.key())
		w.witness.write(t, filepath.Join(w.witness.dir, "data"))
		w.witness.add(t, fmt.Sprintf("[site]\nlisten = %q\n", listens[2]))
		w.startWitness(t)
	}
	for i := range w.sites {
		s := newSite(t, 2, hq.key())
		s.profile = profile
		w.wires[i] = newWire(t, s.link, hq.link)
		s.write(t, filepath.Join(s.dir, "data"), "1 "+w.wires[i].near.LocalAddr().String())
		if n == 2 {
			s.add(t, fmt.Sprintf("[site]\nlisten = %q\nother = %q\n%s", listens[i], listens[1-i], third))
		} else {
			s.add(t, fmt.Sprintf("[cluster]\nmembers = [%q, %q, %q]\nlisten = %q\n", listens[0], listens[1], listens[2], listens[i]))
		}
		w.sites[i] = s
	}
	w.hq = hq.start(t)
	return w
}

// add appends to the configuration.
func (s *testSite) add(t testing.TB, text string) {
	t.Helper()
	old, err := os.ReadFile(s.file)
	check.NoError(t, err)
	check.NoError(t, os.WriteFile(s.file, append(old, text...), 0o644))
}

func (w *siteOfTwo) startWitness(t *testing.T) {
	t.Helper()
	w.votes = w.witness.begin(t, gatewayCommand("site", "witness", "-c", w.witness.file))
	w.votes.until(t, "the witness runs", func() bool { return strings.Contains(w.votes.logged(), "the witness runs") })
}

func (w *siteOfTwo) start(t *testing.T, i int) {
	t.Helper()
	w.startAs(t, i, gatewayCommand)
}

// startAs starts a machine with a gateway of a version.
func (w *siteOfTwo) startAs(t *testing.T, i int, version func(args ...string) *exec.Cmd) {
	t.Helper()
	w.machines[i] = w.sites[i].begin(t, version("run", "-c", w.sites[i].file))
}

func (w *siteOfTwo) stop(t *testing.T, i int, signal syscall.Signal) {
	t.Helper()
	w.machines[i].stop(t, signal)
	w.machines[i] = nil
}

// of is machine i's status; false: it does not answer.
func (w *siteOfTwo) of(i int) (s pair.Status, ok bool) {
	if w.machines[i] == nil {
		return s, false
	}
	client := http.Client{Timeout: time.Second} // the process may be stopped
	resp, err := client.Get("http://" + w.machines[i].http + "/site")
	if err != nil {
		return s, false
	}
	defer resp.Body.Close()
	return s, resp.StatusCode == 200 && json.NewDecoder(resp.Body).Decode(&s) == nil
}

// leader is the machine whose gateway runs and may transmit; -1: none does.
func (w *siteOfTwo) leader() int {
	for i := range w.machines {
		if s, ok := w.of(i); ok && s.Role == "leading" && !s.Silent {
			return i
		}
	}
	return -1
}

// within waits for a condition and returns how long that took.
func within(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	check.Until(t, limit, what, ok)
	return time.Since(began)
}

// settled waits until one machine leads, and the other could.
func (w *siteOfTwo) settled(t *testing.T) (leader int) {
	t.Helper()
	within(t, patience, "one leads, and the other could", func() bool {
		leader = w.leader()
		if leader < 0 {
			return false
		}
		s, _ := w.of(leader)
		f, ok := w.of(1 - leader)
		return ok && s.Ready && f.Role == "following" && f.Whole
	})
	return leader
}

// The leader of a site of two, its follower, or both are killed at random, while peers of both machines and of a far site send messages.
// The other machine takes over within the bound, and the far site hears it. Both never transmit at the same time, no accepted message is
// lost, and none comes twice except at the last metre.
func TestSiteOfTwoTakesOver(t *testing.T) {
	t.Parallel()
	w := newTwo(t, true)
	for i := range w.machines {
		w.start(t, i)
	}
	w.settled(t)
	g := startGossip(t, []string{w.hq.lan, w.sites[0].lan, w.sites[1].lan}, 281)
	g.mu.Lock()
	g.local = map[int]int{1: 1, 2: 1}
	g.mu.Unlock()
	g.meet(t, patience)
	rng := rand.New(rand.NewPCG(281, 1))
	var served, heard []time.Duration
	for kill := range siteKills {
		first := w.settled(t)
		_, _, arrived, _, _ := g.tally()
		more := arrived + rng.IntN(30)
		g.until(t, patience, "some messages more", func() bool { return g.arrivals() >= more })
		victims := []int{first}
		switch rng.IntN(5) {
		case 3:
			victims = []int{1 - first}
		case 4:
			victims = []int{first, 1 - first}
		}
		if kill == 0 {
			victims = []int{first}
		}
		for _, v := range victims {
			w.stop(t, v, syscall.SIGKILL)
		}
		g.died(1)
		g.died(2)
		if slices.Equal(victims, []int{first}) {
			since := time.Now()
			served = append(served, within(t, 10*time.Second, "the other leads", func() bool { return w.leader() == 1-first }))
			within(t, 15*time.Second, "the far site hears it", func() bool { return w.wires[1-first].last().After(since) })
			heard = append(heard, time.Since(since))
		}
		for _, v := range victims {
			w.start(t, v)
		}
	}
	w.settled(t)
	g.settle(t, 2*time.Minute)
	_, _, _, _, faults := g.tally()
	check.Equal(t, "faults", fmt.Sprint(faults), "[]")
	changes, pieces := w.changes()
	check.True(t, "each machine's datagrams are one piece between two kills", changes <= siteKills, changes, pieces)
	slices.Sort(served)
	slices.Sort(heard)
	t.Logf("%d kills: the other leads after %v, at most %v; the far site hears it after %v, at most %v; %s", siteKills,
		served[len(served)/2], served[len(served)-1], heard[len(heard)/2], heard[len(heard)-1], g.summary())
}

// changes is how often the transmitting machine changed, and which one transmitted when.
func (w *siteOfTwo) changes() (n int, pieces string) {
	type one struct {
		at      time.Time
		machine int
	}
	var all []one
	for i, wire := range w.wires {
		wire.mu.Lock()
		for _, at := range wire.sent {
			all = append(all, one{at, i})
		}
		wire.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b one) int { return a.at.Compare(b.at) })
	for i := range all {
		first := i == 0 || all[i].machine != all[i-1].machine
		if first && i > 0 {
			n++
		}
		if first || i == len(all)-1 || all[i].machine != all[i+1].machine {
			pieces += fmt.Sprintf("machine %d at %s; ", all[i].machine, all[i].at.UTC().Format("15:04:05.000"))
		}
	}
	return n, pieces
}

// A leader that is stopped for longer than its lease, and resumed after the other one leads, transmits nothing more. A checker sees all
// datagrams of both.
func TestSiteOfTwoStoppedAndAwake(t *testing.T) {
	t.Parallel()
	w := newTwo(t, true)
	for i := range w.machines {
		w.start(t, i)
	}
	first := w.settled(t)
	g := startGossip(t, []string{w.hq.lan, w.sites[first].lan}, 282)
	g.meet(t, patience)
	check.NoError(t, w.machines[first].cmd.Process.Signal(syscall.SIGSTOP))
	stopped := time.Now()
	within(t, 10*time.Second, "the other leads", func() bool { return w.leader() == 1-first })
	within(t, 15*time.Second, "it transmits", func() bool { return w.wires[1-first].last().After(stopped) })
	last := w.wires[first].last()
	g.died(1)
	check.NoError(t, w.machines[first].cmd.Process.Signal(syscall.SIGCONT))
	check.Equal(t, "leader", w.settled(t), 1-first)
	check.Equal(t, "datagrams of the one that was stopped, after it", w.wires[first].last().Sub(last), 0)
	check.True(t, "its log says so", strings.Contains(w.machines[first].logged(), "this machine does not lead the site any more"))
	g.settle(t, time.Minute)
	_, _, _, _, faults := g.tally()
	check.Equal(t, "faults", fmt.Sprint(faults), "[]")
}

// Without a witness no machine takes over by itself: an operator must order it. A regular stop hands over, and so does gateway site retire.
func TestSiteOfTwoByOrder(t *testing.T) {
	t.Parallel()
	w := newTwo(t, false)
	for i := range w.machines {
		w.start(t, i)
	}
	site := func(i int, args ...string) (int, string) {
		code, out, errs := run(t, append([]string{"site", "-c", w.sites[i].file}, args...)...)
		return code, out + errs
	}
	first := w.settled(t)
	code, out := site(first, "retire")
	check.True(t, "the leader retires", code == 0 && strings.Contains(out, "following"), out)
	check.Equal(t, "leader after retire", w.settled(t), 1-first)
	code, out = site(first, "lead")
	check.True(t, "it leads again by order", code == 0 && strings.Contains(out, "leading"), out)
	check.Equal(t, "leader after lead", w.settled(t), first)

	w.stop(t, first, syscall.SIGTERM)
	within(t, patience, "the other leads after a stop in order", func() bool { return w.leader() == 1-first })
	w.start(t, first)
	check.Equal(t, "leader", w.settled(t), 1-first)

	w.stop(t, 1-first, syscall.SIGKILL)
	within(t, patience, "the follower waits", func() bool { s, ok := w.of(first); return ok && s.Role == "waiting" })
	code, out, errs := run(t, "status", "-c", w.sites[first].file)
	check.True(t, "status says so", code == 1 && strings.Contains(out+errs, "does not lead"), out, errs)
	code, out = site(first, "lead")
	check.True(t, "it leads by order", code == 0 && strings.Contains(out, "ALONE") && strings.Contains(out, "no witness"), out)
	code, out, errs = run(t, "status", "-c", w.sites[first].file)
	_, metrics := w.machines[first].get("/metrics")
	for _, line := range []string{"aldis_site_alone 1", "aldis_site_leads 1", "aldis_site_connected 0", "aldis_site_witness_lost 0"} {
		check.True(t, "metrics have "+line, strings.Contains(metrics, "\n"+line+"\n"))
	}
	check.True(t, "status of the leader", code == 0 && strings.Contains(out, "ALONE"), out, errs)
	w.start(t, 1-first)
	check.Equal(t, "leader after the other is back", w.settled(t), first)

	for _, tt := range []struct {
		does func()
		says string
	}{
		{func() { w.sites[1-first].replace(t, `name = "node2"`, `name = "ship"`) }, "it differs in node.name"},
		{func() {
			w.sites[1-first].replace(t, `name = "ship"`, `name = "node2"`)
			other := filepath.Join(w.sites[1-first].dir, "other")
			check.NoError(t, os.MkdirAll(other, 0o700))
			for _, name := range []string{"aldis.db", "aldis.store"} {
				text, err := os.ReadFile(filepath.Join(w.sites[first].dir, "data", name))
				check.NoError(t, err)
				check.NoError(t, os.WriteFile(filepath.Join(other, name), text, 0o600))
			}
			w.sites[1-first].replace(t, filepath.Join(w.sites[1-first].dir, "data"), other)
		}, "a copy of this machine's data directory"},
		{func() {
			other := filepath.Join(w.sites[1-first].dir, "other")
			w.sites[1-first].replace(t, other, filepath.Join(w.sites[1-first].dir, "data"))
			code, out, errs := run(t, "keys", "new", "-o", w.sites[1-first].key()+".new")
			check.Equal(t, "keys new: "+out+errs, code, 0)
			check.NoError(t, os.Rename(w.sites[1-first].key()+".new", w.sites[1-first].key()))
		}, "no key of this network"},
	} {
		w.stop(t, 1-first, syscall.SIGTERM)
		tt.does()
		w.start(t, 1-first)
		within(t, patience, "it is refused: "+tt.says, func() bool {
			return strings.Contains(w.machines[first].logged()+w.machines[1-first].logged(), tt.says)
		})
		check.Equal(t, "leader", w.leader(), first)
	}
}

// replace changes the configuration.
func (s *testSite) replace(t testing.TB, old, with string) {
	t.Helper()
	text, err := os.ReadFile(s.file)
	check.NoError(t, err)
	check.True(t, "the configuration has "+old, strings.Contains(string(text), old))
	check.NoError(t, os.WriteFile(s.file, []byte(strings.Replace(string(text), old, with, 1)), 0o644))
}

// splice joins TCP connections to another address, and can be cut: octets in transit then wait, as in a network that is cut.
type splice struct {
	at   string
	mu   sync.Mutex
	open chan struct{} // closed while the splice is not cut
}

// cut cuts the splice, or joins it again.
func (s *splice) cut(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.open = make(chan struct{})
	} else if s.isCut() {
		close(s.open)
	}
}

func (s *splice) isCut() bool {
	select {
	case <-s.open:
		return false
	default:
		return true
	}
}

// whole returns a channel that is closed while the splice is not cut.
func (s *splice) whole() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func newSplice(t *testing.T, to string) *splice {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() { ln.Close() })
	s := &splice{at: ln.Addr().String(), open: make(chan struct{})}
	close(s.open)
	t.Cleanup(func() { s.cut(false) })
	go func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go s.carry(near, far)
			go s.carry(far, near)
		}
	}()
	return s
}

func (s *splice) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		<-s.whole()
		if _, werr := to.Write(data[:n]); err != nil || werr != nil {
			return
		}
	}
}

// The two machines do not hear each other. With a witness that both reach, or one alone, exactly one goes on and the other is silent;
// without a witness the leader goes on. Once the cut is over one follows, and no accepted message is lost.
func TestSiteOfTwoCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		witness bool
		away    bool // the leader does not reach the witness
		other   bool // the other machine leads then
	}{
		{"without a witness", false, false, false},
		{"both reach the witness", true, false, false},
		{"the follower reaches the witness", true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newTwo(t, tt.witness)
			between := w.spliced(t)
			for i := range w.machines {
				w.start(t, i)
			}
			first := w.settled(t)
			g := startGossip(t, []string{w.hq.lan, w.sites[0].lan, w.sites[1].lan}, 283)
			g.mu.Lock()
			g.local = map[int]int{1: 1, 2: 1}
			g.mu.Unlock()
			g.meet(t, patience)
			between.lan.cut(true)
			if tt.away {
				between.witness[first].cut(true)
			}
			goes := first
			if tt.other {
				goes = 1 - first
			}
			within(t, patience, "one goes on", func() bool { s, ok := w.of(goes); return ok && s.Role == "leading" && s.Alone && !s.Silent })
			g.died(1)
			g.died(2)
			since := time.Now()
			within(t, patience, "it transmits", func() bool { return w.wires[goes].last().After(since) })
			check.True(t, "the other one transmits nothing", w.wires[1-goes].last().Before(since))
			between.lan.cut(false)
			for _, s := range between.witness {
				if s != nil {
					s.cut(false)
				}
			}
			check.Equal(t, "leader afterwards", w.settled(t), goes)
			g.settle(t, time.Minute)
			_, _, _, _, faults := g.tally()
			check.Equal(t, "faults", fmt.Sprint(faults), "[]")
			changes, _ := w.changes()
			check.True(t, "each machine's datagrams are one piece", changes <= 1, changes)
		})
	}
}

// spliced puts splices between the two machines, and between each and the witness.
func (w *siteOfTwo) spliced(t *testing.T) (between struct {
	lan     *splice
	witness [2]*splice
}) {
	t.Helper()
	caller := 0 // the lower address calls
	if netip.MustParseAddrPort(w.listens[1]).Compare(netip.MustParseAddrPort(w.listens[0])) < 0 {
		caller = 1
	}
	for between.lan == nil || netip.MustParseAddrPort(between.lan.at).Compare(netip.MustParseAddrPort(w.listens[caller])) < 0 {
		between.lan = newSplice(t, w.listens[1-caller])
	}
	w.sites[caller].replace(t, fmt.Sprintf("other = %q", w.listens[1-caller]), fmt.Sprintf("other = %q", between.lan.at))
	if w.witness != nil {
		for i := range w.sites {
			between.witness[i] = newSplice(t, w.listens[2])
			w.sites[i].replace(t, fmt.Sprintf("witness = %q", w.listens[2]), fmt.Sprintf("witness = %q", between.witness[i].at))
		}
	}
	return between
}
