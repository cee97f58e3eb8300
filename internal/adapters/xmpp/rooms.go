package xmpp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// rooms are the rooms (XEP-0045) that more than one site uses. At its home, the site whose server has it, the gateway sits in the
// room once for each far occupant (home.go). At other sites the gateway is the room (mirror.go). Sites tell each other of their
// occupants as state, and of lines as messages: one to each site that has an occupant.
type rooms struct {
	*step
	f        *Adapter
	all      map[roomID]*room
	said     []saidAtHome
	news     time.Time           // when news of occupants of this LAN goes to other sites; zero: there is none
	early    time.Time           // when the first occupant that is only known from a line is forgotten; zero: there is none
	charters map[string]*charter // of rooms of the gateway's own server, by name
	away     time.Time           // when occupants here count as gone, because their server is away; zero: it is there
}

// roomID names a room.
type roomID struct {
	home uint16
	name string
}

// member is an occupant: a local part at a far site, and at the home of the room a nick.
type member struct {
	site uint16
	user string
}

// room is one room.
type room struct {
	roomID
	members  map[member]*occupant
	of       map[uint16]int // how many of the members are of a site
	order    []member       // of members (sorted); nil: they have changed
	lines    []past         // at most mostLines, the oldest first
	subject  code.Message
	from     string   // nick of the occupant that has set the subject; "": nobody has
	sites    []uint16 // sites with an occupant: as the home has reported; at the home itself, as they are
	look     []uint16 // sites that want to know all occupants, however many there are
	ear      bool     // clients of other adapters hear and speak there (met.go)
	listener member   // at the home: the far occupant that hears for all
}

// occupant is one of the occupants of a room.
type occupant struct {
	code.Occupant
	shown string    // nick as the occupants here see it
	jids  []string  // of clients here, with their resources
	since time.Time // the occupant entered here
	until time.Time // a line came before the news of its sender: when the occupant is forgotten; zero: it is known
	in    bool      // at the home: the far occupant was let in
	seen  bool      // at the home: the listener has seen the occupant in this run
	told  bool      // the occupant is of this site and announced to other sites, because it has spoken, or because another occupant wants its nick
	news  bool      // at the home: the occupant's news is to go to other sites
	// Of a room of the gateway's own server:
	role    role             // the role that it was given; byRank: none
	end     []stanza.Element // elements of the presence that shows its end; nil: the usual ones
	founder bool             // it has just created the room
}

// past is a line that is kept for occupants who enter later.
type past struct {
	at   time.Time
	from string // nick
	code.Message
	id     string
	number string // in the archive; "": it is not in one
}

// Bounds of rooms.
const (
	mostRooms   = 1000
	mostOfSite  = mostRooms / 4 // rooms in which a far site has an occupant and nobody here is
	mostMembers = 1000          // of one
	mostOfOne   = 200           // rooms of other sites that one user here is in
	mostLines   = 20
	gatherNews  = 10 * time.Millisecond // a far occupant that enters is shown all others at once, and they then go to other sites in one message
	earlyFor    = 2 * time.Minute       // how long the news of an occupant may come after its first line
	roomTopic   = "#"                   // begins the topic of a line
	atHome      = "@"                   // stands before the number of the home if the sender is at another site
	tokenOfRoom = 1 << 63
)

// get is a room; nil: there are too many. Those in which nobody is, because far sites have only spoken of them, do not count.
func (r *rooms) get(id roomID) *room {
	m := r.all[id]
	if m == nil && len(r.all) >= mostRooms {
		for _, other := range listed(r.all) {
			r.drop(other)
		}
	}
	if m == nil && len(r.all) < mostRooms {
		m = &room{roomID: id, members: map[member]*occupant{}, of: map[uint16]int{}}
		r.all[id] = m
		recollect(r, m)
	}
	return m
}

// drop forgets a room in which nobody is.
func (r *rooms) drop(m *room) {
	if len(m.members) > 0 {
		return
	}
	if c := governed(r, m); c != nil && !c.Kept {
		repeal(r, m)
	}
	if !m.ear {
		delete(r.all, m.roomID)
	}
}

// scope is how a site names a room to others.
func (r *rooms) scope(m *room) string {
	if m.home == r.cfg.ID {
		return m.name
	}
	return m.name + atHome + strconv.Itoa(int(m.home))
}

