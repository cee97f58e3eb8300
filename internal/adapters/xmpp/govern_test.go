package xmpp_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
)

const mess = "mess@conference.ship2.example"

// governed is a room that the gateway of node 2 serves itself, with three clients; anna has made it.
type governed struct {
	*testing.T
	w                *world
	anna, alma, eve  *client
	shore            *server
	had              map[*client]int // stanzas before the last order
	shoreHad, orders int
}

func newGoverned(t *testing.T) *governed {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *xmpp.Config) {
		if c.ID == 2 {
			c.Own, c.Users = true, []string{"anna", "alma", "eve"}
		}
	})
	g := &governed{T: t, w: w, shore: w.servers[1], had: map[*client]int{}}
	g.anna, g.alma, g.eve = w.newClient(2, "anna"), w.newClient(2, "alma"), w.newClient(2, "eve")
	return g
}

func (g *governed) mark() {
	for _, c := range []*client{g.anna, g.alma, g.eve} {
		g.had[c] = len(c.got)
	}
	g.shoreHad = len(g.shore.got)
}

func (g *governed) enter(c *client, more string) {
	g.Helper()
	g.mark()
	c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'>%s</x></presence>", mess, c.user, more)
	g.w.Run(time.Second)
}

// order makes a client give an order about the room, and expects an answer with a text.
func (g *governed) order(c *client, kind, space, inside, want string) {
	g.Helper()
	g.mark()
	g.orders++
	id := fmt.Sprintf("order%d", g.orders)
	c.say("<iq type='%s' id='%s' to='%s'><query xmlns='http://jabber.org/protocol/muc#%s'>%s</query></iq>", kind, id, mess, space, inside)
	g.w.Run(time.Second)
	g.has(c, 1, "<iq", "id='"+id+"'", want)
}

func (g *governed) say(c *client, text string) {
	g.mark()
	c.say("<message to='%s' type='groupchat' id='%s'><body>%s</body></message>", mess, strings.ReplaceAll(text, " ", "-"), text)
	g.w.Run(time.Second)
}

// has expects that a client has been given a number of stanzas with all of these texts since the last order.
func (g *governed) has(c *client, want int, texts ...string) {
	g.Helper()
	if got := count(c.got[g.had[c]:], texts); got != want {
		g.Errorf("%s has %d stanzas with %q, want %d: %s", c.user, got, texts, want, strings.Join(c.got[g.had[c]:], "\n"))
	}
}

func count(list []string, texts []string) (n int) {
lines:
	for _, line := range list {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		n++
	}
	return n
}

func (g *governed) bert(format string, args ...any) {
	g.mark()
	g.shore.say("conference.ship2.example", format, args...)
	g.w.Run(time.Minute)
}

func (g *governed) ashore(want int, texts ...string) {
	g.Helper()
	if got := count(g.shore.got[g.shoreHad:], texts); got != want {
		g.Errorf("ashore are %d stanzas with %q, want %d: %s", got, texts, want, strings.Join(g.shore.got[g.shoreHad:], "\n"))
	}
}

const enterMess = "<presence from='" + bert + "' to='" + mess + "/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>"

