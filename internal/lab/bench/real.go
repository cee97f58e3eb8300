package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"aldis/internal/lab/field"
)

// peerJVM is for the measured peers: the compiler works as it does for their users.
var peerJVM = []string{"-Xmx256m", "-Djava.security.egd=file:/dev/urandom"}

const peerLimit = 90 * time.Second // for one measurement of a peer

// real are two unmodified signed JXSE 2.7 peers and the server between them.
type real struct {
	a, b   *field.Peer
	server *server
	home   string
	ports  []int // of the peers and of the server
}

// startReal starts the peers of the session's place. home is the directory of the first peer's cache; "": a fresh one.
func (s *session) startReal(ctx context.Context, home string) (p *real, err error) {
	p = &real{home: home}
	overHTTP := s.where == jxseHTTP || s.where == gatewayHTTP
	switch s.where {
	case jxse, jxseHTTP:
		p.server, err = s.rendezvous(ctx, rendezvousSigned, overHTTP, "")
	case gatewayTCP, gatewayHTTP:
		p.server, err = s.gateway(ctx, site{id: 1, profile: "wire", http: overHTTP})
	}
	if err == nil && p.server != nil {
		var at *net.TCPAddr
		if at, err = net.ResolveTCPAddr("tcp", p.server.address); err == nil {
			p.ports = append(p.ports, at.Port)
		}
	}
	if err == nil {
		p.b, err = s.startPeer(ctx, p, "bench-b", "")
	}
	if err == nil {
		p.a, err = s.startPeer(ctx, p, "bench-a", home)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop(ctx))
	}
	return p, nil
}

func (s *session) startPeer(ctx context.Context, p *real, name, home string) (*field.Peer, error) {
	ports, err := freePorts("tcp", 1)
	if err != nil {
		return nil, err
	}
	p.ports = append(p.ports, ports[0])
	cfg := field.PeerConfig{Kind: field.KindJXSE27, Name: name, Host: "127.0.0.1", Port: ports[0], JarDir: s.Jars, JVM: peerJVM, Home: home, Adhoc: s.where == multicast}
	if p.server != nil {
		cfg.Seed, cfg.HTTP = "tcp://"+p.server.address, s.where == jxseHTTP || s.where == gatewayHTTP
		if cfg.HTTP {
			cfg.Seed = "http://" + p.server.address
		}
	}
	return field.StartPeer(ctx, cfg)
}

// stop ends all, and reports the messages that a gateway has refused or given up. The peers' own library loses messages that come close
// upon each other. Those are not the gateway's losses: all messages that came in have then gone out.
func (p *real) stop(ctx context.Context) error {
	var errs []error
	for _, x := range []*field.Peer{p.a, p.b} {
		if x != nil {
			errs = append(errs, x.Stop())
		}
	}
	if p.server != nil {
		errs = append(errs, p.server.passedAll(ctx), p.server.stop())
	}
	return errors.Join(errs...)
}

// heard waits for an event of a name.
func heard(ctx context.Context, p *field.Peer, ev, name string) (field.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	return p.Wait(ctx, func(e field.Event) bool { return e.Ev == ev && (name == "" || e.Name == name) })
}

