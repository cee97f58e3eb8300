package gateway

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/filter"
)

// ledgerKind is what an octet on the air was for (design 8).
type ledgerKind uint8

const (
	kindPayload ledgerKind = iota
	kindAdvertisement
	kindState
	kindAck
	kindRepair
	kindHeader
	kindKey
	ledgerKinds
)

func (k ledgerKind) String() string {
	return [...]string{"payload", "advertisement", "state", "ack", "repair", "header", "key"}[k]
}

const (
	sent = iota
	received
)

// ledger is the IP octets of one peer, by direction and kind.
type ledger [2][ledgerKinds]uint64

func (l *ledger) add(direction int, kind ledgerKind, octets int) {
	l[direction][kind] += uint64(octets)
}

// PeerCounts are totals since the start.
type PeerCounts struct {
	Accepted          uint64 `json:"accepted"`    // messages of local peers taken into custody for this peer
	Refused           uint64 `json:"refused"`     // not taken: no room, or not encodable
	Expired           uint64 `json:"expired"`     // of those accepted, not sent in their lifetime; over P_Mul, not acknowledged
	Superseded        uint64 `json:"superseded"`  // of those accepted, replaced by a newer one before they were sent
	Withdrawn         uint64 `json:"withdrawn"`   // of those accepted, given up for a more urgent one when the bound was reached
	Delivered         uint64 `json:"delivered"`   // of those accepted, acknowledged by the peer as durable
	Repeated          uint64 `json:"repeated"`    // transmissions again
	Received          uint64 `json:"received"`    // messages of the peer for local peers, each once
	HandedOver        uint64 `json:"handed_over"` // of those, done with: given to all local peers that wanted them
	Duplicates        uint64 `json:"duplicates"`  // received again and dropped
	Unreadable        uint64 `json:"unreadable"`
	DatagramsSent     uint64 `json:"datagrams_sent"`
	DatagramsReceived uint64 `json:"datagrams_received"`
	Pending           int    `json:"pending"` // received, not yet handed over

	lastKind ledgerKind // of the DATA frame being received
}

// Stats are the gateway's own counters since the start.
type Stats struct {
	Dropped  map[string]uint64 // datagrams and packets, by reason
	complain time.Time
	filtered time.Time // when it was last said that messages are dropped
}

func newStats() Stats { return Stats{Dropped: map[string]uint64{}} }

// Status is everything an operator may be told; nothing in it is shared with the gateway.
type Status struct {
	ID         uint16            `json:"id"`
	Name       string            `json:"name"`
	Profile    string            `json:"profile"`
	End        string            `json:"end"`
	Boot       seal.Boot         `json:"-"`
	BootNumber uint32            `json:"boot"`
	Transport  string            `json:"transport"` // "norm" or "p_mul"
	NORM       NormStatus        `json:"norm"`
	Items      int               `json:"items"` // of this site, as its peers should have them
	Silence    SilenceStatus     `json:"silence"`
	Peers      []PeerStatus      `json:"peers"`
	Ledger     []LedgerRow       `json:"ledger"`
	Dropped    map[string]uint64 `json:"dropped"`
	Filters    []filter.Status   `json:"filters,omitempty"` // the operator's rules, in order
}

// NormStatus is the child that runs libnorm.
type NormStatus struct {
	Up         bool  `json:"up"`
	Generation uint8 `json:"generation"`
	Failures   int   `json:"failures"`
}

// PeerStatus is a sister gateway.
type PeerStatus struct {
	ID            uint16 `json:"id"`
	Name          string `json:"name"`
	Address       string `json:"address,omitempty"`
	Link          string `json:"link"` // "unknown": never heard in this run; "up"; "silent": does not answer; "listening": said that it will not
	LastHeard     string `json:"last_heard,omitempty"`
	Knows         bool   `json:"knows_us"`
	Waiting       int    `json:"waiting"`   // messages without a number
	UnderWay      int    `json:"under_way"` // sent, not acknowledged
	WaitingOctets int    `json:"waiting_octets"`
	ItemsHeld     int    `json:"items_held"` // of this site's items, known to be there
	ItemsUnderWay int    `json:"items_under_way"`
	FarItems      int    `json:"far_items"` // of the peer's site, held here
	PeerCounts
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
	s := Status{
		ID: g.cfg.ID, Name: g.cfg.Name, Profile: g.cfg.Profile.Name, End: "terminal",
		Boot: g.cfg.Boot, BootNumber: g.cfg.Boot.Number,
		NORM:  NormStatus{g.norm.up, g.norm.generation, g.norm.failures},
		Items: len(g.replica.Own()), Filters: g.cfg.Filter.Status(), Dropped: map[string]uint64{},
	}
	if g.cfg.Shore {
		s.End = "shore"
	}
	s.Silence = g.forecast(now)
	s.Transport = profile.NORM
	if g.mul != nil {
		s.Transport = profile.PMul
		for kind, octets := range g.mul.ledger[sent] {
			s.Ledger = append(s.Ledger, LedgerRow{"sent", "group", ledgerKind(kind).String(), octets})
		}
	}
	for reason, n := range g.stats.Dropped {
		s.Dropped[reason] = n
	}
	if g.mul != nil {
		r := g.mul.receiver.Stats()
		for reason, n := range map[string]int{"p_mul_full": r.Full, "p_mul_illegal": r.Illegal, "p_mul_changed": r.Changed, "p_mul_conflict": r.Conflict} {
			if n > 0 {
				s.Dropped[reason] = uint64(n)
			}
		}
	}
	for _, p := range g.peers {
		ps := PeerStatus{
			ID: p.ID, Name: p.Name, Link: "unknown", Knows: p.knowsUs,
			Waiting:  len(p.waiting[frame.Direct]) + len(p.waiting[frame.Bulk]),
			UnderWay: len(p.underWay), WaitingOctets: p.octets,
			ItemsHeld: g.replica.HeldBy(p.ID), ItemsUnderWay: g.replica.Flying(p.ID), FarItems: len(p.far),
			PeerCounts: p.count,
		}
		if g.mul != nil {
			messages, octets := g.mul.waitingFor(p.ID)
			ps.UnderWay += messages
			ps.WaitingOctets += octets
		}
		if p.addr.IsValid() {
			ps.Address = p.addr.String()
		}
		if !p.lastHeard.IsZero() {
			ps.Link = "up"
			ps.LastHeard = p.lastHeard.UTC().Format(time.RFC3339)
		}
		switch {
		case p.sender.Dead():
			ps.Link = "silent"
		case p.sender.IsListening():
			ps.Link = "listening"
		}
		s.Peers = append(s.Peers, ps)
		for direction, name := range [...]string{"sent", "received"} {
			for kind, octets := range p.ledger[direction] {
				s.Ledger = append(s.Ledger, LedgerRow{name, p.Name, ledgerKind(kind).String(), octets})
			}
		}
	}
	slices.SortStableFunc(s.Peers, func(a, b PeerStatus) int { return cmp.Compare(a.ID, b.ID) })
	return s
}
