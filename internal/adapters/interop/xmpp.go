package interop

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/site"
)

// The meeting towards the XMPP adapter: lines in rooms, and units as items of nodes.

// beginXMPP tells XMPP's adapter which rooms and nodes have rules.
func (m *Meeting) beginXMPP() {
	ears := xmpp.Ears{Nodes: map[string]bool{}}
	for i := range m.cfg.Rules {
		r := &m.cfg.Rules[i]
		if r.MUC != "" && !slices.Contains(ears.Rooms, r.MUC) {
			ears.Rooms = append(ears.Rooms, r.MUC)
		}
		if r.Node != "" {
			ears.Nodes[r.Node] = ears.Nodes[r.Node] || r.FromJXTA
		}
	}
	if len(ears.Rooms)+len(ears.Nodes) > 0 {
		m.notify(site.XMPP, ears)
	}
}

// hearXMPP takes the lines of these rooms and the units of these nodes out of the orders of the adapter.
func (m *Meeting) hearXMPP(now time.Time, out *site.Output) {
	out.Orders = slices.DeleteFunc(out.Orders, func(o site.Order) bool {
		switch o := o.(type) {
		case xmpp.Line:
			m.heardRoom(now, o)
		case xmpp.Unit:
			m.heardUnit(now, o)
		default:
			return false
		}
		return true
	})
}

// heardUnit shows TAK devices and JXTA peers a unit that a client of XMPP has published.
func (m *Meeting) heardUnit(now time.Time, u xmpp.Unit) {
	for i := range m.cfg.Rules {
		r := &m.cfg.Rules[i]
		if r.Node != u.Node || !r.FromJXTA {
			continue
		}
		t := &Track{ID: u.ID, Type: r.As, Lat: u.Lat, Lon: u.Lon, Moves: u.Moves, Course: u.Course, Speed: u.Speed, Time: u.Time}
		if cot.Below(u.Type, "a") {
			t.Type = u.Type
		}
		if t.Time.IsZero() {
			t.Time = now.UTC().Truncate(time.Millisecond)
		}
		t.Stale = t.Time.Add(r.Life)
		var err error
		if t.Callsign, err = name("the callsign", u.Name); err == nil {
			err = m.tak.tellTrack(now, r, t, site.XMPP)
		}
		if err != nil {
			m.jxta.refuse(now, r, u.ID, err)
		}
	}
}

// tellNodes tells clients of XMPP where a unit is, whoever has reported it: also a client that has published it.
func (m *Meeting) tellNodes(now time.Time, e *cot.Event, reckoned bool) {
	for i := range m.cfg.Rules {
		r := &m.cfg.Rules[i]
		if r.Node == "" || !r.FromTAK {
			continue
		}
		if _, ok := r.judge(&rule.Subject{Event: e}); !ok {
			continue
		}
		t := trackOf(e)
		life := t.Stale.Sub(t.Time)
		switch {
		case reckoned && t.Moves && t.Speed > 0:
			t.Time = now
		case !reckoned && !m.timely(now, t):
			t.Time, t.Stale = now, now.Add(life)
		}
		if t.Stale.After(now) {
			m.notify(site.XMPP, xmpp.Unit{Node: r.Node, ID: t.ID, Name: t.Callsign, Type: t.Type, Lat: t.Lat, Lon: t.Lon, Moves: t.Moves, Course: t.Course, Speed: t.Speed,
				Time: t.Time, Until: t.Stale, Every: r.Every})
		}
	}
}

// heardRoom gives a line to the TAK devices and JXTA peers of the rules for its room.
func (m *Meeting) heardRoom(now time.Time, line xmpp.Line) {
	for i := range m.cfg.Rules {
		r := &m.cfg.Rules[i]
		if r.MUC != line.Room {
			continue
		}
		l := &Line{ID: uuid("muc", line.Room, line.From, line.ID), Room: r.Room, From: line.From, Text: line.Text, Time: now.UTC().Truncate(time.Millisecond)}
		if err := m.tak.tellLine(now, r, l); err != nil {
			m.jxta.refuse(now, r, line.From, err)
		}
		for _, p := range m.jxta.pipes {
			if p.Rule == r && p.FromTAK && m.jxta.listens(p) {
				m.jxta.tellLine(now, p, l)
			}
		}
	}
}

// tellRooms sends a line of a TAK chat room to the rooms of XMPP.
func (m *Meeting) tellRooms(l *Line) {
	for i := range m.cfg.Rules {
		r := &m.cfg.Rules[i]
		if r.MUC == "" {
			continue
		}
		if _, ok := r.judge(&rule.Subject{Event: l.Event}); ok && m.lines.Add("XMPP\x00"+r.MUC+"\x00"+l.ID) {
			m.tellRoom(r, l)
		}
	}
}

// tellRoom sends a line to the XMPP room of a rule.
func (m *Meeting) tellRoom(r *Rule, l *Line) {
	if r.MUC != "" {
		m.trouble.Count("lines_to_xmpp")
		m.notify(site.XMPP, xmpp.Met{Room: r.MUC, From: l.From, Text: l.Text, ID: l.ID})
	}
}
