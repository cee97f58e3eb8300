// Command blue-game plays the experiment of 2004 again: unmodified JXTA 2.2 peers of 2003 over HTTP, a rendezvous and relay ashore with
// one peer next to it (MPA), one peer at sea (Bergen), and between them the satellite hop of 2004 in the emulator. Track reports are
// buffered and sent in intervals: the full picture at a long one, changes at a shorter one, with the sizes of `gateway synth blue-game`.
// It needs root and the built peers (make peers), and as long as a run of 2004 took, 20 to 30 minutes:
//
//	go run ./field-tests/blue-game -run 1 -o field-tests/blue-game/results/run-1
//
// It keeps the captures at both ends (a ashore, b at sea, as in the report), the output of the peers, and the figures.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"aldis/internal/lab/field"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

const (
	shoreAddr = "10.89.0.1"
	shipAddr  = "10.89.0.2"
	httpPort  = 9700
)

type options struct {
	run      int
	seed     uint64
	profile  string
	duration time.Duration
	out      string
	peers    string
	kind     string
}

func main() {
	var o options
	flag.IntVar(&o.run, "run", 1, "`run` of 2004, 1 to 5: how long it took and how much was sent")
	flag.Uint64Var(&o.seed, "seed", 1, "of the link's losses and delays, and of the tracks")
	flag.StringVar(&o.profile, "profile", "iridium-directip-shore", "link `profile` of the ship")
	flag.DurationVar(&o.duration, "duration", 0, "instead of the run's own")
	flag.StringVar(&o.out, "o", "", "`directory` for captures and figures")
	flag.StringVar(&o.peers, "peers-dir", "field-tests/peers", "`directory` of the built peers")
	flag.StringVar(&o.kind, "peers", "jxta22", "jxta22 or jxse27")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := play(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "blue-game:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, o options) (err error) {
	if o.run < 1 || o.run > len(trace.BlueGame) || o.out == "" {
		return errors.New("it needs -run 1..5 and -o DIRECTORY")
	}
	if o.duration == 0 {
		o.duration = time.Duration(trace.BlueGame[o.run-1].TotalS * float64(time.Second))
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	sizes, err := schedule(o)
	if err != nil {
		return err
	}
	prefix := fmt.Sprintf("aldis-tr-%d-", os.Getpid())
	defer func() { err = errors.Join(err, removeSpaces(prefix)) }()
	hub, err := network(o, prefix)
	if err != nil {
		return err
	}
	game := game{o: o, prefix: prefix, sizes: sizes}
	err = game.play(ctx)
	hub.Close()
	if err != nil {
		return err
	}
	for from, to := range map[string]string{"hq.pcap": fmt.Sprintf("%da.pcap", o.run), "ship.pcap": fmt.Sprintf("%db.pcap", o.run)} {
		if err := os.Rename(filepath.Join(o.out, from), filepath.Join(o.out, to)); err != nil {
			return err
		}
	}
	return compare(o)
}

// network makes two namespaces and the satellite hop between them.
func network(o options, prefix string) (*field.Hub, error) {
	ship, err := profile.Load(o.profile, os.ReadFile)
	if err != nil {
		return nil, err
	}
	wire, err := profile.Load("wire", nil)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"hq", "ship"} {
		if out, err := exec.Command("ip", "netns", "add", prefix+name).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip netns add: %w: %s", err, out)
		}
		if out, err := exec.Command("ip", "-n", prefix+name, "link", "set", "lo", "up").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip link: %w: %s", err, out)
		}
	}
	return field.StartHub(field.HubConfig{Seed: o.seed, PcapDir: o.out, Nodes: []field.HubNode{
		{Name: "hq", Netns: prefix + "hq", Addr: netip.MustParsePrefix(shoreAddr + "/24"), Profile: wire},
		{Name: "ship", Netns: prefix + "ship", Addr: netip.MustParsePrefix(shipAddr + "/24"), Profile: ship},
	}})
}

func removeSpaces(prefix string) error {
	var errs []error
	for _, name := range []string{"hq", "ship"} {
		if _, err := os.Stat("/run/netns/" + prefix + name); err == nil {
			errs = append(errs, exec.Command("ip", "netns", "del", prefix+name).Run())
		}
	}
	return errors.Join(errs...)
}

