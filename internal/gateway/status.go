package gateway

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/api"
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

// Status describes the gateway at now.
func (g *Gateway) Status(now time.Time) api.Status {
	b, sites := g.bearers[0], g.sites(g.peers...)
	s := api.Status{
		ID: g.cfg.ID, Name: g.cfg.Name, Profile: b.Profile.Name, End: "terminal", IncarnationNumber: g.cfg.Incarnation.Number,
		Transport: profile.NORM, Silence: g.silence.status(now, g.bearers), Link: linkStatus(b.Profile, g.cfg.Shore),
		Items: len(g.replica.Own()), Filters: g.cfg.Filter.Status(), Reloads: g.crossing.replaced, Holds: g.orders.status(sites), Bill: b.billed.status(), Relinked: g.roll.replaced, LeftPeers: slices.Clone(g.roll.left), Dropped: maps.Clone(g.dropped), Modelled: g.coders.work(),
	}
	if g.cfg.Shore {
		s.End = "shore"
	}
	s.Corpus = corpusName(g.coders.network.Network.Name())
	s.LinkProbe = b.linkProbes.status()
	pending := 0
	if b.Profile.Transport != "" {
		s.Transport = b.Profile.Transport
	}
	for _, c := range b.Carriers {
		c.Report(&s)
	}
	for i, p := range g.peers {
		ps := api.PeerStatus{
			ID: p.ID, Name: p.Name, Knows: p.Handshake.KnowsUs, Corpus: corpusName(p.Handshake.Corpus),
			ItemsHeld: g.replica.HeldBy(p.ID), ItemsUnderWay: g.replica.Flying(p.ID), FarItems: len(p.far.items), PeerCounts: *p.Counts,
		}
		if at := p.Configured(); at.IsValid() {
			ps.Configured = at.String()
		}
		ps.Waiting, ps.UnderWay, ps.WaitingOctets = p.Box.Held(frame.Direct, frame.Bulk, mail.Group)
		ps.NewsWaiting, ps.NewsUnderWay, ps.NewsOctets = p.Box.News()
		if p.Addr.IsValid() {
			ps.Address = p.Addr.String()
		}
		if !p.LastHeard.IsZero() {
			ps.LastHeard = p.LastHeard.UTC().Format(time.RFC3339)
		}
		ps.Link = p.link.shown(p.leg)
		if ps.Link == p.link.word {
			ps.LinkSince = p.link.since
		}
		ps.KnownSince = p.link.known
		ps.Queue, ps.Delays, ps.Measured = sites[i].Backlog(now, g.silence.ends(now), g.silence.began), p.delays, measured(p.leg, p.bearer.shore)
		ps.Late = p.late.Foreseen
		pending += p.Counts.Pending
		s.Peers = append(s.Peers, ps)
		for direction, name := range [...]string{"sent", "received"} {
			for kind, octets := range p.Ledger[direction] {
				s.Ledger = append(s.Ledger, api.LedgerRow{Direction: name, Peer: p.Name, Kind: mail.Kind(kind).String(), Octets: octets})
			}
		}
	}
	if bill := b.billed.months.last(1, g.siteName); len(bill) > 0 {
		s.Month = &bill[0]
	}
	s.Drain = g.adapters.drain.status(g.mail, g.siteName, pending)
	g.keys.Describe(&s)
	return s
}
