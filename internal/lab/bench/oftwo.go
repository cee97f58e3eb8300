package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer"
	"aldis/internal/lab/edgepeer/tcp"
)

const (
	toFar        = 200 // octets of a message
	farPace      = 25 * time.Millisecond
	farAhead     = 1024 // messages under way to the far site
	farPeers     = 64
	regularPeers = 16
	settling     = 30 * time.Second // until one machine leads and the other could
	flatLocal    = 1_000_000        // messages between two local peers
)

// barelink is a link without delay, loss or wait for company, so that a datagram goes as soon as what is in it is on disk.
const barelink = `name = "bare"
summary = "a wire without waits"
[link]
medium = "star"
mtu_octets = 1500
[both]
rate_bps = 0
delay_ms = 0
[gateway]
datagram_octets = 1084
segment_octets = 1024
window = 256
ack_delay_ms = 20
probe_interval_ms = 5000
gap_age_ms = 500
grtt_ms = 500
bundle_ms = 0
state_share_percent = 25
`

// ofTwo is a site, of one machine or of two with a witness, and a far gateway. Each machine has a link of its own to that.
type ofTwo struct {
	s        *session
	told     []site
	machines []*server
	wires    []*wire
	between  []int // TCP ports on which the machines meet
	far      *server
	witness  *server // the third voter, which has the keys of the network alone
	leader   int
}

// pairs measures a site of two machines, and the same with one.
func (s *session) pairs(ctx context.Context) error {
	w, err := s.newSite(ctx, map[bool]int{true: 2, false: 1}[s.where == gatewaySite])
	if w != nil {
		defer w.close()
	}
	if err != nil {
		return err
	}
	for _, part := range []func(*ofTwo, context.Context) error{(*ofTwo).acceptance, (*ofTwo).local, (*ofTwo).takeover} {
		if err := part(w, ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.failed(ctx, Row{What: s.doing}, err)
		}
	}
	return nil
}

// newSite starts all, and waits until one machine leads and the other could.
func (s *session) newSite(ctx context.Context, machines int) (w *ofTwo, err error) {
	s.progressf("the machines of the site and a far gateway")
	profile := filepath.Join(s.dir, "bare.toml")
	if err := os.WriteFile(profile, []byte(barelink), 0o600); err != nil {
		return nil, err
	}
	radio, err := freePorts("udp", machines+1)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts("tcp", 5)
	if err != nil {
		return nil, err
	}
	w = &ofTwo{s: s, between: ports[:2]}
	farSees := map[int]string{}
	for i := range machines {
		wire, at, err := newWire([2]int{radio[i], radio[machines]})
		if err != nil {
			return w, err
		}
		w.wires = append(w.wires, wire)
		dir, err := os.MkdirTemp(s.dir, "machine-")
		if err != nil {
			return w, err
		}
		one := site{id: 1, profile: profile, radio: radio[i], peers: map[int]string{2: at[0]}, dir: dir, lan: fmt.Sprintf("127.0.0.1:%d", ports[3+i])}
		if machines == 2 {
			one.more = fmt.Sprintf("\n[site]\nlisten = \"127.0.0.1:%d\"\nother = \"127.0.0.1:%d\"\nwitness = \"127.0.0.1:%d\"\n", ports[i], ports[1-i], ports[2])
		}
		w.told = append(w.told, one)
		if i == 0 {
			farSees[1] = at[1]
		}
	}
	if w.far, err = s.gateway(ctx, site{id: 2, profile: profile, radio: radio[machines], peers: farSees}); err != nil {
		return w, err
	}
	if machines == 2 {
		at := fmt.Sprintf("127.0.0.1:%d", ports[2])
		if w.witness, err = s.gateway(ctx, site{id: 2, profile: profile, witness: at, more: fmt.Sprintf("\n[site]\nlisten = %q\n", at)}); err != nil {
			return w, err
		}
	}
	for _, one := range w.told {
		srv, err := s.gateway(ctx, one)
		if err != nil {
			return w, err
		}
		w.machines = append(w.machines, srv)
	}
	return w, w.settle(ctx)
}

