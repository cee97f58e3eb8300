package field

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/fleet"
	"aldis/internal/lab/report"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

// FleetOptions say how a script is played. Script is not nil.
type FleetOptions struct {
	Script   *fleet.Script
	File     string    // where the script is from
	Peers    []string  // kinds: the sites take those of JXTA in turn; with KindTAK each site has TAK devices too
	Seed     uint64    // of the emulator
	Gateway  string    // the binary under test; "": the one in this program's directory
	Upgrade  string    // the binary that replaces it in upgrades; "": a copy of it
	JarDir   string    // field-tests/peers; found from the working directory and the binary
	Keep     string    // directory for logs, configurations and captures of the links; "": they are removed
	Progress io.Writer // a line of text now and then; nil: none
}

const (
	meetWithin = 5 * time.Minute // for all sites of the start to know each other
	beforeKill = 2 * time.Second // messages that a peer sent so shortly before a kill may not be in custody yet
	// servedWithin is how long after its gateway's restart a peer's messages may not be in custody, at the most.
	servedWithin = time.Minute
	meetEvery    = time.Second
)

// fleetPlay is one play of a script.
type fleetPlay struct {
	*game
	script  *fleet.Script
	kinds   []string // of JXTA peers
	tak     bool
	bearers []bearer
	office  *office // nil: one key for all
	hubs    []*Hub  // of the bearers
	crews   []*fleetCrew
	before  map[string]fleet.Account // the octets sent up to zero

	mu     sync.Mutex
	met    map[[2]*fleetCrew]time.Time // since when the first one's gateway knows that the second one listens
	events []fleet.Event
	took   []fleet.Takeover
	cut    map[[2]int]int       // how many accidents keep each site off the air of each bearer
	moved  map[[2]int]bool      // sites that have another address on a bearer than at first
	direct fleetSessions        // those that are over included
	gone   map[string]time.Time // when sites were destroyed
	faults []string             // in accidents to sites of several machines
	under  sync.WaitGroup       // accidents under way

	upgrade string // the binary that replaces the one under test
}

// fleetCrew is the local peers of a site.
type fleetCrew struct {
	*lanSite
	joined bool
	jxta   []*Peer    // the first one talks; none if no JXTA peers play
	tak    []*takSite // one for each device; the first one talks
	unit   *mover
	dead   map[string][]*interval // for each kind of peers: times whose messages may be in no gateway's custody
	chats  []takSent
	said   map[string]int // octets of chats by uid
}

type interval struct{ from, to time.Time }

// fleetKinds are the kinds of peers for --peers.
var fleetKinds = []string{KindJXSE27, KindJXSE27Unsigned, KindJXTA22, KindTAK}

