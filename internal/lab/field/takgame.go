package field

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
)

// KindTAK is the kind of peers for TAK devices.
const KindTAK = "tak"

const (
	takBound   = 50               // metres by which a unit may be shown off its position: the default of tak.bound
	alertEvery = 20 * time.Second // between two alerts of the ships, which raise them in turn
	chatEvery  = 30 * time.Second // between two chats to all, from the sites in turn
	takReady   = 90 * time.Second // for all devices to have their streams
)

// takGame is one run with TAK devices.
type takGame struct {
	*game
	devices int
	taky    string // program; "": the gateway serves HQ's devices
	served  []takSite
	met     *float64   // s until the gateways knew each other
	mu      sync.Mutex // guards the fields below
	reports int
	far     pass
	sent    []takSent
}

// takSite is the devices of a site and where they are.
type takSite struct {
	ns, at string
	more   []string // for a site of several machines: the other servers
	plot   *plot
	watch  *takStream
	talk   *takStream // sends alerts and chats
	pipes  []*takPipe // without gateways: to the other sites
}

// takSent is an alert or a chat.
type takSent struct {
	from int
	uid  string
	chat bool
	at   time.Time
}

// TAKGame plays the Blue Game with TAK devices: HQ first, with taky where it is installed, then the ships. Units move and
// report, ships raise alerts, and sites chat. It returns when everything is measured and removed.
func TAKGame(ctx context.Context, o Options) (*report.TAKResult, error) {
	p, err := o.complete()
	if err != nil {
		return nil, err
	}
	taky := findTaky()
	res := &report.TAKResult{Profile: p.Name, Seed: o.Seed, DurationS: o.Duration.Seconds(), RateS: o.Rate.Seconds(), Devices: o.Devices, Ships: o.Ships,
		Server: "gateway", BoundM: takBound, Runs: map[string]*report.TAKRun{}}
	if taky != "" {
		res.Server = "taky"
	}
	o.Unaided = true
	if res.Gateway, err = o.gatewayVersion(ctx); err != nil {
		return nil, err
	}
	err = playKinds(ctx, o, func(ctx context.Context, kind string, v *voice, up func()) (func(), error) {
		g := &takGame{game: &game{o: o, p: p, kind: kind, voice: v, up: up}, devices: o.Devices, taky: taky, far: pass{bound: takBound}}
		run, err := g.play(ctx)
		return func() { res.Runs[kind] = run }, err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (g *takGame) play(ctx context.Context) (run *report.TAKRun, err error) {
	all, end := context.WithCancel(ctx)
	defer func() {
		troubles, terr := g.remove(end)
		if err == nil {
			err = terr
		}
		if run != nil {
			run.TroubledBy = troubles
		}
	}()
	if err := g.setUp(ctx); err != nil {
		return nil, err
	}
	if g.kind == "unaided" {
		err = g.federate(all)
	} else {
		err = g.serve(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	g.up()
	return g.sail(ctx, all)
}

// serve starts the gateways with their TAK side, and the devices' streams.
func (g *takGame) serve(ctx, all context.Context) error {
	for i, s := range g.sites {
		at := fmt.Sprintf("%s:%d", lanAddr(i, 1).Addr(), takPort)
		ns, text := s.ns, fmt.Sprintf("listen = %q\nmesh = %q\n", at, lanAddr(i, 1).Addr())
		if i == 0 && g.taky != "" {
			var err error
			if ns, err = g.w.add("taky"); err != nil {
				return err
			}
			own := lanAddr(0, 11)
			if err := plug(s.ns, ns, "p1", own); err != nil {
				return err
			}
			at = fmt.Sprintf("%s:%d", own.Addr(), takPort)
			if err := startTaky(all, g.taky, ns, own.Addr().String(), filepath.Join(g.dir, "taky")); err != nil {
				return err
			}
			text = fmt.Sprintf("server = %q\n", at)
		}
		if err := s.gateway.configure("[tak]\n" + text); err != nil {
			return err
		}
		g.served = append(g.served, takSite{ns: ns, at: at, plot: newPlot()})
	}
	for i, s := range g.sites {
		if i == 1 { // the ships come after HQ
			if err := g.served[0].connect(all); err != nil {
				return err
			}
		}
		if err := s.gateway.start(ctx); err != nil {
			return err
		}
		g.logf("gateway of %s takes connections", s.name)
	}
	for i := range g.sites[1:] {
		if err := g.served[i+1].connect(all); err != nil {
			return err
		}
	}
	var err error
	g.met, err = g.acquaint(ctx)
	return err
}

// connect opens the streams of a site's watcher and of its talker.
func (s *takSite) connect(all context.Context) error {
	s.watch = s.stream()
	s.watch.saw = s.plot.saw
	if s.talk = s.watch; len(s.more) == 0 { // a device with several servers receives from and sends to each of them
		s.talk = s.stream()
		go s.talk.keep(all)
	} else {
		b := &merged{plot: s.plot, of: map[string]*takStream{}}
		s.watch.saw = b.saw(s.watch)
		for _, at := range s.more {
			beside := &takStream{dial: inSpace(s.ns, at), pings: true, beside: s.watch.beside}
			beside.saw = b.saw(beside)
			s.watch.beside = beside
			go beside.keep(all)
		}
	}
	go s.watch.keep(all)
	return opened(all, s.watch, s.talk)
}

// stream is a stream of a device that ignores all events it receives.
func (s *takSite) stream() *takStream {
	return &takStream{dial: inSpace(s.ns, s.at), pings: len(s.more) > 0, saw: noEvent}
}

// merged is a device with several servers. It shows an event that several of them send once, and an event that one of them sends twice
// twice.
type merged struct {
	plot *plot
	mu   sync.Mutex
	of   map[string]*takStream // by uid and time: the server that sent it first
}

func (b *merged) saw(from *takStream) func(*cot.Event) {
	return func(e *cot.Event) {
		what := e.UID + " " + e.Time.Format(cot.TimeFormat)
		b.mu.Lock()
		first := b.of[what]
		if first == nil {
			b.of[what] = from
		}
		b.mu.Unlock()
		if first == nil || first == from {
			b.plot.saw(e)
		}
	}
}

// opened waits until streams are open.
func opened(ctx context.Context, list ...*takStream) error {
	ctx, stop := context.WithTimeout(ctx, takReady)
	defer stop()
	for _, s := range list {
		for !s.open() {
			if !pause(ctx, pollEvery) {
				return fmt.Errorf("lab: a TAK device has no stream to its server: %w", ctx.Err())
			}
		}
	}
	return nil
}

// sail lets units move and send until the game is over, and computes the figures.
func (g *takGame) sail(ctx, all context.Context) (*report.TAKRun, error) {
	g.stands(g.standing)
	var crew sync.WaitGroup
	moving, stop := context.WithCancel(all)
	defer func() { stop(); crew.Wait() }()
	crewOf := func(i int) error {
		for n := range g.devices {
			say, err := g.device(all, i, n)
			if err != nil {
				return err
			}
			m := newMover(i, n, g.o.Seed)
			crew.Go(func() { g.move(moving, all, i, m, say, &crew) })
		}
		return nil
	}
	if err := crewOf(0); err != nil {
		return nil, err
	}
	g.zero = time.Now()
	for i := range g.sites[1:] {
		if err := crewOf(i + 1); err != nil {
			return nil, err
		}
	}
	g.logf("%d devices at each site: time counts from here", g.devices)
	var plan []action
	for d := progress; d < g.o.Duration; d += progress {
		plan = append(plan, action{d, func() error { g.logf("%s", g.standing()); return nil }})
	}
	for n, d := 0, alertEvery; d < g.o.Duration; n, d = n+1, d+alertEvery {
		plan = append(plan, action{d, func() error { g.raise(1+n%g.o.Ships, n); return nil }})
	}
	for n, d := 0, chatEvery/2; d < g.o.Duration; n, d = n+1, d+chatEvery {
		plan = append(plan, action{d, func() error { g.chat(n%len(g.sites), n); return nil }})
	}
	if err := g.follow(ctx, append(plan, g.incidents(ctx)...)); err != nil {
		return nil, err
	}
	stop()
	g.logf("the devices are silent")
	crew.Wait()
	return g.finish(ctx)
}

// device makes the n-th device of a site, and returns its function to send an event. The last device of a ship with several sends on the
// mesh, the others have streams. The first one raises alerts and chats.
func (g *takGame) device(all context.Context, i, n int) (func(string) bool, error) {
	if g.kind == "unaided" {
		return func(text string) bool { g.served[i].broadcast(text); return true }, nil
	}
	if n == 0 {
		return g.served[i].talk.send, nil
	}
	if i == 0 || n != g.devices-1 {
		s := g.served[i].stream()
		go s.keep(all)
		return s.send, opened(all, s)
	}
	return g.meshDevice(all, i)
}

// meshDevice makes a device on the mesh of a site, in a namespace of its own, and returns its function to send an event.
func (g *takGame) meshDevice(all context.Context, i int) (func(string) bool, error) {
	ns, err := g.w.add(g.sites[i].name + "-mesh")
	if err != nil {
		return nil, err
	}
	own := lanAddr(i, 12)
	if err := errors.Join(plug(g.sites[i].ns, ns, "p2", own), ip("-n", ns, "route", "add", "224.0.0.0/4", "dev", "eth0")); err != nil {
		return nil, err
	}
	var c net.Conn
	if err := InNetns(ns, func() (err error) {
		c, err = net.Dial("udp4", takGroup)
		return err
	}); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	context.AfterFunc(all, func() { c.Close() })
	return func(text string) bool {
		_, err := c.Write([]byte(text))
		return err == nil
	}, nil
}

// move lets a unit move and report until moving ends, and has each report compared with the far maps.
func (g *takGame) move(moving, all context.Context, i int, m *mover, say func(string) bool, crew *sync.WaitGroup) {
	next := time.Now()
	for second := time.Now(); ; second = second.Add(time.Second) {
		if !pause(moving, time.Until(second)) {
			return
		}
		m.step()
		for !next.After(second) {
			next = next.Add(g.o.Rate)
			g.mu.Lock()
			text, mine := m.report(g.o.Rate), len(m.said)-1
			g.mu.Unlock()
			if !say(text) {
				continue
			}
			g.mu.Lock()
			g.reports++
			g.mu.Unlock()
			crew.Go(func() {
				if pause(all, replay.CompareAfter) {
					g.compare(i, m, mine)
				}
			})
		}
	}
}

// compare checks the other sites' maps against a report and those after it.
func (g *takGame) compare(from int, m *mover, mine int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	said := m.said[mine:]
	for t := range g.served {
		if t != from {
			g.far.compare(g.served[t].plot, m.uid, said)
		}
	}
}

// raise raises an alert of a ship.
func (g *takGame) raise(from, n int) {
	uid := fmt.Sprintf("alert-%d", n)
	g.utter(takSent{from: from, uid: uid}, takText(uid, "b-a-o-tbl", "h-e", 54.3, 10.1+float64(from), time.Hour,
		fmt.Sprintf(`<contact callsign="%s"/><emergency type="911 Alert">%[1]s</emergency>`, g.sites[from].name)))
}

// chat has a site's first device send a chat to all.
func (g *takGame) chat(from, n int) {
	who := newMover(from, 0, g.o.Seed)
	uid, text := who.says(n, fmt.Sprintf("all well here, report number %d", n))
	g.utter(takSent{from: from, uid: uid, chat: true}, text)
}

// says is the n-th chat of a unit, to all, and its uid.
func (m *mover) says(n int, words string) (uid, text string) {
	uid = fmt.Sprintf("GeoChat.%s.All Chat Rooms.%d", m.uid, n)
	return uid, takText(uid, "b-t-f", "h-g-i-g-o", 0, 0, 24*time.Hour, fmt.Sprintf(
		`<__chat parent="RootContactGroup" groupOwner="false" messageId="%[1]d" chatroom="All Chat Rooms" id="All Chat Rooms" senderCallsign="%[3]s"><chatgrp uid0="%[2]s" uid1="All Chat Rooms" id="All Chat Rooms"/></__chat><link uid="%[2]s" type="a-f-G-U-C" relation="p-p"/><remarks source="BAO.F.ATAK.%[2]s" to="All Chat Rooms" time="%[4]s">%[5]s</remarks>`,
		n, m.uid, m.callsign(), time.Now().UTC().Format(cot.TimeFormat), words))
}

func (g *takGame) utter(s takSent, text string) {
	s.at = time.Now()
	site := &g.served[s.from]
	if g.kind == "unaided" {
		site.broadcast(text)
	} else if !site.talk.send(text) {
		return // its gateway is gone, so the event is lost
	}
	g.mu.Lock()
	g.sent = append(g.sent, s)
	g.mu.Unlock()
}

// standing is the state of the game, for people.
func (g *takGame) standing() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	up, down := g.traffic()
	a, c := g.crossed(false), g.crossed(true)
	return fmt.Sprintf("%d reports; %d of %d comparisons wrong, %d not shown; alerts %d of %d, chats %d of %d; link %.1f kB up, %.1f kB down; %v to go", g.reports,
		g.far.beyond, g.far.compared, g.far.missing, a.Came, a.Sent, c.Came, c.Sent, float64(up.Octets)/1000, float64(down.Octets)/1000,
		max(0, g.o.Duration-time.Since(g.zero)).Round(time.Second))
}
