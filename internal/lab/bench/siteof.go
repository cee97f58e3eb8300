package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	settling     = 30 * time.Second // until one machine leads and the others could take over
	flatLocal    = 1_000_000        // messages between two local peers
)

// barelink is a link without delay, loss or bundling, so that a datagram goes as soon as its messages are on disk.
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

// siteOf is a site of one machine, of two with a witness, or of three and more. One of them leads.
type siteOf struct {
	s        *session
	told     []site
	machines []*server // nil: the machine is dead
	between  []int     // TCP ports on which the machines meet
	witness  *server   // of a site of two: the third voter, which has no keys except the network's
	wires    []*wire   // from each machine to the far gateway
	far      *server
	leader   int
}

// members is the number of machines of the site at a place.
var members = map[string]int{gatewayTCP: 1, gatewaySite: 2, gatewayThree: 3, gatewayFive: 5}

// sites measures a site of several machines, and one of a single machine.
func sites(s *session, ctx context.Context) error {
	n := members[s.where]
	if n < 5 {
		s.attempt(ctx, func() error { return onSite(ctx, s, n, (*siteOf).acceptance, (*siteOf).local, (*siteOf).takeover) })
	}
	if n > 2 {
		s.attempt(ctx, func() error { return onSite(ctx, s, n, (*siteOf).dwindle) })
	}
	if n == 3 {
		s.attempt(ctx, func() error { return deathsOfHQ(ctx, s, s.quick(deathShips, 8), s.quick(deathKills, 2)) })
	}
	if n != 2 {
		s.attempt(ctx, func() error { return growth(ctx, s) })
	}
	return ctx.Err()
}

// onSite starts a site with a far gateway, and measures on it.
func onSite(ctx context.Context, s *session, n int, parts ...func(*siteOf, context.Context) error) error {
	w, err := facing(ctx, s, n)
	if w != nil {
		defer func() { _ = w.close() }() // a killed one reports an error
	}
	if err != nil {
		return err
	}
	for _, part := range parts {
		s.attempt(ctx, func() error { return part(w, ctx) })
	}
	return ctx.Err()
}

// newSite starts the machines of a site, and waits until one leads and the others could take over. facing returns, by their node ids, the
// sister gateways of machine i, whose UDP port is radio; nil: none.
func newSite(ctx context.Context, s *session, n int, profile string, facing func(i, radio int) (map[int]string, error)) (w *siteOf, err error) {
	s.progressf("%d machines of a site", n)
	radio, err := freePorts("udp", n)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts("tcp", 2*n+1)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	w = &siteOf{s: s, between: ports[:n]}
	for i := range n {
		one := site{id: 1, profile: profile, radio: radio[i], lan: at(n + 1 + i)}
		switch n {
		case 1:
		case 2:
			one.more = fmt.Sprintf("\n[site]\nlisten = %q\nother = %q\nwitness = %q\n", at(i), at(1-i), at(2))
		default:
			var list []string
			for k := range n {
				list = append(list, fmt.Sprintf("%q", at(k)))
			}
			one.more = fmt.Sprintf("\n[cluster]\nmembers = [%s]\nlisten = %q\n", strings.Join(list, ", "), at(i))
		}
		if one.dir, err = os.MkdirTemp(s.dir, "machine-"); err == nil && facing != nil {
			one.peers, err = facing(i, radio[i])
		}
		if err != nil {
			return w, err
		}
		w.told = append(w.told, one)
	}
	if n == 2 {
		if w.witness, err = s.gateway(ctx, site{id: 2, profile: profile, witness: at(2), more: fmt.Sprintf("\n[site]\nlisten = %q\n", at(2))}); err != nil {
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

// severalOf starts the site of the session's place alone. The returned server is the machine that leads, with one that follows as its
// other.
func severalOf(ctx context.Context, s *session) (*server, error) {
	w, err := newSite(ctx, s, members[s.where], "wire", nil)
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.close())
		}
		return nil, err
	}
	first := *w.machines[w.leader]
	first.other, first.stop = w.machines[w.other()], w.close
	return &first, nil
}