// Fleet plays a script and returns what became of each message, when all namespaces are removed. A play in which a message does not have
// exactly one true end is a result, not an error. The error is a *UsageError for unknown kinds of peers.
func Fleet(ctx context.Context, o FleetOptions) (res *report.Fleet, err error) {
	f := &fleetPlay{script: o.Script, upgrade: o.Upgrade, met: map[[2]*fleetCrew]time.Time{}, before: map[string]fleet.Account{}, cut: map[[2]int]int{}, moved: map[[2]int]bool{}, gone: map[string]time.Time{}}
	for _, k := range o.Peers {
		switch {
		case !slices.Contains(fleetKinds, k):
			return nil, &UsageError{fmt.Sprintf("peers: %q is none of %s", k, strings.Join(fleetKinds, ", "))}
		case k == KindTAK:
			f.tak = true
			continue
		}
		f.kinds = append(f.kinds, k)
		if o.JarDir == "" {
			if o.JarDir, err = FindPeers(k); err != nil {
				return nil, err
			}
		}
	}
	if o.Gateway == "" {
		if o.Gateway, err = cli.Beside("gateway"); err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	if o.Upgrade != "" && packaged(o.Upgrade) != packaged(o.Gateway) {
		return nil, &UsageError{fmt.Sprintf("upgrade: %s cannot replace %s: a package replaces a package, a program a program", o.Upgrade, o.Gateway)}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	prog, quiet := newProgress(o.Progress)
	defer quiet()
	f.game = &game{o: Options{Seed: o.Seed, Gateway: o.Gateway, JarDir: o.JarDir, Keep: o.Keep}, kind: "fleet", voice: prog.voice("fleet")}
	res = &report.Fleet{Result: fleet.Result{Script: o.File, Summary: o.Script.Summary, Seed: o.Seed, DurationS: o.Script.Duration.Seconds(), Peers: o.Peers}}
	if res.Gateway, err = f.o.gatewayVersion(ctx); err != nil {
		return nil, err
	}
	if o.Upgrade != "" {
		if res.Upgrade, err = (&Options{Gateway: o.Upgrade}).gatewayVersion(ctx); err != nil {
			return nil, err
		}
	}
	return res, f.play(ctx, &res.Result)
}

func (f *fleetPlay) play(ctx context.Context, res *fleet.Result) (err error) {
	all, end := context.WithCancel(ctx)
	defer func() {
		f.stands(nil)
		f.logf("removing namespaces and processes")
		run := &Run{}
		_, terr := f.tearDown(run, nil, func() {
			end()
			f.under.Wait()
			for _, h := range f.hubs {
				err = errors.Join(err, h.Close())
			}
		})
		res.Errors = append(res.Errors, run.GatewayErrors...)
		err = errors.Join(err, terr)
	}()
	if err := f.setUp(ctx); err != nil {
		return err
	}
	for _, c := range f.crews {
		if f.script.Sites[c.index].Joins.Duration == 0 {
			if err := f.join(ctx, all, c); err != nil {
				return err
			}
		}
	}
	if err := f.meet(ctx, f.crews); err != nil {
		return err
	}
	f.zero = time.Now()
	f.accounts(func(a fleet.Account) { f.before[a.Bearer+" "+a.Site] = a })
	f.logf("all know each other: time counts from here")
	f.stands(f.standing)
	if err := f.sail(ctx, all); err != nil {
		return err
	}
	return f.finish(ctx, res)
}

// setUp makes sites, and an emulated link for each bearer.
func (f *fleetPlay) setUp(ctx context.Context) error {
	if err := f.makeWorld(); err != nil {
		return err
	}
	wire, err := profile.Load("wire", nil)
	var clean *debians
	if err == nil && packaged(f.o.Gateway) {
		f.upgrade = cmp.Or(f.upgrade, f.o.Gateway)
		if clean, err = newDebians(ctx, f.w, f.logf, f.o.Gateway, f.upgrade); err != nil {
			return err
		}
		f.o.Gateway = clean.program
	}
	if err == nil && f.upgrade == "" && slices.ContainsFunc(f.script.Accidents, func(a fleet.Accident) bool { return a.What == fleet.Upgrade }) {
		f.upgrade, err = copied(f.o.Gateway, f.w.workDir())
	}
	if err != nil {
		return err
	}
	for i, x := range f.script.Sites {
		ns, err := f.w.add(x.Name)
		if err != nil {
			return err
		}
		s := &lanSite{name: x.Name, index: i, ashore: x.Ashore, ns: ns, script: x, play: f.script, outer: ns}
		if clean != nil {
			s.clean = func(name, netns string) (*machine, error) { return clean.machine(ctx, name, netns) }
		}
		if x.Several() {
			s.several = &siteMachines{w: f.w, all: make([]*gatewayProc, x.Machines), last: make([]machineSaid, x.Machines)}
		}
		if x.Behind() {
			if s.outer, err = f.w.wall(ns, x.Name+"-wall", x.Firewall); err != nil {
				return err
			}
		}
		f.sites = append(f.sites, s)
		f.crews = append(f.crews, &fleetCrew{lanSite: s, dead: map[string][]*interval{}, said: map[string]int{}, unit: newMover(i, 0, f.o.Seed)})
	}
	for i, x := range f.script.Bearers {
		p, err := profile.Load(x.Profile, nil)
		if err != nil {
			return err
		}
		f.bearers = append(f.bearers, bearer{x, p})
		cfg := HubConfig{Seed: f.o.Seed + uint64(i)*1_000_000, Interface: fmt.Sprintf("link%d", i)}
		if f.o.Keep != "" {
			cfg.PcapDir = f.dir
		}
		for _, s := range f.sites {
			if !x.Has(s.name) {
				continue
			}
			node := HubNode{Name: s.name, Netns: s.outer, Addr: bearerAddr(i, s.index), Profile: p}
			if p.Shared {
				node.Netns = s.ns
			}
			if s.several != nil {
				if err := s.several.spaces(s); err != nil {
					return err
				}
				node.Netns, node.More = s.several.ns[0], s.several.ns[1:len(s.several.all)]
			}
			if s.ashore && !p.Shared {
				node.Profile = wire
			}
			cfg.Nodes = append(cfg.Nodes, node)
		}
		hub, err := StartHub(cfg)
		if err != nil {
			return err
		}
		f.hubs = append(f.hubs, hub)
	}
	f.logf("run %s: %d sites with %d bearers, seed %d", f.w.id, len(f.sites), len(f.bearers), f.o.Seed)
	return f.equip(ctx)
}

// copied is the path of a copy of a program, in a directory that copied makes.
func copied(program, dir string) (string, error) {
	to := filepath.Join(dir, "gateway-copy")
	data, err := os.ReadFile(program)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(to, data, 0o755))
	}
	if err != nil {
		return "", fmt.Errorf("lab: %w", err)
	}
	return to, nil
}

