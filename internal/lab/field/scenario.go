package field

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/lab/linkemu"
	"aldis/internal/link/profile"
)

// scenario is the incidents of the options.
func (g *game) scenario(ctx, peersCtx context.Context) (plan []action) {
	o := g.o
	if o.OutageFor > 0 {
		plan = append(plan,
			action{o.OutageAt, func() error {
				g.logf("the link goes down for %v", o.OutageFor)
				g.begin = time.Now()
				return g.switchLink(true)
			}},
			action{o.OutageAt + o.OutageFor, func() error {
				g.logf("the link is back")
				g.end = time.Now()
				return g.switchLink(false)
			}})
	}
	if o.Asker {
		plan = append(plan,
			action{max(0, o.OutageAt-askerLead), func() (err error) {
				if g.asker, err = g.peer(peersCtx, g.sites[1], g.sites[1].name+"-b"); err != nil {
					return err
				}
				// A first question that has no answer loads the library's classes: the second one is measured.
				return sendCommands(g.asker, "find nobody-svc 3600")
			}},
			action{o.OutageAt + o.OutageFor/2, func() error {
				g.askedAt = time.Now()
				g.logf("a second peer on %s asks for hq's service", g.sites[1].name)
				go g.tellWhen(peersCtx, g.asker, "discovered", service("hq"), "has discovered hq's service")
				return sendCommands(g.asker, "find "+service("hq")+" 30")
			}})
	}
	if o.Bulk > 0 {
		plan = append(plan, action{o.BulkAt, func() error {
			g.logf("hq and %s send %d octets each", g.ships[0].Name(), o.Bulk)
			return errors.Join(
				sendCommands(g.hq, fmt.Sprintf("send %s %d 1 0", service("hq"), o.Bulk)),
				sendCommands(g.ships[0], fmt.Sprintf("send %s %d 1 0", service(g.ships[0].Name()), o.Bulk)))
		}})
	}
	if o.RedialAt > 0 {
		plan = append(plan, action{o.RedialAt, func() error {
			s := g.sites[1]
			g.redialed = time.Now()
			g.logf("%s gets the address %s on the link", s.name, redialAddr(0, s.index).Addr())
			return g.hub.Redial(s.name, redialAddr(0, s.index))
		}})
	}
	if o.Silent > 0 && g.kind == "gateway" {
		plan = append(plan, g.silenceActions(ctx)...)
	}
	if o.Deaf != "" {
		var before linkemu.NodeStats
		plan = append(plan,
			action{min(deafFrom, o.Duration/2), func() error { before = g.hub.Stats().Link.Node(o.Deaf); return nil }},
			action{o.Duration - time.Millisecond, func() error {
				now, from := g.hub.Stats().Link.Node(o.Deaf), min(deafFrom, o.Duration/2)
				g.deaf = &Deaf{
					Site: o.Deaf, FromS: from.Seconds(), Seconds: (o.Duration - from).Seconds(),
					Bytes:   UpDown{Up: now.Up.OnAir.Octets - before.Up.OnAir.Octets, Down: now.Down.OnAir.Octets - before.Down.OnAir.Octets},
					Packets: UpDown{Up: now.Up.OnAir.Frames - before.Up.OnAir.Frames, Down: now.Down.OnAir.Frames - before.Down.OnAir.Frames},
				}
				return nil
			}})
	}
	if o.Kill != "" && g.kind == "gateway" {
		plan = append(plan, action{o.KillAt, func() error { return g.killGateway(ctx) }})
	}
	return plan
}

func (g *game) switchLink(down bool) error {
	for _, s := range g.sites[1:] {
		if err := g.hub.Outage(s.name, down); err != nil {
			return err
		}
	}
	return nil
}

