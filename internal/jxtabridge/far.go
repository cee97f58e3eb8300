package jxtabridge

import (
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// farSite is what is known of a sister gateway's LAN.
type farSite struct {
	peers map[string]map[string]farPeer // group, peer
	ids   map[string]int                // groups that a peer is in
	pipes map[pipeKey]map[string]uint8
	asks  map[string]*ask
	count int // peers and pipes
}

// farPeer is a peer of another site.
type farPeer struct {
	site.Item
	index []jxta.Field // of Doc, to find it by
}

func (s *farSite) peersOf(group string) []farPeer {
	m := s.peers[group]
	out := make([]farPeer, 0, len(m))
	for _, id := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[id])
	}
	return out
}

func (s *farSite) pipeOwners(k pipeKey) []string { return slices.Sorted(maps.Keys(s.pipes[k])) }

// sortedSites are the numbers of the far sites, in order.
func (b *Bridge) sortedSites() []uint16 { return b.sites }

// farSite is the site where a peer has a lease, 0 if none.
func (b *Bridge) farSite(peer string) uint16 {
	for _, n := range b.sortedSites() {
		if b.far[n].ids[peer] > 0 {
			return n
		}
	}
	return 0
}

func (b *Bridge) sitesWithPipe(group, pipe string) []uint16 {
	var out []uint16
	for _, n := range b.sortedSites() {
		if len(b.far[n].pipes[pipeKey{group, pipe}]) > 0 {
			out = append(out, n)
		}
	}
	return out
}

func (b *Bridge) sitesWithGroup(group string) []uint16 {
	var out []uint16
	for _, n := range b.sortedSites() {
		if len(b.far[n].peers[group]) > 0 {
			out = append(out, n)
		}
	}
	return out
}

// peerDoc is the reduced peer advertisement of any peer, made up where only its id is known yet.
func (b *Bridge) peerDoc(id, group string) []byte {
	if p := b.peers[id]; p != nil {
		if l := p.leases[group]; l != nil {
			return l.doc
		}
	}
	for _, n := range b.sortedSites() {
		if it, ok := b.far[n].peers[group][id]; ok {
			return it.Doc
		}
	}
	return jxta.AppendXML(nil, jxta.PeerAdvertisement{Peer: id, Group: group}.Node())
}

func (b *Bridge) farItem(ev site.FarItem) {
	it := ev.Item
	if ev.Site == 0 {
		return
	}
	s := b.far[ev.Site]
	if s == nil {
		s = &farSite{peers: map[string]map[string]farPeer{}, ids: map[string]int{}, pipes: map[pipeKey]map[string]uint8{}, asks: map[string]*ask{}}
		b.far[ev.Site] = s
		b.sites = slices.Sorted(maps.Keys(b.far))
	}
	if !it.Gone && s.count >= b.cfg.MaxFarItems && it.Kind != site.Document && it.Kind != site.Question {
		b.stats.Refused["far_items"]++
		return
	}
	switch it.Kind {
	case site.Endpoint:
		b.farPeer(s, it)
	case site.Listener:
		b.farPipe(ev.Site, s, it)
	case site.Document:
		b.farAdvert(ev.Site, it)
	case site.Question:
		b.farAsk(ev.Site, s, it)
	}
}

func (b *Bridge) farPeer(s *farSite, it site.Item) {
	m := s.peers[it.Scope]
	_, had := m[it.Owner]
	switch {
	case it.Gone && had:
		delete(m, it.Owner)
		if s.ids[it.Owner]--; s.ids[it.Owner] == 0 {
			delete(s.ids, it.Owner)
		}
		s.count--
	case !it.Gone:
		if m == nil {
			m = map[string]farPeer{}
			s.peers[it.Scope] = m
		}
		if m[it.Owner] = (farPeer{it, indexOf(it.Doc)}); !had {
			s.ids[it.Owner]++
			s.count++
		}
		b.peerKnown(it.Owner, it.Scope)
	}
}

func (b *Bridge) farPipe(n uint16, s *farSite, it site.Item) {
	k := pipeKey{it.Scope, it.ID}
	m := s.pipes[k]
	_, had := m[it.Owner]
	switch {
	case it.Gone && had:
		delete(m, it.Owner)
		s.count--
		if len(m) == 0 {
			delete(s.pipes, k)
		}
	case !it.Gone:
		if m == nil {
			m = map[string]uint8{}
			s.pipes[k] = m
		}
		if m[it.Owner] = it.Sub; had {
			return
		}
		s.count++
		if it.Sub == PipePropagate {
			b.release(n, it.Scope, it.ID)
		}
		b.pipeKnown(it.Owner, k, it.Sub)
	}
}