// equip gives the sites keys and configurations. With a roster the sites know none of those that join later.
func (f *fleetPlay) equip(ctx context.Context) (err error) {
	if !f.script.Roster {
		return f.outfit(ctx, f.bearers)
	}
	if f.office, err = newOffice(ctx, f.o.Gateway, f.dir, f.sites, f.bearers); err != nil {
		return err
	}
	var there []*lanSite
	for _, s := range f.sites {
		others := slices.DeleteFunc(without(f.sites, s), func(o *lanSite) bool { return o.script.Joins.Duration > s.script.Joins.Duration })
		if err := s.outfit(others, f.bearers, f.o.Gateway, f.dir); err != nil {
			return err
		}
		if s.script.Joins.Duration == 0 {
			there = append(there, s)
		}
	}
	return f.office.sign(ctx, there...)
}

// join starts a site's gateway and its peers, and has the others look for its publications.
func (f *fleetPlay) join(ctx, all context.Context, c *fleetCrew) error {
	if f.tak && !c.script.Bare {
		for range max(1, c.script.TAK) {
			c.tak = append(c.tak, &takSite{ns: c.ns, plot: newPlot()})
		}
		var servers []string
		for i, g := range c.machines() {
			servers = append(servers, fmt.Sprintf("%s:%d", lanAddr(c.index, 1+i).Addr(), takPort))
			if err := g.configure(fmt.Sprintf("[tak]\nlisten = %q\n", servers[i])); err != nil {
				return err
			}
		}
		for i, device := range c.tak {
			mine := turned(servers, i)
			device.at, device.more = mine[0], mine[1:]
		}
	}
	if f.office != nil && c.script.Joins.Duration > 0 {
		if err := f.office.sign(ctx, c.lanSite); err != nil {
			return err
		}
	}
	start := c.gateway.start
	if c.several != nil {
		start = func(ctx context.Context) error { return c.several.start(ctx, all) }
	}
	if err := start(ctx); err != nil {
		return err
	}
	c.joined = true
	f.logf("gateway of %s takes connections", c.name)
	for _, device := range c.tak {
		if err := device.connect(all); err != nil {
			return err
		}
	}
	if len(f.kinds) == 0 || c.script.Bare {
		return nil
	}
	for i := range max(1, c.script.JXTA) {
		name, kind := c.name, f.kinds[(c.index+i)%len(f.kinds)]
		if i > 0 {
			name = fmt.Sprintf("%s-%d", c.name, i+1)
		}
		seeds := turned(c.seeds(), i)
		p, err := c.startPeer(all, f.w, PeerConfig{Kind: kind, Name: name, Seed: seeds[0], More: seeds[1:], JarDir: f.o.JarDir, Home: filepath.Join(f.dir, name+"-peer")})
		if err != nil {
			return err
		}
		c.jxta = append(c.jxta, p)
		f.ships = append(f.ships, p)
		if err := c.settles(p, i == 0); err != nil {
			return err
		}
	}
	for _, o := range f.crews {
		if o == c || !o.joined {
			continue
		}
		if err := errors.Join(hears(c, o), hears(o, c)); err != nil {
			return err
		}
	}
	f.logf("%d peers of %s are starting", len(c.jxta), c.name)
	return nil
}