// measured gives a command and waits for the next figure with that name.
func measured(ctx context.Context, p *field.Peer, name, format string, args ...any) (field.Event, error) {
	seen := len(p.Events())
	if err := p.Command(fmt.Sprintf(format, args...)); err != nil {
		return field.Event{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	n := 0
	e, err := p.Wait(ctx, func(e field.Event) bool { n++; return n > seen && e.Ev == "bench" && e.Name == name })
	if err == nil && e.Text != "" {
		err = errors.New(e.Text)
	}
	return e, err
}

// peerRow is a peer's measurement, milliseconds or per second.
func peerRow(e field.Event, what string, size int, unit string) Row {
	r := Row{What: what, Size: size, Unit: unit, N: e.N, Warm: e.Warm, ByPeers: e.Lost, Less: unit == "ms"}
	if e.P99 > 0 {
		r.Note = "p99 " + number(e.P99)
	}
	return r.of(e.Series...)
}

// passedAll reports the messages that a gateway has refused or given up.
func (s *server) passedAll(ctx context.Context) error {
	counters, err := s.counters(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for name, v := range counters {
		if v > 0 && (strings.HasPrefix(name, "aldis_jxta_refused_total") || strings.HasPrefix(name, "aldis_lan_refused_total") || strings.Contains(name, "abandoned")) {
			errs = append(errs, fmt.Errorf("it counts %g %s", v, name))
		}
	}
	return errors.Join(errs...)
}

// operations are table 6.1: with an empty cache, and again with the cache of the first round.
func (s *session) operations(ctx context.Context) error {
	home := s.dir + "/home-" + s.where
	for _, adverts := range []int{0, 40} {
		if s.Quick && adverts > 0 && s.where != jxse && s.where != gatewayTCP {
			break
		}
		p, err := s.startReal(ctx, home)
		if err != nil {
			return err
		}
		err = s.operationsOf(ctx, p, adverts)
		if end := p.stop(ctx); err == nil {
			err = end
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) operationsOf(ctx context.Context, p *real, adverts int) error {
	put := func(r Row) {
		if adverts > 0 {
			r.Number, r.Of = adverts, "and more advertisements in its cache"
		}
		s.put(r)
	}
	s.progressf("operations of a peer, %d advertisements in its cache", adverts)
	events := []string{"ready", "rendezvous"}
	if s.where == multicast {
		events = events[:1]
	}
	for i, ev := range events {
		e, err := heard(ctx, p.a, ev, "")
		if err != nil {
			return err
		}
		put(Row{What: []string{operationNames[0], "rendezvous connected, from the start of the process"}[i], Unit: "ms", Less: true}.of(e.At().Sub(p.a.Started).Seconds() * 1e3))
	}
	many := s.quick(40, 10)
	if err := p.b.Command(fmt.Sprintf("bench-serve %d", many)); err != nil {
		return err
	}
	if _, err := heard(ctx, p.b, "bench_ready", "serve"); err != nil {
		return err
	}
	if _, err := measured(ctx, p.a, "ops", "bench-ops %d", many); err != nil {
		return err
	}
	found := map[string]field.Event{}
	for _, e := range p.a.Events() {
		if e.Ev == "bench" {
			found[e.Name] = e
		}
	}
	for i, name := range []string{"open_in_pipe", "get_cached_peers", "get_remote_peers", "get_cached_pipes", "get_remote_pipe", "open_out_pipe", "publish"} {
		row := peerRow(found[name], operationNames[i+2], 0, "ms")
		if !row.measured() {
			row.Failed = fmt.Sprintf("none of %d came", many)
		}
		put(row)
	}
	began := time.Now()
	if err := p.a.Command("newgroup bench-group"); err != nil {
		return err
	}
	e, err := heard(ctx, p.a, "joined", "bench-group")
	if err != nil {
		return err
	}
	put(Row{What: operationNames[1], Unit: "ms", Less: true}.of(e.At().Sub(began).Seconds() * 1e3))
	return nil
}

// layerKinds are the kinds of pipes and streams between unmodified peers, as the bench commands of field-tests/peers call them.
var layerKinds = []struct{ kind, name string }{
	{"endpoint", "endpoint"}, {"unicast", "unicast pipe"}, {"secure", "secure pipe"}, {"propagate", "propagate pipe"}, {"bidi", "BiDi pipe"}, {"socket", "socket"},
}

// layers measures every kind of pipe, and the layers below and above, between the same two peers.
func (s *session) layers(ctx context.Context) error {
	s.progressf("starting the peers")
	p, err := s.startReal(ctx, "")
	if err != nil {
		return err
	}
	defer func() { _ = p.stop(ctx) }() // its errors are in the rows
	var ids [2]string
	for i, x := range []*field.Peer{p.a, p.b} {
		e, err := heard(ctx, x, "ready", "")
		if err != nil {
			return err
		}
		ids[i] = e.ID
	}
	if err := p.trust(ctx); err != nil {
		return err
	}
	for _, k := range layerKinds {
		s.progressf("%s", k.name)
		err := p.connect(ctx, k.kind, ids)
		if err != nil {
			s.failed(ctx, Row{What: k.name + ": " + whatRoundTrip, Size: 1, Unit: "ms"}, err)
		} else {
			err = s.layer(ctx, p, k.kind, k.name)
		}
		if ctx.Err() != nil || errors.Is(err, field.ErrPeerEnded) {
			return errors.Join(ctx.Err(), err)
		}
	}
	if p.server != nil {
		return p.server.passedAll(ctx)
	}
	return nil
}

// trust has each peer trust the other's certificate, because secure pipes need that.
func (p *real) trust(ctx context.Context) error {
	for _, x := range [][2]*field.Peer{{p.a, p.b}, {p.b, p.a}} {
		if err := x[0].Command("certificate"); err != nil {
			return err
		}
		e, err := heard(ctx, x[0], "certificate", "")
		if err != nil {
			return err
		}
		if err := x[1].Command("trust " + e.Text); err != nil {
			return err
		}
		if _, err := heard(ctx, x[1], "trusted", ""); err != nil {
			return err
		}
	}
	return nil
}

func (p *real) connect(ctx context.Context, kind string, ids [2]string) error {
	there, back := "bench-there-"+kind, "bench-back-"+kind
	lines := [2]string{fmt.Sprintf("bench-pair %s %s %s", kind, there, back), fmt.Sprintf("bench-echo %s %s %s", kind, there, back)}
	if kind == "endpoint" {
		lines = [2]string{"bench-pair endpoint " + ids[1] + " -", "bench-echo endpoint - " + ids[0]}
	}
	peers := [2]*field.Peer{p.a, p.b}
	var seen [2]int
	for i := range peers {
		seen[1-i] = len(peers[1-i].Events())
		if err := peers[1-i].Command(lines[1-i]); err != nil {
			return err
		}
	}
	for i, x := range peers {
		limit, cancel := context.WithTimeout(ctx, peerLimit)
		n := 0
		e, err := x.Wait(limit, func(e field.Event) bool {
			n++
			return n > seen[i] && (e.Ev == "bench_ready" || e.Ev == "bench" && e.Name == kind)
		})
		cancel()
		if err == nil && e.Text != "" {
			err = errors.New(e.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// layer measures one of the kinds, once the pipe is connected.
func (s *session) layer(ctx context.Context, p *real, kind, name string) error {
	ms, series := int(s.budget().Milliseconds()), s.series()
	for _, size := range s.sizes(1000, 1, 1000, 10_000, 64_000, 100_000, 1_000_000) {
		s.progressf("%s: round trips, %s", name, octetsText(size))
		capture := watchPorts(p.ports)
		e, err := measured(ctx, p.a, "ping", "bench-ping %s %d %d %d %d %d", kind, size, s.quick(warmUp, 100), series, pairs, ms)
		octets, blind := capture.stop()
		if err != nil {
			s.failed(ctx, Row{What: name + ": " + whatRoundTrip, Size: size, Unit: "ms"}, err)
			if errors.Is(err, field.ErrPeerEnded) || size <= 1000 {
				return err
			}
			break // larger ones will fail too
		}
		s.put(peerRow(e, name+": "+whatRoundTrip, size, "ms"))
		if size != 1 {
			continue
		}
		row := Row{What: name + ": octets on the LAN", Size: size, Unit: "octets", N: 2 * e.N, Less: true,
			Note: "of a message and of its acknowledgement in the mean, TCP and its acknowledgements included"}
		if p.server != nil && s.where != jxse {
			row.Note += ", on both ways: to the server and from it"
		}
		if blind != nil {
			s.failed(ctx, row, blind)
		} else if n := 2 * (e.N + e.Warm + e.Lost); n > 0 {
			s.put(row.of(float64(octets) / float64(n)))
		}
	}
	for _, size := range s.sizes(1000, 1000, 10_000) {
		s.progressf("%s: messages, %s", name, octetsText(size))
		e, err := measured(ctx, p.a, "flow", "bench-flow %s %d %d 64 %d", kind, size, ms, series)
		if err != nil {
			s.failed(ctx, Row{What: name + ": " + whatSmooth, Size: size, Unit: "per second"}, err)
			return nil
		}
		s.put(peerRow(e, name+": "+whatSmooth, size, "per second"))
	}
	if s.Quick {
		return nil
	}
	s.progressf("%s: bursts", name)
	e, err := measured(ctx, p.a, "burst", "bench-burst %s 1000 10 50", kind)
	if err != nil {
		s.failed(ctx, Row{What: name + ": " + whatBurst, Size: 1000, Unit: "ms"}, err)
		return nil
	}
	s.put(peerRow(e, name+": "+whatBurst, 1000, "ms"))
	return nil
}
