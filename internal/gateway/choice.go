package gateway

import (
	"cmp"
	"fmt"
	"time"

	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/rules/route"
	"aldis/internal/site"
)

// Which bearer a message takes: the operator's rules say which it may take, the price orders them, and the forecast says which are in
// time. docs/decisions/bearers.md.

// likeFirst is how many times as long as on the fastest bearer a message that is to arrive as soon as possible may take on a cheaper one.
const likeFirst = 1.1

// queued has, for each rank, the octets that wait on a leg and do not yield to it, as journalled. It is counted once a turn.
type queued struct {
	at      time.Time
	octets  [len(precedences)]int
	counted bool
}

var precedences = [...]site.Precedence{site.Deferred, site.Routine, site.Priority, site.Immediate, site.Flash, site.Override}

// before is how many octets go before a message of a rank that is accepted now.
func (l *leg) before(now time.Time, rank int) int {
	q := &l.queued
	if !q.counted || !q.at.Equal(now) {
		*q = queued{at: now, counted: true}
		ahead := 0
		if l.together() { // octets in the radio do not count: they are known exactly
			air, _ := l.Link.Air()
			ahead = l.bearer.Carrier().Orders().Ahead(due.Latest(now, air.Free), l.Peer)
		}
		for _, row := range l.Box.Backlog() {
			for at := range min(row.Rank+1, len(q.octets)) {
				q.octets[at] += row.Octets + row.News
			}
		}
		for at := range q.octets {
			q.octets[at] = max(0, q.octets[at]+ahead)
		}
	}
	return q.octets[rank]
}

// accepted counts a message that was given to the leg in this turn.
func (l *leg) accepted(m *mail.Message) {
	for at := range m.Rank() + 1 {
		l.queued.octets[at] += len(m.Full)
	}
}

// arrives is when a message will be there if it takes a leg, by the forecast. A message that waits there already, and is not foreseen to be
// late, can only have fewer octets before it.
func (p *peer) arrives(now time.Time, l *leg, m *mail.Message) time.Time {
	s := siteOn(l.bearer.road.g, l)
	before := l.before(now, m.Rank())
	if e := m.On(l.Peer); e != nil {
		before -= len(m.Full)
	}
	for other := range legsTo(p) { // parked messages wait for another bearer
		if other == l {
			before -= other.parked[m.Rank()]
		} else if l.together() {
			before += other.parked[m.Rank()]
		}
	}
	return now.Add(s.Takes(now, max(0, before), len(m.Full)))
}

// siteOn is a peer on a leg, for the forecast.
func siteOn(g *Gateway, l *leg) forecast.Site {
	s := forecast.Site{Peer: l.Peer, Orders: l.bearer.Carrier().Orders(), Profile: &l.bearer.Profile, Shore: l.bearer.shore,
		Up: linkWord(l) == linkUp, Silent: l.bearer.silence.byOrder(), Spent: l.bearer.silence.spent, Share: 1, Load: l.reckoning.Load(g.now)}
	if !g.cfg.Shore && !s.Orders.Together() {
		for _, p := range g.peers { // counts the others for which something waits there
			if other := p.legs[l.bearer.index]; other != nil && other != l && other.Box.Waiting(frame.Direct, frame.Bulk) > 0 {
				s.Share++
			}
		}
	}
	return s
}

// ruleOf is the [[route]] rule of a message to a peer; nil: none fits, or it is state.
func (p *peer) ruleOf(m *mail.Message) *route.Rule {
	g := p.leg.bearer.road.g
	if m == nil || m.Content.Payload == nil || len(g.cfg.Routes) == 0 {
		return nil
	}
	return route.Judge(g.cfg.Routes, route.Of(m.Content.Payload, cmp.Or(m.Accepted, g.now), p.ID))
}

// carries says whether a leg may take a message now: it is up, and the bearer has octets of the day for it, or the rule lets the message
// go beyond them.
func (l *leg) carries(m *mail.Message, r *route.Rule) bool {
	switch {
	case m == nil || l.bearer.day.most == 0:
		return l.goes()
	case !l.answers() || l.bearer.silence.byOrder():
		return false
	}
	return r != nil && r.Beyond || !l.bearer.silence.spent && l.bearer.day.fits(len(m.Full)/mostShorter)
}

// flaps is how a leg has come and gone.
type flaps struct {
	down   time.Time // since when it takes no messages; zero: it does
	back   time.Time // when it was back last
	lasted time.Duration
}

// When a bearer counts as one that comes and goes.
const (
	flapsWithin = 5 * time.Minute // at most, from its return to its next failure
	flapsMost   = time.Minute     // that messages wait for it
)

// look notes whether the leg takes messages now.
func (f *flaps) look(now time.Time, goes bool) {
	switch {
	case !goes && f.down.IsZero():
		f.down = now
	case goes && !f.down.IsZero():
		f.down, f.back, f.lasted = time.Time{}, now, now.Sub(f.down)
	}
}

