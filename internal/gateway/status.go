package gateway

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// linkStatus is the profile as one end sees it.
func linkStatus(p profile.Profile, shore bool) api.LinkStatus {
	out, in := p.Sending(shore), p.Sending(!shore)
	return api.LinkStatus{SendBps: out.RateBps, ReceiveBps: in.RateBps, SendLossPct: out.LossPct, ReceiveLossPct: in.LossPct,
		Shared: p.Shared, Each: shore && !p.Shared, Tariff: cmp.Or(p.Tariff, profile.TariffOctets)}
}

// end is which end of a link this is.
func end(shore bool) string {
	if shore {
		return "shore"
	}
	return "terminal"
}

// Status describes the gateway at now.
func (g *Gateway) Status(now time.Time) api.Status {
	b, sites := g.bearers[0], g.sites(g.peers...)
	s := api.Status{
		ID: g.cfg.ID, Name: g.cfg.Name, Profile: b.Profile.Name, End: end(g.cfg.Shore), IncarnationNumber: g.cfg.Incarnation.Number,
		Transport: profile.NORM, Silence: g.silence.status(now, g.bearers), Link: linkStatus(b.Profile, g.cfg.Shore),
		Items: len(g.replica.Own()), Filters: g.cfg.Filter.Status(), Reloads: g.crossing.replaced, Holds: g.orders.status(sites), Bill: b.billed.status(), Relinked: g.roll.replaced, LeftPeers: slices.Clone(g.roll.left), Dropped: maps.Clone(g.dropped), Modelled: g.coders.work(),
	}
	s.Corpus = corpusName(g.coders.network.Network.Name())
	s.LinkProbe = g.probing.status()
	if len(g.bearers) > 1 || b.day.most > 0 {
		for _, b := range g.bearers {
			row := api.BearerStatus{Name: b.name.Name, Profile: b.Profile.Name, End: end(b.shore), Price: b.price, Silence: b.silence.status(now, []*bearer{b}), Day: b.day.status()}
			if b.Relay == nil {
				link := linkStatus(b.Profile, b.shore)
				row.Link, row.Bill, row.Month, row.Direct = &link, b.billed.status(), b.billed.month(g.siteName), b.direct.status()
			}
			s.Bearers = append(s.Bearers, row)
		}
	}
	pending := 0
	if b.Profile.Transport != "" {
		s.Transport = b.Profile.Transport
	}
	for _, c := range b.Carriers {
		c.Report(&s)
	}
	for i := range s.Ledger {
		s.Ledger[i].Bearer = b.name.Name
	}
	for _, other := range g.bearers[1:] {
		other.report(&s)
	}
	for i, p := range g.peers {
		s.Peers = append(s.Peers, g.peerStatus(now, p, &sites[i]))
		pending += p.Counts.Pending
		for l := range legsTo(p) {
			if l.bearer.Relay == nil { // messages over relays are in the accounts of the bearers to the relays
				s.Ledger = append(s.Ledger, l.ledger()...)
			}
		}
	}
	s.Adapters = byAdapter(g)
	s.Month = b.billed.month(g.siteName)
	if s.Drain = g.adapters.drain.status(g.mail, g.siteName, pending); s.Drain != nil {
		s.Drain.Messages += len(g.groups.secrets.keyless)
	}
	g.keys.Describe(&s)
	g.groups.report(now, &s)
	g.rollups.report(now, &s)
	return s
}

// report adds the figures of the carriers of a bearer after the first to a status.
func (b *bearer) report(s *api.Status) {
	own := api.Status{Dropped: s.Dropped}
	for _, c := range b.Carriers {
		c.Report(&own)
	}
	for _, row := range own.Ledger {
		row.Bearer = b.name.Name
		s.Ledger = append(s.Ledger, row)
	}
}

