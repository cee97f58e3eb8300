package xmpp

import (
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// sayPrivately takes a message of a client here to one occupant.
func sayPrivately(now time.Time, r *rooms, c *component, m *room, k member, e *stanza.Element, from jid, nick string) {
	s := saidIn(e)
	var to member
	known := m != nil && m.members[k] != nil
	if known {
		if to, known = m.called(nick); !known && m.home != r.cfg.ID { // the home of the room may know an occupant that this site does not know
			to, known = member{m.home, nick}, true
		}
	}
	switch {
	case !known:
		r.f.refuse(now, c, e, "not_in_room", "item-not-found", "")
	case s.Body == "":
		r.trouble.Count("kept_local")
	case len(s.Append(nil)) > code.MaxOctets:
		r.f.refuse(now, c, e, "too_long", "policy-violation", "")
	case to.site == r.cfg.ID:
		for _, client := range m.members[to].jids {
			s.Kind = code.Chat
			r.f.hold(c, elementOf(&s.Message, r.address(m, m.members[k].shown), client, e.Get("id"), ""), held{})
		}
	default:
		mine := r.f.numbers[0].add(ours{id: e.Get("id"), from: from, to: roomTopic + r.scope(m), kind: code.Chat})
		s.Number = mine.number()
		s.Fields = append(s.Fields, code.Field{Tag: code.Private, Text: to.user})
		r.carry(now, m, k.user, &s.Message, mine, to.site)
	}
}

// invited is the user whom a message to or from a room invites (XEP-0045, 7.8.2); zero: nobody.
func invited(e *stanza.Element) jid {
	if x := e.Kid(nsRoomUser, "x"); x != nil {
		if i := x.Kid(nsRoomUser, "invite"); i != nil {
			j, _ := parseJID(i.Get("to") + i.Get("from"))
			return j
		}
	}
	return jid{}
}

// invite sends an invitation of a user of this site to a room as a message from user to user (XEP-0249), by the server or the link.
func invite(now time.Time, r *rooms, e *stanza.Element, from jid, room string) {
	to := invited(e)
	asks := stanza.New(ns, "message", "from", from.bare(), "to", to.bare(), "id", e.Get("id")).With(stanza.New(nsInvite, "x", "jid", room))
	if c := r.f.componentOf(to.domain); c != nil && c.users() {
		r.f.message(now, c, &asks, from, to)
	} else if c := r.f.find(func(c *component) bool { return c.rooms && strings.HasSuffix(room, "@"+c.domain) }); c != nil && to.domain == r.cfg.Domain {
		asks = stanza.New(ns, "message", "from", room, "to", to.bare()).With(stanza.New(nsRoomUser, "x").With(stanza.New(nsRoomUser, "invite", "from", from.bare())))
		r.f.hold(c, asks, held{})
	}
}

// hearPrivately gives an occupant here a private message from another site; nick is the sender's.
func hearPrivately(r *rooms, m *room, nick string, f site.FarMessage, s *code.Message) {
	to := m.members[member{r.cfg.ID, s.Get(code.Private)}]
	if k, ok := m.called(s.Get(code.Private)); to == nil && ok && k.site == r.cfg.ID { // the sender's site only knows the nick
		to = m.members[k]
	}
	if to == nil || len(to.jids) == 0 {
		r.out.Done = append(r.out.Done, f.Token)
		r.f.tell(r.now, f.Site, code.Outcome{Number: s.Number, Became: code.Barred, Reason: code.ReasonOf("item-not-found")})
		return
	}
	s.Kind = code.Chat
	for i, client := range to.jids {
		h := held{until: f.Until}
		if i == len(to.jids)-1 {
			h.token = f.Token
		}
		r.f.hold(r.f.roomsAt(m.home), elementOf(s, r.address(m, nick), client, f.Message.ID, ""), h)
	}
}
