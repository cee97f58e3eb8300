package xmpp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

// muc is the room service of a server, with one room: the part of XEP-0045 that the gateway uses.
type muc struct {
	s    *server
	jids map[string]string // by nick
	nick map[string]string // by JID
	list []string          // nicks in their order
	got  map[string][]string
}

func (s *server) room() *muc {
	if s.muc == nil {
		s.muc = &muc{s: s, jids: map[string]string{}, nick: map[string]string{}, got: map[string][]string{}}
	}
	return s.muc
}

// give gives an occupant a stanza: a client of this LAN, or the gateway.
func (m *muc) give(jid, text string) {
	domain := jid[strings.Index(jid, "@")+1 : strings.Index(jid, "/")]
	text = strings.Replace(text, "TO", jid, 1)
	if domain == domainOf(m.s.node.ID) {
		m.got[jid] = append(m.got[jid], text)
		return
	}
	m.s.w.At(0, func() { m.s.say(domain, "%s", text) })
}

func (m *muc) all(build func(jid string) string) {
	for _, nick := range m.list {
		m.give(m.jids[nick], build(m.jids[nick]))
	}
}

const room = "ops@conference.hq.example"

func there(nick, more string) string {
	return fmt.Sprintf("<presence from='%s/%s' to='TO'><x xmlns='http://jabber.org/protocol/muc#user'><item affiliation='none' role='participant'/>%s</x></presence>", room, nick, more)
}

func gone(nick, more string) string {
	return strings.Replace(there(nick, more), "<presence ", "<presence type='unavailable' ", 1)
}

func self(is bool) string {
	if is {
		return "<status code='110'/>"
	}
	return ""
}

func (m *muc) enter(jid, nick string) {
	if owner, taken := m.jids[nick]; taken && owner != jid {
		m.give(jid, fmt.Sprintf("<presence from='%s/%s' to='TO' type='error'><error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>", room, nick))
		return
	}
	old, in := m.nick[jid]
	if in && old != nick {
		m.leave(jid, "<status code='303'/>")
	} else if !in {
		for _, other := range m.list {
			m.give(jid, there(other, ""))
		}
	}
	if m.jids[nick] == "" {
		m.list = append(m.list, nick)
	}
	m.jids[nick], m.nick[jid] = jid, nick
	m.all(func(to string) string { return there(nick, self(to == jid)) })
	if !in {
		m.give(jid, fmt.Sprintf("<message from='%s' to='TO' type='groupchat'><subject/></message>", room))
	}
}

func (m *muc) leave(jid, more string) {
	nick := m.nick[jid]
	if nick == "" {
		return
	}
	m.all(func(to string) string { return gone(nick, more+self(to == jid)) })
	delete(m.jids, nick)
	delete(m.nick, jid)
	for i, n := range m.list {
		if n == nick {
			m.list = append(m.list[:i:i], m.list[i+1:]...)
		}
	}
}

func (m *muc) say(jid, id, inside string) {
	nick := m.nick[jid]
	if nick == "" {
		m.give(jid, fmt.Sprintf("<message from='%s' to='TO' id='%s' type='error'><error type='modify'><not-acceptable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>", room, id))
		return
	}
	m.all(func(string) string {
		return fmt.Sprintf("<message from='%s/%s' to='TO' id='%s' type='groupchat'>%s</message>", room, nick, id, inside)
	})
}

// take takes a stanza of the gateway for the room.
func (m *muc) take(e stanza.Element) {
	from := e.Get("from")
	_, nick, _ := strings.Cut(e.Get("to"), "/")
	switch {
	case e.Name == "presence" && e.Get("type") == "unavailable":
		m.leave(from, "")
	case e.Name == "presence":
		m.enter(from, nick)
	case e.Name == "message":
		inside := ""
		for _, k := range e.Kids {
			inside += string(k.Append(nil, stanza.Component))
		}
		if nick != "" {
			m.whisper(from, nick, e.Get("id"), inside)
			return
		}
		m.say(from, e.Get("id"), inside)
	}
}