// The first user who enters a room of the gateway's own server owns it. Owners, admins and moderators put occupants out and bar
// them, also those of a far site; a user who is not allowed to do so is refused, and nothing changes.
func TestRoomsAreModerated(t *testing.T) {
	g := newGoverned(t)
	anna, alma, eve := g.anna, g.alma, g.eve
	g.enter(anna, "")
	g.has(anna, 1, "<presence", "affiliation='owner' role='moderator'", "code='110'", "code='201'")
	g.enter(alma, "")
	g.has(alma, 1, "<presence", mess+"/alma", "affiliation='none' role='participant'", "code='110'")
	g.has(alma, 0, "jid='anna@ship2.example/x'")
	g.has(anna, 1, "<presence", mess+"/alma", "jid='alma@ship2.example/x'")
	g.enter(eve, "")
	g.bert(enterMess)
	g.has(anna, 1, "<presence", mess+"/bert", "jid='bert@hq.example'")

	// Users without the right.
	for _, inside := range []string{"<item nick='eve' role='none'/>", "<item nick='eve' role='visitor'/>", "<item nick='alma' role='moderator'/>", "<item jid='eve@ship2.example' affiliation='outcast'/>", "<item jid='alma@ship2.example' affiliation='owner'/>"} {
		g.order(alma, "set", "admin", inside, "forbidden")
	}
	g.order(alma, "get", "admin", "<item affiliation='outcast'/>", "forbidden")
	g.order(alma, "get", "admin", "<item role='moderator'/>", "forbidden")
	g.order(alma, "get", "owner", "", "forbidden")
	g.order(alma, "set", "owner", "<destroy/>", "forbidden")
	g.order(anna, "set", "admin", "<item nick='nobody' role='none'/>", "item-not-found")
	g.order(anna, "set", "admin", "<item nick='eve' role='king'/>", "bad-request")
	g.order(anna, "set", "admin", "<item jid='x@elsewhere.example' affiliation='member'/>", "bad-request")
	g.order(anna, "set", "admin", "<item jid='anna@ship2.example' affiliation='none'/>", "conflict")
	g.order(anna, "set", "admin", "<item jid='eve@ship2.example' affiliation='owner'/><item jid='eve@ship2.example' affiliation='none'/><item jid='anna@ship2.example' affiliation='none'/>", "conflict")
	g.order(anna, "set", "admin", "<item nick='eve' role='none'/><item nick='nobody' role='none'/>", "item-not-found")
	g.has(eve, 0, "<presence", "unavailable")
	g.order(anna, "set", "admin", "", "bad-request")

	g.enter(eve, "")
	g.order(anna, "set", "admin", "<item nick='eve' role='none'/><item nick='eve' role='visitor'/><item nick='eve' affiliation='none'/>", "type='result'")
	g.enter(eve, "")

	// Kicks, and their reasons.
	g.order(anna, "set", "admin", "<item nick='eve' role='none'><reason>too loud</reason></item>", "type='result'")
	g.has(eve, 1, "unavailable", "role='none'", "<actor nick='anna'/>", "<reason>too loud</reason>", "code='307'", "code='110'")
	g.has(alma, 1, mess+"/eve", "unavailable", "code='307'", "too loud")
	g.say(eve, "still here")
	g.has(eve, 1, "type='error'", "not-acceptable")
	g.order(anna, "set", "admin", "<item nick='bert' role='none'/>", "type='result'")
	g.w.Run(time.Minute)
	g.ashore(1, "<presence", mess+"/bert", "unavailable", "code='307'")
	g.has(alma, 1, mess+"/bert", "unavailable", "code='307'")
	g.bert(enterMess)
	g.has(alma, 1, "<presence", mess+"/bert", "role='participant'")

	// Voice.
	g.order(anna, "set", "admin", "<item nick='bert' role='visitor'/><item nick='alma' role='visitor'/>", "type='result'")
	g.has(anna, 1, mess+"/bert", "role='visitor'")
	g.say(alma, "may I")
	g.has(alma, 1, "type='error'", "forbidden")
	g.bert("<message from='%s' to='%s' type='groupchat' id='b1'><body>may I, too</body></message>", bert, mess)
	g.ashore(1, "type='error'", "id='b1'", "forbidden")
	g.has(anna, 0, "may I, too")
	g.order(anna, "get", "admin", "<item role='visitor'/>", "nick='bert'")
	g.order(anna, "set", "admin", "<item nick='bert' role='participant'/><item nick='alma' role='moderator'/>", "type='result'")
	g.bert("<message from='%s' to='%s' type='groupchat' id='b2'><body>thank you</body></message>", bert, mess)
	g.has(anna, 1, "<body>thank you</body>", mess+"/bert")
	g.order(alma, "set", "admin", "<item nick='anna' role='none'/>", "not-allowed")
	g.order(alma, "set", "admin", "<item nick='bert' role='none'/>", "type='result'")

	// Bans, of users who are there and of users who are not, kept over a restart.
	g.order(anna, "set", "admin", "<item jid='alma@ship2.example' affiliation='admin'/>", "type='result'")
	g.has(alma, 1, mess+"/alma", "affiliation='admin' role='moderator'")
	g.order(alma, "set", "admin", "<item jid='anna@ship2.example' affiliation='outcast'/>", "not-allowed")
	g.order(alma, "set", "admin", "<item jid='eve@ship2.example' affiliation='owner'/>", "not-allowed")
	g.enter(eve, "")
	g.order(alma, "set", "admin", "<item jid='eve@ship2.example/x' affiliation='outcast'><reason>spy</reason></item><item jid='bert@hq.example' affiliation='outcast'/>", "type='result'")
	g.has(eve, 1, "unavailable", "affiliation='outcast'", "code='301'", "<reason>spy</reason>")
	for _, again := range []bool{false, true} {
		if again {
			g.w.Kill(g.w.Nodes[1], time.Second)
			g.w.Run(2 * time.Second)
			for _, c := range []*client{anna, alma, eve} {
				c.resume()
			}
		}
		g.enter(eve, "")
		g.has(eve, 1, "<presence", "type='error'", "forbidden")
		g.bert(enterMess)
		g.ashore(1, "<presence", mess+"/bert", "type='error'", "forbidden")
		g.has(anna, 0, "<presence", mess+"/bert")
		g.order(anna, "get", "admin", "<item affiliation='outcast'/>", "jid='eve@ship2.example'")
		eve.say("<iq type='set' id='m%v' to='%s'><query xmlns='urn:xmpp:mam:2'/></iq>", again, mess)
		g.w.Run(time.Second)
		g.has(eve, 1, fmt.Sprintf("id='m%v'", again), "forbidden")
	}
	g.order(anna, "set", "admin", "<item jid='bert@hq.example' affiliation='none'/>", "type='result'")
	g.bert(enterMess)
	g.has(anna, 1, "<presence", mess+"/bert")
}

