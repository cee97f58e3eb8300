package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
)

// Events for somebody by name (marti): a uid, a callsign, or a group, which is a team.

// mostBehind bounds the units of the LAN's own server that are known as such.
const mostBehind = 4096

// noteServer notes whether a unit is reached through the LAN's own server.
func (d *devices) noteServer(c *client, e *cot.Event) {
	behind := d.behind
	switch {
	case !e.Is("a"):
	case !c.server:
		delete(behind, e.UID)
	case len(behind) < mostBehind || behind[e.UID]:
		behind[e.UID] = true
	default:
		for uid := range behind {
			if d.near.Get(uid) == nil {
				delete(behind, uid)
			}
		}
	}
}

// team is that of a unit; "": it has none.
func team(e *cot.Event) string {
	if g := e.Find("__group"); g != nil {
		return g.Get("name")
	}
	return ""
}

func group(d cot.Dest) bool { return d.Group != "" && d.UID == "" && d.Callsign == "" }

// is says whether an event is that of a unit that somebody has named.
func is(e *cot.Event, d cot.Dest) bool {
	switch {
	case d.UID != "":
		return e.UID == d.UID
	case d.Callsign != "":
		return e.Callsign() == d.Callsign
	}
	return group(d) && team(e) == d.Group
}

// members has the units of this site in the place of a group, where there are some.
func (d *devices) members(dests []cot.Dest) (list []cot.Dest) {
	for _, to := range dests {
		found := false
		if group(to) {
			for _, u := range d.near.All() {
				if is(u.Event, to) {
					list, found = append(list, cot.Dest{UID: u.UID}), true
				}
			}
		}
		if !found {
			list = append(list, to)
		}
	}
	return list
}

// served gives an event to the LAN's own server for one of its units; false: it has none of this name.
func (d *devices) served(e *cot.Event, name cot.Dest) (found bool) {
	for _, u := range d.near.All() {
		if !d.behind[u.UID] || !is(u.Event, name) {
			continue
		}
		to := cot.Dest{Callsign: u.Event.Callsign()} // as devices address each other: not every server looks for a uid
		if to.Callsign == "" {
			to = cot.Dest{UID: u.UID}
		}
		for _, c := range d.list() {
			if c.server {
				d.send(c, withDests(e, []cot.Dest{to}))
				found = true
			}
		}
	}
	return found
}

// here gives an event of c to a device of this LAN; false: it is not here.
func (d *devices) here(now time.Time, c *client, e *cot.Event, name cot.Dest) bool {
	list := d.named(name)
	for _, to := range list {
		if to != c {
			d.send(to, e)
		}
	}
	own := c.mesh && d.unicast.units[name.UID].host == c.host
	if len(list) > 0 || own || d.toOne(now, e, name) {
		return true
	}
	if c.server { // it has given it to its own units
		return slices.ContainsFunc(d.near.All(), func(u *track.Unit) bool { return d.behind[u.UID] && is(u.Event, name) })
	}
	return d.served(e, name)
}

// address gives an event to those it names: devices here, and the sites where the others are.
func (f *Adapter) address(now time.Time, c *client, e *cot.Event, dests []cot.Dest) {
	bySite := map[uint16][]cot.Dest{}
	for _, d := range dests {
		found := false
		for _, one := range f.devices.members([]cot.Dest{d}) {
			found = f.devices.here(now, c, e, one) || found
		}
		if found && !group(d) {
			continue
		}
		for _, id := range f.cfg.Sites {
			for _, u := range f.far[id].Units() {
				if is(u.Event, d) {
					found = true
					if !slices.Contains(bySite[id], d) {
						bySite[id] = append(bySite[id], d)
					}
				}
			}
		}
		if !found { // it may come back: every site looks for it
			f.trouble.Count("dest_unknown")
			for _, id := range f.cfg.Sites {
				bySite[id] = append(bySite[id], d)
			}
		}
	}
	for _, id := range f.cfg.Sites {
		if list := bySite[id]; len(list) > 0 {
			f.carry(now, c, withDests(e.Without(flowTags), list), []uint16{id})
		}
	}
}