// whisper is a message to one occupant.
func (m *muc) whisper(jid, nick, id, inside string) {
	if m.jids[nick] == "" {
		m.give(jid, fmt.Sprintf("<message from='%s/%s' to='TO' id='%s' type='error'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></message>", room, nick, id))
		return
	}
	m.give(m.jids[nick], fmt.Sprintf("<message from='%s/%s' to='TO' id='%s' type='chat'>%s</message>", room, m.nick[jid], id, inside))
}

// restart empties the room, like a crash of the server.
func (m *muc) restart() {
	m.jids, m.nick, m.list = map[string]string{}, map[string]string{}, nil
}

// heard is how often a client has heard texts in one stanza.
func (m *muc) heard(jid string, texts ...string) int {
	s := server{got: m.got[jid]}
	return s.count(texts...)
}

// far is a client at a site that is not the room's home.
type far struct {
	s    *server
	jid  string
	nick string
}

func (c far) enter() {
	c.s.say("conference.hq.example", "<presence from='%s' to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", c.jid, room, c.nick)
}

func (c far) say(id, text string) {
	c.s.say("conference.hq.example", "<message from='%s' to='%s' type='groupchat' id='%s'><body>%s</body></message>", c.jid, room, id, text)
}

func (c far) heard(texts ...string) int {
	return c.s.count(append(texts, "to='"+c.jid+"'")...)
}