// bareProfile is the file of barelink.
func bareProfile(s *session) (string, error) {
	file := filepath.Join(s.dir, "bare.toml")
	return file, os.WriteFile(file, []byte(barelink), 0o600)
}

// facing starts a site and a far gateway, with a wire from each machine to it.
func facing(ctx context.Context, s *session, n int) (*siteOf, error) {
	profile, err := bareProfile(s)
	if err != nil {
		return nil, err
	}
	radio, err := freePorts("udp", 1)
	if err != nil {
		return nil, err
	}
	var wires []*wire
	seen := map[int]string{}
	w, err := newSite(ctx, s, n, profile, func(i, own int) (map[int]string, error) {
		wire, at, err := newWire([2]int{own, radio[0]})
		if err != nil {
			return nil, err
		}
		if wires = append(wires, wire); i == 0 {
			seen[1] = at[1]
		}
		return map[int]string{2: at[0]}, nil
	})
	if w != nil {
		w.wires = wires
	}
	if err != nil {
		return w, err
	}
	w.far, err = s.gateway(ctx, site{id: 2, profile: profile, radio: radio[0], peers: seen})
	return w, err
}

// close stops all machines.
func (w *siteOf) close() error {
	var errs []error
	for _, srv := range append(w.machines, w.far, w.witness) {
		if srv != nil {
			errs = append(errs, srv.stop())
		}
	}
	for _, wire := range w.wires {
		wire.close()
	}
	return errors.Join(errs...)
}

// state is the state that a machine of a site reports.
type state struct {
	Role                                   string
	Whole, Silent, Ready, Alone, Connected bool
}

// state asks a machine for its state; the zero value: it does not answer.
func (w *siteOf) state(ctx context.Context, i int) (is state) {
	if len(w.machines) == 1 {
		return state{Role: "leading"}
	}
	if w.machines[i] == nil {
		return is
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.machines[i].http+"/site", nil)
	if err != nil {
		return is
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return is
	}
	defer resp.Body.Close()
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&is) != nil {
		return state{}
	}
	return is
}

// leading is the machine that leads and may transmit; -1: none does.
func (w *siteOf) leading(ctx context.Context) int {
	for i := range w.machines {
		if is := w.state(ctx, i); is.Role == "leading" && !is.Silent {
			return i
		}
	}
	return -1
}

// settle waits until one machine leads and all other living ones could take over.
func (w *siteOf) settle(ctx context.Context) error {
	for end := time.Now().Add(settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		if w.leader = w.leading(ctx); w.leader < 0 {
			continue
		}
		could := len(w.machines) == 1 || w.state(ctx, w.leader).Ready
		for i := range w.machines {
			is := w.state(ctx, i)
			could = could && (i == w.leader || w.machines[i] == nil || is.Role == "following" && is.Whole)
		}
		if could {
			return nil
		}
	}
	return errors.Join(ctx.Err(), fmt.Errorf("no machine leads with all others ready within %v", settling))
}

// other is a machine that follows; at a site of one it is the only machine.
func (w *siteOf) other() int { return (w.leader + 1) % len(w.machines) }

// sent is how many octets a machine has sent to the far gateway.
func (w *siteOf) sent(i int) int {
	wire := w.wires[i]
	wire.mu.Lock()
	defer wire.mu.Unlock()
	return wire.octets[0]
}

// costs are the costs of all machines.
func (w *siteOf) costs() (list []cost) {
	for _, srv := range w.machines {
		list = append(list, srv.cost())
	}
	return list
}

// since is the processor time, since before, of the leader, and of another machine in the mean.
func (w *siteOf) since(before []cost) (leader, other time.Duration) {
	for i, now := range w.costs() {
		if used := now.cpu - before[i].cpu; i == w.leader {
			leader = used
		} else {
			other += used / time.Duration(len(w.machines)-1)
		}
	}
	return leader, other
}

