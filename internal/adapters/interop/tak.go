package interop

import (
	"slices"
	"time"

	"aldis/internal/adapters/tak"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/site"
)

// takSide is the meeting towards the TAK adapter.
type takSide struct {
	*Meeting
	ears []string // the rooms of the last tak.Ears
}

// hear takes the events that the adapter gives to all devices.
func (s *takSide) hear(now time.Time, out *site.Output) {
	for _, o := range out.Orders {
		if o, ok := o.(tak.Spread); ok && s.deaf(o.XML) {
			continue
		} else if ok {
			e, err := cot.ParseXML(o.XML)
			if err != nil {
				continue
			}
			s.tellNodes(now, e, o.Reckoned)
			if !met(e) {
				s.heard(now, e, o.Reckoned)
			}
		}
	}
}

// deaf says, before an event is parsed, whether no rule can take it.
func (s *takSide) deaf(xml []byte) bool {
	if len(xml) == 0 {
		return true
	}
	for i := range s.cfg.Rules {
		if s.cfg.Rules[i].MUC != "" || s.cfg.Rules[i].Node != "" {
			return false
		}
	}
	for _, p := range s.jxta.pipes {
		if p.FromTAK && s.jxta.listens(p) || p.FromJXTA && p.Room == "" && len(s.units) > 0 {
			return false
		}
	}
	return true
}

// heard takes an event of a device here, or of a far site.
func (s *takSide) heard(now time.Time, e *cot.Event, reckoned bool) {
	if l := lineOf(e); l != nil {
		s.heardLine(now, e, l)
		return
	}
	t := trackOf(e)
	if known := s.units[t.ID]; known != nil || s.wanted(e) {
		switch { // a far unit's time is by its gateway's clock, and may be long past
		case !reckoned:
			s.clock(now, t)
		case t.Moves && t.Speed > 0:
			t.At = now
		}
		if !t.Stale.After(now) {
			return
		}
		u, fresh := s.news(now, site.TAK, t)
		for _, p := range s.jxta.pipes {
			if fresh && s.fits(p, e) {
				s.jxta.tellTrack(now, p, u, t)
			}
		}
	}
}

func (s *takSide) heardLine(now time.Time, e *cot.Event, l *Line) {
	for _, p := range s.jxta.pipes {
		if s.fits(p, e) && s.lines.Add("TAK\x00"+p.pipe().id+"\x00"+p.Room+"\x00"+l.ID) {
			s.jxta.tellLine(now, p, l)
		}
	}
	s.tellRooms(l)
}

// wanted says whether a rule takes an event for JXTA peers that listen.
func (s *takSide) wanted(e *cot.Event) bool {
	for _, p := range s.jxta.pipes {
		if s.fits(p, e) {
			return true
		}
	}
	return false
}

func (s *takSide) fits(p *rulePipe, e *cot.Event) bool {
	if !p.FromTAK || !s.jxta.listens(p) {
		return false
	}
	_, ok := p.judge(&rule.Subject{Event: e})
	return ok
}

// listen tells TAK's adapter which rooms JXTA peers or XMPP clients listen to.
func (s *takSide) listen() {
	var rooms []string
	for i := range s.cfg.Rules {
		if r := &s.cfg.Rules[i]; r.MUC != "" {
			rooms = append(rooms, r.Room)
		}
	}
	for _, p := range s.jxta.pipes {
		if p.FromTAK && p.Room != "" && s.jxta.listens(p) {
			rooms = append(rooms, p.Room)
		}
	}
	if !slices.Equal(rooms, s.ears) {
		s.ears = rooms
		s.notify(site.TAK, tak.Ears{Rooms: rooms})
	}
}

// tellTrack shows TAK devices a unit that a JXTA peer or an XMPP client has reported.
func (s *takSide) tellTrack(now time.Time, r *Rule, t *Track, by site.Adapter) error {
	s.clock(now, t)
	e := t.event()
	if err := readable(e); err != nil {
		return err
	}
	if _, ok := r.judge(&rule.Subject{Event: e}); !ok {
		s.trouble.Count("not_for_the_rule")
		return nil
	}
	u, fresh := s.news(now, by, t)
	if !fresh {
		return nil
	}
	s.trouble.Count("tracks_to_tak")
	s.notify(site.TAK, tak.Met{Event: e})
	for _, p := range s.jxta.pipes {
		if by == site.XMPP && s.fits(p, e) {
			s.jxta.tellTrack(now, p, u, t)
		}
	}
	return nil
}

// tellLine sends a line from JXTA or XMPP to a TAK chat room.
func (s *takSide) tellLine(now time.Time, r *Rule, l *Line) error {
	if l.Time.Sub(now).Abs() > s.cfg.Apart {
		s.trouble.Count("clock")
		l.Time, l.Event = now.UTC().Truncate(time.Millisecond), nil
	}
	e := l.event()
	if err := readable(e); err != nil {
		return err
	}
	if !s.lines.Add("JXTA\x00" + r.Room + "\x00" + l.ID) {
		s.trouble.Count("twice")
		return nil
	}
	s.trouble.Count("lines_to_tak")
	s.notify(site.TAK, tak.Met{Event: e})
	return nil
}

// readable says whether other programs can read an event that a rule has made.
func readable(e *cot.Event) error {
	if err := e.Check(); err != nil {
		return fault("unfit", "%v", err)
	}
	if _, err := cot.ParseXML(e.AppendXML(nil)); err != nil {
		return fault("unfit", "%v", err)
	}
	return nil
}