func setting(pairs ...string) string {
	form := "<x xmlns='jabber:x:data' type='submit'><field var='FORM_TYPE'><value>http://jabber.org/protocol/muc#roomconfig</value></field>"
	for i := 0; i < len(pairs); i += 2 {
		form += "<field var='muc#roomconfig_" + pairs[i] + "'><value>" + pairs[i+1] + "</value></field>"
	}
	return form + "</x>"
}

// Owners set who may enter, speak and set the subject, with which password, and who sees whom; a room may be ended. A room that
// is not kept ends with its last occupant.
func TestRoomsHaveSettings(t *testing.T) {
	g := newGoverned(t)
	anna, alma, eve := g.anna, g.alma, g.eve
	info := func(c *client, want ...string) {
		t.Helper()
		g.mark()
		c.say("<iq type='get' id='info' to='%s'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>", mess)
		g.w.Run(time.Second)
		g.has(c, 1, append(want, "id='info'")...)
	}
	g.enter(anna, "")
	info(alma, "muc_open", "muc_public", "muc_unsecured", "muc_unmoderated", "muc_semianonymous", "muc_temporary")
	g.enter(alma, "")
	g.enter(eve, "")
	g.bert(enterMess)
	g.order(anna, "get", "owner", "", "var='muc#roomconfig_membersonly' type='boolean'")
	g.order(anna, "set", "owner", "<x xmlns='jabber:x:data' type='cancel'/>", "type='result'")
	g.order(anna, "set", "owner", setting("roomname", strings.Repeat("n", 2000)), "not-acceptable")
	g.order(anna, "set", "owner", setting("passwordprotectedroom", "1"), "not-acceptable")
	g.order(anna, "set", "admin", "<item jid='alma@ship2.example' affiliation='member'/>", "type='result'")

	// Members only: the others are put out, far ones too.
	g.order(anna, "set", "owner", setting("roomname", "The Mess", "roomdesc", "of all hands", "membersonly", "1", "publicroom", "0", "whois", "anyone", "unknown", "x"), "type='result'")
	g.has(eve, 1, "unavailable", "code='322'", "code='110'")
	g.has(alma, 1, "<message", "code='104'", "code='172'")
	g.has(alma, 1, "<presence", mess+"/anna", "jid='anna@ship2.example/x'")
	g.w.Run(time.Minute)
	g.ashore(1, "<presence", mess+"/bert", "unavailable", "code='322'")
	g.enter(eve, "")
	g.has(eve, 1, "type='error'", "registration-required")
	g.bert(enterMess)
	g.ashore(1, "<presence", "type='error'", "registration-required")
	info(eve, "name='The Mess'", "muc_membersonly", "muc_hidden", "muc_nonanonymous", "muc_persistent", "<value>of all hands</value>")
	g.mark()
	eve.say("<iq type='get' id='rooms' to='conference.ship2.example'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>")
	g.w.Run(time.Second)
	g.has(eve, 0, "id='rooms'", "mess@")
	invite := "<message to='" + mess + "'><x xmlns='http://jabber.org/protocol/muc#user'><invite to='eve@ship2.example'/></x></message>"
	g.mark()
	alma.say("%s", invite)
	g.w.Run(time.Second)
	g.has(alma, 1, "type='error'", "forbidden")
	anna.say("%s", invite)
	g.w.Run(time.Second)
	g.has(eve, 1, "<message", "<invite from='anna@ship2.example'")
	g.enter(eve, "")
	g.has(eve, 1, mess+"/eve", "affiliation='member' role='participant'", "code='110'")
	g.order(anna, "set", "admin", "<item jid='eve@ship2.example' affiliation='none'/>", "type='result'")
	g.has(eve, 1, "unavailable", "code='321'")

	// A password, voice, and the subject.
	g.order(anna, "set", "owner", setting("membersonly", "0", "publicroom", "1", "moderatedroom", "1", "changesubject", "0", "roomsecret", "swordfish"), "type='result'")
	g.enter(eve, "<password>guess</password>")
	g.has(eve, 1, "type='error'", "not-authorized")
	g.bert(enterMess)
	g.ashore(1, "<presence", "type='error'", "not-authorized")
	g.enter(eve, "<password>swordfish</password>")
	g.has(eve, 1, mess+"/eve", "role='visitor'")
	g.say(eve, "hello")
	g.has(eve, 1, "type='error'", "forbidden")
	g.mark()
	alma.say("<message to='%s' type='groupchat' id='s1'><subject>mutiny</subject></message>", mess)
	anna.say("<message to='%s' type='groupchat' id='s2'><subject>supper</subject></message>", mess)
	g.w.Run(time.Second)
	g.has(alma, 1, "id='s1'", "type='error'", "forbidden")
	g.has(alma, 1, "<subject>supper</subject>")
	g.order(anna, "get", "owner", "", "<value>swordfish</value>")
	g.order(anna, "set", "owner", setting("passwordprotectedroom", "0", "moderatedroom", "0", "persistentroom", "0"), "type='result'")
	info(eve, "muc_unsecured", "muc_unmoderated", "muc_temporary")

	// The end of the room.
	g.bert(enterMess)
	g.order(anna, "set", "owner", "<destroy jid='wardroom@conference.ship2.example'><reason>moved</reason></destroy>", "type='result'")
	for _, c := range []*client{alma, eve} {
		g.has(c, 1, "unavailable", "<destroy jid='wardroom@conference.ship2.example'><reason>moved</reason></destroy>", "code='110'")
	}
	g.w.Run(time.Minute)
	g.ashore(1, "<presence", mess+"/bert", "unavailable")
	g.enter(eve, "")
	g.has(eve, 1, "affiliation='owner'", "code='201'")
	g.has(eve, 0, "supper")
	g.mark()
	eve.say("<presence to='%s/eve' type='unavailable'/>", mess)
	g.w.Run(time.Second)
	g.enter(alma, "")
	g.has(alma, 1, "affiliation='owner'", "code='201'")
}

