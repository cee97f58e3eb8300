package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aldis/internal/lab/field"
)

// peerJVM is that of the peers which are measured: the compiler works as it does for their users.
var peerJVM = []string{"-Xmx256m", "-Djava.security.egd=file:/dev/urandom"}

const peerLimit = 60 * time.Second // for one measurement of a peer

// real are two unmodified signed JXSE 2.7 peers behind a server.
type real struct{ a, b *field.Peer }

func (r *run) real(ctx context.Context, s *server) (*real, error) {
	p := &real{}
	for i, at := range []**field.Peer{&p.b, &p.a} {
		ports, err := freePorts("tcp", 1)
		if err == nil {
			*at, err = field.StartPeer(ctx, field.PeerConfig{Kind: field.KindJXSE27, Name: []string{"bench-b", "bench-a"}[i], Host: "127.0.0.1", Port: ports[0],
				Seed: "tcp://" + s.address, JarDir: r.Jars, JVM: peerJVM})
		}
		if err != nil {
			return nil, errors.Join(err, p.stop())
		}
	}
	return p, nil
}

func (p *real) stop() error {
	var errs []error
	for _, x := range []*field.Peer{p.a, p.b} {
		if x != nil {
			errs = append(errs, x.Stop())
		}
	}
	return errors.Join(errs...)
}

// heard waits for an event of a name.
func heard(ctx context.Context, p *field.Peer, ev, name string) (field.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	return p.Wait(ctx, func(e field.Event) bool { return e.Ev == ev && (name == "" || e.Name == name) })
}