// Three sites share a room. An occupant who enters sees the others and the last lines at once. Each line comes to everybody once, nicks that
// collide are settled alike everywhere, and an occupant who is put out is told. Meanwhile servers and gateways are killed.
func TestRoom(t *testing.T) {
	for _, name := range []string{"iridium-dialup", "hf-2400"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, name, 7, func(c *xmpp.Config) { c.Occupants = 20 })
			hq, m := w.servers[1], w.servers[1].room()
			anna := far{w.servers[2], "anna@ship2.example/g", "anna"}
			dora := far{w.servers[3], "dora@ship3.example/g", "dora"}
			w.Run(time.Minute)
			m.enter("bert@hq.example/h", "bert")
			wait := 90 * time.Second
			anna.enter()
			if anna.heard("<presence from='"+room+"/anna'", "code='110'") != 1 || anna.heard("<subject/>") != 1 {
				t.Errorf("anna is not in the room at once: %q", anna.s.got)
			}
			anna.say("1", "first")
			if anna.heard("<body>first</body>", "id='1'", room+"/anna") != 1 {
				t.Error("anna does not hear herself at once")
			}
			w.Run(wait)
			check.Equal(t, "anna sees bert", anna.heard("<presence from='"+room+"/bert'"), 1)
			check.Equal(t, "bert sees anna", m.heard("bert@hq.example/h", "<presence from='"+room+"/anna'"), 1)
			check.Equal(t, "bert hears her", m.heard("bert@hq.example/h", "<body>first</body>", room+"/anna"), 1)
			dora.enter()
			w.Run(wait)
			check.Equal(t, "dora sees anna", dora.heard("<presence from='"+room+"/anna'"), 1)
			check.Equal(t, "anna sees dora", anna.heard("<presence from='"+room+"/dora'"), 1)
			lines := 0
			all := func(what string, from string) {
				t.Helper()
				lines++
				id, text := fmt.Sprint("id", lines), fmt.Sprintf("%s says %02d.", from, lines)
				switch from {
				case "anna":
					anna.say(id, text)
				case "dora":
					dora.say(id, text)
				default:
					m.say("bert@hq.example/h", id, "<body>"+text+"</body>")
				}
				w.Run(wait)
				check.Equal(t, what+": anna hears "+text, anna.heard(text, room+"/"+from), 1)
				check.Equal(t, what+": dora hears "+text, dora.heard(text, room+"/"+from), 1)
				check.Equal(t, what+": bert hears "+text, m.heard("bert@hq.example/h", text, room+"/"+from), 1)
			}
			for _, from := range []string{"anna", "bert", "dora"} {
				all("at first", from)
			}
			// An occupant who enters later gets the earlier lines.
			carl := far{w.servers[2], "carl@ship2.example/x", "carl"}
			carl.enter()
			check.Equal(t, "carl gets the last lines", carl.heard("says 0", "<delay "), 3)
			w.Run(wait)
			// A nick that somebody here has is refused; if somebody at another site takes it at the same time, it is settled
			// alike everywhere.
			eve := far{w.servers[2], "eve@ship2.example/x", "bert"}
			eve.enter()
			check.Equal(t, "a nick in use is refused", eve.heard("type='error'", "<conflict "), 1)
			frank, fred := far{w.servers[2], "frank@ship2.example/x", "fox"}, far{w.servers[3], "fred@ship3.example/x", "fox"}
			frank.enter()
			fred.enter()
			m.enter("gina@hq.example/h", "fox")
			w.Run(2 * wait)
			for who, jid := range map[string]string{"frank@ship2.example/aldis": "fox-2", "fred@ship3.example/aldis": "fox-3", "gina@hq.example/h": "fox"} {
				check.Equal(t, who+" is called", m.nick[who], jid)
			}
			check.Equal(t, "frank is told his nick", frank.heard("<presence from='"+room+"/fox-2'", "code='110'", "code='210'") > 0, true)
			check.Equal(t, "dora sees him so", dora.heard("<presence from='"+room+"/fox-2'") > 0, true)
			// Faults.
			w.kill(2)
			w.kill(1)
			w.Run(wait)
			all("after kills of gateways", "anna")
			all("after kills of gateways", "bert")
			hq.stop()
			m.restart()
			anna.say("o", "said while the server is away.")
			w.Run(10 * time.Second)
			m.enter("bert@hq.example/h", "bert")
			hq.connect()
			w.Run(2 * wait)
			check.Equal(t, "bert hears what waited", m.heard("bert@hq.example/h", "said while the server is away.", room+"/anna"), 1)
			all("after a restart of the server", "dora")
			all("after a restart of the server", "bert")
			// An occupant who is put out is told, and one who leaves is no longer seen.
			m.leave("anna@ship2.example/aldis", "<status code='307'/>")
			w.Run(wait)
			check.Equal(t, "anna is put out", anna.heard("type='unavailable'", room+"/anna", "code='307'", "code='110'"), 1)
			check.Equal(t, "dora sees her go", dora.heard("type='unavailable'", room+"/anna") > 0, true)
			anna.say("x", "still here?")
			check.Equal(t, "she may say nothing", anna.heard("type='error'", "id='x'", "<not-acceptable "), 1)
			carl.s.say("conference.hq.example", "<presence type='unavailable' from='%s' to='%s/carl'/>", carl.jid, room)
			w.Run(wait)
			check.Equal(t, "carl has left the room", m.jids["carl"], "")
			check.Equal(t, "bert sees him go", m.heard("bert@hq.example/h", "type='unavailable'", room+"/carl"), 1)
			for id := range w.servers {
				for reason, n := range w.adapters[id].Counts() {
					if strings.HasPrefix(reason, "refused") && reason != "refused join" && reason != "refused not_in_room" || reason == "far_unreadable" {
						t.Errorf("node %d: %s %d", id, reason, n)
					}
				}
			}
		})
	}
}

