package interop

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/site"
)

// The meeting towards the XMPP adapter: lines in rooms alone.

// beginRooms says which rooms meet.
func (m *Meeting) beginRooms() {
	var rooms []string
	for i := range m.cfg.Rules {
		if r := &m.cfg.Rules[i]; r.MUC != "" && !slices.Contains(rooms, r.MUC) {
			rooms = append(rooms, r.MUC)
		}
	}
	if len(rooms) > 0 {
		m.notify(site.XMPP, xmpp.Ears{Rooms: rooms})
	}
}

// hearRooms takes the lines that were said in these rooms out of what the adapter wants done.
func (m *Meeting) hearRooms(now time.Time, out *site.Output) {
	out.Orders = slices.DeleteFunc(out.Orders, func(o site.Order) bool {
		l, is := o.(xmpp.Line)
		if is {
			m.heardRoom(now, l)
		}
		return is
	})
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

// tellRooms says in the rooms of XMPP what a device said in a chat room.
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

// tellRoom says a line in the room of a rule.
func (m *Meeting) tellRoom(r *Rule, l *Line) {
	if r.MUC != "" {
		m.trouble.Count("lines_to_xmpp")
		m.notify(site.XMPP, xmpp.Met{Room: r.MUC, From: l.From, Text: l.Text, ID: l.ID})
	}
}
