package xmpp

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
)

// Questions and orders of moderators, admins and owners of a room here (XEP-0045, 8 to 10).

const (
	nsRoomAdmin  = nsRoom + "#admin"
	roomConfig   = "muc#roomconfig_"
	roomSettings = nsRoom + "#roomconfig"
)

// govern takes a question or an order about a room here; false: the stanza is neither.
func govern(r *rooms, now time.Time, c *component, e, asked *stanza.Element, to jid) bool {
	m := r.all[roomID{r.cfg.ID, to.local}]
	if r.own == nil || c.site.ID != r.cfg.ID || !c.rooms || to.local == "" || asked == nil || asked.Name != "query" || asked.Space != nsRoomAdmin && asked.Space != nsRoomOwner {
		return false
	}
	if m == nil && r.charters[to.local] != nil { // nobody is there
		if m = r.get(roomID{r.cfg.ID, to.local}); m != nil {
			defer r.drop(m)
		}
	}
	from, _ := parseJID(e.Get("from"))
	ch := governed(r, m)
	refused, reply := "item-not-found", stanza.New(ns, "iq", "from", e.Get("to"), "to", e.Get("from"), "id", e.Get("id"), "type", "result")
	if ch != nil {
		is := powers{r, now, m, ch, member{r.cfg.ID, from.local}, ch.rank(from.bare()), nil}
		var inside *stanza.Element
		switch {
		case asked.Space == nsRoomOwner:
			inside, refused = is.owns(e.Get("type"), asked)
		case e.Get("type") == "get":
			inside, refused = is.list(asked)
		default:
			refused = is.change(asked)
		}
		if inside != nil {
			reply = reply.With(*inside)
		}
	}
	if refused != "" {
		r.trouble.Count("refused room order")
		reply = stanza.Refusal(e, refused, "")
	}
	c.write(reply)
	return true
}

// powers are the powers of one user in a room.
type powers struct {
	r    *rooms
	now  time.Time
	m    *room
	c    *charter
	k    member
	rank rank
	next map[string]rank // ranks after the orders so far
}

func (p *powers) role() role {
	if o := p.m.members[p.k]; o != nil {
		return p.c.role(p.r, p.k, o)
	}
	return byRank
}

// list answers the question who has a rank or a role.
func (p *powers) list(q *stanza.Element) (*stanza.Element, string) {
	item := q.Kid(nsRoomAdmin, "item")
	if item == nil {
		return nil, "bad-request"
	}
	answer := stanza.New(nsRoomAdmin, "query")
	if as, ok := ranks[item.Get("affiliation")]; ok {
		if p.rank < admin && !(as == aMember && p.role() != byRank) {
			return nil, "forbidden"
		}
		for _, bare := range slices.Sorted(maps.Keys(p.c.Ranks)) {
			if p.c.Ranks[bare] == as {
				answer = answer.With(stanza.New(nsRoomAdmin, "item", "affiliation", as.String(), "jid", bare))
			}
		}
		return &answer, ""
	}
	as, ok := roles[item.Get("role")]
	if !ok {
		return nil, "bad-request"
	} else if p.role() != moderator {
		return nil, "forbidden"
	}
	for _, k := range p.m.sorted() {
		if o := p.m.members[k]; p.c.role(p.r, k, o) == as {
			answer = answer.With(stanza.New(nsRoomAdmin, "item", "affiliation", p.c.rank(bareOf(p.r, k)).String(), "role", as.String(), "nick", o.shown, "jid", bareOf(p.r, k)))
		}
	}
	return &answer, ""
}

// change carries out orders about members: all of them, or none if one is refused.
func (p *powers) change(q *stanza.Element) (refused string) {
	var do []func()
	p.next = maps.Clone(p.c.Ranks)
	for i := range q.Kids {
		item := &q.Kids[i]
		if item.Name != "item" {
			continue
		}
		reason := item.Kid(nsRoomAdmin, "reason").Inside()
		var order func()
		if word := item.Get("affiliation"); word != "" {
			order, refused = p.rankOf(item, word, reason)
		} else {
			order, refused = p.roleOf(item, reason)
		}
		if refused != "" {
			return refused
		}
		do = append(do, order)
	}
	if len(do) == 0 {
		return "bad-request"
	}
	for _, order := range do {
		order()
	}
	p.c.save(p.r, p.m)
	return ""
}

