package field

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/lab/fleet"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/replay"
	"aldis/internal/link/profile"
)

// published are the figures of the source documents, with which the project compares its own.
//
//go:embed published.json
var published []byte

const (
	hqReady      = 90 * time.Second // HQ's peer has its rendezvous and has published
	progress     = 10 * time.Second // between two lines of progress during the game
	drainTick    = 500 * time.Millisecond
	askerLead    = 40 * time.Second // the second local peer is started so long before the outage: JXTA 2.2 needs 14 s
	deafFrom     = 40 * time.Second // the ship without a listener has received the state by then
	unaidedDrain = 20 * time.Second
	killWait     = time.Minute // for a peer to have its rendezvous again after its gateway was killed
)

// BlueGame plays the game of 2004: HQ's peer starts first, then the ships' with empty caches. Each publishes a service with a propagate
// pipe, opens the other side's pipe and sends tracks. BlueGame returns after all measurements, when all namespaces are removed; a run
// whose gateways lose messages is a result, not an error. The error is a *UsageError for Options that cannot be played.
func BlueGame(ctx context.Context, o Options) (*Result, error) {
	p, err := o.complete()
	if err != nil {
		return nil, err
	}
	res := &Result{
		Profile: p.Name, Seed: o.Seed, DurationS: o.Duration.Seconds(), RateS: o.Rate.Seconds(), Size: o.Size, Peers: o.Peers,
		Ships: o.Ships, Transport: o.transport(), Shapes: o.Shapes, Arrivals: o.Arrivals, Squeezed: o.Squeeze, Reorder: o.Reorder, Twice: o.Twice, Runs: map[string]*Run{}, Published: published,
	}
	if o.ShipPeer != o.Peers {
		res.ShipPeers = o.ShipPeer
	}
	if o.Only != "unaided" {
		if res.Gateway, err = o.gatewayVersion(ctx); err != nil {
			return nil, err
		}
	}
	err = playKinds(ctx, o, func(ctx context.Context, kind string, v *voice, up func()) (func(), error) {
		g := &game{o: o, p: p, kind: kind, voice: v, up: up}
		if o.Pictured {
			g.picture = &picture{}
		}
		run, err := g.play(ctx)
		return func() { res.Runs[kind] = run }, err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// gatewayVersion is the version that the gateway under test prints, or that of its package.
func (o *Options) gatewayVersion(ctx context.Context) (string, error) {
	if packaged(o.Gateway) {
		return packageVersion(ctx, o.Gateway)
	}
	version, err := exec.CommandContext(ctx, o.Gateway, "version").Output()
	if err != nil {
		return "", errors.Join(fmt.Errorf("lab: %s version: %w", o.Gateway, err), ctx.Err())
	}
	return strings.TrimSpace(string(version)), nil
}

// playKinds plays with gateways, without, or both, as the options say. It gives play the kind, and a function up for play to call once
// its peers have started. It collects the results one at a time.
func playKinds(ctx context.Context, o Options, play func(ctx context.Context, kind string, v *voice, up func()) (keep func(), err error)) error {
	// Both kinds play at once, so that they take no longer than one. The second starts when the first one's peers are up, because
	// starting takes most processor time.
	var kinds []string
	if o.Unaided && o.Only == "" || o.Only == "unaided" {
		kinds = append(kinds, "unaided")
	}
	if o.Only != "unaided" {
		kinds = append(kinds, "gateway")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Squeeze {
		relax, err := squeeze()
		if err != nil {
			return err
		}
		defer relax()
	}
	prog, quiet := newProgress(o.Progress)
	defer quiet()
	var mu sync.Mutex
	var all sync.WaitGroup
	errs := make([]error, len(kinds))
	turn := make(chan struct{})
	close(turn)
	for i, kind := range kinds {
		mine, next := turn, make(chan struct{})
		turn = next
		all.Add(1)
		tells := prog.voice(kind)
		go func() {
			defer all.Done()
			defer tells.falls()
			up := sync.OnceFunc(func() { close(next) })
			defer up()
			select {
			case <-mine:
			case <-ctx.Done():
				errs[i] = ctx.Err()
				return
			}
			keep, err := play(ctx, kind, tells, up)
			if err != nil {
				errs[i] = fmt.Errorf("%s run: %w", kind, err)
				cancel()
				return
			}
			mu.Lock()
			keep()
			mu.Unlock()
		}()
	}
	all.Wait()
	for _, err := range errs {
		// The first failure cancels the others: report the cause.
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// game is one run.
type game struct {
	o    Options
	p    profile.Profile
	kind string
	*voice
	up func() // the peers have started
	// For a replay: the settings of the gateways, by site, and whether the link is captured into dir even if no files are kept.
	settings []replay.Gateway
	capture  bool

	picture  *picture // nil: no page is made
	dir      string
	w        *world
	hub      *Hub
	sites    []*lanSite
	hq       *Peer
	ships    []*Peer
	asker    *Peer
	askedAt  time.Time
	zero     time.Time // start of the last ship's peer
	begin    time.Time // start of the outage
	end      time.Time
	kill     *Killed
	deaf     *Deaf
	quiet    *Silence
	deafEars *Peer
	redialed time.Time
	mu       sync.Mutex // guards kill.BackS
}

func (g *game) play(ctx context.Context) (run *Run, err error) {
	peersCtx, killPeers := context.WithCancel(ctx)
	defer func() {
		g.stands(nil)
		g.logf("removing namespaces and processes")
		run, err = g.tearDown(run, err, killPeers)
	}()
	if err := g.setUp(ctx); err != nil {
		return nil, err
	}
	if err := g.startHQ(ctx, peersCtx); err != nil {
		return nil, err
	}
	if err := g.startShips(ctx, peersCtx); err != nil {
		return nil, err
	}
	if err := g.sail(ctx, peersCtx); err != nil {
		return nil, err
	}
	return g.finish(ctx)
}

// setUp makes the sites and the link between them.
func (g *game) setUp(ctx context.Context) (err error) {
	if err := g.makeWorld(); err != nil {
		return err
	}
	g.logf("run %s: %d sites on %s, seed %d, %s over %s", g.w.id, g.o.Ships+1, g.p.Name, g.o.Seed, strings.TrimSpace("peers "+g.o.Peers), g.o.transport())
	wire, err := profile.Load("wire", nil)
	if err != nil {
		return err
	}
	cfg := HubConfig{Seed: g.o.Seed, Wild: linkemu.Wild{Reorder: g.o.Reorder, TwicePct: g.o.Twice}}
	if g.o.Keep != "" || g.capture || g.o.Pictured {
		cfg.PcapDir = g.dir
	}
	for i, name := range g.o.siteNames() {
		s := &lanSite{name: name, index: i, ashore: i == 0, http: g.o.HTTP}
		if i < len(g.settings) {
			s.settings = g.settings[i]
		}
		if s.ns, err = g.w.add(name); err != nil {
			return err
		}
		g.sites = append(g.sites, s)
		node := HubNode{Name: name, Netns: s.ns, Addr: linkAddr(i), Profile: g.p}
		if i == 0 && !g.p.Shared {
			node.Profile = wire // the satellite's leg belongs to the terminal
		} else {
			node.Up, node.Down = g.o.up, g.o.down
		}
		cfg.Nodes = append(cfg.Nodes, node)
	}
	if g.hub, err = StartHub(cfg); err != nil {
		return err
	}
	if g.kind == "unaided" {
		return nil
	}
	profileArg := g.o.Profile
	if strings.ContainsAny(profileArg, "/.") {
		if profileArg, err = filepath.Abs(profileArg); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return g.outfit(ctx, []bearer{{Bearer: fleet.Bearer{Profile: profileArg}, profile: g.p}})
}

// makeWorld claims an ID for the run, and a directory for its files.
func (g *game) makeWorld() (err error) {
	if g.w, err = newWorld(); err != nil {
		return err
	}
	if g.o.Keep != "" {
		g.dir = filepath.Join(g.o.Keep, g.kind)
		err = os.MkdirAll(g.dir, 0o755)
	} else {
		g.dir = g.w.workDir()
		err = os.Mkdir(g.dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if g.dir, err = filepath.Abs(g.dir); err != nil { // the gateways run in other directories
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

// outfit makes the net's key, and all sites ready to start.
func (g *game) outfit(ctx context.Context, bearers []bearer) error {
	key, err := newKey(ctx, g.o.Gateway, g.dir)
	if err != nil {
		return err
	}
	for _, s := range g.sites {
		s.keys = key
		if err := s.outfit(without(g.sites, s), bearers, g.o.Gateway, g.dir); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) peer(ctx context.Context, s *lanSite, name string) (*Peer, error) {
	kind := g.o.Peers
	if s.index > 0 {
		kind = g.o.ShipPeer
	}
	home := filepath.Join(g.dir, name+"-peer")
	if err := os.RemoveAll(home); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	if err := os.Mkdir(home, 0o755); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return s.startPeer(ctx, g.w, PeerConfig{Kind: kind, Name: name, Seed: s.seed(), JarDir: g.o.JarDir, Home: home})
}

// startHQ brings HQ up until its service is published.
func (g *game) startHQ(ctx, peersCtx context.Context) error {
	hq := g.sites[0]
	wait, cancel := context.WithTimeout(ctx, hqReady)
	defer cancel()
	if hq.gateway != nil {
		if err := hq.gateway.start(ctx); err != nil {
			return err
		}
		g.logf("gateway of hq takes connections")
	} else {
		home := filepath.Join(g.dir, "rdv-peer")
		if err := errors.Join(os.RemoveAll(home), os.Mkdir(home, 0o755)); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
		rdv, err := StartPeer(peersCtx, PeerConfig{
			Netns: hq.ns, Kind: g.o.Peers, Name: "rdv", Host: linkAddr(0).Addr().String(), Port: seedPort, Role: "rdv", HTTP: g.o.HTTP,
			JarDir: g.o.JarDir, Home: home,
		})
		if err != nil {
			return err
		}
		if _, err := rdv.Wait(wait, is("ready", "")); err != nil {
			return err
		}
		g.logf("JXTA rendezvous at hq is up")
	}
	var err error
	if g.hq, err = g.peer(peersCtx, hq, "hq"); err != nil {
		return err
	}
	lines := []string{"publish " + service("hq") + " propagate"}
	for _, s := range g.talking() {
		lines = append(lines, "find "+service(s.name)+" 30", "listen "+service(s.name))
	}
	if err := errors.Join(sendCommands(g.hq, lines...), g.start(peersCtx, g.hq, 0)); err != nil {
		return err
	}
	if _, err := g.hq.Wait(wait, is("published", service("hq"))); err != nil {
		return err
	}
	g.logf("peer of hq has its rendezvous and has published its service")
	return nil
}

// talking are the ships that take part, in order.
func (g *game) talking() []*lanSite {
	return slices.DeleteFunc(slices.Clone(g.sites[1:]), func(s *lanSite) bool { return s.name == g.o.Deaf })
}

func sendCommands(p *Peer, lines ...string) error {
	for _, l := range lines {
		if err := p.Command(l); err != nil {
			return err
		}
	}
	return nil
}

// startShips starts the ships' gateways, then their peers. Figures count from the start of the peers.
func (g *game) startShips(ctx, peersCtx context.Context) error {
	for _, s := range g.sites[1:] {
		if s.gateway != nil {
			if err := s.gateway.start(ctx); err != nil {
				return err
			}
			g.logf("gateway of %s takes connections", s.name)
		}
	}
	if g.o.Deaf != "" {
		i := slices.Index(g.o.siteNames(), g.o.Deaf)
		var err error
		if g.deafEars, err = g.peer(peersCtx, g.sites[i], g.o.Deaf); err != nil {
			return err
		}
		g.logf("peer of %s is starting; it will do nothing", g.o.Deaf)
	}
	for _, s := range g.talking() {
		p, err := g.peer(peersCtx, s, s.name)
		if err != nil {
			return err
		}
		g.ships = append(g.ships, p)
		g.zero = p.Started
		err = sendCommands(p, "publish "+service(s.name)+" propagate", "find "+service("hq")+" 30", "listen "+service("hq"))
		if err = errors.Join(err, g.start(peersCtx, p, s.index)); err != nil {
			return err
		}
		g.logf("peer of %s is starting: time counts from here", s.name)
		for _, step := range []struct{ ev, name, text string }{
			{"ready", "", "has loaded its library"},
			{"rendezvous", "", "has its rendezvous"},
			{"discovered", service("hq"), "has discovered hq's service"},
			{"pipe_ready", service("hq"), "listens to hq's pipe"},
			{"received", service("hq"), "has hq's first message"},
		} {
			go g.tellWhen(peersCtx, p, step.ev, step.name, step.text)
		}
		go g.tellWhen(peersCtx, g.hq, "received", service(s.name), "has the first message of "+s.name)
	}
	for _, p := range g.ships {
		start, cancel := context.WithTimeout(ctx, hqReady)
		_, err := p.Wait(start, is("ready", ""))
		cancel()
		if err != nil {
			return err
		}
	}
	g.up()
	return nil
}

func (g *game) tellWhen(ctx context.Context, p *Peer, ev, name, text string) {
	if e, err := p.Wait(ctx, is(ev, name)); err == nil {
		g.logf("%s %s (%.1f s)", p.Name(), text, e.At().Sub(g.zero).Seconds())
	}
}

// action is something that happens at a time of the game.
type action struct {
	at   time.Duration
	what func() error
}

// sail lets the game go on until Duration, with the incidents of the options.
func (g *game) sail(ctx, peersCtx context.Context) error {
	g.stands(g.standing)
	var plan []action
	for d := progress; d < g.o.Duration; d += progress {
		plan = append(plan, action{d, func() error { g.report(); return nil }})
	}
	if g.picture != nil {
		for d := time.Duration(0); d < g.o.Duration; d += sampleEvery {
			plan = append(plan, action{d, func() error { g.sample(time.Now()); return nil }})
		}
	}
	plan = append(plan, g.scenario(ctx, peersCtx)...)
	plan = append(plan, action{g.o.Duration, func() error {
		g.logf("the peers stop sending")
		return g.stopSending()
	}})
	slices.SortStableFunc(plan, func(a, b action) int { return int(a.at - b.at) })
	for _, a := range plan {
		if err := g.until(ctx, g.zero.Add(a.at)); err != nil {
			return err
		}
		if err := a.what(); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) stopSending() (err error) {
	for _, p := range append([]*Peer{g.hq}, g.ships...) {
		p.hush()
		err = errors.Join(err, sendCommands(p, "stop "+service(p.Name())))
	}
	return err
}

// until waits for a time, or for an event that ends the game early.
func (g *game) until(ctx context.Context, at time.Time) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-g.hq.Done():
		return g.hq.failed("it ended early")
	case <-g.ships[0].Done():
		return g.ships[0].failed("it ended early")
	}
}

func (g *game) records() (hq *record, ships []*record) {
	hq = &record{"hq", g.hq.Started, g.hq.Events()}
	for _, p := range g.ships {
		ships = append(ships, &record{p.Name(), p.Started, p.Events()})
	}
	return hq, ships
}

// scoreSoFar assesses the game so far.
func (g *game) scoreSoFar() (*Run, []message) {
	run := &Run{}
	hq, ships := g.records()
	return run, assess(run, hq, ships, g.zero, g.o.Bulk)
}

// report logs the standing.
func (g *game) report() { g.logf("%s", g.standing()) }

// standing is the state of the game, for people.
func (g *game) standing() string {
	run, _ := g.scoreSoFar()
	up, down := g.traffic()
	text := fmt.Sprintf("%d of %d messages arrived", run.MessagesDelivered, run.MessagesSent)
	if m := run.Latency.Median; m != nil {
		text += fmt.Sprintf(", median %.1f s", *m)
	}
	left := max(0, g.o.Duration-time.Since(g.zero))
	return fmt.Sprintf("%s; link %.1f kB up, %.1f kB down; %v to go", text, float64(up.Octets)/1000, float64(down.Octets)/1000, left.Round(time.Second))
}
