package gateway

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/filter"
)

// PeerCounts are totals since the start.
type PeerCounts = mail.Counts

// Status is everything an operator may be told; nothing in it is shared with the gateway.
type Status struct {
	ID         uint16            `json:"id"`
	Name       string            `json:"name"`
	Key        string            `json:"key_fingerprint"` // of the net's key or of this node's own, for two operators to compare
	Roster     *RosterStatus     `json:"roster,omitempty"`
	Profile    string            `json:"profile"`
	End        string            `json:"end"`
	Boot       seal.Boot         `json:"-"`
	BootNumber uint32            `json:"boot"`
	Transport  string            `json:"transport"` // "norm" or "p_mul"
	NORM       NormStatus        `json:"norm"`
	Link       LinkStatus        `json:"link"`
	Items      int               `json:"items"` // of this site, as its peers should have them
	Silence    SilenceStatus     `json:"silence"`
	Peers      []PeerStatus      `json:"peers"`
	Ledger     []LedgerRow       `json:"ledger"`
	Dropped    map[string]uint64 `json:"dropped"`
	Modelled   uint64            `json:"modelled_octets"`   // that the model has coded, read or learned: some microseconds each
	Filters    []filter.Status   `json:"filters,omitempty"` // the operator's rules, in order
	Corpus     string            `json:"corpus,omitempty"`  // the name of the net's, as gateway corpus show has it
	Survey     *SurveyStatus     `json:"survey,omitempty"`  // the last that was ordered in this run
	Reloads    uint64            `json:"reloads,omitempty"` // how often the rules were replaced in this run
	Drain      *DrainStatus      `json:"drain,omitempty"`
	Holds      []HoldStatus      `json:"holds,omitempty"`      // standing orders
	Bill       *BillStatus       `json:"bill,omitempty"`       // where the tariff has units
	Month      *BillMonth        `json:"month,omitempty"`      // this calendar month, of earlier runs too
	Relinked   uint64            `json:"relinked,omitempty"`   // how often peers, keepalive and tariff were taken from a configuration that was read again
	LeftPeers  []uint16          `json:"left_peers,omitempty"` // configured no more, and the journal tells of them: one comes back with a restart
}

// NormStatus is the child that runs libnorm.
type NormStatus = unicast.NormStatus

// PeerStatus is a sister gateway.
type PeerStatus struct {
	ID     uint16 `json:"id"`
	Name   string `json:"name"`
	Key    string `json:"key_fingerprint,omitempty"` // of its own, as the roster has it
	Roster uint32 `json:"roster,omitempty"`          // serial that it is known to go by; 0: it has not said so in this run
	// RosterDiffers: it goes by another roster of the serial by which this node goes.
	RosterDiffers bool   `json:"roster_differs,omitempty"`
	Forward       bool   `json:"forward_secret,omitempty"` // what goes to it is sealed with a key that both ends forget
	Corpus        string `json:"corpus,omitempty"`         // of the net, that it has; empty: none, or it has not said so in this run
	Address       string `json:"address,omitempty"`
	Configured    string `json:"configured_address,omitempty"`
	Start         uint32 `json:"start"`               // boot number of its newest start that counts; 0: nothing of it counts yet
	Forgotten     int    `json:"forgotten,omitempty"` // so often the operator had it forgotten in this run
	Unopened      int    `json:"unopened,omitempty"`  // datagrams that seem to come from it and open with no key of ours, since the last that did
	Link          string `json:"link"`                // "unknown": never heard in this run; "up"; "silent": does not answer; "listening": said that it will not; "gone": the roster does not name it
	// LinkSince is when the link got this state; zero before the first turn of the loop.
	LinkSince time.Time `json:"link_since,omitzero"`
	LastHeard string    `json:"last_heard,omitempty"`
	Knows     bool      `json:"knows_us"`
	// KnownSince is when this run came to know the peer: its start, or when a reload brought the peer.
	KnownSince    time.Time `json:"known_since,omitzero"`
	Waiting       int       `json:"waiting"`        // in custody without a number, news of this site among it: see Messages
	UnderWay      int       `json:"under_way"`      // sent, not acknowledged
	WaitingOctets int       `json:"waiting_octets"` // of both
	NewsWaiting   int       `json:"news_waiting,omitempty"`
	NewsUnderWay  int       `json:"news_under_way,omitempty"`
	NewsOctets    int       `json:"news_octets,omitempty"`
	ItemsHeld     int       `json:"items_held"` // of this site's items, known to be there
	ItemsUnderWay int       `json:"items_under_way"`
	FarItems      int       `json:"far_items"` // of the peer's site, held here
	// Queue is what waits, the most urgent first.
	Queue []QueueRow `json:"queue,omitempty"`
	// Late is what of it will expire before it is there.
	Late   Foreseen `json:"late"`
	Delays Delays   `json:"delays"`
	// Measured is what the traffic shows of the link, as far as it does.
	Measured LinkMeasured `json:"measured"`
	PeerCounts
}