// ended is the item with which a room says that an occupant is put out.
func (p *powers) ended(as rank, reason string) stanza.Element {
	by := stanza.New(nsRoomUser, "actor")
	if o := p.m.members[p.k]; o != nil {
		by = stanza.New(nsRoomUser, "actor", "nick", o.shown)
	}
	item := stanza.New(nsRoomUser, "item", "affiliation", as.String(), "role", "none").With(by)
	if reason != "" {
		item = item.With(stanza.New(nsRoomUser, "reason").Says(reason))
	}
	return item
}

// roleOf is the order to give an occupant another role, or to put it out.
func (p *powers) roleOf(item *stanza.Element, reason string) (do func(), refused string) {
	k, there := p.m.called(item.Get("nick"))
	as, known := roles[item.Get("role")]
	other := nobody
	if there {
		other = p.c.rank(bareOf(p.r, k))
	}
	switch {
	case p.role() != moderator || as == moderator && p.rank < admin:
		return nil, "forbidden"
	case !known && item.Get("role") != "none":
		return nil, "bad-request"
	case !there:
		return nil, "item-not-found"
	case bareOf(p.r, k) == "" || other >= admin || p.rank < admin && p.c.role(p.r, k, p.m.members[k]) == moderator && k != p.k:
		return nil, "not-allowed"
	case !known:
		return func() { expel(p.r, p.now, p.m, k, p.ended(other, reason), nil, "307") }, ""
	}
	return func() {
		if o := p.m.members[k]; o != nil { // the same order may have put it out
			o.role = as
			p.r.showThere(p.m, k, o, o.shown)
		}
	}, ""
}

// rankOf is the order to give a user another rank.
func (p *powers) rankOf(item *stanza.Element, word, reason string) (do func(), refused string) {
	to, ok := parseJID(item.Get("jid"))
	if nick := item.Get("nick"); !ok && nick != "" {
		k, there := p.m.called(nick)
		if !there {
			return nil, "item-not-found"
		}
		to, ok = parseJID(bareOf(p.r, k))
	}
	as, known := ranks[word]
	bare := to.bare()
	was := p.next[bare]
	owners := 0
	for _, a := range p.next {
		if a == owner {
			owners++
		}
	}
	switch {
	case !ok || to.local == "" || !known || p.r.cfg.siteOf(to.domain) == 0:
		return nil, "bad-request"
	case p.rank < admin:
		return nil, "forbidden"
	case p.rank < owner && (as >= admin || was >= admin):
		return nil, "not-allowed"
	case was == owner && as < owner && owners == 1:
		return nil, "conflict"
	case was == nobody && len(p.next) >= mostRanks:
		return nil, "resource-constraint"
	}
	if p.next[bare] = as; as == nobody {
		delete(p.next, bare)
	}
	return func() { p.appoint(to, as, reason) }, ""
}

// appoint gives a user a rank, which the caller saves.
func (p *powers) appoint(to jid, as rank, reason string) {
	bare := to.bare()
	if p.c.Ranks[bare] = as; as == nobody {
		delete(p.c.Ranks, bare)
	}
	p.c.Kept = true
	k := member{p.r.cfg.siteOf(to.domain), to.local}
	o := p.m.members[k]
	switch {
	case o == nil:
	case as == outcast:
		expel(p.r, p.now, p.m, k, p.ended(as, reason), nil, "301")
	case p.c.Closed && as < aMember:
		expel(p.r, p.now, p.m, k, p.ended(as, reason), nil, "321")
	default:
		o.role = byRank
		p.r.showThere(p.m, k, o, o.shown)
	}
}