// idOf is the room that a site means; false: there is no such room.
func (r *rooms) idOf(from uint16, scope string) (roomID, bool) {
	name, home, elsewhere := strings.Cut(scope, atHome)
	id := roomID{from, name}
	if elsewhere {
		n, err := strconv.ParseUint(home, 10, 16)
		if err != nil || uint16(n) == from {
			return id, false
		}
		id.home = uint16(n)
	}
	local, ok := localOf(name)
	return id, ok && local == name && (id.home == r.cfg.ID && r.cfg.Rooms != "" || r.f.roomsAt(id.home) != nil)
}

// sorted are the members in the order in which they keep their nicks: those of the home, then by site.
func (m *room) sorted() []member {
	if m.order == nil {
		m.order = sortedMembers(m)
	}
	return m.order
}

// put takes a member in, remove takes it out.
func (m *room) put(k member, o *occupant) {
	if m.members[k] == nil {
		m.of[k.site]++
	}
	m.members[k], m.order = o, nil
}

func (m *room) remove(k member) {
	if m.members[k] != nil {
		m.of[k.site]--
	}
	delete(m.members, k)
	m.order = nil
}

// crowded says that a far site may have no occupant in one more room: it has as many as allowed in which nobody here is.
func crowded(r *rooms, m *room, from uint16) bool {
	alone := func(m *room) bool { return m.of[r.cfg.ID] == 0 && !m.ear }
	if !alone(m) || m.of[from] > 0 {
		return false
	}
	n := 0
	for _, other := range r.all {
		if other.of[from] > 0 && alone(other) {
			n++
		}
	}
	if n >= mostOfSite {
		r.trouble.Count("refused rooms")
	}
	return n >= mostOfSite
}

func sortedMembers(m *room) []member {
	return slices.SortedFunc(maps.Keys(m.members), func(a, b member) int {
		first := func(k member) int {
			if k.site == m.home {
				return -1
			}
			return int(k.site)
		}
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.user, b.user))
	})
}

// nick is the nick that a member wants.
func (m *room) nick(k member) string { return cmp.Or(m.members[k].Nick, k.user) }

// names gives each member a nick of its own: the same at all sites that know the same members.
func (m *room) names() map[member]string {
	taken, names := map[string]bool{}, map[member]string{}
	for _, k := range m.sorted() {
		name := m.nick(k)
		for n := int(k.site); taken[name]; n++ {
			name = fmt.Sprint(m.nick(k), "-", n)
		}
		taken[name] = true
		names[k] = name
	}
	return names
}

// called is the member that is shown under a nick.
func (m *room) called(nick string) (member, bool) {
	for k, o := range m.members {
		if o.shown == nick {
			return k, true
		}
	}
	return member{}, false
}

// others are the sites besides this one that receive news of the room.
func (r *rooms) others(m *room) (list []uint16) {
	list = append(list, m.sites...)
	if m.home != r.cfg.ID {
		list = append(list, m.home)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(id uint16) bool { return id == r.cfg.ID })
}

// item is the item by which this site names an occupant to others, and with user "" the room: behind the name of the room
// stands "/" if the room is of this site, otherwise the octet of its home's number, or "@", the number and "/".
func (m *room) item(r *rooms, kind site.Kind, user string) site.Item {
	name := r.scope(m) + "/"
	if m.home != r.cfg.ID && m.home < ' ' {
		name = m.name + string(rune(m.home))
	}
	return site.Item{Kind: kind, Owner: name + user, Home: true}
}

// cutItem takes the name of an item apart: the room as its site names it, and the occupant.
func cutItem(name string) (scope, user string) {
	i := strings.IndexFunc(name, func(c rune) bool { return c < ' ' || c == '/' })
	switch {
	case i < 0:
		return "", ""
	case name[i] != '/':
		return name[:i] + atHome + strconv.Itoa(int(name[i])), name[i+1:]
	}
	return name[:i], name[i+1:]
}