// soon says that a leg is down that was back only for a short time: messages wait for it twice as long as it was down the last time.
func (f *flaps) soon(now time.Time) bool {
	return !f.down.IsZero() && f.lasted > 0 && f.down.Sub(f.back) < flapsWithin && now.Sub(f.down) < min(2*f.lasted, flapsMost)
}

// waitsFor says whether a message waits for a leg that comes and goes: else it would be sent on both bearers.
func (l *leg) waitsFor(m *mail.Message) bool {
	now := l.bearer.road.g.now
	return m != nil && m.Content.Payload != nil && m.Rank() < site.Flash.Rank() && l.flaps.soon(now) && !l.bearer.silence.quiet() &&
		(m.Content.Payload.Expires.IsZero() || m.Content.Payload.Expires.After(now.Add(2*flapsMost)))
}

// mostShorter is how many times shorter compression makes messages that are much alike: a message counts as fitting if it fits at that length.
const mostShorter = 4

// choice is a leg for a message, and the reason.
type choice struct {
	*leg
	why  string
	rule *route.Rule // of the operator's; nil: none fits
}

// choose is the leg that a message to a peer should take now: the cheapest that is in time, of those that it may take. Where none is up, the
// message waits for the cheapest.
func (p *peer) choose(m *mail.Message) choice {
	rule := p.ruleOf(m)
	c := p.chooseBy(m, rule)
	c.rule = rule
	return c
}

func (p *peer) chooseBy(m *mail.Message, rule *route.Rule) choice {
	var list []*leg // that carry it, the cheapest first
	var waits *leg  // the cheapest that does not
	for l := range legsTo(p) {
		switch {
		case m != nil && (!m.Takes(l.Bearer.Name) || !rule.Takes(l.Bearer.Name)):
		case l.carries(m, rule), l.waitsFor(m) && (rule == nil || rule.Within == 0):
			at := len(list)
			for at > 0 && dear(l.bearer, list[at-1].bearer) < 0 {
				at--
			}
			list = append(list[:at], append([]*leg{l}, list[at:]...)...)
		case waits == nil || dear(l.bearer, waits.bearer) < 0:
			waits = l
		}
	}
	switch {
	case len(list) == 0 && waits == nil:
		c := p.choose(nil)
		return choice{leg: c.leg, why: "no bearer that the rules name reaches the site"}
	case len(list) == 0 && m != nil && waits.bearer.silence.spent:
		return choice{leg: waits, why: "the octets of the day are used up there, and no other bearer that it may take is up"}
	case len(list) == 0:
		return choice{leg: waits, why: "none that it may take is up"}
	case len(list) == 1 && waits != nil && waits.bearer.day.most > 0 && waits.answers():
		return choice{leg: list[0], why: "it does not fit into the octets of the day on " + bearerName(waits)}
	case len(list) == 1:
		return choice{leg: list[0], why: "the only one that it may take and that is up"}
	}
	return p.inTime(m, rule, list)
}

// inTime is the first of some legs on which a message arrives in time, or the one on which it arrives first.
func (p *peer) inTime(m *mail.Message, rule *route.Rule, list []*leg) choice {
	const cheapest = "the cheapest that is up"
	if m == nil || m.Content.Payload == nil {
		return choice{leg: list[0], why: cheapest}
	}
	now := p.leg.bearer.road.g.now
	until, soonest := m.Content.Payload.Expires, false
	switch {
	case rule != nil && rule.Within > 0:
		until = cmp.Or(m.Accepted, now).Add(rule.Within)
	case m.Rank() >= site.Flash.Rank():
		soonest = true
	case until.IsZero():
		return choice{leg: list[0], why: cheapest}
	}
	first, best := time.Time{}, list[0]
	for _, l := range list {
		at := p.arrives(now, l, m)
		if e := m.On(l.Peer); !soonest && (!at.After(until) || e != nil && e.Waits() && !p.late.Foresees(m.ID)) {
			return choice{leg: l, why: "the cheapest that is in time" + after(at.Sub(now))}
		}
		if first.IsZero() || at.Before(first) && float64(at.Sub(now))*likeFirst < float64(first.Sub(now)) {
			first, best = at, l
		}
	}
	if soonest {
		return choice{leg: best, why: "it arrives first there" + after(first.Sub(now))}
	}
	return choice{leg: best, why: "none is in time, and it arrives first there" + after(first.Sub(now))}
}

func after(d time.Duration) string {
	return fmt.Sprintf(", after about %v", max(time.Second, d.Round(time.Second)))
}

// noteChoice notes in the life of a message why it takes a bearer.
func (c choice) noteChoice(lives *history.Lives, m *mail.Message) {
	if m.Content.Payload != nil {
		rule := ""
		if c.rule != nil {
			rule = cmp.Or(c.rule.Label, fmt.Sprint("line ", c.rule.Line))
		}
		lives.Note(m.ID, history.Event{What: history.Chosen, Peer: c.ID, Detail: c.why, Link: bearerName(c.leg), Rule: rule})
	}
}
