package xmpp

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// address is the address of a room, or of an occupant.
func (r *rooms) address(m *room, nick string) string {
	if c := r.f.roomsAt(m.home); c != nil {
		return jid{m.name, c.domain, nick}.String()
	}
	return jid{m.name, r.cfg.Rooms, nick}.String()
}

// ghost is the address of a far occupant as the server here sees it.
func ghost(c *component, k member) string { return jid{k.user, c.domain, resource}.String() }

// putIn makes a far occupant enter a room of this site, or show its new presence and nick.
func (r *rooms) putIn(m *room, k member, o *occupant) {
	c := r.speaker(k)
	if c == nil || c.conn == 0 {
		return
	}
	e := stanza.New(ns, "presence", "from", ghost(c, k), "to", r.address(m, o.shown))
	if show := code.Shows[o.Show]; show != "" {
		e = e.With(stanza.New(ns, "show").Says(show))
	}
	if o.Status != "" {
		e = e.With(stanza.New(ns, "status").Says(o.Status))
	}
	if !o.in {
		e = e.With(stanza.New(nsRoom, "x").With(stanza.New(nsRoom, "history", "maxstanzas", "0")))
	}
	c.write(e)
}

// takeOut makes a far occupant leave a room of this site.
func (r *rooms) takeOut(m *room, k member, o *occupant) {
	if c := r.speaker(k); c != nil {
		c.write(stanza.New(ns, "presence", "from", ghost(c, k), "to", r.address(m, o.shown), "type", "unavailable"))
	}
	if m.listener == k {
		m.listener = r.nextListener(m)
	}
}

// nextListener finds a far occupant that was let in.
func (r *rooms) nextListener(m *room) member {
	for _, k := range m.sorted() {
		if c := r.speaker(k); m.members[k].in && c != nil && c.conn != 0 {
			return k
		}
	}
	return member{}
}

// rejoin makes the far occupants of a site enter the rooms here again, when the server is connected.
func (r *rooms) rejoin(c *component) {
	for _, m := range listed(r.all) {
		for _, k := range m.sorted() {
			o := m.members[k]
			if o.seen = false; hosted(r, m) && k.site != r.cfg.ID && r.speaker(k) == c {
				o.in = false
				if m.listener == k {
					m.listener = member{}
				}
				r.putIn(m, k, o)
			}
		}
	}
}

// fromHome takes a stanza of a room of this site to a far occupant.
func (r *rooms) fromHome(now time.Time, c *component, e *stanza.Element, from, to jid) {
	m, k := r.all[roomID{r.cfg.ID, from.local}], member{c.site.ID, to.local}
	if to.local == metUser {
		k.site = metSite
	}
	if who := invited(e); e.Name == "message" && who != (jid{}) { // a user here invites a far one
		x := stanza.New(ns, "message", "id", e.Get("id")).With(stanza.New(nsInvite, "x", "jid", from.bare()))
		r.f.message(now, c, &x, who, to)
		return
	}
	if m == nil || m.members[k] == nil {
		return
	}
	switch e.Name {
	case "presence":
		r.presenceAtHome(now, c, m, k, e, from)
	case "message":
		r.heardAtHome(now, c, m, k, e, from)
	case "iq":
		if kind := e.Get("type"); kind == "get" || kind == "set" {
			r.f.query(c, e, to)
		}
	}
}