// byAdapter has the octets of the ledger by protocol adapter.
func byAdapter(g *Gateway) (rows []api.AdapterRow) {
	var sum mail.Ledger
	for _, b := range g.bearers {
		if b.Relay == nil {
			sum.AddOf(b.Common.Ledger)
		}
	}
	for l := range legsOf(g) {
		if l.bearer.Relay == nil {
			sum.AddOf(&l.Ledger)
		}
	}
	for direction, name := range directions {
		for owner, kinds := range sum.Of[direction] {
			for kind, octets := range kinds {
				if octets > 0 {
					rows = append(rows, api.AdapterRow{Adapter: mail.Owners[owner], Direction: name, Kind: mail.Kind(kind).String(), Octets: octets})
				}
			}
		}
	}
	return rows
}

var directions = [...]string{mail.Sent: "sent", mail.Received: "received"}

// ledger has the octets that went to the peer and came from it on a leg.
func (l *leg) ledger() (rows []api.LedgerRow) {
	for direction, name := range directions {
		for kind, octets := range l.Ledger.All[direction] {
			rows = append(rows, api.LedgerRow{Bearer: l.Bearer.Name, Direction: name, Peer: l.Name, Kind: mail.Kind(kind).String(), Octets: octets})
		}
	}
	return rows
}

// peerStatus describes a peer, mainly on the leg that messages take.
func (g *Gateway) peerStatus(now time.Time, p *peer, of *forecast.Site) api.PeerStatus {
	l := p.best(nil)
	ps := api.PeerStatus{
		ID: p.ID, Name: p.Name, Knows: l.Handshake.KnowsUs, Corpus: corpusName(l.Handshake.Corpus),
		ItemsHeld: g.replica.HeldBy(p.ID), ItemsUnderWay: g.replica.Flying(p.ID), FarItems: len(p.far.items), PeerCounts: *p.Counts,
	}
	if n, named := g.keys.Rosters.Node(p.ID); named {
		_, _, ps.Enrolled = onRoster(g, n)
	}
	if at := l.Configured(); at.IsValid() {
		ps.Configured = at.String()
	}
	for one := range legsTo(p) {
		if one != l && !one.leads() {
			continue
		}
		row := one.status(one == l)
		row.Up, row.Quality = one.goes(), one.quality(now)
		if one == l {
			ps.Quality = row.Quality
		}
		waiting, underWay, octets := one.Box.Held(frame.Direct, frame.Bulk, mail.Group)
		news, newsUnderWay, newsOctets := one.Box.News()
		ps.Waiting, ps.UnderWay, ps.WaitingOctets = ps.Waiting+waiting, ps.UnderWay+underWay, ps.WaitingOctets+octets
		ps.NewsWaiting, ps.NewsUnderWay, ps.NewsOctets = ps.NewsWaiting+news, ps.NewsUnderWay+newsUnderWay, ps.NewsOctets+newsOctets
		row.Waiting, row.UnderWay = waiting, underWay
		ps.LastHeard = max(ps.LastHeard, row.LastHeard)
		if one == l {
			ps.Address = row.Address
		}
		if len(p.legs) > 1 {
			ps.Bearers = append(ps.Bearers, row)
		}
	}
	ps.Link = l.link.shown(l)
	if ps.Link == l.link.word {
		ps.LinkSince = l.link.since
	}
	ps.KnownSince = p.link.known
	ps.Queue, ps.Delays, ps.Measured = of.Backlog(now, g.silence.ends(now), g.silence.began), p.delays, measured(l, l.bearer.shore)
	ps.Late = p.late.Foreseen
	return ps
}

// status describes a leg. used: messages take it.
func (l *leg) status(used bool) api.PeerBearer {
	row := api.PeerBearer{Bearer: bearerName(l), Link: l.link.shown(l), Used: used}
	if l.Addr.IsValid() {
		row.Address = l.Addr.String()
	}
	if r := l.bearer.Relay; r != nil && row.Address != "" {
		hop, _ := r.Hop(l.ID)
		row.Address = "via " + l.bearer.road.g.siteName(hop)
	}
	if !l.LastHeard.IsZero() {
		row.LastHeard = l.LastHeard.UTC().Format(time.RFC3339)
	}
	return row
}
