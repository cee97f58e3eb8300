package xmpp

import (
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/site"
)

// Lines to and from the clients of other adapters of this gateway, by the operator's rules on where adapters meet
// (internal/adapters/interop). One occupant of a room, TAK, speaks for all of them.
type (
	// Ears lists all rooms (bare JIDs) in which they hear and speak, and all nodes that have their units. For a node, true means
	// that clients may publish there.
	Ears struct {
		Rooms []string
		Nodes map[string]bool
	}
	// Met is a line of one of them.
	Met struct{ Room, From, Text, ID string }
	// Line is a line in such a room, for them. It is not an order to the LAN room: interop takes it out.
	Line struct{ Room, From, Text, ID string }
)

// AdapterEvent marks Ears as an event of this adapter.
func (Ears) AdapterEvent() {}

// AdapterEvent marks Met as an event of this adapter.
func (Met) AdapterEvent() {}

// Concerns names no connection.
func (Line) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the size of the texts.
func (l Line) Octets() int { return len(l.Room) + len(l.From) + len(l.Text) + len(l.ID) }

// The occupant that speaks for other adapters: at the home of a room it counts as an occupant of a far site, whose component it
// uses. Their nodes are nodes of that site.
const (
	metSite uint16 = 0xFFFF
	metUser        = "aldis-tak"
	metNick        = "TAK"
)

// listen makes the occupant for other adapters enter rooms.
func (r *rooms) listen(now time.Time, ev Ears) {
	for _, text := range ev.Rooms {
		if m := r.named(text); m != nil {
			m.ear = true
			is := code.Occupant{Nick: metNick, Presence: code.Presence{Show: code.Available}}
			k := r.met(m)
			r.enter(now, m, k, is, time.Time{})
			r.state(m, k)
		}
	}
}

// met is the occupant of a room that speaks for other adapters.
func (r *rooms) met(m *room) member {
	if m.home == r.cfg.ID {
		return member{metSite, metUser}
	}
	return member{r.cfg.ID, metUser}
}

// named is the room with a bare JID; nil: this gateway has none.
func (r *rooms) named(text string) *room {
	j, ok := parseJID(text)
	switch c := r.f.componentOf(j.domain); {
	case !ok || j.local == "":
	case j.domain == r.cfg.Rooms:
		return r.get(roomID{r.cfg.ID, j.local})
	case c != nil && c.rooms:
		return r.get(roomID{c.site.ID, j.local})
	}
	return nil
}

// speaker is the component that a far occupant of a room of this site uses; nil: there is none.
func (r *rooms) speaker(k member) *component {
	if k.site == metSite {
		return r.f.find(func(c *component) bool { return c.users() })
	}
	return r.f.componentAt(k.site)
}

// sayMet sends a line of a client of another adapter to a room.
func (r *rooms) sayMet(now time.Time, ev Met) {
	m := r.named(ev.Room)
	if m == nil || m.members[r.met(m)] == nil {
		r.trouble.Count("met_nowhere")
		return
	}
	r.trouble.Count("met")
	k := r.met(m)
	s := code.Message{Body: ev.From + ": " + ev.Text}
	if c := r.speaker(k); hosted(r, m) && c != nil {
		s.Kind = code.Group
		r.f.hold(c, elementOf(&s, ghost(c, k), r.address(m, ""), ev.ID, ""), held{})
	} else if !hosted(r, m) {
		c, nick := r.f.roomsAt(m.home), m.members[k].shown
		m.each(func(to string) { r.f.hold(c, r.line(m, nick, to, ev.ID, &s), held{}) })
	}
	r.carry(now, m, metUser, &s, nil)
}

// tellMet passes a line of a room where other adapters listen to them.
func (r *rooms) tellMet(m *room, nick, id string, s *code.Message) {
	if m.ear && s.Body != "" {
		r.out.Orders = append(r.out.Orders, Line{r.address(m, ""), nick, s.Body, id})
	}
}