// state announces an occupant here to other sites. If a room of this site has more occupants of this site than Occupants, only
// those sites that look receive it, unless the occupant has spoken or another one wants its nick.
func (r *rooms) state(m *room, k member) {
	it, o := m.item(r, site.Listener, k.user), m.members[k]
	if it.To = r.others(m); m.home == r.cfg.ID && o != nil && !o.told && m.of[r.cfg.ID] > r.cfg.Occupants {
		it.To = slices.DeleteFunc(it.To, func(id uint16) bool { return !slices.Contains(m.look, id) })
	}
	if o == nil {
		r.out.Items = append(r.out.Items, it.Withdrawal())
	} else if len(it.To) > 0 { // otherwise a site keeps the occupants that it has: when it comes back, only changes cross
		it.Doc = o.Occupant.Append(nil)
		r.out.Items = append(r.out.Items, it)
	}
}

// stateAll announces all occupants here.
func (r *rooms) stateAll(m *room) {
	for _, k := range m.sorted() {
		if k.site == r.cfg.ID || k.site == metSite {
			r.state(m, k)
		}
	}
}

// speaks says whether a site may name an occupant of a room so: with the local part of one of its users, or as the home of the room with a
// nick, or with nothing for the room itself. The local part becomes a part of an address here.
func speaks(id roomID, from uint16, user string) bool {
	if id.home == from {
		_, valid := resourceOf(user)
		return valid || user == ""
	}
	local, valid := localOf(user)
	return valid && local == user
}

// farItem takes in an occupant at a far site, or the sites of a room from its home.
func (r *rooms) farItem(now time.Time, from uint16, it site.Item) {
	scope, user := cutItem(it.Owner)
	id, ok := r.idOf(from, scope)
	if !ok || it.Scope != "" || it.Kind != site.Listener && it.Kind != site.Document || (user == "") != (it.Kind == site.Document) {
		r.trouble.Count("far_unreadable")
		return
	}
	m := r.get(id)
	if m == nil {
		r.trouble.Count("refused rooms")
		return
	}
	if it.Kind == site.Document && id.home != from {
		if m.look = slices.DeleteFunc(m.look, func(id uint16) bool { return id == from }); !it.Gone {
			m.look = append(m.look, from)
			r.stateAll(m)
		}
		return
	}
	if it.Kind == site.Document {
		m.sites = nil
		for b := it.Doc; len(b) >= 2 && !it.Gone; b = b[2:] {
			m.sites = append(m.sites, binary.BigEndian.Uint16(b))
		}
		r.stateAll(m)
		return
	}
	k := member{from, user}
	if it.Gone {
		r.leave(now, m, k, nil)
		return
	}
	if !speaks(id, from, user) {
		r.trouble.Count("far_unreadable")
		r.drop(m)
		return
	}
	o, err := code.ParseOccupant(it.Doc)
	name, valid := resourceOf(cmp.Or(o.Nick, k.user))
	if err != nil || !valid || name != cmp.Or(o.Nick, k.user) || !stanza.Printable(o.Status) || m.members[k] == nil && len(m.members) >= mostMembers {
		r.trouble.Count("far_unreadable")
		return
	}
	if m.members[k] == nil && (barred(r, m, k) || crowded(r, m, from)) {
		r.drop(m)
		return
	}
	r.enter(now, m, k, o, time.Time{})
}

// enter takes in a far occupant, or a change of one.
func (r *rooms) enter(now time.Time, m *room, k member, o code.Occupant, until time.Time) *occupant {
	r.early = due.Earliest(r.early, until)
	before := m.members[k]
	if before == nil {
		before = &occupant{}
		m.put(k, before)
	} else if before.Occupant == o { // its line came first
		before.until = until
		return before
	}
	before.Occupant, before.until = o, until
	r.settle(now, m, k)
	r.sitesOf(m)
	return before
}

// leave takes a member out. why are the status codes.
func (r *rooms) leave(now time.Time, m *room, k member, why []string) {
	o := m.members[k]
	if o == nil {
		return
	}
	m.remove(k)
	if hosted(r, m) {
		r.takeOut(m, k, o)
	} else {
		r.showGone(m, k, o, why)
	}
	r.settle(now, m, member{})
	r.sitesOf(m)
	if m.home != r.cfg.ID && !m.used() {
		m.sites = nil
		r.out.Items = append(r.out.Items, m.item(r, site.Document, "").Withdrawal()) // nobody here looks any more
	}
	r.drop(m)
}