// acceptance measures how long a message for the far site takes to its first datagram, which waits for the disks, and how many a second
// go.
func (w *siteOf) acceptance(ctx context.Context) error {
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
			before, began := w.sent(w.leader), time.Now()
			if _, err := c.a.Do(edgepeer.Send{Pipe: c.there, To: c.b.ID(), Elements: body(i, toFar)}); err != nil {
				return err
			}
			for w.sent(w.leader) == before {
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
	before := w.costs()
	f, err := w.toFar(ctx, c)
	octets, bad := seen.stop()
	if err != nil {
		return err
	}
	row := f.row("messages to a far site", toFar)
	row.Must, row.Aim = 2000, 10000
	leader, others := w.since(before)
	row.Note = fmt.Sprintf("%.0f us of processor each", us(leader)/float64(max(1, f.n)))
	if len(w.machines) > 1 {
		row.Note += fmt.Sprintf(", %.0f us of each other machine", us(others)/float64(max(1, f.n)))
	}
	s.put(row)
	if len(w.machines) == 1 {
		return nil
	}
	row = Row{What: "octets of TCP between the machines, of a message to a far site", Size: toFar, Unit: "octets", N: f.n, Must: 4096, Less: true}
	if bad != nil {
		s.failed(ctx, row, bad)
		return nil
	}
	s.put(row.of(float64(octets) / float64(max(1, f.n))))
	return nil
}

// toFar sends messages to the far site with at most farAhead of them under way, until the far gateway has them. They are for many peers
// there, because a gateway hands one peer no more than a hundred a second.
func (w *siteOf) toFar(ctx context.Context, c *pair) (f stream, err error) {
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

// beside files a row, and at a site of several also the difference from a site of one.
func (w *siteOf) beside(row Row, must, aim float64) {
	s := w.s
	s.put(row)
	for _, r := range s.report.Rows {
		if len(w.machines) > 1 && r.Bench == s.bench && r.Where == gatewayTCP && r.line() == row.line() && r.measured() {
			s.put(Row{What: row.What + ", added by the other machines", Size: row.Size, Unit: row.Unit, N: row.N, Must: must, Aim: aim, Less: true}.of(row.Value - r.Value))
		}
	}
}

// local measures messages between two local peers; at a site of several one of them is behind a machine that follows.
func (w *siteOf) local(ctx context.Context) error {
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
func (w *siteOf) takeover(ctx context.Context) error {
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
		dead := w.leader
		transmitted := func() (octets int) {
			for i := range w.machines {
				if i != dead {
					octets += w.sent(i)
				}
			}
			return octets
		}
		sent := transmitted()
		_, began := w.kill()
		p, err := w.served(ctx)
		if err != nil {
			return err
		}
		p.Close()
		served = append(served, time.Since(began).Seconds())
		for transmitted() == sent {
			if time.Since(began) > settling || ctx.Err() != nil {
				return errors.Join(ctx.Err(), errors.New("the machine that leads has sent nothing"))
			}
			pause(ctx, pollEvery)
		}
		heard = append(heard, time.Since(began).Seconds())
		all, err := r.back(ctx, began)
		if err != nil {
			return err
		}
		back = append(back, all.Seconds())
		if err = w.start(ctx, dead); err == nil {
			err = w.settle(ctx)
		}
		if err != nil {
			return err
		}
	}
	s.put(Row{What: "takeover: a local peer has its lease at another machine", Unit: "s", Must: 10, Aim: 2, Less: true}.of(served...))
	s.put(Row{What: "takeover: all have their leases again", Number: regularPeers, Of: "peers", Unit: "s", Must: 10, Aim: 3, Less: true}.of(back...))
	s.put(Row{What: "takeover: another machine transmits", Unit: "s", Must: 15, Aim: 5, Less: true}.of(heard...))
	return nil
}

// kill takes the power from the leader.
func (w *siteOf) kill() (dead int, at time.Time) {
	dead, at = w.leader, time.Now()
	w.machines[dead].kill()
	w.machines[dead] = nil
	return dead, at
}

// start starts a dead machine.
func (w *siteOf) start(ctx context.Context, i int) (err error) {
	w.machines[i], err = w.s.gateway(ctx, w.told[i])
	return err
}

// dwindle kills the leader of a cluster until no majority is left, and starts all again.
func (w *siteOf) dwindle(ctx context.Context) error {
	s := w.s
	if len(w.machines) < 3 {
		return nil
	}
	r := w.regulars(ctx)
	defer r.stop()
	if _, err := r.back(ctx, time.Time{}); err != nil {
		return err
	}
	var dead []int
	for left := len(w.machines) - 1; left > len(w.machines)/2; left-- {
		s.progressf("the leader is killed, %d left", left)
		i, at := w.kill()
		dead = append(dead, i)
		took, err := r.back(ctx, at)
		if err == nil {
			err = w.settle(ctx)
		}
		if err != nil {
			return err
		}
		s.put(Row{What: fmt.Sprintf("leaders killed one after another: all %d peers have their leases again", regularPeers), Number: left, Of: "machines left", Unit: "s", N: regularPeers, Must: 10, Aim: 3, Less: true}.of(took.Seconds()))
	}
	gone := time.Duration(s.quick(10, 4)) * time.Second
	s.progressf("no majority for %v", gone)
	i, at := w.kill()
	pause(ctx, gone)
	served := 0
	for k := range r.joined {
		if r.joined[k].Load().After(at) {
			served++
		}
	}
	s.put(Row{What: "without a majority: peers that are served", Unit: "peers", N: regularPeers, Less: true, Note: fmt.Sprintf("in %v", gone)}.of(float64(served)))
	if leads := w.leading(ctx); leads >= 0 {
		return fmt.Errorf("machine %d leads without a majority", leads)
	}
	s.progressf("the majority is back")
	at = time.Now()
	if err := w.start(ctx, i); err != nil {
		return err
	}
	took, err := r.back(ctx, at)
	if err != nil {
		return err
	}
	s.put(Row{What: fmt.Sprintf("the majority is back: all %d peers have their leases again", regularPeers), Unit: "s", N: regularPeers, Must: 10, Aim: 3, Less: true, Note: "from the start of the machine's process"}.of(took.Seconds()))
	for _, i := range dead {
		if err := w.start(ctx, i); err != nil {
			return err
		}
	}
	return w.settle(ctx)
}

// regulars are peers that know all machines, and join one of them again whenever their connection ends.
type regulars struct {
	joined [regularPeers]atomic.Pointer[time.Time] // when each joined last
	stop   func()
}

func (w *siteOf) regulars(ctx context.Context) *regulars {
	ctx, cancel := context.WithCancel(ctx)
	r := &regulars{}
	var all sync.WaitGroup
	r.stop = func() { cancel(); all.Wait() }
	for i := range r.joined {
		all.Go(func() {
			w.again(ctx, i, tcp.Config{}, fmt.Sprintf("bench-regular-%d", i), func(p *tcp.Peer) {
				now := time.Now()
				r.joined[i].Store(&now)
				lasts(ctx, p)
			})
		})
	}
	return r
}

// again joins a peer to one machine after the other, beginning with the i-th, whenever its connection has ended, and runs use with it,
// until ctx ends.
func (w *siteOf) again(ctx context.Context, i int, cfg tcp.Config, name string, use func(*tcp.Peer)) {
	for ; ctx.Err() == nil; i++ {
		cfg.Address = w.told[i%len(w.told)].lan
		try, over := context.WithTimeout(ctx, serverStop) // a long time, because octets in a closed socket are lost
		p, err := join(try, cfg, name)
		over()
		if err != nil {
			pause(ctx, 10*pollEvery)
			continue
		}
		use(p)
		p.Close()
	}
}

// back waits until all have joined after since, and returns how long that took.
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

// served joins a peer at the machine that leads as soon as that machine accepts one.
func (w *siteOf) served(ctx context.Context) (*tcp.Peer, error) {
	for end := time.Now().Add(settling); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, pollEvery) {
		i := w.leading(ctx)
		if i < 0 {
			continue
		}
		try, cancel := context.WithTimeout(ctx, time.Second)
		p, err := join(try, tcp.Config{Address: w.machines[i].address}, "bench-after")
		cancel()
		if err == nil {
			return p, nil
		}
	}
	return nil, errors.Join(ctx.Err(), errors.New("no local peer is served"))
}