// Three sites, one of them without a link for an hour: meanwhile ten nicks are taken at each of them, and all send lines. At the
// end all have the same lines, each once, and the same nicks for everybody.
func TestRoomApart(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		w := newWorld(t, 3, "iridium-dialup", seed)
		m := w.servers[1].room()
		w.Run(time.Minute)
		watch := []far{{w.servers[2], "watch@ship2.example/w", "watch2"}, {w.servers[3], "watch@ship3.example/w", "watch3"}}
		watch[0].enter()
		watch[1].enter()
		m.enter("watch@hq.example/w", "watch1")
		w.Run(2 * time.Minute)
		w.Outage(w.Nodes[2], time.Hour)
		for i := range 10 {
			nick := fmt.Sprint("nick", i)
			m.enter(fmt.Sprintf("user%d@hq.example/h", i), nick)
			for id := uint16(2); id <= 3; id++ {
				c := far{w.servers[id], fmt.Sprintf("user%d@ship%d.example/x", i, id), nick}
				c.enter()
				c.say(fmt.Sprint("l", i), fmt.Sprintf("ship%d says %d.", id, i))
			}
			m.say(fmt.Sprintf("user%d@hq.example/h", i), fmt.Sprint("h", i), fmt.Sprintf("<body>hq says %d.</body>", i))
			w.Run(4 * time.Minute)
		}
		w.Run(time.Hour)
		for i := range 10 {
			for who, at := range map[string]string{"hq": "", "ship2": "-2", "ship3": "-3"} {
				nick, text := fmt.Sprintf("nick%d%s", i, at), fmt.Sprintf("%s says %d.", who, i)
				for _, c := range watch {
					check.Equal(t, fmt.Sprint("seed ", seed, ": ", c.nick, " hears ", text), c.heard("<body>"+text), 1)
					check.True(t, c.nick+" sees", c.heard("<presence from='"+room+"/"+nick+"'") > 0, nick)
				}
				check.Equal(t, fmt.Sprint("seed ", seed, ": the home hears ", text), m.heard("watch@hq.example/w", "<body>"+text), 1)
				if m.jids[nick] == "" {
					t.Errorf("seed %d: nobody at home is called %s", seed, nick)
				}
			}
		}
	}
}

// In a large room only occupants who speak are announced to other sites; all are once somebody there asks who is in the room.
// An occupant who has left is no longer told of them, and coming back costs only the changes.
func TestLargeRoom(t *testing.T) {
	for _, told := range []int{20, 0} {
		t.Run(fmt.Sprint(told), func(t *testing.T) { largeRoom(t, told) })
	}
}

func largeRoom(t *testing.T, told int) {
	w := newWorld(t, 2, "iridium-directip", 1, func(c *xmpp.Config) { c.Occupants = told })
	hq, ship := w.servers[1], w.servers[2]
	m, a := hq.room(), far{ship, anna, "anna"}
	enter := func(i int) { m.enter(fmt.Sprintf("user%d@hq.example/h", i), fmt.Sprint("user", i)) }
	for i := range 40 {
		enter(i)
	}
	w.Run(2 * time.Minute)
	cost := func(what string, most int64, do func()) {
		t.Helper()
		_, before := w.Octets(w.Nodes[1])
		do()
		w.Run(2 * time.Minute)
		_, after := w.Octets(w.Nodes[1])
		if t.Logf("%s: %d octets to the ship", what, after-before); after-before > most {
			t.Errorf("%s costs %d octets to the ship, at most %d", what, after-before, most)
		}
	}
	seen := func(nick string) bool { return a.heard("<presence from='"+room+"/"+nick+"'", "participant") > 0 }
	cost("to enter", 60, a.enter)
	known := 0
	for i := range 40 {
		if seen(fmt.Sprint("user", i)) {
			known++
		}
	}
	check.Equal(t, "who is seen", known, 0)
	m.say("user39@hq.example/h", "h1", "<body>Good morning</body>")
	w.Run(time.Minute)
	check.True(t, "who has spoken", seen("user39") && a.heard("<body>Good morning</body>") == 1)
	ship.say("conference.hq.example", "<iq type='get' id='q1' from='%s' to='%s'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>", anna, room)
	w.Run(2 * time.Minute)
	check.True(t, "the answer has those known", a.heard("<iq", "id='q1'", "jid='"+room+"/user39'", "name='anna'") == 1)
	for i := range 40 {
		check.True(t, "after somebody has asked", seen(fmt.Sprint("user", i)), i)
	}
	leave := func() {
		ship.say("conference.hq.example", "<presence type='unavailable' from='%s' to='%s/anna'/>", anna, room)
	}
	cost("to leave", 60, leave)
	m.leave("user7@hq.example/h", "")
	enter(100)
	cost("what happens in the room then", 0, func() {})
	cost("to come back", 120, a.enter)
	check.True(t, "who has gone meanwhile", a.heard("<presence from='"+room+"/user7'", "unavailable") > 0)
}

