package interop

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak/rule"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/site"
)

// xmppSide is the meeting towards the XMPP adapter: lines in rooms alone.
type xmppSide struct{ *Meeting }

// begin says which rooms meet.
func (s *xmppSide) begin() {
	var rooms []string
	for i := range s.cfg.Rules {
		if r := &s.cfg.Rules[i]; r.MUC != "" && !slices.Contains(rooms, r.MUC) {
			rooms = append(rooms, r.MUC)
		}
	}
	if len(rooms) > 0 {
		s.notify(site.XMPP, xmpp.Ears{Rooms: rooms})
	}
}

// hear takes the lines that were said in these rooms out of what the adapter wants done.
func (s *xmppSide) hear(now time.Time, out *site.Output) {
	out.Orders = slices.DeleteFunc(out.Orders, func(o site.Order) bool {
		l, is := o.(xmpp.Line)
		if is {
			s.heard(now, l)
		}
		return is
	})
}

// heard gives a line to the TAK devices and JXTA peers of the rules for its room.
func (s *xmppSide) heard(now time.Time, line xmpp.Line) {
	for i := range s.cfg.Rules {
		r := &s.cfg.Rules[i]
		if r.MUC != line.Room {
			continue
		}
		l := &Line{ID: uuid("muc", line.Room, line.From, line.ID), Room: r.Room, From: line.From, Text: line.Text, Time: now.UTC().Truncate(time.Millisecond)}
		if err := s.tak.tellLine(now, r, l); err != nil {
			s.jxta.refuse(now, r, line.From, err)
		}
		for _, p := range s.jxta.pipes {
			if p.Rule == r && p.FromTAK && s.jxta.listens(p) {
				s.jxta.tellLine(now, p, l)
			}
		}
	}
}

// heardTAK says in the rooms of XMPP what a device said in a chat room.
func (s *xmppSide) heardTAK(l *Line) {
	for i := range s.cfg.Rules {
		r := &s.cfg.Rules[i]
		if r.MUC == "" {
			continue
		}
		if _, ok := r.judge(&rule.Subject{Event: l.Event}); ok && s.lines.Add("XMPP\x00"+r.MUC+"\x00"+l.ID) {
			s.tell(r, l)
		}
	}
}

// tell says a line in the room of a rule.
func (s *xmppSide) tell(r *Rule, l *Line) {
	if r.MUC != "" {
		s.trouble.Count("lines_to_xmpp")
		s.notify(site.XMPP, xmpp.Met{Room: r.MUC, From: l.From, Text: l.Text, ID: l.ID})
	}
}