// measured gives a command and waits for the next figure of that name; seen is how many there were before.
func measured(ctx context.Context, p *field.Peer, seen int, name, format string, args ...any) (field.Event, error) {
	if err := p.Command(fmt.Sprintf(format, args...)); err != nil {
		return field.Event{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, peerLimit)
	defer cancel()
	n := 0
	return p.Wait(ctx, func(e field.Event) bool {
		if e.Ev == "bench" && e.Name == name {
			n++
		}
		return n > seen
	})
}

// bothReal is both for real peers: signed ones, as 2.7 makes them, with a signed rendezvous.
func (r *run) bothReal(ctx context.Context, measure func(ctx context.Context, s *server, p *real) error) error {
	with := func(s *server, err error) error {
		if err != nil {
			return err
		}
		p, err := r.real(ctx, s)
		if err == nil {
			err = errors.Join(measure(ctx, s, p), p.stop())
		}
		if err == nil {
			err = s.passedAll(ctx)
		}
		return errors.Join(err, s.stop())
	}
	if r.Jars == "" {
		return nil
	}
	if err := with(r.rendezvous(ctx, field.KindJXSE27)); err != nil {
		return fmt.Errorf("JXSE 2.7: %w", err)
	}
	if err := with(r.gateway(ctx, site{id: 1, profile: "wire"})); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// passedAll reports what a gateway has refused or given up. What the peers' own library loses, and it does when messages
// come close upon each other, is not the gateway's: all that came in has gone out then.
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

// operations are the typical ones of the performance model of 2004.
func operations(ctx context.Context, r *run) ([]Row, error) {
	row := func(what, published string) Row { return Row{What: what, Unit: "ms", Published: published} }
	rows := []Row{
		row("start of the platform", "5311"), row("rendezvous connected, from the start of the process", ""), row("make and join a group", "get 1447, join 5.4"),
		row("find peers by asking other peers", "881"), row("find peers in its own cache", "29.3"),
		row("find a pipe by asking other peers", "479"), row("find pipes in its own cache", "2.0"),
		row("open an output pipe", "861"), row("publish", "295"), row("open an input pipe", "10.7"),
	}
	for i := range rows {
		if rows[i].Published != "" {
			rows[i].Published += " (2004)"
		}
	}
	names := map[string]int{"get_remote_peers": 3, "get_cached_peers": 4, "get_remote_pipe": 5, "get_cached_pipes": 6, "open_out_pipe": 7, "publish": 8, "open_in_pipe": 9}
	many := r.quick(40, 5)
	err := r.bothReal(ctx, func(ctx context.Context, s *server, p *real) error {
		r.progressf("%s: operations of a peer", s.name)
		for i, ev := range []string{"ready", "rendezvous"} {
			e, err := heard(ctx, p.a, ev, "")
			if err != nil {
				return err
			}
			rows[i].put(s, Figure{Value: e.At().Sub(p.a.Started).Seconds() * 1e3})
		}
		if err := p.b.Command(fmt.Sprintf("bench-serve %d", many)); err != nil {
			return err
		}
		if _, err := heard(ctx, p.b, "bench_ready", "serve"); err != nil {
			return err
		}
		if _, err := measured(ctx, p.a, 0, "ops", "bench-ops %d", many); err != nil {
			return err
		}
		for _, e := range p.a.Events() {
			if i, ok := names[e.Name]; ok && e.Ev == "bench" {
				rows[i].put(s, Figure{Value: e.MS, ByPeers: e.Lost, Note: fmt.Sprintf("p99 %.4g", e.P99)})
			}
		}
		began := time.Now()
		if err := p.a.Command("newgroup bench-group"); err != nil {
			return err
		}
		e, err := heard(ctx, p.a, "joined", "bench-group")
		if err != nil {
			return err
		}
		rows[2].put(s, Figure{Value: e.At().Sub(began).Seconds() * 1e3})
		return nil
	})
	return rows, err
}

// pipes measures a unicast pipe between two real peers.
func pipes(ctx context.Context, r *run) ([]Row, error) {
	rows := []Row{
		{What: "message of 1 octet and its acknowledgement", Unit: "ms", Published: "J2SE 0.711 (2005, one way, gigabit)"},
		{What: "message of 1 kB and its acknowledgement", Unit: "ms"},
		{What: "messages of 1 kB at an even rate", Unit: "per second", Published: "115 (JXTA 1.0, 2004)"},
		{What: "burst of 50 messages of 1 kB until all arrive, at most 5,000", Unit: "ms", Published: "179 messages/s bursty (JXTA 2.0, 2004)"},
		{What: "data in messages of 64 kB", Unit: "MB/s", Published: "J2SE endpoint 101 (2005, gigabit)"},
	}
	err := r.bothReal(ctx, func(ctx context.Context, s *server, p *real) error {
		for _, c := range []struct {
			p    *field.Peer
			line string
		}{{p.b, "bench-echo bench-there bench-back"}, {p.a, "bench-pair bench-there bench-back"}} {
			if err := c.p.Command(c.line); err != nil {
				return err
			}
		}
		for _, x := range []*field.Peer{p.a, p.b} {
			if _, err := heard(ctx, x, "bench_ready", ""); err != nil {
				return err
			}
		}
		r.progressf("%s: pipe between two peers", s.name)
		warm, each, ms := r.quick(warmUp, 100), r.quick(pairs, 10), r.quick(5000, 1000)
		for i, size := range []int{1, 1000} {
			e, err := measured(ctx, p.a, i, "ping", "bench-ping %d %d %d %d", size, warm, series, each)
			if err != nil {
				return err
			}
			rows[i].put(s, Figure{Value: e.MS, ByPeers: e.Lost, Note: fmt.Sprintf("p99 %.3g", e.P99)})
		}
		e, err := measured(ctx, p.a, 0, "flow", "bench-flow 1000 %d 64", ms)
		if err != nil {
			return err
		}
		rows[2].put(s, Figure{Value: e.Rate, ByPeers: e.Lost})
		if e, err = measured(ctx, p.a, 0, "burst", "bench-burst 1000 %d 50", r.quick(10, 2)); err != nil {
			return err
		}
		rows[3].put(s, Figure{Value: e.MS, ByPeers: e.Lost})
		if e, err = measured(ctx, p.a, 1, "flow", "bench-flow %d %d 32", 64<<10, ms); err != nil {
			return err
		}
		rows[4].put(s, Figure{Value: e.Rate * (64 << 10) / 1e6, ByPeers: e.Lost})
		return nil
	})
	return rows, err
}