func (r *rooms) presenceAtHome(now time.Time, c *component, m *room, k member, e *stanza.Element, from jid) {
	o, kind := m.members[k], e.Get("type")
	codes := statuses(e)
	self := slices.Contains(codes, "110") || from.resource == o.shown
	switch {
	case kind == "error":
		r.refusedAtHome(now, m, k, o, from.resource, conditionOf(e))
	case self && kind == "unavailable":
		if slices.Contains(codes, "303") { // it has another nick now
			return
		}
		if slices.Contains(codes, "332") { // the server shuts down: the occupant enters again when the server is back
			o.in = false
			return
		}
		status := uint16(307)
		for _, code := range codes {
			if n, err := strconv.ParseUint(code, 10, 16); err == nil && n != 110 && n < 1000 {
				status = uint16(n)
			}
		}
		r.putOut(now, m, k, code.Removal{Reason: code.ReasonOf("gone"), Status: status, User: k.user})
	case self && kind == "":
		o.in = true
		if slices.Contains(codes, "201") { // a new room: with its usual settings
			c.write(stanza.New(ns, "iq", "type", "set", "id", "aldis-room", "from", ghost(c, k), "to", r.address(m, "")).
				With(stanza.New(nsRoomOwner, "query").With(stanza.New(nsForm, "x", "type", "submit"))))
		}
		if m.listener == (member{}) {
			m.listener = k
		}
		if m.listener == k {
			r.sweepHome(m)
		}
	case m.listener == k || m.listener == member{}:
		r.localAtHome(now, m, e, from.resource)
	}
}

// statuses are the codes in a presence of a room.
func statuses(e *stanza.Element) (codes []string) {
	if x := e.Kid(nsRoomUser, "x"); x != nil {
		for i := range x.Kids {
			if x.Kids[i].Name == "status" {
				codes = append(codes, x.Kids[i].Get("code"))
			}
		}
	}
	return codes
}

// localAtHome takes in an occupant of this LAN in a room of this site.
func (r *rooms) localAtHome(now time.Time, m *room, e *stanza.Element, nick string) {
	if k, ok := m.called(nick); ok && k.site != r.cfg.ID || nick == "" {
		return // one of the far occupants
	}
	k := member{r.cfg.ID, nick}
	o := m.members[k]
	if e.Get("type") == "unavailable" {
		if o != nil {
			m.remove(k)
			r.state(m, k)
			r.remember(m.homeKey(k), nil)
			r.settle(now, m, member{})
		}
		return
	}
	is := code.Occupant{Presence: presenceIn(e)}
	is.Priority = 0
	if o != nil && o.Occupant == is {
		o.seen = true
		return
	}
	if o == nil {
		if len(m.members) >= mostMembers {
			return
		}
		o = &occupant{shown: nick}
		m.put(k, o)
		r.remember(m.homeKey(k), []byte{1})
	}
	o.Occupant, o.seen, o.news = is, true, true
	r.news = due.Earliest(r.news, now.Add(gatherNews))
	r.settle(now, m, member{})
}

// sweepHome forgets the occupants of this LAN that were known from an earlier run and that the listener has not seen.
func (r *rooms) sweepHome(m *room) {
	for _, k := range m.sorted() {
		if k.site == r.cfg.ID && !m.members[k].seen {
			m.remove(k)
			r.state(m, k)
			r.remember(m.homeKey(k), nil)
		}
	}
}

func (m *room) homeKey(k member) string { return keyHome + m.name + "\x00" + k.user }

func (r *rooms) restoreHome(key string) error {
	name, nick, ok := strings.Cut(key, "\x00")
	if m := r.get(roomID{r.cfg.ID, name}); ok && m != nil {
		m.put(member{r.cfg.ID, nick}, &occupant{Occupant: code.Occupant{Presence: code.Presence{Show: code.Available}}, shown: nick})
		return nil
	}
	return errKey
}

// refusedAtHome takes in that a room of this site does not let a far occupant in. If an occupant here that the listener has not seen yet
// has its nick, it gets another one.
func (r *rooms) refusedAtHome(now time.Time, m *room, k member, o *occupant, nick string, why code.Reason) {
	if why == code.ReasonOf("conflict") {
		if _, known := m.members[member{r.cfg.ID, nick}]; !known && nick != "" && len(m.members) < mostMembers {
			m.put(member{r.cfg.ID, nick}, &occupant{Occupant: code.Occupant{Presence: code.Presence{Show: code.Available}}, shown: nick})
			o.shown = ""
			r.settle(now, m, member{})
			return
		}
	}
	r.putOut(now, m, k, code.Removal{Reason: why, User: k.user})
}