// Nobody fills the gateway's memory with rooms or bans: the bans of a room are bounded, and so are the rooms of a user.
func TestRoomOrdersAreBounded(t *testing.T) {
	g := newGoverned(t)
	g.enter(g.anna, "")
	items := func(from, to int) (text string) {
		for i := from; i < to; i++ {
			text += fmt.Sprintf("<item jid='stranger%d@hq.example' affiliation='outcast'/>", i)
		}
		return text
	}
	g.order(g.anna, "set", "admin", items(0, 400), "type='result'")
	g.order(g.anna, "set", "admin", items(400, 600), "resource-constraint")
	g.order(g.anna, "get", "admin", "<item affiliation='outcast'/>", "stranger399")
	g.has(g.anna, 0, "stranger400")
	g.order(g.anna, "set", "admin", items(400, 499), "type='result'")
	g.order(g.anna, "set", "admin", items(499, 500), "resource-constraint")
	g.mark()
	for i := range 60 {
		g.eve.say("<presence to='r%d@conference.ship2.example/eve'><x xmlns='http://jabber.org/protocol/muc'/></presence>", i)
		g.w.Run(time.Second)
	}
	g.has(g.eve, 60, "<presence", "code='110'")
	g.has(g.eve, 50, "<presence", "affiliation='owner'", "code='201'")
	g.order(g.eve, "set", "admin", "<item jid='anna@ship2.example' affiliation='none'/>", "forbidden")
}