// A private message reaches its receiver and nobody else, wherever both are, and is refused with a reason; a user who is invited
// to a room gets the invitation at his site.
func TestPrivately(t *testing.T) {
	w := newWorld(t, 3, "iridium-directip", 1)
	m := w.servers[1].room()
	a, b := far{w.servers[2], anna, "anna"}, far{w.servers[2], "alma@ship2.example/x", "alma"}
	c := far{w.servers[3], "dora@ship3.example/x", "dora"}
	m.enter("carl@hq.example/h", "carl")
	for _, who := range []far{a, b, c} {
		who.enter()
	}
	w.Run(2 * time.Minute)
	tell := func(from far, nick, id, text string) {
		from.s.say("conference.hq.example", "<message from='%s' to='%s/%s' type='chat' id='%s'><body>%s</body></message>", from.jid, room, nick, id, text)
	}
	tell(a, "carl", "p1", "for carl")
	tell(a, "alma", "p2", "for alma")
	tell(a, "dora", "p3", "for dora")
	tell(a, "nobody", "p4", "for nobody")
	m.whisper("carl@hq.example/h", "anna", "p5", "<body>for anna</body>")
	w.Run(2 * time.Minute)
	check.Equal(t, "carl hears", m.heard("carl@hq.example/h", "from='"+room+"/anna'", "type='chat'", "<body>for carl</body>"), 1)
	check.Equal(t, "alma hears", b.heard("from='"+room+"/anna'", "type='chat'", "<body>for alma</body>"), 1)
	check.Equal(t, "dora hears", c.heard("from='"+room+"/anna'", "type='chat'", "<body>for dora</body>"), 1)
	check.Equal(t, "anna hears", a.heard("from='"+room+"/carl'", "type='chat'", "<body>for anna</body>"), 1)
	check.Equal(t, "anna is told of nobody", a.heard("id='p4'", "type='error'", "item-not-found"), 1)
	w.servers[2].has(2, "<body>for ") // alma's and anna's
	w.servers[3].has(1, "<body>for ")
	check.Equal(t, "none is in the room", len(m.got["carl@hq.example/h"])-m.heard("carl@hq.example/h", "<presence")-m.heard("carl@hq.example/h", "<subject/>"), 1)
	m.leave("carl@hq.example/h", "") // and the news of his leaving has not crossed
	tell(a, "carl", "p6", "for carl again")
	w.Run(2 * time.Minute)
	check.Equal(t, "who has left does not hear", a.heard("id='p6'", "type='error'", "item-not-found"), 1)

	const invites = "<message from='%s' to='%s' id='%s'><x xmlns='http://jabber.org/protocol/muc#user'><invite to='%s'/></x></message>"
	w.servers[2].say("conference.hq.example", invites, anna, room, "i1", "bert@hq.example")
	w.servers[2].say("conference.hq.example", invites, anna, room, "i2", "arno@ship2.example")
	w.servers[1].say("ship3.example", "<message from='%s' to='dirk@ship3.example'><x xmlns='http://jabber.org/protocol/muc#user'><invite from='carl@hq.example/h'/></x></message>", room)
	w.servers[2].say("hq.example", "<message from='%s' to='bert@hq.example'><x xmlns='jabber:x:conference' jid='%s'/></message>", anna, room)
	w.Run(2 * time.Minute)
	w.servers[1].has(2, "from='anna@ship2.example'", "to='bert@hq.example'", "<x xmlns='jabber:x:conference' jid='"+room+"'/>")
	w.servers[2].has(1, "from='"+room+"'", "to='arno@ship2.example'", "<invite from='anna@ship2.example'/>")
	w.servers[3].has(1, "from='carl@hq.example'", "to='dirk@ship3.example'", "<x xmlns='jabber:x:conference' jid='"+room+"'/>")
}