// owns takes questions and orders of owners: the settings, and the end of the room.
func (p *powers) owns(kind string, q *stanza.Element) (*stanza.Element, string) {
	form := q.Kid(nsForm, "x")
	destroy := q.Kid(nsRoomOwner, "destroy")
	switch {
	case p.rank < owner:
		return nil, "forbidden"
	case kind == "get":
		answer := stanza.New(nsRoomOwner, "query").With(p.form())
		return &answer, ""
	case destroy != nil:
		p.destroy(destroy)
	case form == nil:
		return nil, "bad-request"
	case form.Get("type") == "submit":
		return nil, p.set(form)
	}
	return nil, ""
}

// setting is a field in the form of a room's settings.
type setting struct {
	name, label string
	text        *string // one of the two
	flag        *bool
}

func (c *charter) settings() []setting {
	return []setting{{"roomname", "Name", &c.Name, nil}, {"roomdesc", "Description", &c.About, nil}, {"persistentroom", "Keep the room while nobody is there", nil, &c.Kept},
		{"membersonly", "Only members may enter", nil, &c.Closed}, {"moderatedroom", "Only members and those who were given it have a voice", nil, &c.Quiet},
		{"roomsecret", "Password; empty: none is needed", &c.Password, nil}}
}

// turned are the fields that mean the opposite of their flag.
func (c *charter) turned() []setting {
	return []setting{{"publicroom", "Show the room in lists", nil, &c.Hidden}, {"changesubject", "Everybody with a voice may set the subject", nil, &c.Fixed}}
}