// Whatever users order in whatever mixture, an owned room keeps an owner, and the gateway goes on.
func TestRoomOrdersAtRandom(t *testing.T) {
	g := newGoverned(t)
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	clients := []*client{g.anna, g.alma, g.eve}
	g.enter(g.anna, "")
	for i := range 400 {
		c := clients[r.IntN(len(clients))]
		switch r.IntN(6) {
		case 0:
			c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", mess, pick("anna", "alma", "eve", "x"))
		case 1:
			c.say("<message to='%s' type='groupchat' id='%d'>%s</message>", mess, i, pick("<body>a</body>", "<subject>b</subject>", "<x xmlns='http://jabber.org/protocol/muc#user'><invite to='bert@hq.example'/></x>"))
		case 2:
			c.say("<iq type='set' id='f%d' to='%s'><query xmlns='http://jabber.org/protocol/muc#owner'>%s</query></iq>", i, mess,
				setting(pick("membersonly", "moderatedroom", "persistentroom", "changesubject", "whois", "roomsecret"), pick("0", "1", "", "anyone")))
		case 3:
			g.shore.say("conference.ship2.example", "%s", enterMess)
		default:
			items := ""
			for range r.IntN(4) {
				items += fmt.Sprintf("<item %s='%s' %s='%s'/>", pick("nick", "jid"), pick("anna", "alma", "eve", "bert", "anna@ship2.example", "alma@ship2.example", "eve@ship2.example", "bert@hq.example", ""),
					pick("role", "affiliation"), pick("none", "visitor", "participant", "moderator", "outcast", "member", "admin", "owner", "king"))
			}
			c.say("<iq type='%s' id='o%d' to='%s'><query xmlns='http://jabber.org/protocol/muc#admin'>%s</query></iq>", pick("set", "set", "get"), i, mess, items)
		}
		g.w.Run(time.Second)
		if i%20 != 19 {
			continue
		}
		g.enter(g.eve, "<password>1</password>")
		owners := 0
		for _, c := range clients {
			g.order(c, "get", "owner", "", "<iq")
			owners += count(c.got[g.had[c]:], []string{"muc#roomconfig"})
		}
		if owners == 0 {
			t.Fatalf("after %d orders nobody owns the room", i)
		}
	}
}