func (b *Bridge) farAdvert(n uint16, it site.Item) {
	k := advcache.Key{Group: it.Scope, Type: it.Sub, ID: it.ID, Site: n}
	expires := it.Expires
	if expires.IsZero() {
		expires = b.now.Add(jxta.MaxLife)
	}
	if it.Gone || !b.now.Before(expires) {
		b.cache.Remove(k)
		return
	}
	doc, err := jxta.ParseXML(it.Doc, jxta.DefaultXML)
	if err != nil {
		b.stats.Refused["far_advertisement"]++
		return
	}
	d := jxta.Describe(doc)
	e := advcache.Entry{Key: k, Peer: it.Owner, Doc: it.Doc, Index: d.Index, Expires: expires, Signed: d.Signed}
	b.cache.Share(&e)
	changed, put := b.cache.Put(b.now, e)
	for _, gone := range put {
		b.advertGone(gone)
	}
	if changed && b.cache.Get(b.now, k) != nil {
		b.until(expires)
		b.announce(&e, "")
	}
}

// siteLost forgets a site.
func (b *Bridge) siteLost(n uint16) {
	b.siteLostStreams(n)
	delete(b.far, n)
	b.sites = slices.Sorted(maps.Keys(b.far))
	b.cache.RemoveSite(n)
	for i := range b.held { // when it comes back it knows nothing
		b.held[i].sites = slices.DeleteFunc(slices.Clone(b.held[i].sites), func(s uint16) bool { return s == n })
	}
}

// PeerStatus is one local peer in a Status.
type PeerStatus struct {
	Peer        string               `json:"peer"`
	Name        string               `json:"name"`
	Generation  string               `json:"generation"` // "signed", "unsigned", "2.2"
	Connections int                  `json:"connections"`
	Leases      map[string]time.Time `json:"leases"` // group -> end
	Relay       time.Time            `json:"relay,omitzero"`
	Pipes       []string             `json:"pipes"`
	Waiting     int                  `json:"waiting"` // messages
}

// SiteStatus is one far site in a Status.
type SiteStatus struct {
	Peers   int `json:"peers"`
	Pipes   int `json:"pipes"`
	Adverts int `json:"adverts"`
}

// Status is a snapshot for the operator.
type Status struct {
	Gateway   string                `json:"gateway"` // unique value
	Peers     []PeerStatus          `json:"peers"`
	Groups    []string              `json:"groups"`
	Adverts   int                   `json:"adverts"` // of local peers
	Questions int                   `json:"questions"`
	Held      int                   `json:"held"`
	Far       map[uint16]SiteStatus `json:"far"`
	Streams   []StreamStatus        `json:"streams,omitempty"`
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
	ToPeer  int    `json:"to_peer"`       // octets that wait for it
	// Since this gateway's start: octets of blocks taken from the local peer, and acknowledged by it; blocks it was sent
	// again, which never shows on the link.
	OctetsOut uint64 `json:"octets_out"`
	OctetsIn  uint64 `json:"octets_in"`
	Repeats   uint64 `json:"repeats"`
}

// Status copies what is worth showing.
func (b *Bridge) Status() Status {
	st := Status{Gateway: b.me, Questions: b.questions.count(), Held: len(b.held), Far: map[uint16]SiteStatus{}}
	groups := map[string]bool{}
	for _, p := range b.sortedPeers() {
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
			if n, err := jxta.ParseXML(l.doc, jxta.DefaultXML); err == nil && ps.Name == "" {
				ps.Name = n.KidValue("Name")
			}
		}
		for _, k := range p.pipeKeys() {
			ps.Pipes = append(ps.Pipes, k.pipe)
		}
		st.Peers = append(st.Peers, ps)
	}
	st.Groups = slices.Sorted(maps.Keys(groups))
	st.Streams = b.streamStatus()
	for n, s := range b.far {
		var ss SiteStatus
		for _, m := range s.peers {
			ss.Peers += len(m)
		}
		for _, m := range s.pipes {
			ss.Pipes += len(m)
		}
		ss.Adverts = b.cache.LenOf(n)
		st.Far[n] = ss
	}
	st.Adverts = b.cache.LenOf(0)
	return st
}

// Stats copies the counters.
func (b *Bridge) Stats() Stats {
	s := b.stats
	s.Refused, s.StreamsEnded = maps.Clone(s.Refused), maps.Clone(s.StreamsEnded)
	return s
}
