package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/field"
	"aldis/internal/lab/replay"
	"aldis/internal/link/profile"
)

// natsPeer is a client of a NATS server that speaks its protocol: it subscribes, publishes and receives.
type natsPeer struct {
	conn net.Conn
	lock sync.Mutex // guards writing
	hear atomic.Pointer[func(subject string, data []byte)]
	done chan struct{}
	err  error // why it ended; valid after the end
}

func dialNATS(ctx context.Context, dial func(context.Context) (net.Conn, error), subject string) (*natsPeer, error) {
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	p := &natsPeer{conn: conn, done: make(chan struct{})}
	r := bufio.NewReaderSize(conn, 1<<16)
	ready := make(chan struct{})
	go p.read(r, ready)
	err = p.write([]byte("CONNECT {\"verbose\":false,\"pedantic\":false}\r\nSUB " + subject + " 1\r\nPING\r\n"))
	if err == nil {
		select {
		case <-ready:
			return p, nil
		case <-p.done:
			err = p.err
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.close()
	return nil, fmt.Errorf("NATS: %w", err)
}

func (p *natsPeer) close() {
	p.conn.Close()
	<-p.done
}

func (p *natsPeer) write(b []byte) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	_, err := p.conn.Write(b)
	return err
}

func (p *natsPeer) publish(subject string, data []byte) error {
	b := fmt.Appendf(make([]byte, 0, len(data)+64), "PUB %s %d\r\n", subject, len(data))
	return p.write(append(append(b, data...), "\r\n"...))
}

// read handles the server's lines; ready is closed at its first PONG.
func (p *natsPeer) read(r *bufio.Reader, ready chan struct{}) {
	defer close(p.done)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			p.err = err
			return
		}
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "PING":
			err = p.write([]byte("PONG\r\n"))
		case "PONG":
			close(ready)
			ready = make(chan struct{})
		case "-ERR":
			err = errors.New(rest)
		case "MSG":
			var subject, id string
			var n int
			if _, err = fmt.Sscan(rest, &subject, &id, &n); err == nil && (n < 0 || n > 64<<20) {
				err = fmt.Errorf("a message of %d octets", n)
			}
			data := make([]byte, max(0, min(n, 64<<20))+2)
			if err == nil {
				_, err = io.ReadFull(r, data)
			}
			if f := p.hear.Load(); f != nil && err == nil {
				(*f)(subject, data[:n])
			}
		}
		if err != nil {
			p.err = err
			return
		}
	}
}

// natsPair are two clients: the second receives the first's messages to "there", and answers on "back".
type natsPair struct{ a, b *natsPeer }

func (p *natsPair) close() {
	for _, x := range []*natsPeer{p.a, p.b} {
		if x != nil {
			x.close()
		}
	}
}

// nats runs the server, with a command before its own or none, and joins a pair.
func (s *session) nats(ctx context.Context, in []string, address string, dials [2]func(context.Context) (net.Conn, error), measure func(p *natsPair) error) error {
	file, err := exec.LookPath("nats-server")
	if err != nil {
		return fmt.Errorf("the Debian package nats-server is missing: %w", err)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	args := append(append([]string{}, in...), file, "-a", host, "-p", port)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = s.dir
	done, _, err := field.StartBound(cmd)
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill() // it keeps no state
		<-done
	}()
	p := &natsPair{}
	defer func() { p.close() }()
	for end := time.Now().Add(serverReady); p.b == nil; {
		if p.b, err = dialNATS(ctx, dials[1], "there"); err != nil {
			if p.b = nil; time.Now().After(end) || ctx.Err() != nil {
				return err
			}
			pause(ctx, pollEvery)
		}
	}
	if p.a, err = dialNATS(ctx, dials[0], "back"); err != nil {
		p.a = nil
		return err
	}
	return measure(p)
}