func (w *ofTwo) close() {
	for _, srv := range append(w.machines, w.far, w.witness) {
		if srv != nil {
			_ = srv.stop() // one that was killed says so
		}
	}
	for _, wire := range w.wires {
		wire.close()
	}
}

// leads says whether a machine leads the link, and whether the other one could.
func (w *ofTwo) leads(ctx context.Context, i int) (leads, both bool) {
	if len(w.machines) == 1 {
		return true, true
	}
	c, err := w.machines[i].counters(ctx)
	if err != nil || c["aldis_site_leads"] != 1 {
		return false, false
	}
	return true, c["aldis_site_alone"] == 0 && c["aldis_site_connected"] == 1
}

// settle waits until one machine leads and the other could.
func (w *ofTwo) settle(ctx context.Context) error {
	for end := time.Now().Add(settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		for i := range w.machines {
			if _, both := w.leads(ctx, i); both {
				w.leader = i
				return nil
			}
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("no machine leads with the other one ready within %v", settling))
}

// other is the machine that follows; of a site of one it is the only one.
func (w *ofTwo) other() int { return len(w.machines) - 1 - w.leader }

// datagrams is how many a machine has sent.
func (w *ofTwo) datagrams(i int) int {
	wire := w.wires[i]
	wire.mu.Lock()
	defer wire.mu.Unlock()
	return wire.octets[0]
}

// acceptance is how long a message for the far site takes to its first datagram, which waits for the disks, and how many a second go.
func (w *ofTwo) acceptance(ctx context.Context) error {
	s := w.s
	s.progressf("messages to a far site, one at a time")
	c, err := behind(ctx, w.machines[w.leader], w.far)
	if err != nil {
		return err
	}
	defer c.close()
	c.atB.Store(nil)
	var medians, late []float64
	for range s.series() {
		var took times
		for i := range s.quick(400, 40) {
			pause(ctx, farPace)
			before, began := w.datagrams(w.leader), time.Now()
			if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: body(i, toFar)}); err != nil {
				return err
			}
			for w.datagrams(w.leader) == before {
				if time.Since(began) > pairLimit || ctx.Err() != nil {
					return errors.Join(ctx.Err(), errors.New("no datagram went"))
				}
				time.Sleep(50 * time.Microsecond)
			}
			took = append(took, time.Since(began))
		}
		medians, late = append(medians, took.at(0.5)), append(late, took.at(0.99))
	}
	n := s.series() * s.quick(400, 40)
	w.beside(Row{What: "message to a far site until its datagram: median", Size: toFar, Unit: "ms", N: n, Less: true}.of(medians...), 5, 2)
	w.beside(Row{What: "message to a far site until its datagram: 99 of 100", Size: toFar, Unit: "ms", N: n, Less: true}.of(late...), 20, 0)

	s.progressf("messages to a far site, %d under way", farAhead)
	seen := watchPorts(w.between)
	before, beforeOther := w.machines[w.leader].cost(), w.machines[w.other()].cost()
	f, err := w.toFar(ctx, c)
	octets, bad := seen.stop()
	if err != nil {
		return err
	}
	row := f.row("messages to a far site", toFar)
	row.Must, row.Aim = 2000, 10000
	row.Note = fmt.Sprintf("%.0f us of processor each", us(w.machines[w.leader].cost().cpu-before.cpu)/float64(max(1, f.n)))
	if len(w.machines) == 2 {
		row.Note += fmt.Sprintf(", %.0f us of the follower", us(w.machines[w.other()].cost().cpu-beforeOther.cpu)/float64(max(1, f.n)))
	}
	s.put(row)
	if len(w.machines) == 1 {
		return nil
	}
	row = Row{What: "octets of TCP between the two machines, of a message to a far site", Size: toFar, Unit: "octets", N: f.n, Must: 4096, Less: true}
	if bad != nil {
		s.failed(ctx, row, bad)
		return nil
	}
	s.put(row.of(float64(octets) / float64(max(1, f.n))))
	return nil
}