// track is one message: when, from the first one, and how large.
type track struct {
	at   time.Duration
	size int
}

// schedule is the messages of the two peers: those of the synthetic trace of the run, from its first message on.
func schedule(o options) (map[string][]track, error) {
	var b bytes.Buffer
	if _, err := trace.Synth(&b, o.run, o.seed, trace.ContentText); err != nil {
		return nil, err
	}
	f, err := trace.ReadFile(&b)
	if err != nil {
		return nil, err
	}
	names, sizes := map[string]string{}, map[string][]track{}
	first := -1.0
	for _, l := range f.Lines {
		switch l.Do {
		case "peer":
			names[l.Peer] = l.Name
		case trace.EventSend:
			if first < 0 {
				first = l.T
			}
			sizes[names[l.Peer]] = append(sizes[names[l.Peer]], track{time.Duration((l.T - first) * float64(time.Second)), l.Octets})
		}
	}
	return sizes, nil
}

type game struct {
	o      options
	prefix string
	sizes  map[string][]track
	began  time.Time
}

func (g *game) logf(format string, args ...any) {
	fmt.Printf("%5.0f s  %s\n", time.Since(g.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts a peer with HTTP as its transport.
func (g *game) start(ctx context.Context, name, site, host string, port int, role string) (*field.Peer, error) {
	cfg := field.PeerConfig{
		Netns: g.prefix + site, Kind: g.o.kind, Name: name, Host: host, Port: port, Role: role, JarDir: g.o.peers, HTTP: true,
	}
	if role == "edge" {
		cfg.Seed = fmt.Sprintf("http://%s:%d", shoreAddr, httpPort)
	}
	return field.StartPeer(ctx, cfg)
}

func (g *game) play(ctx context.Context) (err error) {
	g.began = time.Now()
	var peers []*field.Peer
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.Stop(), g.keep(p))
		}
	}()
	for _, p := range []struct {
		name, site, host string
		port             int
		role             string
	}{
		{"rdv", "hq", shoreAddr, httpPort, "rdv"}, {"mpa", "hq", shoreAddr, httpPort + 1, "edge"}, {"bergen", "ship", shipAddr, httpPort + 2, "edge"},
	} {
		peer, err := g.start(ctx, p.name, p.site, p.host, p.port, p.role)
		if err != nil {
			return err
		}
		peers = append(peers, peer)
		if p.role == "rdv" {
			ready, cancel := context.WithTimeout(ctx, time.Minute)
			_, err := peer.Wait(ready, is("ready", ""))
			cancel()
			if err != nil {
				return err
			}
		}
	}
	mpa, bergen := peers[1], peers[2]
	end, stop := context.WithDeadline(ctx, g.began.Add(g.o.duration))
	defer stop()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]*field.Peer{{mpa, bergen}, {bergen, mpa}} {
		own, far := pair[0], pair[1]
		lines := []string{"publish " + own.Name() + " propagate", "find " + far.Name() + " 30", "listen " + far.Name(), "open " + far.Name()}
		for _, line := range lines {
			if err := own.Command(line); err != nil {
				return err
			}
		}
		go func() {
			defer func() { done <- struct{}{} }()
			g.talk(end, own, far)
		}()
	}
	<-done
	<-done
	<-end.Done()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, p := range []*field.Peer{mpa, bergen} {
		g.logf("%s: %d sent, %d received of the other", p.Name(), count(p, "sent", ""), count(p, "received", p.Name()))
	}
	return nil
}

// talk sends a peer's tracks. As in 2004 it sends nothing before all pipes are there.
func (g *game) talk(end context.Context, own, far *field.Peer) {
	for _, pair := range [][2]*field.Peer{{own, far}, {far, own}} {
		if _, err := pair[0].Wait(end, is("opened", pair[1].Name())); err != nil {
			g.logf("%s never had its pipe", pair[0].Name())
			return
		}
	}
	g.logf("%s begins to send", own.Name())
	first := time.Now()
	for _, t := range g.sizes[own.Name()] {
		timer := time.NewTimer(time.Until(first.Add(t.at)))
		select {
		case <-timer.C:
		case <-end.Done():
			timer.Stop()
			return
		}
		if err := own.Command(fmt.Sprintf("send %s %d 1", far.Name(), max(64, t.size))); err != nil {
			g.logf("%v", err)
			return
		}
	}
}

