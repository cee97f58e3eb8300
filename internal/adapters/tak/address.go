package tak

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/track"
)

// Events that name their recipients (marti): by uid, callsign, or group, which is a team.

// mostBehind bounds the units that are known to be behind the LAN's own server.
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

// team is the team of a unit; "": it has none.
func team(e *cot.Event) string {
	if g := e.Find("__group"); g != nil {
		return g.Get("name")
	}
	return ""
}

func group(d cot.Dest) bool { return d.Group != "" && d.UID == "" && d.Callsign == "" }

// is says whether an event is from the unit, or a unit of the group, that d names.
func is(e *cot.Event, d cot.Dest) bool {
	switch {
	case d.UID != "":
		return e.UID == d.UID
	case d.Callsign != "":
		return e.Callsign() == d.Callsign
	}
	return group(d) && team(e) == d.Group
}

// members replaces a group by its units of this site, if there are any.
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

// served gives an event to the LAN's own server for one of its units; false: it has no unit of this name.
func (d *devices) served(e *cot.Event, name cot.Dest) (found bool) {
	for _, u := range d.near.All() {
		if !d.behind[u.UID] || !is(u.Event, name) {
			continue
		}
		to := cot.Dest{Callsign: u.Event.Callsign()} // devices address each other by callsign: not every server looks for a uid
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

// here gives an event of c to a device of this LAN; false: no such device is here.
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
	if c.server { // the server has given the event to its own units
		return slices.ContainsFunc(d.near.All(), func(u *track.Unit) bool { return d.behind[u.UID] && is(u.Event, name) })
	}
	return d.served(e, name)
}

// address gives an event to its named recipients: devices here, and the sites where the others are.
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
		if !found { // the recipient may return: every site looks for it
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