// toFar sends messages to the far site with at most farAhead of them under way, until the far gateway has them. They are for many peers
// there, as a gateway hands one peer no more than a hundred a second.
func (w *ofTwo) toFar(ctx context.Context, c *pair) (f stream, err error) {
	s := w.s
	to, pipes := make([]*tcp.Peer, 0, farPeers), make([]string, farPeers)
	defer func() { closeAll(to) }()
	for i := range pipes {
		pipes[i] = edgepeer.NamedPipe(fmt.Sprintf("bench-far-%d", i))
		p, err := join(ctx, tcp.Config{Address: w.far.address}, fmt.Sprintf("bench-far-%d", i))
		if err != nil {
			return f, err
		}
		to = append(to, p)
		if _, err := p.Do(edgepeer.Listen{Pipe: pipes[i], Kind: jxta.PipeTypeUnicast}); err != nil {
			return f, err
		}
	}
	there := func() (n int, err error) {
		counters, err := w.machines[w.leader].counters(ctx)
		for name, v := range counters {
			if strings.HasPrefix(name, "aldis_messages_total{") && strings.Contains(name, `event="delivered"`) {
				n += int(v)
			}
		}
		return n, err
	}
	start, err := there()
	before := 0
	for range s.series() {
		now, began := before, time.Now()
		for err == nil && ctx.Err() == nil && time.Since(began) < s.budget()/time.Duration(s.series()) {
			for ; f.n < now+farAhead && err == nil; f.n++ {
				_, err = c.a.Do(edgepeer.Send{Pipe: pipes[f.n%farPeers], To: to[f.n%farPeers].ID(), Elements: body(f.n, toFar)})
			}
			pause(ctx, 5*time.Millisecond)
			n, bad := there()
			now, err = n-start, errors.Join(err, bad)
		}
		f.rates = append(f.rates, float64(now-before)/time.Since(began).Seconds())
		before = now
	}
	for end := time.Now().Add(settling); err == nil && ctx.Err() == nil && before < f.n && time.Now().Before(end); pause(ctx, pollEvery) {
		n, bad := there()
		before, err = n-start, bad
	}
	f.lost = f.n - before
	return f, errors.Join(err, ctx.Err())
}

// beside files a row, and at a site of two what it is more than at a site of one.
func (w *ofTwo) beside(row Row, must, aim float64) {
	s := w.s
	s.put(row)
	for _, r := range s.report.Rows {
		if len(w.machines) == 2 && r.Bench == s.bench && r.Where == gatewayTCP && r.line() == row.line() && r.measured() {
			s.put(Row{What: row.What + ", added by the second machine", Size: row.Size, Unit: row.Unit, N: row.N, Must: must, Aim: aim, Less: true}.of(row.Value - r.Value))
		}
	}
}

// local is messages between two local peers, of a site of two one behind each machine.
func (w *ofTwo) local(ctx context.Context) error {
	s := w.s
	c, err := behind(ctx, w.machines[w.leader], w.machines[w.other()])
	if err != nil {
		return err
	}
	defer c.close()
	s.progressf("round trips of local peers")
	c.echo()
	t, err := c.pings(ctx, func(i int) []jxta.Element { return body(i, toFar) }, s.quick(warmUp, 100), s.series(), 0, s.budget())
	if err != nil {
		return err
	}
	w.beside(t.row(whatRoundTrip+" of local peers", toFar), 1000, 300)
	s.progressf("messages of local peers")
	f, err := c.flow(ctx, toFar, 64, s.series(), s.budget()/time.Duration(s.series()))
	if err != nil {
		return err
	}
	row := f.row("messages of local peers", toFar)
	row.Must = 10000
	s.put(row)
	if s.Quick {
		return nil
	}
	s.progressf("a million messages of local peers")
	before := w.machines[w.leader].cost().resident
	sum, lost, first, last := 0, 0, 0., 0.
	for sum < flatLocal {
		f, err := c.flow(ctx, toFar, 64, 1, 10*time.Second)
		if err != nil {
			return err
		}
		if last = f.rates[0]; sum == 0 {
			first = last
		}
		sum, lost = sum+f.n, lost+f.lost
	}
	s.put(Row{What: "a million messages of local peers: rate of the last ten seconds, of the first", Size: toFar, Unit: "%", N: sum, Lost: lost, Must: 90, Aim: 100,
		Note: fmt.Sprintf("memory of the leader %.0f MB, %.0f before", w.machines[w.leader].cost().resident, before)}.of(100 * last / first))
	return nil
}