// killGateway is a power cut at one site, and the gateway coming back at once.
func (g *game) killGateway(ctx context.Context) error {
	i := slices.IndexFunc(g.sites, func(s *lanSite) bool { return s.name == g.o.Kill })
	s, p := g.sites[i], g.hq
	for _, ship := range g.ships {
		if ship.Name() == s.name {
			p = ship
		}
	}
	at := time.Now()
	s.gateway.kill()
	g.logf("gateway of %s killed", s.name)
	if err := s.gateway.start(ctx); err != nil {
		return err
	}
	g.kill = &Killed{Site: s.name, AtS: *seconds(at.Sub(g.zero)), DownS: *seconds(time.Since(at))}
	g.logf("gateway of %s is up again after %.2f s", s.name, g.kill.DownS)
	go func() {
		wait, cancel := context.WithTimeout(ctx, killWait)
		defer cancel()
		e, err := p.Wait(wait, func(e Event) bool { return e.Ev == "rendezvous" && e.At().After(at) })
		if err == nil {
			g.mu.Lock()
			g.kill.BackS = *seconds(e.At().Sub(at))
			g.mu.Unlock()
			g.logf("%s has its rendezvous again (%.1f s)", s.name, e.At().Sub(at).Seconds())
		}
	}()
	return nil
}

// limit is the physical time of the long message: its octets at the link's rate, and the mean delay.
func (g *game) limit(from, _ string) time.Duration {
	d := g.p.Sending(from == "hq")
	return profile.Airtime(g.o.Bulk, d.RateBps) + d.Delay + d.Jitter/2
}

// answer is how long the second local peer waited for its answer, in milliseconds; nil: it got none.
func (g *game) answer() *float64 {
	if g.asker == nil {
		return nil
	}
	r := record{"", g.asker.Started, g.asker.Events()}
	found, ok := r.first(is("discovered", service("hq")))
	if !ok || !g.end.IsZero() && found.At().After(g.end) {
		return nil
	}
	asked := g.askedAt
	if q, ok := r.first(is("query", service("hq"))); ok {
		asked = q.At() // by the peer's own clock, without the delay of our pipe to it
	}
	ms := round(float64(found.At().Sub(asked).Microseconds())/1000, 1)
	return &ms
}

// follow carries out a plan until Duration, each action at its time.
func (g *game) follow(ctx context.Context, plan []action) error {
	plan = append(plan, action{g.o.Duration, func() error { return nil }})
	slices.SortStableFunc(plan, func(a, b action) int { return int(a.at - b.at) })
	for _, a := range plan {
		if !pause(ctx, time.Until(g.zero.Add(a.at))) {
			return ctx.Err()
		}
		if err := a.what(); err != nil {
			return err
		}
	}
	return nil
}

// incidents are an outage and a kill, for games without JXTA peers.
func (g *game) incidents(ctx context.Context) (plan []action) {
	o := g.o
	if o.OutageFor > 0 {
		plan = append(plan,
			action{o.OutageAt, func() error { g.logf("the link goes down for %v", o.OutageFor); return g.switchLink(true) }},
			action{o.OutageAt + o.OutageFor, func() error { g.logf("the link is back"); return g.switchLink(false) }})
	}
	if o.Kill != "" && g.kind == "gateway" {
		plan = append(plan, action{o.KillAt, func() error {
			s := g.sites[slices.IndexFunc(g.sites, func(s *lanSite) bool { return s.name == o.Kill })]
			at := time.Now()
			s.gateway.kill()
			g.logf("gateway of %s killed", s.name)
			if err := s.gateway.start(ctx); err != nil {
				return err
			}
			g.logf("gateway of %s is up again after %.2f s", s.name, time.Since(at).Seconds())
			return nil
		}})
	}
	return plan
}

// acquaint waits until each gateway knows all others, and returns how many seconds that took.
func (g *game) acquaint(ctx context.Context) (*float64, error) {
	begun := time.Now()
	ctx, stop := context.WithTimeout(ctx, acquainted)
	defer stop()
	for _, s := range g.sites {
		for knows := false; !knows; {
			st, err := s.gateway.status(ctx)
			if err != nil {
				return nil, err
			}
			knows = true
			for _, p := range st.Peers {
				knows = knows && p.Knows
			}
			if !knows && !pause(ctx, 5*pollEvery) {
				return nil, fmt.Errorf("lab: the gateways did not get to know each other: %w", ctx.Err())
			}
		}
	}
	met := seconds(time.Since(begun))
	g.logf("the gateways know each other after %.1f s", *met)
	return met, nil
}