// plays returns the kinds of peers in the play.
func (f *fleetPlay) plays() map[string]bool {
	kinds := map[string]bool{}
	if f.tak {
		kinds[fleet.TAK] = true
	}
	if len(f.kinds) > 0 {
		kinds[fleet.JXTA] = true
	}
	return kinds
}

// meet waits until each of these sites and each other site that has joined know each other's publications.
func (f *fleetPlay) meet(ctx context.Context, among []*fleetCrew) error {
	for said := time.Now(); ; {
		left := f.look(ctx, among)
		if left == "" {
			return nil
		}
		if time.Since(said) > progress {
			said = time.Now()
			f.logf("%s", left)
		}
		if !pause(ctx, meetEvery) {
			return fmt.Errorf("lab: %s: %w", left, ctx.Err())
		}
	}
}

// look notes which sites know each other by now, and says what is missing; "": nothing is missing.
func (f *fleetPlay) look(ctx context.Context, among []*fleetCrew) (missing string) {
	of, listening := map[*fleetCrew]api.Status{}, map[*Peer]map[string]bool{}
	for _, c := range f.crews {
		for _, p := range c.jxta {
			listening[p] = p.listensTo()
		}
		if c.joined {
			if st, err := c.leads().status(ctx); err == nil { // a dead one knows no site
				of[c] = st
			}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	strangers := 0
	for _, from := range f.crews {
		for _, to := range f.crews {
			pair := [2]*fleetCrew{from, to}
			if !from.speaks(to) || !from.joined || !to.joined || !f.met[pair].IsZero() || !slices.Contains(among, from) && !slices.Contains(among, to) {
				continue
			}
			listens := !slices.ContainsFunc(to.jxta, func(p *Peer) bool { return !listening[p][from.pipe()] })
			if !listens || !reaches(of, from, to) {
				strangers++
				missing = fmt.Sprintf("%s does not know yet that %s listens, and so it is with %d pairs", from.name, to.name, strangers)
				continue
			}
			f.met[pair] = time.Now()
		}
	}
	return missing
}

// sail lets the play go on until its end.
func (f *fleetPlay) sail(ctx, all context.Context) error {
	last := f.script.Duration.Duration
	plan := f.plan(ctx, all)
	for d := time.Duration(0); d < last; d += max(progress, last/60) {
		plan = append(plan, action{d, func() error { f.logf("%s", f.standing()); return nil }})
	}
	plan = append(plan, action{last, func() (err error) {
		f.logf("the peers stop talking")
		for _, c := range f.crews {
			if len(c.jxta) > 0 && !c.sunk {
				err = errors.Join(err, sendCommands(c.jxta[0], "stop "+c.pipe()))
			}
		}
		return err
	}})
	slices.SortStableFunc(plan, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	for _, a := range plan {
		if err := f.until(ctx, f.zero.Add(a.at)); err != nil {
			return err
		}
		if err := a.what(); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a time, or for a peer that ends the play early.
func (f *fleetPlay) until(ctx context.Context, at time.Time) error {
	for {
		for _, p := range f.ships {
			select {
			case <-p.Done():
				if !p.dismissed.Load() {
					return p.failed("it ended early")
				}
			default:
			}
		}
		if f.script.Introduces() {
			f.direct.look(ctx, f)
		}
		left := time.Until(at)
		if left <= 0 {
			return nil
		}
		if !pause(ctx, min(left, time.Second)) {
			return ctx.Err()
		}
	}
}
