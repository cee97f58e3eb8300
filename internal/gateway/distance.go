package gateway

import (
	"cmp"
	"math"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
	"aldis/internal/site"
)

// Distance and quality of a site, from the traffic that is there anyway: no datagram is sent to measure them.

// reckon forecasts now and then how long a message that is given to a leg will take; 0: not for this message.
func (l *leg) reckon(now time.Time, m *mail.Message) time.Duration {
	if m.Content.Payload == nil || !l.Handshake.KnowsUs || !l.reckoning.Due(now) {
		return 0
	}
	if l.together() {
		l.reckoning.Read(l.Box.Oldest(mail.Group, math.MaxUint64))
	}
	s := siteOn(l.bearer.road.g, l)
	return s.Takes(now, l.before(now, m.Rank()), forecast.About(m.Content.Payload))
}

// place is the place of a message in the order in which a carrier's messages are read, if they all are in one order.
func (l *leg) place(e *mail.Entry) uint64 {
	if l.together() {
		return e.At.Number
	}
	return e.ID
}

// took learns from a message that has arrived.
func (l *leg) took(g *Gateway, e *mail.Entry) {
	life := g.mail.Lives.Get(e.ID)
	if life == nil {
		return
	}
	f := life.Of(e.Peer.ID)
	if f == nil || f.SentAt.IsZero() {
		return
	}
	l.reckoning.Carried(g.now, len(e.Full), f.Sent)
	carried(l, g.now, f.Sent)
	s := siteOn(g, l)
	place := l.place(e)
	if l.reckoning.There(place, s.Arrived(f.SentAt, f.Sent), l.together()); !l.together() {
		l.reckoning.Read(math.MaxUint64)
	}
}

// nearer is how many times nearer a site must be to overtake one that stands before it.
const nearer = 1.2

// near tells the adapters the order of the sites by distance, when it has changed. It is called once a minute.
func (fs *adapters) near(g *Gateway, now time.Time) {
	if len(g.peers) < 2 {
		return
	}
	far := map[uint16]float64{}
	for _, p := range g.peers {
		l := p.best(nil)
		if far[p.ID] = l.quality(now).ShortS; !l.goes() || l.LastHeard.IsZero() {
			far[p.ID] = math.Inf(1)
		}
	}
	list := make([]uint16, len(g.peers))
	for i, p := range g.peers {
		list[i] = p.ID
	}
	slices.SortStableFunc(list, func(a, b uint16) int { return cmp.Compare(far[a], far[b]) })
	known := len(fs.nearest) == len(list) && !slices.ContainsFunc(list, func(id uint16) bool { return !slices.Contains(fs.nearest, id) })
	if known && slices.IsSortedFunc(fs.nearest, func(later, before uint16) int {
		if far[later]*nearer < far[before] {
			return -1
		}
		return 1
	}) {
		return
	}
	fs.nearest = list
	for _, f := range fs.list {
		g.stepAdapter(now, f.number, site.Near{Sites: list})
	}
}

// quality is the quality of a leg, as far as it is known.
func (l *leg) quality(now time.Time) api.Quality {
	if l.bearer.Relay != nil {
		return l.relayed(now)
	}
	s := siteOn(l.bearer.road.g, l)
	q := s.Quality(now, l.before(now, site.Routine.Rank()), &l.reckoning)
	q.Price, q.Hops = l.bearer.price, 1
	if l.Link.Listening() && !l.silentUntil.IsZero() {
		q.SilentUntil = l.silentUntil
	}
	return q
}

// relayed is the quality of a way over other gateways: that of the way to the first of them, and as much again for each further hop, because
// each gateway receives a message whole before it passes it on.
func (l *leg) relayed(now time.Time) (q api.Quality) {
	g := l.bearer.road.g
	id, hops := l.bearer.Relay.Hop(l.ID)
	hop := g.byID[id]
	if hop == nil || id == l.ID {
		return q
	}
	first := hop.leg
	for one := range legsTo(hop) {
		if one.bearer.Relay == nil && one.goes() && (!first.goes() || dear(one.bearer, first.bearer) < 0) {
			first = one
		}
	}
	q = first.quality(now)
	q.ShortS, q.LongS = q.ShortS*float64(hops), q.LongS*float64(hops)
	q.Price, q.Hops, q.NextHop = l.bearer.price, hops, hop.Name
	return q
}

// leads says that a leg is a way to its peer: a leg over other gateways is no way to a peer that answers itself.
func (l *leg) leads() bool {
	if l.bearer.Relay == nil || !l.Box.Empty() {
		return true
	}
	hop, _ := l.bearer.Relay.Hop(l.ID)
	return hop != 0 && hop != l.ID
}