// Messages counts the messages of local peers that wait for the peer and that are under way to it, and the octets of both. All
// who tell an operator that messages wait count them so.
func (p PeerStatus) Messages() (waiting, underWay, octets int) {
	return p.Waiting - p.NewsWaiting, p.UnderWay - p.NewsUnderWay, p.WaitingOctets - p.NewsOctets
}

// QueueRow is what waits for a peer in one precedence.
type QueueRow struct {
	Precedence string    `json:"precedence"`
	Messages   int       `json:"messages"`
	Octets     int       `json:"octets"`          // as journalled
	Oldest     time.Time `json:"oldest,omitzero"` // when the oldest was accepted; where nobody knows, the start
	// Expected is when the last of them will be there, as Queue.Expected has it. Zero: nobody can tell, the link is down or a
	// silence has no end.
	Expected time.Time `json:"expected,omitzero"`
}

// LinkStatus is what the profile says of the link, as this end sees it. Rates are bits per second, 0 is unlimited.
type LinkStatus struct {
	SendBps        int     `json:"send_bps"`
	ReceiveBps     int     `json:"receive_bps"`
	SendLossPct    float64 `json:"send_loss_percent"` // of frames
	ReceiveLossPct float64 `json:"receive_loss_percent"`
	Shared         bool    `json:"shared"` // one channel for all, in both directions
	Each           bool    `json:"each"`   // each peer has a leg of its own, and the rates are those of one
	Tariff         string  `json:"tariff"` // "octets", "minutes" or "none"
}

// LedgerRow is one account of the airtime ledger.
type LedgerRow struct {
	Direction string `json:"direction"` // "sent" or "received"
	Peer      string `json:"peer"`
	Kind      string `json:"kind"`
	Octets    uint64 `json:"octets"` // IP octets
}

// Status describes the gateway at now.
func (g *Gateway) Status(now time.Time) Status {
	b := g.bearers[0]
	s := Status{
		ID: g.cfg.ID, Name: g.cfg.Name, Key: g.keys.fingerprint(&g.cfg), Profile: b.profile.Name, End: "terminal", Boot: g.cfg.Boot, BootNumber: g.cfg.Boot.Number,
		Transport: profile.NORM, NORM: b.lines.NormStatus(), Silence: g.forecast(now), Link: linkStatus(b.profile, g.cfg.Shore),
		Items: len(g.replica.Own()), Filters: g.cfg.Filter.Status(), Reloads: g.rulesReplaced, Drain: g.faces.drain.status(g), Holds: MessagesOf(g).Holds(), Bill: b.billed.status(), Relinked: g.linkReplaced, LeftPeers: slices.Clone(g.left), Dropped: maps.Clone(g.dropped), Modelled: g.coders.work(),
	}
	if g.cfg.Shore {
		s.End = "shore"
	}
	s.Corpus = corpusName(g.coders.net.Net.Name())
	s.Survey = b.surveys.status()
	if b.profile.Transport != "" {
		s.Transport = b.profile.Transport
	}
	for _, c := range b.carriers {
		c.Report(s.Dropped, func(who string, kind mail.Kind, octets uint64) {
			s.Ledger = append(s.Ledger, LedgerRow{"sent", who, kind.String(), octets})
		})
	}
	for _, p := range g.peers {
		ps := PeerStatus{
			ID: p.ID, Name: p.Name, Knows: p.Met.KnowsUs, Corpus: corpusName(p.Met.Corpus),
			ItemsHeld: g.replica.HeldBy(p.ID), ItemsUnderWay: g.replica.Flying(p.ID), FarItems: len(p.far.items),
			Start: g.keys.opener.State(p.ID).Boot, Forgotten: g.door.visits[p.ID].forgotten, Unopened: g.door.visits[p.ID].strange, PeerCounts: p.Counts,
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
		if ps.Link = p.link.told(p); ps.Link == p.link.word {
			ps.LinkSince = p.link.since
		}
		ps.KnownSince = p.link.known
		ps.Queue, ps.Delays, ps.Measured = backlog(g, now, p), p.delays, measured(p, g.cfg.Shore)
		ps.Late = p.late.Foreseen
		s.Peers = append(s.Peers, ps)
		for direction, name := range [...]string{"sent", "received"} {
			for kind, octets := range p.Ledger[direction] {
				s.Ledger = append(s.Ledger, LedgerRow{name, p.Name, mail.Kind(kind).String(), octets})
			}
		}
	}
	if bill := MessagesOf(g).Bill(1); len(bill) > 0 {
		s.Month = &bill[0]
	}
	g.keys.describe(&s)
	return s
}