// settle gives members their nicks; changed is a member that has changed in another way, too.
func (r *rooms) settle(now time.Time, m *room, changed member) {
	names := m.names()
	for _, k := range m.sorted() {
		o := m.members[k]
		if names[k] != m.nick(k) && m.home == r.cfg.ID { // all sites must know the occupant that has that nick
			for first, name := range names {
				if name == m.nick(k) && first.site == r.cfg.ID && !m.members[first].told {
					m.members[first].told = true
					r.state(m, first)
				}
			}
		}
		if before := o.shown; before != names[k] || k == changed {
			o.shown = names[k]
			if hosted(r, m) {
				r.putIn(m, k, o)
			} else {
				r.showThere(m, k, o, before)
			}
		}
	}
}

// sitesOf finds, at the home, which sites have an occupant in a room, and tells these sites.
func (r *rooms) sitesOf(m *room) {
	if m.home != r.cfg.ID {
		return
	}
	var sites []uint16
	for k := range m.members {
		if k.site != r.cfg.ID && k.site != metSite && !slices.Contains(sites, k.site) {
			sites = append(sites, k.site)
		}
	}
	slices.Sort(sites)
	if slices.Equal(sites, m.sites) {
		return
	}
	m.sites = sites
	if len(sites) == 0 && !m.ear { // nobody listens in the room here
		for _, o := range m.members {
			o.seen = false
		}
	}
	it := m.item(r, site.Document, "")
	it.To = sites
	if len(sites) < 2 {
		r.out.Items = append(r.out.Items, it.Withdrawal())
	} else {
		for _, id := range sites {
			it.Doc = binary.BigEndian.AppendUint16(it.Doc, id)
		}
		r.out.Items = append(r.out.Items, it)
	}
	r.stateAll(m)
}

// lost drops all occupants of a site.
func (r *rooms) lost(now time.Time, id uint16) {
	for _, m := range listed(r.all) {
		for _, k := range m.sorted() {
			if k.site == id {
				r.leave(now, m, k, nil)
			}
		}
	}
}

// listed are rooms in an order that is always the same.
func listed(all map[roomID]*room) []*room {
	return slices.SortedFunc(maps.Values(all), func(a, b *room) int {
		return cmp.Or(cmp.Compare(a.home, b.home), cmp.Compare(a.name, b.name))
	})
}

// carry takes a line of an occupant here into custody for all sites that have somebody in the room, or for one site alone. It
// returns the line's number in the archive.
func (r *rooms) carry(now time.Time, m *room, from string, s *code.Message, mine *ours, alone ...uint16) (number string) {
	s.Kind, s.About, s.Ref, s.Ask, s.Markable = code.Chat, code.Nothing, code.Ref{}, false, false
	s.Drop(code.ReplyTo, code.Fallback, code.Nick)
	to := alone
	if alone == nil {
		p := past{at: now, from: from, Message: *s}
		if o := m.members[member{r.cfg.ID, from}]; mine != nil && o != nil {
			p.from, p.id = o.shown, mine.id
		}
		number = keep(r, m, p)
		to = r.others(m)
	}
	if len(to) == 0 {
		return number
	}
	r.trouble.Count("lines")
	o := m.members[member{r.cfg.ID, from}]
	if m.home == r.cfg.ID && o != nil && !o.told {
		o.told = true
		r.state(m, member{r.cfg.ID, from})
	}
	if o != nil && o.Nick != "" && now.Before(o.since.Add(earlyFor)) {
		s.Fields = append(s.Fields, code.Field{Tag: code.Nick, Text: o.Nick}) // the line may arrive before the news of its sender
	}
	offer := r.f.uploads.offer(*s)
	s = &offer
	line := site.Message{Published: true, Topic: roomTopic + r.scope(m), From: from, Parts: []site.Part{{Data: s.Append(nil)}}}
	if mine != nil { // it has one fate for each site; the sender is told the first bad one
		line.Token, line.Lasting = tokenOfRoom|mine.token(0), true
	}
	about := rule.Subject{Kind: rule.Room, From: from, To: r.address(m, ""), Mark: s.Get(code.Label), Octets: len(line.Parts[0].Data)}
	if mine != nil {
		about.From = mine.from.bare()
	}
	to = slices.DeleteFunc(to, func(id uint16) bool { return r.f.uploads.keeps(s, about.From, about.To, id) != nil })
	r.judged(now, about, to, line)
	return number
}

