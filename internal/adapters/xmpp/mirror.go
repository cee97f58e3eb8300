package xmpp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// heard takes a stanza from a client here to a room of a far site.
func (r *rooms) heard(now time.Time, c *component, e *stanza.Element, from, to jid) {
	kind := e.Get("type")
	m := r.all[roomID{c.site.ID, to.local}]
	k := member{r.cfg.ID, from.local}
	switch {
	case to.local == "" || from.local == "":
		r.f.refuse(now, c, e, "nobody", "service-unavailable", "")
	case kind == "error":
		if m != nil { // a stanza could not be delivered: the client is gone
			r.dropJID(now, m, k, from.String())
		}
	case e.Name == "iq":
		if m == nil || m.members[k] == nil {
			c.write(stanza.Refusal(e, "not-acceptable", ""))
		} else if o, ok := m.called(to.resource); ok && o == k && e.Get("type") == "get" && e.Kid(nsPing, "ping") != nil { // XEP-0410
			r.f.query(c, e, to)
		} else {
			c.write(stanza.Refusal(e, "service-unavailable", ""))
		}
	case e.Name == "presence" && kind == "unavailable":
		if m != nil {
			r.dropJID(now, m, k, from.String())
		}
	case e.Name == "presence" && kind == "":
		r.join(now, c, e, from, to)
	case e.Name == "message" && kind == "groupchat" && to.resource == "":
		r.say(now, c, m, k, e, from)
	case e.Name == "message" && to.resource != "":
		sayPrivately(now, r, c, m, k, e, from, to.resource)
	case e.Name == "message" && m != nil && m.members[k] != nil && invited(e) != (jid{}):
		if ch := governed(r, m); ch != nil && ch.Closed {
			p := powers{r, now, m, ch, k, ch.rank(from.bare()), nil}
			if p.rank < admin {
				r.f.refuse(now, c, e, "no_voice", "forbidden", "")
				return
			}
			if guest := invited(e); ch.rank(guest.bare()) == nobody && len(ch.Ranks) < mostRanks {
				p.appoint(guest, aMember, "")
				ch.save(r, m)
			}
		}
		invite(now, r, e, from, to.bare())
	case e.Name == "message":
		r.f.refuse(now, c, e, "private", "feature-not-implemented", "requests for voice and administration do not cross")
	}
}

// join takes a client into a room, or takes in a change of its presence or nick.
func (r *rooms) join(now time.Time, c *component, e *stanza.Element, from, to jid) {
	refuse := func(condition string) {
		r.trouble.Count("refused join")
		c.write(stanza.New(ns, "presence", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "error").With(stanza.New(nsRoom, "x"), stanza.Failure(condition, "")))
	}
	m, k := r.get(roomID{c.site.ID, to.local}), member{r.cfg.ID, from.local}
	if m == nil {
		refuse("resource-constraint")
		return
	}
	defer r.drop(m)
	if to.resource == "" {
		refuse("jid-malformed")
		return
	}
	o := m.members[k]
	if in := 0; o == nil {
		for _, other := range r.all {
			if other.members[k] != nil {
				in++
			}
		}
		if in >= mostOfOne {
			refuse("resource-constraint")
			return
		}
	}
	if other, taken := m.called(to.resource); taken && other != k {
		refuse("conflict")
		return
	}
	if o == nil && len(m.members) >= mostMembers || o != nil && len(o.jids) >= mostResources && !slices.Contains(o.jids, from.String()) {
		refuse("service-unavailable")
		return
	}
	is := code.Occupant{Presence: presenceIn(e)}
	is.Priority = 0
	if to.resource != from.local {
		is.Nick = to.resource
	}
	fresh := o == nil
	if c := governed(r, m); c != nil && fresh {
		password := ""
		if x := e.Kid(nsRoom, "x"); x != nil {
			password = x.Kid(nsRoom, "password").Inside()
		}
		if why := c.bars(from.bare(), password); why != "" {
			refuse(why)
			return
		}
	}
	if fresh {
		o = &occupant{since: now, founder: found(r, m, from.bare())}
		m.put(k, o)
	}
	if e.Kid(nsRoom, "x") != nil { // a client that asks to enter is not in the room, whatever is known of it
		o.jids = slices.DeleteFunc(o.jids, func(j string) bool { return j == from.String() })
	}
	if again := !slices.Contains(o.jids, from.String()); again {
		o.jids = append(o.jids, from.String())
		fresh = fresh || o.Occupant != is
		r.rememberHere(m, k)
		for _, other := range m.sorted() {
			if other != k {
				c.write(r.there(m, other, m.members[other], from.String()))
			}
		}
		if !fresh {
			c.write(r.there(m, k, o, from.String()))
		}
		defer r.recall(now, c, m, from.String())
	}
	if fresh || o.Occupant != is {
		o.Occupant = is
		r.settle(now, m, k)
		r.rememberHere(m, k)
		r.state(m, k)
	}
	o.founder = false
}