// putOut tells the site of a far occupant that the occupant is not in the room any more.
func (r *rooms) putOut(now time.Time, m *room, k member, why code.Removal) {
	r.trouble.Count("put_out")
	m.remove(k)
	if m.listener == k {
		m.listener = r.nextListener(m)
	}
	if k.site != metSite {
		r.out.Carry = append(r.out.Carry, site.Carry{Sites: []uint16{k.site}, Message: site.Message{Published: true, Topic: roomTopic + r.scope(m),
			Parts: []site.Part{{Data: why.Append(nil)}}}})
	}
	r.settle(now, m, member{})
	r.sitesOf(m)
	r.drop(m)
}

// heardAtHome takes a message of a room of this site. Each far occupant gets a copy of a line; only the copy of the listener counts.
func (r *rooms) heardAtHome(now time.Time, c *component, m *room, k member, e *stanza.Element, from jid) {
	switch kind := e.Get("type"); {
	case kind == "error":
		if i := slices.IndexFunc(r.said, func(s saidAtHome) bool { return s.id == e.Get("id") && s.member == k }); i >= 0 {
			r.f.tell(now, k.site, code.Outcome{Number: r.said[i].number, Became: code.Barred, Reason: conditionOf(e)})
			r.said = slices.Delete(r.said, i, i+1)
		}
		return
	case kind == "chat" && from.resource != "":
		s := saidIn(e)
		if s.Body != "" {
			s.Fields = append(s.Fields, code.Field{Tag: code.Private, Text: k.user})
			r.carry(now, m, from.resource, &s.Message, nil, k.site)
		}
		return
	case kind != "groupchat" || k != m.listener || e.Kid(nsDelay, "delay") != nil:
		return
	}
	if o, ok := m.called(from.resource); ok && o.site != r.cfg.ID || slices.ContainsFunc(r.said, func(s saidAtHome) bool { return s.id == e.Get("id") }) {
		return // a far line that comes back, perhaps under an earlier nick of its sender
	}
	s := saidIn(e)
	if s.Body == "" && e.Kid(ns, "subject") == nil {
		return
	}
	if s.Body == "" && from.resource == "" && s.Get(code.Subject) == "" && m.from == "" {
		return // no subject was ever set
	}
	r.tellMet(m, from.resource, e.Get("id"), &s.Message)
	r.carry(now, m, from.resource, &s.Message, nil)
}

// saidAtHome is a line of a far occupant that a room of this site may refuse.
type saidAtHome struct {
	id string
	member
	number uint16
}

// mostSaid is how many of the last lines of far occupants are remembered.
const mostSaid = 512

// sayAtHome sends a line of a far occupant to a room of this site.
func (r *rooms) sayAtHome(now time.Time, m *room, k member, o *occupant, f site.FarMessage, s *code.Message) {
	c := r.f.componentAt(k.site)
	if o == nil || c == nil {
		r.f.farTrouble(now, f, code.ErrMalformed)
		return
	}
	if k.user != metUser && s.Get(code.Private) == "" {
		r.tellMet(m, o.shown, f.Message.ID, s)
	}
	if r.said = append(r.said, saidAtHome{f.Message.ID, k, s.Number}); len(r.said) > mostSaid {
		r.said = r.said[1:]
	}
	s.Kind = code.Group
	nick := s.Get(code.Private)
	if nick != "" {
		s.Kind = code.Chat
	}
	if !r.f.hold(c, elementOf(s, ghost(c, k), r.address(m, nick), f.Message.ID, ""), held{token: f.Token, until: f.Until}) {
		r.out.Undelivered = append(r.out.Undelivered, site.Undelivered{Token: f.Token, Why: site.NoRoom})
		r.f.tell(now, k.site, code.Outcome{Number: s.Number, Became: code.Barred, Reason: code.ReasonOf("resource-constraint")})
	}
}