// takeover kills the leader, several times.
func (w *ofTwo) takeover(ctx context.Context) error {
	s := w.s
	if len(w.machines) == 1 {
		return nil
	}
	r := w.regulars(ctx)
	defer r.stop()
	if _, err := r.back(ctx, time.Time{}); err != nil {
		return err
	}
	var served, heard, back []float64
	for i := range s.series() {
		s.progressf("the leader is killed, %d", i+1)
		dead, next := w.leader, w.other()
		sent, began := w.datagrams(next), time.Now()
		if err := syscall.Kill(w.machines[dead].pid, syscall.SIGKILL); err != nil {
			return err
		}
		p, err := w.served(ctx, next)
		if err != nil {
			return err
		}
		p.Close()
		served = append(served, time.Since(began).Seconds())
		for w.datagrams(next) == sent {
			if time.Since(began) > settling || ctx.Err() != nil {
				return errors.Join(ctx.Err(), errors.New("the other machine has sent nothing"))
			}
			pause(ctx, pollEvery)
		}
		heard = append(heard, time.Since(began).Seconds())
		all, err := r.back(ctx, began)
		if err != nil {
			return err
		}
		back = append(back, all.Seconds())
		if err := w.machines[dead].stop(); err != nil && !strings.Contains(err.Error(), "killed") {
			return err
		}
		if w.machines[dead], err = s.gateway(ctx, w.told[dead]); err == nil {
			err = w.settle(ctx)
		}
		if err != nil {
			return err
		}
	}
	s.put(Row{What: "takeover: a local peer has its lease at the other machine", Unit: "s", Must: 10, Aim: 2, Less: true}.of(served...))
	s.put(Row{What: "takeover: all have their leases again", Number: regularPeers, Of: "peers", Unit: "s", Must: 10, Aim: 3, Less: true}.of(back...))
	s.put(Row{What: "takeover: the other machine transmits", Unit: "s", Must: 15, Aim: 5, Less: true}.of(heard...))
	return nil
}

// regulars are peers that know both machines, and join one of them again whenever their connection ends.
type regulars struct {
	joined [regularPeers]atomic.Pointer[time.Time] // when each joined last
	stop   func()
}

func (w *ofTwo) regulars(ctx context.Context) *regulars {
	ctx, cancel := context.WithCancel(ctx)
	r := &regulars{}
	var all sync.WaitGroup
	r.stop = func() { cancel(); all.Wait() }
	for i := range r.joined {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				try, over := context.WithTimeout(ctx, time.Second)
				p, err := join(try, tcp.Config{Address: w.told[n%len(w.told)].lan}, fmt.Sprintf("bench-regular-%d", i))
				over()
				if err != nil {
					pause(ctx, 10*pollEvery)
					continue
				}
				now := time.Now()
				r.joined[i].Store(&now)
				select {
				case <-p.Done():
				case <-ctx.Done():
				}
				p.Close()
			}
		})
	}
	return r
}

// back waits until all have joined since then, and says how long that took.
func (r *regulars) back(ctx context.Context, since time.Time) (took time.Duration, err error) {
	for end := time.Now().Add(settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		n := 0
		for i := range r.joined {
			if at := r.joined[i].Load(); at != nil && at.After(since) {
				n, took = n+1, max(took, at.Sub(since))
			}
		}
		if n == len(r.joined) {
			return took, nil
		}
	}
	return 0, errors.Join(ctx.Err(), fmt.Errorf("not all peers are back within %v", settling))
}

// served joins a peer at a machine as soon as that takes one.
func (w *ofTwo) served(ctx context.Context, i int) (p *tcp.Peer, err error) {
	for end := time.Now().Add(settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		try, cancel := context.WithTimeout(ctx, time.Second)
		p, err = join(try, tcp.Config{Address: w.machines[i].address}, "bench-after")
		cancel()
		if leads, _ := w.leads(ctx, i); err == nil && leads {
			return p, nil
		} else if err == nil {
			p.Close()
		}
	}
	return nil, errors.Join(ctx.Err(), err, errors.New("no local peer is served"))
}