// pings does as a pair's pings does; limit is for one message.
func (p *natsPair) pings(ctx context.Context, data []byte, warm, series, pairs int, limit, budget time.Duration) (t trips, err error) {
	back := make(chan struct{}, 1)
	echo := func(_ string, data []byte) { _ = p.b.publish("back", data) } // a lost message is the sender's to count
	ack := func(string, []byte) {
		select {
		case back <- struct{}{}:
		default:
		}
	}
	p.b.hear.Store(&echo)
	p.a.hear.Store(&ack)
	one := func() (time.Duration, error) {
		began := time.Now()
		if err := p.a.publish("there", data); err != nil {
			return 0, err
		}
		select {
		case <-back:
			return time.Since(began), nil
		case <-time.After(limit):
			return 0, fmt.Errorf("no answer within %v", limit)
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	for began := time.Now(); t.warm < warm && time.Since(began) < budget/3; t.warm++ {
		if _, err := one(); err != nil {
			return t, err
		}
	}
	for range series {
		var sum time.Duration
		n := 0
		for began := time.Now(); n < pairs && (n == 0 || time.Since(began) < budget/time.Duration(series)); n++ {
			d, err := one()
			if err != nil {
				return t, err
			}
			sum += d
			t.all = append(t.all, d)
		}
		t.means = append(t.means, us(sum)/float64(n))
	}
	return t, nil
}

// flow does as a pair's flow does, with ahead messages under way.
func (p *natsPair) flow(ctx context.Context, size, ahead, series int, d time.Duration) (f stream, err error) {
	var received atomic.Int64
	count := func(string, []byte) { received.Add(1) }
	p.b.hear.Store(&count)
	data := make([]byte, size)
	for range series {
		began, before := time.Now(), received.Load()
		for time.Since(began) < d && ctx.Err() == nil {
			if int64(f.n)-received.Load() >= int64(ahead) {
				pause(ctx, 20*time.Microsecond)
				continue
			}
			if err := p.a.publish("there", data); err != nil {
				return f, err
			}
			f.n++
		}
		f.rates = append(f.rates, float64(received.Load()-before)/time.Since(began).Seconds())
	}
	for end := time.Now().Add(pairLimit); received.Load() < int64(f.n) && time.Now().Before(end) && ctx.Err() == nil; {
		pause(ctx, time.Millisecond)
	}
	f.lost = f.n - int(received.Load())
	return f, ctx.Err()
}

// brokers sends the same messages through the gateway and through a present-day broker, on a LAN and over links.
func (s *session) brokers(ctx context.Context) error {
	switch s.where {
	case overLink, brokerOnLink:
		for i, name := range []string{s.Profile, "geo-satcom-128k"} {
			if s.Quick && i > 0 && s.where == brokerOnLink {
				break // a link takes real time
			}
			p, err := profile.Load(name, os.ReadFile)
			if err == nil {
				if s.where == overLink {
					err = plays{s, p}.besideBroker(ctx)
				} else {
					err = s.natsOverLink(ctx, p)
				}
			}
			if err != nil && ctx.Err() == nil {
				s.failed(ctx, Row{What: "over " + name, Unit: "s"}, err)
			}
		}
		return ctx.Err()
	case broker:
		at, err := freePorts("tcp", 1)
		if err != nil {
			return err
		}
		address := fmt.Sprintf("127.0.0.1:%d", at[0])
		dial := func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
		return s.nats(ctx, nil, address, [2]func(context.Context) (net.Conn, error){dial, dial}, func(p *natsPair) error {
			return s.besides(ctx, at,
				func(size int) (trips, error) {
					return p.pings(ctx, make([]byte, size), s.quick(warmUp, 100), s.series(), pairs, pairLimit, s.budget())
				},
				func(size, ahead int, d time.Duration) (stream, error) { return p.flow(ctx, size, ahead, s.series(), d) })
		})
	}
	return s.served(ctx, func(ctx context.Context, srv *server) error {
		c, err := s.pair(ctx, srv)
		if err != nil {
			return err
		}
		defer c.close()
		at := netip.MustParseAddrPort(srv.address)
		return s.besides(ctx, []int{int(at.Port())},
			func(size int) (trips, error) {
				c.echo()
				return c.pings(ctx, func(i int) []jxta.Element { return body(i, size) }, s.quick(warmUp, 100), s.series(), 0, s.budget())
			},
			func(size, ahead int, d time.Duration) (stream, error) { return c.flow(ctx, size, ahead, s.series(), d) })
	})
}

// besides files the rows of either on a LAN; ports are the server's.
func (s *session) besides(ctx context.Context, ports []int, pings func(size int) (trips, error), flow func(size, ahead int, d time.Duration) (stream, error)) error {
	for _, size := range s.sizes(10_000, 1, 1000, 10_000, 100_000) {
		s.progressf("round trips, %s", octetsText(size))
		watch := watchPorts(ports)
		t, err := pings(size)
		octets, blind := watch.stop()
		if err != nil {
			return err
		}
		s.put(t.row(whatRoundTrip, size))
		if n := 2 * (len(t.all) + t.warm + t.lost); size == 1 && blind == nil && n > 0 {
			s.put(Row{What: "octets on the LAN", Size: 1, Unit: "octets", Less: true, N: n, Note: "of a message and of its acknowledgement in the mean, to the server and from it, TCP included"}.of(float64(octets) / float64(n)))
		}
	}
	window := s.budget() / time.Duration(s.series())
	for _, x := range []struct {
		what        string
		size, ahead int
	}{{whatSmooth, 1000, 64}, {whatData, 64 << 10, 32}} {
		s.progressf("messages, %s", octetsText(x.size))
		f, err := flow(x.size, x.ahead, window)
		if err != nil {
			return err
		}
		row := f.row(x.what, x.size)
		if x.what == whatData {
			row = row.megabytes()
		}
		s.put(row)
	}
	return nil
}

// For both over a link: a message of random octets, and its acknowledgement of the same size.
const (
	whatOverLink   = ": message and acknowledgement of the same size"
	whatLinkOctets = ": octets on the link of a message and its acknowledgement"
)

// besideBroker is the gateways' part, in virtual time.
func (p plays) besideBroker(ctx context.Context) error {
	const many = 10
	for _, size := range p.sizes(1000, 20, 1000, 10_000) {
		p.progressf("%s, %s", p.profile.Name, octetsText(size))
		s, r := newScript("propagate"), rand.New(rand.NewPCG(seed, uint64(size)))
		s.listen(1)
		every := 60 + 4*p.airtime(size)
		for i := range many {
			s.message(300+float64(i)*every, true, part("trk:body", "", noise(size, r)))
			s.message(300+(float64(i)+0.5)*every, false, part("trk:body", "", noise(size, r)))
		}
		all, err := p.play(ctx, &s.File)
		if err != nil {
			return err
		}
		row := Row{What: p.profile.Name + whatOverLink, Size: size, Unit: "s", Less: true, N: many * len(all), Lost: lost(all)}
		p.figures(row, all, func(r *replay.Result) (float64, bool) {
			up, ok := value(r.LatencyUp.Median)
			down, also := value(r.LatencyDown.Median)
			return up + down, ok && also
		})
		row.What, row.Unit, row.Lost = p.profile.Name+whatLinkOctets, "octets", 0
		p.figures(row, all, func(r *replay.Result) (float64, bool) {
			sum := int64(0)
			for _, b := range r.Bins {
				if b.T >= 300 {
					for _, way := range []map[string]int64{b.Octets.Up, b.Octets.Down} {
						for _, octets := range way {
							sum += octets
						}
					}
				}
			}
			return float64(sum) / many, true
		})
	}
	return nil
}

// natsOverLink has one client at sea: its TCP connection crosses the emulated link, in real time.
func (s *session) natsOverLink(ctx context.Context, p profile.Profile) (err error) {
	wire, err := profile.Load("wire", os.ReadFile)
	if err != nil {
		return err
	}
	cfg := field.HubConfig{Seed: 1, StaticGroups: true}
	var spaces [2]string
	for i, of := range []profile.Profile{wire, p} {
		spaces[i] = fmt.Sprintf("aldis-bench-%d-%d", os.Getpid(), i)
		for _, args := range [][]string{{"netns", "add", spaces[i]}, {"-n", spaces[i], "link", "set", "lo", "up"}} {
			if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("ip: %w: %s", err, strings.TrimSpace(string(out)))
			}
		}
		defer func() {
			if out, bad := exec.Command("ip", "netns", "del", spaces[i]).CombinedOutput(); bad != nil && err == nil {
				err = fmt.Errorf("ip: %w: %s", bad, out)
			}
		}()
		cfg.Nodes = append(cfg.Nodes, field.HubNode{Name: []string{"hq", "ship"}[i], Netns: spaces[i], Profile: of,
			Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 30, 0, byte(i + 1)}), 24)})
	}
	hub, err := field.StartHub(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hub.Close()) }()
	const address = "10.30.0.1:4222"
	dial := func(space string) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) { return field.DialIn(ctx, space, address) }
	}
	octets := func() int64 {
		n := hub.Stats().Link.Node("ship")
		return n.Up.OnAir.Octets + n.Down.OnAir.Octets
	}
	return s.nats(ctx, []string{"ip", "netns", "exec", spaces[0]}, address, [2]func(context.Context) (net.Conn, error){dial(spaces[1]), dial(spaces[0])}, func(c *natsPair) error {
		s.put(Row{What: p.Name + ": octets until the client is connected", Unit: "octets", Less: true}.of(float64(octets())))
		r := rand.New(rand.NewPCG(seed, 1))
		for _, size := range s.sizes(1000, 20, 1000, 10_000) {
			s.progressf("%s, %s", p.Name, octetsText(size))
			before := octets()
			t, err := c.pings(ctx, noise(size, r), 1, s.quick(3, 1), 4, 3*time.Minute, 4*time.Minute)
			if err != nil {
				return err
			}
			for i := range t.means {
				t.means[i] /= 1e6
			}
			row := t.row(p.Name+whatOverLink, size)
			row.Unit = "s"
			row.Note = "real time; TCP over the emulated link"
			s.put(row)
			s.put(Row{What: p.Name + whatLinkOctets, Size: size, Unit: "octets", Less: true, N: len(t.all) + t.warm}.of(float64(octets()-before) / float64(len(t.all)+t.warm)))
		}
		return nil
	})
}