func yesNo(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

func field(name, kind, label string, values ...string) stanza.Element {
	f := stanza.New(nsForm, "field", "var", name, "type", kind, "label", label)
	for _, v := range values {
		f = f.With(stanza.New(nsForm, "value").Says(v))
	}
	return f
}

// form is the form of the settings.
func (p *powers) form() stanza.Element {
	x := stanza.New(nsForm, "x", "type", "form").With(field("FORM_TYPE", "hidden", "", roomSettings))
	for _, s := range p.c.settings() {
		if s.text != nil {
			kind := "text-single"
			if s.name == "roomsecret" {
				kind = "text-private"
			}
			x = x.With(field(roomConfig+s.name, kind, s.label, *s.text))
		} else {
			x = x.With(field(roomConfig+s.name, "boolean", s.label, yesNo(*s.flag)))
		}
	}
	for _, s := range p.c.turned() {
		x = x.With(field(roomConfig+s.name, "boolean", s.label, yesNo(!*s.flag)))
	}
	who := "moderators"
	if p.c.Known {
		who = "anyone"
	}
	options := field(roomConfig+"whois", "list-single", "Who sees real addresses", who)
	for _, v := range []string{"moderators", "anyone"} {
		options = options.With(stanza.New(nsForm, "option", "label", v).With(stanza.New(nsForm, "value").Says(v)))
	}
	return x.With(field(roomConfig+"passwordprotectedroom", "boolean", "A password is needed", yesNo(p.c.Password != "")), options)
}

// set takes a filled form of the settings.
func (p *powers) set(form *stanza.Element) (refused string) {
	said := map[string]string{}
	for i := range form.Kids {
		if f := &form.Kids[i]; f.Name == "field" {
			said[f.Get("var")] = f.Kid(nsForm, "value").Inside()
		}
	}
	next := *p.c
	for name, value := range said {
		if len(value) > mostWord {
			return "not-acceptable"
		}
		yes := value == "1" || value == "true"
		for i, list := range [][]setting{next.settings(), next.turned()} {
			for _, s := range list {
				if roomConfig+s.name == name && s.text != nil {
					*s.text = value
				} else if roomConfig+s.name == name {
					*s.flag = yes != (i == 1)
				}
			}
		}
		if name == roomConfig+"whois" {
			next.Known = value == "anyone"
		}
	}
	switch protected, there := said[roomConfig+"passwordprotectedroom"]; {
	case there && (protected == "0" || protected == "false"):
		next.Password = ""
	case (protected == "1" || protected == "true") && next.Password == "":
		return "not-acceptable"
	}
	if _, there := said[roomConfig+"persistentroom"]; !there && len(said) > 0 {
		next.Kept = true
	}
	before := *p.c
	*p.c = next
	p.c.save(p.r, p.m)
	for _, k := range p.m.sorted() {
		o := p.m.members[k]
		switch bare := bareOf(p.r, k); {
		case p.c.Closed && !before.Closed && p.c.rank(bare) < aMember && bare != "":
			expel(p.r, p.now, p.m, k, p.ended(p.c.rank(bare), ""), nil, "322")
		case p.c.Quiet != before.Quiet || p.c.Known != before.Known:
			p.r.showThere(p.m, k, o, o.shown)
		}
	}
	x := stanza.New(nsRoomUser, "x").With(stanza.New(nsRoomUser, "status", "code", "104"))
	if p.c.Known != before.Known {
		x = x.With(stanza.New(nsRoomUser, "status", "code", map[bool]string{true: "172", false: "174"}[p.c.Known]))
	}
	p.m.each(func(to string) {
		p.r.f.roomsAt(p.m.home).write(stanza.New(ns, "message", "from", p.r.address(p.m, ""), "to", to, "type", "groupchat").With(x))
	})
	return ""
}

// destroy ends a room: all occupants are put out, and its lines are forgotten.
func (p *powers) destroy(e *stanza.Element) {
	end := stanza.New(nsRoomUser, "item", "affiliation", "none", "role", "none")
	why := stanza.New(nsRoomUser, "destroy", "jid", e.Get("jid"))
	if reason := e.Kid(nsRoomOwner, "reason").Inside(); reason != "" {
		why = why.With(stanza.New(nsRoomUser, "reason").Says(reason))
	}
	for _, k := range p.m.sorted() {
		if bareOf(p.r, k) != "" { // the occupant that speaks for other adapters stays
			expel(p.r, p.now, p.m, k, end, &why)
		}
	}
	repeal(p.r, p.m)
	p.m.lines, p.m.from, p.m.subject.Fields = nil, "", nil
	p.r.f.archive.Forget(p.m.name, p.r.remember)
	p.r.drop(p.m)
}

// mayRead says whether the sender of a question may read the archive of a room here.
func (f *Adapter) mayRead(room string, e *stanza.Element) bool {
	from, ok := parseJID(e.Get("from"))
	c := f.rooms.charters[room]
	if c == nil || !ok {
		return ok
	}
	m, rank := f.rooms.all[roomID{f.cfg.ID, room}], c.rank(from.bare())
	inside := m != nil && m.members[member{f.cfg.ID, from.local}] != nil
	return inside || rank >= aMember || rank == nobody && !c.Closed && c.Password == ""
}

// describe returns the name of a room here, and its description (XEP-0045, 6.4); nil: nobody owns it.
func describe(r *rooms, named string) (name string, info []stanza.Element) {
	m := r.all[roomID{r.cfg.ID, named}]
	if m == nil {
		m = &room{roomID: roomID{r.cfg.ID, named}}
	}
	c := governed(r, m)
	if c == nil {
		return named, nil
	}
	pick := func(yes bool, words ...string) {
		word := words[1]
		if yes {
			word = words[0]
		}
		info = append(info, stanza.New(nsInfo, "feature", "var", "muc_"+word))
	}
	pick(c.Closed, "membersonly", "open")
	pick(c.Hidden, "hidden", "public")
	pick(c.Quiet, "moderated", "unmoderated")
	pick(c.Password != "", "passwordprotected", "unsecured")
	pick(c.Known, "nonanonymous", "semianonymous")
	pick(c.Kept, "persistent", "temporary")
	for _, word := range []string{nsInfo, nsItems, nsPing, nsRoom, server.NSArchive} {
		info = append(info, stanza.New(nsInfo, "feature", "var", word))
	}
	return cmp.Or(c.Name, named), append(info, stanza.New(nsForm, "x", "type", "result").With(field("FORM_TYPE", "hidden", "", nsRoom+"#roominfo"),
		field("muc#roominfo_description", "text-single", "", c.About), field("muc#roominfo_subject", "text-single", "", m.subject.Get(code.Subject)),
		field("muc#roominfo_occupants", "text-single", "", strconv.Itoa(len(m.members)))))
}
