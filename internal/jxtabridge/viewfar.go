package jxtabridge

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// saidView is the view on its peers that a far site says it gives.
type saidView struct {
	sub  uint8
	view View // for this site
}

// farView learns the view that a far site gives, and says whether the view that it wants has changed. me is this site.
func (s *farSite) farView(it site.Item, me uint16) (wants bool) {
	sub, group := it.Sub, ""
	if sub > ofGroup {
		sub, group = sub-ofGroup, it.Scope
	}
	text := string(it.Doc)
	if len(text) > maxSpread {
		text = ""
	}
	switch {
	case len(s.says)+len(s.wants) >= maxSaid && sub != viewSubs[Count] && sub != viewSubs[Site] && !it.Gone:
	case sub == subWants:
		before := s.wants[group]
		delete(s.wants, group)
		if view := ofSpread(text, me); !it.Gone && parses(view) {
			s.wants[group] = view
		}
		return s.wants[group] != before
	case it.Sub == viewSubs[Site]:
		s.counted(it.Scope, 0, !it.Gone)
	case it.Sub == viewSubs[Count]:
		n, read := binary.Uvarint(it.Doc)
		s.counted(it.Scope, int(min(n, maxCounted)), !it.Gone && read > 0 && n > 0 && n <= maxCounted)
	case it.Gone && s.says[group].sub == it.Sub:
		delete(s.says, group)
	case !it.Gone && (sub == viewSubs[Ask] || sub == viewSubs[Blind] || sub == viewSubs[Complete]):
		said := saidView{sub: it.Sub, view: ofSpread(text, me)}
		if !parses(said.view) {
			said.view = map[uint8]View{viewSubs[Ask]: Ask, viewSubs[Blind]: Blind, viewSubs[Complete]: Complete}[sub]
		}
		s.says[group] = said
	}
	return false
}

// maxSaid bounds the groups for which a far site may state a view.
const maxSaid = 1024

// maxSpread bounds, in octets, the text in which a far site states its views.
const maxSpread = 16 << 10

// parses says whether a text is a view; other texts of far sites are of a later version.
func parses(v View) bool {
	_, err := v.Parts()
	return err == nil && v != ByBearer
}

// counted notes the number of members that a site has in a group; 0 with some: there are some.
func (s *farSite) counted(group string, n int, some bool) {
	if _, had := s.counts[group]; had {
		delete(s.counts, group)
		s.count--
	}
	if some {
		s.counts[group] = n
		s.count++
	}
}

// maxCounted bounds the number of peers that a far site may state.
const maxCounted = 1 << 32

// wantsOf is the view that a site wants on a group.
func (s *farSite) wantsOf(group string) View {
	for _, scope := range []string{group, ""} {
		if view := s.wants[scope]; view != "" {
			return view
		}
	}
	return Complete
}

// viewOf is the view that a site gives here on its peers in a group; "" is all groups.
func (s *farSite) viewOf(group string) View {
	if s == nil {
		return Complete
	}
	for _, scope := range []string{group, ""} {
		if said, is := s.says[scope]; is {
			return said.view
		}
	}
	for _, n := range s.counts {
		if n == 0 {
			return Site
		}
		return Count
	}
	return Complete
}

// inGroup says whether a site has members of a group, as far as its view tells.
func (s *farSite) inGroup(group string) bool {
	_, some := s.counts[group]
	return len(s.peers[group]) > 0 || some || partsOf(s.viewOf(group)).marks() != ""
}

// EntryStatus is a peer of a far site that does not tell of all, with the parts of that site's view by which it is known here:
// "id" if somebody here has looked for its id, "before" if none of the parts tells of it now.
type EntryStatus struct {
	Peer  string   `json:"peer"`
	Name  string   `json:"name"`
	Group string   `json:"group"`
	By    []string `json:"by"`
}

// entries are the peers of a far site that does not tell of all.
func (v *views) entries(n uint16, s *farSite) (list []EntryStatus) {
	for group, peers := range s.peers {
		view := v.partsOf(s.viewOf(group))
		if view.has(Complete) && v.limit(group, n) == Complete {
			continue
		}
		others := append(slices.DeleteFunc(slices.Clone(v.far.order), func(o uint16) bool { return o == n }), v.cfg.Site)
		for id, p := range peers {
			e := EntryStatus{Peer: id, Name: nameIn(p.Doc), Group: group}
			for _, part := range []View{Complete, Ring, Random, Tree} {
				if size, has := view[part]; has && (part == Complete || slices.Contains(viewParts{part: size}.neighbours(others, id, group), v.cfg.Site)) {
					e.By = append(e.By, part.sized(size))
				}
			}
			if p.asked != "" {
				e.By = append(e.By, p.asked)
			}
			if e.By == nil {
				e.By = []string{"before"}
			}
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b EntryStatus) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Peer, b.Peer)) })
	return list
}

// sized is the text of a part of a view with its size.
func (v View) sized(size int) string {
	if size == 0 {
		return string(v)
	}
	return fmt.Sprintf("%s(%d)", v, size)
}

// askedFor says by which kind of question of this site a far peer is known here: "ask", "id", or "" by none.
func askedFor(asked map[string]ownAsk, now time.Time, it site.Item, p farPeer) (by string) {
	for _, a := range asked {
		switch q := a.question; {
		case !now.Before(a.expires):
		case byPeerID(q) && q.Value == jxta.URN(it.Owner):
			return "id"
		case q.Type == jxta.TypePeer && named(q) && q.Group == it.Scope && peerMatches(p.index, q):
			by = string(Ask)
		}
	}
	return by
}
