package jxtabridge

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// farSite is the known state of a sister gateway's LAN.
type farSite struct {
	peers map[string]map[string]farPeer // group, peer
	ids   map[string]int                // groups that a peer is in, and its pipes
	pipes map[pipeKey]map[string]uint8
	asks  map[string]*ask
	count int // peers, pipes and counts
	// The views on its peers that the site gives, and on peers here that it wants, if they are not all; by group, "" is all groups.
	says   map[string]saidView
	wants  map[string]View
	counts map[string]int // numbers of members, by group
}

// farPeer is a peer of another site.
type farPeer struct {
	site.Item
	index []jxta.Field // of Doc, to find it by
	asked string       // the kind of question of this site by which it came: "ask", "id", "" none
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

// far holds what is known of the sites of sister gateways, except their advertisements.
type far struct {
	*step
	outlets *outlets
	sites   map[uint16]*farSite
	order   []uint16 // of sites
	near    []uint16 // the sites by distance, the nearest first
	limit   func(group string, n uint16) View
	known   func() []uint16 // sites, also those that have sent nothing yet
}

// distance is the place of a site among all by distance: this one is 0, and one that is not known comes last.
func (f *far) distance(n uint16) int {
	if i := slices.Index(f.near, n); n != 0 && i >= 0 {
		return 1 + i
	} else if n != 0 {
		return 1 + len(f.near)
	}
	return 0
}

// byDistance sorts a list by the distance of the sites, if that is known; entries of the same distance keep their order.
func byDistance[T any](f *far, list []T, siteOf func(T) uint16) []T {
	if len(f.near) == 0 {
		return list
	}
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return f.distance(siteOf(a)) - f.distance(siteOf(b)) })
}

// siteOf finds the entry of a site, or makes one.
func (f *far) siteOf(n uint16) *farSite {
	s := f.sites[n]
	if s == nil {
		s = &farSite{peers: map[string]map[string]farPeer{}, ids: map[string]int{}, pipes: map[pipeKey]map[string]uint8{}, asks: map[string]*ask{},
			says: map[string]saidView{}, wants: map[string]View{}, counts: map[string]int{}}
		f.sites[n] = s
		f.order = slices.Sorted(maps.Keys(f.sites))
	}
	return s
}

// lose forgets a site.
func (f *far) lose(n uint16) {
	delete(f.sites, n)
	f.order = slices.Sorted(maps.Keys(f.sites))
}

// home is the site where a peer has a lease, 0 if none.
func (f *far) home(peer string) uint16 {
	for _, n := range f.order {
		if peer != "" && f.sites[n].ids[peer] > 0 {
			return n
		}
	}
	return 0
}

func (f *far) withPipe(group, pipe string) []uint16 {
	return f.where(func(s *farSite) bool { return len(s.pipes[pipeKey{group, pipe}]) > 0 })
}

func (f *far) withGroup(group string) []uint16 {
	var list []uint16
	for _, n := range f.known() { // nobody here knows what a site may not tell
		if s := f.sites[n]; s != nil && s.inGroup(group) || f.limit(group, n) != Complete {
			list = append(list, n)
		}
	}
	return list
}

func (f *far) where(is func(*farSite) bool) (list []uint16) {
	for _, n := range f.order {
		if is(f.sites[n]) {
			list = append(list, n)
		}
	}
	return list
}

// peerDoc is the reduced peer advertisement of any peer, made up if only its id is known yet.
func (f *far) peerDoc(id, group string) []byte {
	if p := f.outlets.peers[id]; p != nil {
		if l := p.leases[group]; l != nil {
			return l.doc
		}
	}
	for _, n := range f.order {
		if it, ok := f.sites[n].peers[group][id]; ok {
			return it.Doc
		}
	}
	return jxta.AppendXML(nil, jxta.PeerAdvertisement{Peer: id, Group: group}.Node())
}

// peerIndex are the fields by which a peer is found in a group; nil: it is not there.
func (f *far) peerIndex(id, group string) []jxta.Field {
	if p := f.outlets.peers[id]; p != nil && p.leases[group] != nil {
		return p.leases[group].index
	}
	for _, n := range f.order {
		if it, ok := f.sites[n].peers[group][id]; ok {
			return it.index
		}
	}
	return nil
}

func (s *farSite) farPeer(it site.Item, asked map[string]ownAsk, now time.Time) {
	m := s.peers[it.Scope]
	_, had := m[it.Owner]
	switch {
	case it.Gone && had:
		delete(m, it.Owner)
		s.unnamed(it.Owner)
	case !it.Gone:
		if m == nil {
			m = map[string]farPeer{}
			s.peers[it.Scope] = m
		}
		p := farPeer{Item: it, index: indexOf(it.Doc)}
		if p.asked = askedFor(asked, now, it, p); p.asked == "" && had {
			p.asked = m[it.Owner].asked
		}
		m[it.Owner] = p
		if !had {
			s.named(it.Owner)
		}
	}
}

// named and unnamed count the items that name a peer: each says that it is at this site.
func (s *farSite) named(peer string) {
	s.ids[peer]++
	s.count++
}

func (s *farSite) unnamed(peer string) {
	if s.ids[peer]--; s.ids[peer] == 0 {
		delete(s.ids, peer)
	}
	s.count--
}

// farPipe reports whether a pipe is new.
func (s *farSite) farPipe(it site.Item) bool {
	k := pipeKey{it.Scope, it.ID}
	m := s.pipes[k]
	_, had := m[it.Owner]
	switch {
	case it.Gone && had:
		delete(m, it.Owner)
		s.unnamed(it.Owner)
		if len(m) == 0 {
			delete(s.pipes, k)
		}
	case !it.Gone:
		if m == nil {
			m = map[string]uint8{}
			s.pipes[k] = m
		}
		m[it.Owner] = it.Sub
		if !had {
			s.named(it.Owner)
		}
	}
	return !it.Gone && !had
}
