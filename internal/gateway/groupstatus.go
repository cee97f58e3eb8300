package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/entropy"
)

// report adds the groups to a status.
func (gs *groups) report(now time.Time, s *api.Status) {
	if gs.engine == nil {
		return
	}
	for tag, name := range gs.names {
		if gs.secrets.leaves(tag) {
			continue
		}
		row := api.GroupStatus{Name: name}
		members := gs.engine.Members(tag)
		if k := gs.secrets.of[tag]; k != nil {
			row.Keyed, row.Key, row.Sure = true, fmt.Sprintf("%x", k.Mark()), gs.sure(now, tag)
			members = slices.DeleteFunc(k.Members(), func(id uint16) bool { return id == gs.g.cfg.ID })
		}
		for _, id := range members {
			row.Members = append(row.Members, gs.g.siteName(id))
		}
		row.Held, row.Octets = gs.engine.Held(tag)
		s.Groups = append(s.Groups, row)
	}
	gs.reportChannels(now, s)
	slices.SortFunc(s.Groups, func(a, b api.GroupStatus) int { return strings.Compare(a.Name, b.Name) })
	if gs.refused > 0 {
		s.Dropped["group_long"] = gs.refused
	}
	if gs.secrets.lost > 0 {
		s.Dropped["group_keyless"] = gs.secrets.lost
	}
}

// reportChannels adds who hears whom to a status.
func (gs *groups) reportChannels(now time.Time, s *api.Status) {
	names := func(ids []uint16) (list []string) {
		for _, id := range ids {
			name := gs.g.cfg.Name
			if id != gs.g.cfg.ID {
				name = gs.g.siteName(id)
			}
			list = append(list, name)
		}
		return list
	}
	for _, b := range gs.g.bearers {
		if b.Relay != nil || !b.sharesGroup() {
			continue
		}
		row := api.ChannelStatus{Link: cmp.Or(b.name.Name, b.Profile.Name)}
		for _, part := range gs.hearing.Components(now, b.index) {
			row.Components = append(row.Components, names(part))
		}
		order := gs.hearing.Order(now, b.index, func(uint16) bool { return true })
		row.Speaks = names(order[:min(len(order), entropy.Speakers)])
		for _, r := range gs.hearing.Rows(now, b.index) {
			row.Sites = append(row.Sites, api.ChannelHearer{Site: names([]uint16{r.ID})[0], Hears: names(r.Hears), HearsNot: names(r.Not), GreetingAt: r.Said})
		}
		s.Channels = append(s.Channels, row)
	}
}