// look returns the nicks in a room, for an occupant here who asks who is there. Other sites are asked for occupants that they
// have not announced. For the room service of this site, if the gateway serves it, it returns the rooms.
func (r *rooms) look(c *component, e *stanza.Element, to jid) (nicks, rooms []string) {
	from, _ := parseJID(e.Get("from"))
	m := r.all[roomID{c.site.ID, to.local}]
	if c.rooms && c.site.ID == r.cfg.ID && to.local == "" {
		for _, m := range listed(r.all) {
			if ch := governed(r, m); m.home == r.cfg.ID && (ch == nil || !ch.Hidden) {
				rooms = append(rooms, m.name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(r.charters)) {
			if ch := r.charters[name]; ch.Kept && !ch.Hidden && r.all[roomID{r.cfg.ID, name}] == nil {
				rooms = append(rooms, name)
			}
		}
		return nil, rooms
	}
	if !c.rooms || m == nil || m.members[member{r.cfg.ID, from.local}] == nil {
		return nil, nil
	}
	for _, k := range m.sorted() {
		nicks = append(nicks, m.members[k].shown)
	}
	it := m.item(r, site.Document, "")
	it.To = r.others(m)
	r.out.Items = append(r.out.Items, it)
	return nicks, nil
}

// recall gives a client that has entered the last lines and the subject.
func (r *rooms) recall(now time.Time, c *component, m *room, to string) {
	for _, p := range m.lines {
		e := r.line(m, p.from, to, p.id, &p.Message)
		e = numbered(r, m, e, p.number)
		c.write(e.With(stanza.New(nsDelay, "delay", "from", jid{local: m.name, domain: c.domain}.String(), "stamp", p.at.UTC().Format(stampOfDelay))))
	}
	e := stanza.New(ns, "message", "from", jid{m.name, c.domain, m.from}.String(), "to", to, "type", "groupchat")
	c.write(e.With(stanza.New(ns, "subject").Says(m.subject.Get(code.Subject))))
}

// there is the presence of a member for one client here.
func (r *rooms) there(m *room, k member, o *occupant, to string) stanza.Element {
	e := stanza.New(ns, "presence", "from", jid{m.name, r.f.roomsAt(m.home).domain, o.shown}.String(), "to", to)
	if show := code.Shows[o.Show]; show != "" {
		e = e.With(stanza.New(ns, "show").Says(show))
	}
	if o.Status != "" {
		e = e.With(stanza.New(ns, "status").Says(o.Status))
	}
	x := stanza.New(nsRoomUser, "x").With(itemOf(r, m, k, o, to))
	if slices.Contains(o.jids, to) {
		x = x.With(stanza.New(nsRoomUser, "status", "code", "110"))
		if o.founder {
			x = x.With(stanza.New(nsRoomUser, "status", "code", "201"))
		}
		if o.shown != m.nick(k) {
			x = x.With(stanza.New(nsRoomUser, "status", "code", "210"))
		}
	}
	return e.With(x)
}

// each calls do for every client here that is in a room.
func (m *room) each(do func(to string)) {
	for _, k := range m.sorted() {
		for _, to := range m.members[k].jids {
			do(to)
		}
	}
}

// used says whether somebody here is in a room of another site.
func (m *room) used() (used bool) {
	m.each(func(string) { used = true })
	return used || m.ear
}

// showThere shows a member to all here. If its nick differs from before, the member is renamed.
func (r *rooms) showThere(m *room, k member, o *occupant, before string) {
	c := r.f.roomsAt(m.home)
	if before != "" && before != o.shown {
		r.showEnd(m, before, o, []stanza.Element{itemOf(r, m, k, o, "").Set("nick", o.shown)}, []string{"303"})
	}
	m.each(func(to string) { c.write(r.there(m, k, o, to)) })
}

// showGone shows to all here, and to the member itself, that a member has gone.
func (r *rooms) showGone(m *room, k member, o *occupant, why []string) {
	end := o.end
	if end == nil {
		end = []stanza.Element{itemOf(r, m, k, o, "").Set("role", "none")}
	}
	r.showEnd(m, o.shown, o, end, why)
	for _, to := range o.jids {
		r.f.roomsAt(m.home).write(r.end(m, o.shown, to, end, append(why, "110")))
	}
}

// showEnd shows to all here that a nick is used no more.
func (r *rooms) showEnd(m *room, nick string, o *occupant, end []stanza.Element, codes []string) {
	m.each(func(to string) {
		own := codes
		if slices.Contains(o.jids, to) {
			own = append(codes[:len(codes):len(codes)], "110")
		}
		r.f.roomsAt(m.home).write(r.end(m, nick, to, end, own))
	})
}

func (r *rooms) end(m *room, nick, to string, end []stanza.Element, codes []string) stanza.Element {
	x := stanza.New(nsRoomUser, "x").With(end...)
	for _, code := range codes {
		x = x.With(stanza.New(nsRoomUser, "status", "code", code))
	}
	return stanza.New(ns, "presence", "from", jid{m.name, r.f.roomsAt(m.home).domain, nick}.String(), "to", to, "type", "unavailable").With(x)
}

// line is a line in a room for one client here.
func (r *rooms) line(m *room, nick, to, id string, s *code.Message) stanza.Element {
	s.Kind = code.Group
	return elementOf(s, jid{m.name, r.f.roomsAt(m.home).domain, nick}.String(), to, id, "")
}

// say takes a line of a client here.
func (r *rooms) say(now time.Time, c *component, m *room, k member, e *stanza.Element, from jid) {
	if m == nil || m.members[k] == nil || !slices.Contains(m.members[k].jids, from.String()) {
		r.f.refuse(now, c, e, "not_in_room", "not-acceptable", "")
		return
	}
	s := saidIn(e)
	r.trouble.Of["stripped"] += s.stripped
	if s.Body == "" && e.Kid(ns, "subject") == nil {
		r.trouble.Count("kept_local")
		return
	}
	if why := silences(r, m, k, m.members[k], &s.Message); why != "" {
		r.f.refuse(now, c, e, "no_voice", why, "")
		return
	}
	if len(s.Append(nil)) > code.MaxOctets {
		r.f.refuse(now, c, e, "too_long", "policy-violation", "")
		return
	}
	if why := r.f.uploads.fault(&s.Message); why != "" {
		r.f.refuse(now, c, e, "file", "policy-violation", why)
		return
	}
	o := m.members[k]
	r.tellMet(m, o.shown, e.Get("id"), &s.Message)
	mine := r.f.numbers[0].add(ours{id: e.Get("id"), from: from, to: roomTopic + r.scope(m), kind: code.Group})
	s.Number = mine.number()
	here := s.Message // a reference to an earlier line does not cross
	here.Fields = slices.Clone(s.Fields)
	number := r.carry(now, m, k.user, &s.Message, mine)
	hold := r.f.copies(c, numbered(r, m, r.line(m, o.shown, "", e.Get("id"), &here), number))
	m.each(func(to string) { // its sender gets it last, when the line is sure to cross
		if to != from.String() {
			hold(to, held{soon: number == ""}) // after a crash, a number that was shown must not be given to another line
		}
	})
	hold(from.String(), held{})
}

// sayHere gives the clients here a line of a far occupant; o is nil for messages of the room itself.
func (r *rooms) sayHere(now time.Time, m *room, o *occupant, f site.FarMessage, s *code.Message) {
	nick := ""
	if o != nil {
		nick = o.shown
	}
	if s.Get(code.Private) != "" {
		hearPrivately(r, m, nick, f, s)
		return
	}
	number := keep(r, m, past{at: now, from: nick, Message: *s, id: f.Message.ID})
	if f.Message.From != metUser {
		r.tellMet(m, nick, f.Message.ID, s)
	}
	var all []string
	m.each(func(to string) { all = append(all, to) })
	if len(all) == 0 {
		r.trouble.Count("unheard")
		r.out.Done = append(r.out.Done, f.Token)
		return
	}
	hold := r.f.copies(r.f.roomsAt(m.home), numbered(r, m, r.line(m, nick, "", f.Message.ID, s), number))
	for i, to := range all {
		h := held{until: f.Until}
		if i == len(all)-1 { // the others were written before
			h.token = f.Token
		}
		if !hold(to, h) && h.token != 0 {
			r.out.Undelivered = append(r.out.Undelivered, site.Undelivered{Token: f.Token, Why: site.NoRoom})
		}
	}
}

// removed takes in that the home has put an occupant here out, or not let it in.
func (r *rooms) removed(now time.Time, m *room, f site.FarMessage, data []byte) {
	gone, err := code.ParseRemoval(data)
	if err != nil || m.home != f.Site {
		r.f.farTrouble(now, f, code.ErrMalformed)
		return
	}
	r.out.Done = append(r.out.Done, f.Token)
	k := member{r.cfg.ID, gone.User}
	o := m.members[k]
	if o == nil {
		return
	}
	c := r.f.roomsAt(m.home)
	if gone.Status == 0 {
		for _, to := range o.jids {
			c.write(stanza.New(ns, "presence", "from", jid{m.name, c.domain, o.shown}.String(), "to", to, "type", "error").With(stanza.New(nsRoom, "x"), stanza.Failure(gone.Reason.String(), "")))
		}
	}
	why := []string{"307"}
	if gone.Status != 0 {
		why = []string{fmt.Sprint(gone.Status)}
	}
	r.forgetHere(now, m, k, why)
}

// dropJID takes one client out of a room.
func (r *rooms) dropJID(now time.Time, m *room, k member, jid string) {
	o := m.members[k]
	if o == nil || !slices.Contains(o.jids, jid) {
		return
	}
	if len(o.jids) == 1 {
		r.forgetHere(now, m, k, nil)
		return
	}
	end := []stanza.Element{itemOf(r, m, k, o, "").Set("role", "none")}
	r.f.roomsAt(m.home).write(r.end(m, o.shown, jid, end, []string{"110"}))
	o.jids = slices.DeleteFunc(o.jids, func(j string) bool { return j == jid })
	r.rememberHere(m, k)
}

// forgetHere takes an occupant here out of a room of another site.
func (r *rooms) forgetHere(now time.Time, m *room, k member, why []string) {
	r.leave(now, m, k, why)
	r.rememberHere(m, k)
	r.state(m, k)
}

// askLocals asks the clients here that are in rooms whether they are still there.
func (r *rooms) askLocals(c *component) {
	r.away = time.Time{}
	for _, m := range listed(r.all) {
		if m.home != c.site.ID {
			continue
		}
		for _, k := range m.sorted() {
			o := m.members[k]
			for _, to := range o.jids {
				c.write(stanza.New(ns, "iq", "type", "get", "id", "aldis-there", "from", jid{m.name, c.domain, o.shown}.String(), "to", to).
					With(stanza.New(nsPing, "ping")))
			}
		}
	}
}

// absent takes in that a client that was asked is not there.
func (r *rooms) absent(now time.Time, c *component, e *stanza.Element, from, to jid) {
	if m := r.all[roomID{c.site.ID, to.local}]; m != nil && e.Get("id") == "aldis-there" && conditionOf(e) == code.ReasonOf("service-unavailable") {
		r.dropJID(now, m, member{r.cfg.ID, from.local}, from.String())
	}
}

// rememberHere saves an occupant here, so that it survives a restart.
func (r *rooms) rememberHere(m *room, k member) {
	key := keyHere + string(binary.BigEndian.AppendUint16(nil, m.home)) + m.name + "\x00" + k.user
	o := m.members[k]
	if o == nil {
		r.remember(key, nil)
		return
	}
	r.remember(key, appendTexts(nil, append([]string{o.Nick}, o.jids...)...))
}

func (r *rooms) restoreHere(home uint16, key string, value []byte) error {
	name, user, ok := strings.Cut(key, "\x00")
	if !ok {
		return errKey
	}
	if r.f.roomsAt(home) == nil { // of a site that is no longer configured
		return nil
	}
	var texts []string
	for rest := value; len(rest) > 0; {
		n, w := binary.Uvarint(rest)
		if w <= 0 || n > uint64(len(rest)-w) {
			return errShort
		}
		texts, rest = append(texts, string(rest[w:w+int(n)])), rest[w+int(n):]
	}
	m := r.get(roomID{home, name})
	if len(texts) < 2 || m == nil {
		return errShort
	}
	o := &occupant{Occupant: code.Occupant{Nick: texts[0], Presence: code.Presence{Show: code.Available}}, jids: texts[1:]}
	m.put(member{r.cfg.ID, user}, o)
	o.shown = m.nick(member{r.cfg.ID, user})
	return nil
}