// keep remembers a line for occupants who enter later.
func (m *room) keep(p past) {
	if p.Body == "" {
		m.subject, m.from = p.Message, p.from
		return
	}
	if m.lines = append(m.lines, p); len(m.lines) > mostLines {
		m.lines = m.lines[1:]
	}
}

// farLine takes a line of an occupant at a far site, or a removal of an occupant here by the room's home.
func (r *rooms) farLine(now time.Time, f site.FarMessage, data []byte) {
	scope, ok := strings.CutPrefix(f.Message.Topic, roomTopic)
	id, ok2 := r.idOf(f.Site, scope)
	var m *room
	if ok && ok2 {
		m = r.get(id)
	}
	if m == nil {
		r.f.farTrouble(now, f, code.ErrMalformed)
		return
	}
	if code.IsRemoval(data) {
		r.removed(now, m, f, data)
		return
	}
	s, err := code.ParseMessage(data)
	if alone := s.Get(code.Private); err == nil && alone != "" {
		if _, valid := resourceOf(alone); !valid {
			err = code.ErrMalformed
		}
	}
	if !speaks(id, f.Site, f.Message.From) || err != nil || !stanza.Printable(s.Body) {
		r.f.farTrouble(now, f, code.ErrMalformed)
		return
	}
	k := member{f.Site, f.Message.From}
	o := m.members[k]
	why := ""
	if o == nil && barred(r, m, k) {
		why = "forbidden"
	} else if o == nil && k.user != "" && (len(m.members) >= mostMembers || crowded(r, m, f.Site)) {
		why = "resource-constraint"
	} else if o != nil {
		why = silences(r, m, k, o, &s)
	}
	if why != "" {
		r.out.Done = append(r.out.Done, f.Token)
		r.f.tell(now, k.site, code.Outcome{Number: s.Number, Became: code.Barred, Reason: code.ReasonOf(why)})
		r.drop(m)
		return
	}
	if o == nil && k.user != "" {
		is := code.Occupant{Presence: code.Presence{Show: code.Available}}
		if nick, valid := resourceOf(s.Get(code.Nick)); valid && nick == s.Get(code.Nick) {
			is.Nick = nick
		}
		o = r.enter(now, m, k, is, now.Add(earlyFor))
	}
	s.Drop(code.Nick)
	r.f.uploads.offered(now, f.Site, &s)
	r.trouble.Count("far_lines")
	if hosted(r, m) {
		r.sayAtHome(now, m, k, o, f, &s)
	} else {
		r.sayHere(now, m, o, f, &s)
	}
}

// turn does what is due.
func (r *rooms) turn(now time.Time) {
	if due.Reached(now, r.away) {
		r.away = time.Time{}
		for _, m := range listed(r.all) {
			for _, k := range m.sorted() {
				if k.site == r.cfg.ID && m.home != r.cfg.ID && k != r.met(m) {
					r.forgetHere(now, m, k, nil)
				}
			}
		}
	}
	if due.Reached(now, r.news) {
		r.news = time.Time{}
		for _, m := range listed(r.all) {
			for _, k := range m.sorted() {
				if o := m.members[k]; o.news {
					o.news = false
					r.state(m, k)
				}
			}
		}
	}
	if !due.Reached(now, r.early) {
		return
	}
	r.early = time.Time{}
	for _, m := range listed(r.all) {
		for _, k := range m.sorted() {
			if until := m.members[k].until; due.Reached(now, until) {
				r.leave(now, m, k, nil)
			} else {
				r.early = due.Earliest(r.early, until)
			}
		}
	}
}

// serviceOf is the component of the room of a line; nil: there is none.
func (r *rooms) serviceOf(o *ours) *component {
	if o == nil {
		return nil
	}
	if id, ok := r.idOf(r.cfg.ID, strings.TrimPrefix(o.to, roomTopic)); ok {
		return r.f.roomsAt(id.home)
	}
	return nil
}

var errKey = errors.New("no key of a room")
