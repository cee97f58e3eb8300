package jxtabridge

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// PeerStatus is one local peer in a Status.
type PeerStatus struct {
	Peer        string               `json:"peer"`
	Name        string               `json:"name"`
	Generation  string               `json:"generation"` // "signed", "unsigned", "2.2"
	Connections int                  `json:"connections"`
	Leases      map[string]time.Time `json:"leases"` // group -> end
	Relay       time.Time            `json:"relay,omitzero"`
	Pipes       []string             `json:"pipes"`
	Waiting     int                  `json:"waiting"`        // messages
	Told        []uint16             `json:"told,omitempty"` // sites that know it, if some sites do not know all peers
}

// SiteStatus is one far site in a Status.
type SiteStatus struct {
	Peers   int `json:"peers"`
	Pipes   int `json:"pipes"`
	Adverts int `json:"adverts"`
	// View is the site's view on its peers here, if it is not all. Members is the number of peers that it reports, each counted once
	// for each group.
	View    View `json:"view,omitempty"`
	Members int  `json:"members,omitempty"`
	// Told is the site's view on local peers in groups that no rule names, and Wants the view that it wants, if it is not all.
	// Entries are its peers, if it does not tell of all.
	Told    View          `json:"told,omitempty"`
	Wants   View          `json:"wants,omitempty"`
	Entries []EntryStatus `json:"entries,omitempty"`
}

// Status is a snapshot for the operator.
type Status struct {
	Gateway   string                `json:"gateway"` // unique value
	Peers     []PeerStatus          `json:"peers"`
	Away      []AwayStatus          `json:"away,omitempty"` // peers for which far messages wait
	Groups    []string              `json:"groups"`
	Adverts   int                   `json:"adverts"` // of local peers
	Questions int                   `json:"questions"`
	Held      int                   `json:"held"`
	Far       map[uint16]SiteStatus `json:"far"`
	Streams   []StreamStatus        `json:"streams,omitempty"`
	View      View                  `json:"view"`                    // of other sites on the local peers if no rule fits
	Views     []ViewRule            `json:"views,omitempty"`         // rules from orders and from the configuration; the first that fits decides
	Ordered   int                   `json:"ordered_views,omitempty"` // how many of these are from orders
}

// StreamStatus is one BiDi pipe or socket between a local and a far peer.
type StreamStatus struct {
	Peer    string `json:"peer"`
	FarPeer string `json:"far_peer"`
	Site    uint16 `json:"site"`
	Kind    string `json:"kind"`          // "socket", "bidi"
	Pipe    string `json:"pipe"`          // of the server
	Sent    uint32 `json:"sent"`          // blocks of the local peer
	ToLink  int    `json:"to_link"`       // of those, octets that the far site does not have yet
	Closed  bool   `json:"window_closed"` // the local peer has to wait
	Taken   uint32 `json:"taken"`         // blocks of the far peer that the local one has
	ToPeer  int    `json:"to_peer"`       // octets that wait for the local peer
	// Since this gateway's start: octets of blocks taken from the local peer, and acknowledged by it; blocks it was sent
	// again, which never shows on the link.
	OctetsOut uint64 `json:"octets_out"`
	OctetsIn  uint64 `json:"octets_in"`
	Repeats   uint64 `json:"repeats"`
}

// AllAcknowledged says that local peers have acknowledged every message of far peers that was written to them.
func (b *Bridge) AllAcknowledged() bool {
	for _, c := range b.outlets.conns {
		for _, f := range c.inflight {
			if f.msg != nil && f.msg.delivery != nil {
				return false
			}
		}
	}
	return true
}

// Status copies the state that is worth showing.
func (b *Bridge) Status() Status {
	st := Status{Gateway: b.me, Questions: b.directory.questions.count(), Held: len(b.propagation.held), View: b.cfg.View, Views: b.directory.views.rules(), Ordered: len(b.directory.views.orders), Far: map[uint16]SiteStatus{}}
	groups := map[string]bool{}
	for _, p := range b.outlets.sortedPeers() {
		ps := PeerStatus{Peer: p.id, Connections: len(p.conns), Leases: map[string]time.Time{}, Relay: p.relayUntil, Waiting: len(p.queue)}
		switch {
		case p.signed:
			ps.Generation = "signed"
		case strings.HasPrefix(p.id, "cbid-"):
			ps.Generation = "unsigned"
		default:
			ps.Generation = "2.2"
		}
		for _, g := range slices.Sorted(maps.Keys(p.leases)) {
			l := p.leases[g]
			groups[g] = true
			ps.Leases[g] = l.expires
			for _, n := range l.to {
				if !slices.Contains(ps.Told, n) {
					ps.Told = append(ps.Told, n)
				}
			}
			if ps.Name == "" {
				ps.Name = nameIn(l.doc)
			}
		}
		for _, k := range p.pipeKeys() {
			ps.Pipes = append(ps.Pipes, k.pipe)
		}
		st.Peers = append(st.Peers, ps)
	}
	st.Groups = slices.Sorted(maps.Keys(groups))
	st.Streams, st.Away = b.streams.status(), b.arrivals.away.status()
	for n, s := range b.far.sites {
		var ss SiteStatus
		for _, m := range s.peers {
			ss.Peers += len(m)
		}
		for _, m := range s.pipes {
			ss.Pipes += len(m)
		}
		if ss.View = s.viewOf(""); ss.View == Complete {
			ss.View = ""
		}
		if ss.Told = b.directory.views.rule(false, "", n); ss.Told == Complete {
			ss.Told = ""
		}
		ss.Wants, ss.Entries = s.wants[""], b.directory.views.entries(n, s)
		for _, n := range s.counts {
			ss.Members += n
		}
		ss.Adverts = b.directory.cache.LenOf(n)
		st.Far[n] = ss
	}
	st.Adverts = b.directory.cache.LenOf(0)
	return st
}

// Stats copies the counters.
func (b *Bridge) Stats() Stats {
	s := b.stats
	s.Refused, s.StreamsEnded = maps.Clone(s.Refused), maps.Clone(s.StreamsEnded)
	return s
}