// is matches an event, of any name when name is empty.
func is(ev, name string) func(field.Event) bool {
	return func(e field.Event) bool { return e.Ev == ev && (name == "" || e.Name == name) }
}

// count counts a peer's events, without messages from not.
func count(p *field.Peer, ev, not string) (n int) {
	for _, e := range p.Events() {
		if e.Ev == ev && (not == "" || e.From != not) {
			n++
		}
	}
	return n
}

// keep writes the output of a peer, one event a line.
func (g *game) keep(p *field.Peer) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range p.Events() {
		if err := enc.Encode(e); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(g.o.out, p.Name()+".jsonl"), b.Bytes(), 0o644)
}

// compare writes the figures of both captures, and puts the most telling ones next to the published range.
func compare(o options) error {
	var text strings.Builder
	w := io.MultiWriter(os.Stdout, &text)
	fmt.Fprintf(w, "\n%-34s %12s %12s   %s\n", fmt.Sprintf("run %d", o.run), "ashore (a)", "at sea (b)", "2004, all ten captures")
	var r [2]*trace.Report
	for i, end := range []string{"a", "b"} {
		name := fmt.Sprintf("%d%s", o.run, end)
		report, err := analyse(filepath.Join(o.out, name+".pcap"))
		if err != nil {
			return err
		}
		r[i] = report
		f, err := os.Create(filepath.Join(o.out, name+".txt"))
		if err != nil {
			return err
		}
		err = report.WriteText(f, name)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	row := func(label, published, format string, value func(*trace.Report) any) {
		fmt.Fprintf(w, "%-34s %12s %12s   %s\n", label, fmt.Sprintf(format, value(r[0])), fmt.Sprintf(format, value(r[1])), published)
	}
	row("connections", "29 to 39", "%d", func(r *trace.Report) any { return r.Figures.Connections })
	row("connections per minute", "1.05 to 1.76", "%.2f", func(r *trace.Report) any { return r.ConnsPerMinute })
	row("packets", "1768 to 2132", "%d", func(r *trace.Report) any { return r.Figures.Packets })
	row("data packets, %", "44.71 to 48.82", "%.2f", func(r *trace.Report) any { return r.DataPacketsPct })
	row("data octets, %", "92.82 to 94.08", "%.2f", func(r *trace.Report) any { return r.DataBytesPct })
	row("total octets", "799998 to 1025285", "%d", func(r *trace.Report) any { return r.Figures.TotalBytes })
	row("retransmissions, %", "0.90 to 7.43", "%.2f", func(r *trace.Report) any { return r.RetransmitPct })
	row("set-up, mean, s", "2.22 to 3.77", "%.2f", func(r *trace.Report) any { return r.Figures.SetupAvgS })
	row("application octets in", "28019 to 56547 (b)", "%d", func(r *trace.Report) any { return r.Application.In })
	row("application octets out", "30856 to 62472 (b)", "%d", func(r *trace.Report) any { return r.Application.Out })
	row("payload ratio, %", "7.70 to 12.35 (b)", "%.2f", func(r *trace.Report) any { return r.PayloadPct })
	row("pipe set-up, s", "127 to 567 (b)", "%s", func(r *trace.Report) any {
		if r.PipeSetupS == nil {
			return "never"
		}
		return fmt.Sprintf("%.0f", *r.PipeSetupS)
	})
	row("discovery, s", "95 to 402 (b, MPA)", "%s", func(r *trace.Report) any {
		for _, s := range r.Discovery {
			if s.Name == "mpa" {
				return fmt.Sprintf("%.0f", s.S)
			}
		}
		return "never"
	})
	return os.WriteFile(filepath.Join(o.out, "figures.txt"), []byte(strings.TrimLeft(text.String(), "\n")), 0o644)
}

func analyse(file string) (*trace.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := trace.NewReader(f)
	if err != nil {
		return nil, err
	}
	a := trace.New(trace.Options{Edge: netip.MustParseAddr(shipAddr)})
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return a.Finish(), nil
		}
		if err != nil {
			return nil, err
		}
		a.Add(p)
	}
}
