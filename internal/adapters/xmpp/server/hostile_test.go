package server_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// A client that speaks for others, or acknowledges stanzas that it was never sent, is put out; messages that wait for it stay.
func TestLyingClient(t *testing.T) {
	for _, from := range []string{"alma@ship.example", "anna@ship.example/other", "anna@hq.example", "@", "ship.example"} {
		w := newWorld(t, "anna", "alma")
		anna, alma := w.login("anna", "a"), w.login("alma", "b")
		w.say(anna, "<message from='%s' to='alma@ship.example' type='chat'><body>x</body></message>", from)
		w.expect(anna, 1, "invalid-from")
		w.expect(anna, 1, "END")
		w.expect(alma, 0, "<message")
	}
	w := newWorld(t, "anna", "alma")
	anna, alma := w.login("anna", "a"), w.login("alma", "b")
	token := w.token(anna)
	w.say(alma, "<message to='anna@ship.example/a' type='chat' id='1'><body>kept</body></message>")
	w.say(anna, "<a xmlns='urn:xmpp:sm:3' h='4000000000'/>")
	w.expect(anna, 1, "handled-count-too-high")
	w.expect(anna, 1, "END")
	check.Equal(t, "letters", w.s.Stored(), 1)
	again := w.came("anna")
	w.say(again, "<resume xmlns='urn:xmpp:sm:3' previd='%s' h='1'/>", token) // the session has ended
	w.expect(again, 1, "<failed", "item-not-found")
	other := w.came("alma")
	w.say(other, "<resume xmlns='urn:xmpp:sm:3' previd='%s' h='0'/>", w.token(alma)+"x")
	w.expect(other, 1, "<failed")
	w.say(again, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq><presence/>")
	w.expect(again, 1, "<body>kept</body>", "delay")
}

// Whatever a client sends, other clients get well-formed XML from the client itself: names of elements and attributes are no way to write
// markup into their streams.
func TestMarkupInNames(t *testing.T) {
	const hi = "<message xmlns:c='jabber:client' to='alma@ship.example' type='chat'><body>hi</body>"
	for _, text := range []string{
		hi + "<c:![CDATA[/><message><c:]]><c:![CDATA[/></c:]]></message><message from='captain@ship.example/bridge' to='alma@ship.example' type='chat'><body>forged</body></message>" +
			"<message><c:![CDATA[/></message><c:]]><c:![CDATA[/></c:]]></message>",
		hi + "<1/></message>", hi + "<a:b:c xmlns:a='x'/></message>", hi + "<a xmlns:p='x' p:q='1'/></message>", hi + "<a b[='1'/></message>", hi + "<\u00d7/></message>",
	} {
		w := newWorld(t, "anna", "alma", "captain")
		anna, alma := w.login("anna", "a"), w.login("alma", "b")
		var s stanza.Splitter
		seen := 0
		s.Feed([]byte("<stream:stream xmlns='jabber:client' xmlns:stream='"+stanza.Streams+"'>"+text), func(e *stanza.Element, f *stanza.Fault) {
			if seen++; seen > 1 && e != nil {
				w.step(server.Said{Conn: anna, Element: *e, Fault: f})
			}
		})
		d := xml.NewDecoder(strings.NewReader("<x>" + strings.Join(w.got[alma], "") + "</x>"))
		depth, err := 0, error(nil)
		for err == nil {
			var token xml.Token
			token, err = d.Token()
			switch token := token.(type) {
			case xml.StartElement:
				depth++
				for _, a := range token.Attr {
					check.True(t, "not from the captain", depth > 2 || a.Name.Local != "from" || !strings.Contains(a.Value, "captain"), text)
				}
			case xml.EndElement:
				depth--
			}
		}
		check.True(t, "well-formed", errors.Is(err, io.EOF), text, err)
		w.expect(alma, 0, " p:q=")
	}
}

// Nobody resumes the session of another user.
func TestStolenToken(t *testing.T) {
	w := newWorld(t, "anna", "alma")
	token := w.token(w.login("anna", "a"))
	thief := w.came("alma")
	w.say(thief, "<resume xmlns='urn:xmpp:sm:3' previd='%s' h='0'/>", token)
	w.expect(thief, 1, "<failed")
}

// Stanzas that make no sense, before a resource is bound and after: an error or the end of the stream, and the server goes on.
func TestOddStanzas(t *testing.T) {
	for _, text := range []string{"<message/>", "<presence/>", "<iq/>", "<x xmlns='urn:x'/>", "<a xmlns='urn:xmpp:sm:3' h='1'/>", "<enable xmlns='urn:xmpp:sm:3'/>", "<iq type='set' id='1'><bind xmlns='x'/></iq>"} {
		w := newWorld(t, "anna")
		c := w.came("anna")
		w.say(c, "%s", text)
		if w.heard(c, "END") == 0 && w.heard(c, "<failed") == 0 {
			t.Errorf("%s before a resource is bound: %q", text, w.got[c])
		}
	}
	w := newWorld(t, "anna", "alma")
	anna, alma := w.login("anna", "a"), w.login("alma", "b")
	for i, text := range []string{"<message/>", "<message to=''/>", "<message to='@@'><body>x</body></message>", "<message to='x@elsewhere.example'><body>x</body></message>",
		"<message type='groupchat' to='alma@ship.example'><body>x</body></message>", "<message type='error' to='nobody@ship.example'/>", "<iq type='get'/>", "<iq type='x' id='1'/>", "<iq type='get' id='2'/>",
		"<iq type='result' id='3' to='alma@ship.example/none'/>", "<iq type='set' id='4'><query xmlns='jabber:iq:roster'/></iq>", "<iq type='set' id='5'><query xmlns='jabber:iq:roster'><item jid='@'/></query></iq>",
		"<iq type='set' id='6'><query xmlns='jabber:iq:roster'><item jid='x@y' subscription='remove'/></query></iq>", "<iq type='set' id='7'><query xmlns='urn:xmpp:mam:2'><x xmlns='jabber:x:data'><field var='start'><value>x</value></field></x></query></iq>",
		"<presence type='x'/>", "<presence type='subscribe'/>", "<presence type='subscribed' to='alma@ship.example'/>", "<presence type='probe'/>", "<presence type='probe' to='alma@ship.example'/>",
		"<presence><priority>9999</priority></presence>", "<a xmlns='urn:xmpp:sm:3' h='0'/>"} {
		w.say(anna, "%s", text)
		if w.heard(anna, "END") != 0 {
			t.Fatalf("%d: %s ends the stream: %q", i, text, w.got[anna])
		}
	}
	w.say(anna, "<message to='alma@ship.example' type='chat'><body>still here</body></message>")
	w.expect(alma, 1, "still here")
	w.expect(alma, 0, "subscribed")
}

// Bounds: letters of a user, contacts, sessions, the queue of a client that acknowledges nothing, the archive.
func TestBounds(t *testing.T) {
	w := newWorld(t, "anna", "alma")
	anna := w.login("anna", "a")
	for i := range 1100 {
		w.say(anna, "<message to='alma@ship.example' type='chat' id='m%d'><body>%s</body></message>", i, strings.Repeat("x", 300))
	}
	if n := w.heard(anna, "error", "resource-constraint"); n < 100 || n > 600 {
		t.Errorf("%d of 1,100 messages to who is away were refused", n)
	}
	alma := w.login("alma", "b")
	check.Equal(t, "read and refused", w.heard(alma, "<message", "delay")+w.heard(anna, "error", "resource-constraint"), 1100)
	w.say(anna, "<iq type='set' id='q'><query xmlns='urn:xmpp:mam:2' queryid='1'><set xmlns='http://jabber.org/protocol/rsm'><max>10000</max></set></query></iq>")
	check.Equal(t, "lines of a page", w.heard(anna, "<result xmlns='urn:xmpp:mam:2'"), 100)
	for i := range 1100 {
		w.say(anna, "<iq type='set' id='r%d'><query xmlns='jabber:iq:roster'><item jid='c%d@x.example'/></query></iq>", i, i)
	}
	check.Equal(t, "contacts that were refused", w.heard(anna, "error", "resource-constraint", "id='r"), 100)
	w = newWorld(t, "anna", "alma")
	anna, alma = w.login("anna", "a"), w.login("alma", "b")
	for i := range 1500 {
		w.say(alma, "<iq type='get' id='%d' to='anna@ship.example/a'><q xmlns='x'/></iq>", i)
		w.say(alma, "<iq type='get' id='x%d' to='anna@ship.example/a'><q xmlns='x'/></iq>", i)
	}
	w.expect(anna, 1, "END")
	w.expect(anna, 1, "policy-violation")
	w = newWorld(t, "anna")
	for i := range 16 {
		w.login("anna", fmt.Sprint("r", i))
	}
	c := w.came("anna")
	w.say(c, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
	w.expect(c, 1, "resource-constraint")
}

// A session that ends because too much waits for its client may end while other sessions of the same user are told something: only
// that session ends.
func TestEndsAmongOthers(t *testing.T) {
	w := newWorld(t, "anna")
	a, b := w.login("anna", "a"), w.login("anna", "b")
	w.say(a, "<presence type='subscribe' to='anna@ship.example'/><presence type='subscribed' to='anna@ship.example'/>")
	w.say(a, "<presence><status>%s</status></presence>", strings.Repeat("x", 200_000))
	for range 20 {
		w.say(a, "<presence type='probe' to='anna@ship.example/a'/>")
		w.say(b, "<a xmlns='urn:xmpp:sm:3' h='%d'/>", w.heard(b, "<presence "))
	}
	w.expect(a, 1, "END")
	w.expect(b, 0, "END")
	check.Equal(t, "sessions", w.s.Sessions(), 1)

	for n := range 10 { // both connections broke; the end of the first session is one stanza too many for the second
		w := newWorld(t, "anna", "alma")
		alma := w.login("alma", "c")
		a, b := w.login("anna", "a"), w.login("anna", "b")
		w.step(server.Gone{Conn: a})
		w.step(server.Gone{Conn: b})
		for i := range 1991 + n {
			w.say(alma, "<iq type='get' id='%d' to='anna@ship.example/b'><q xmlns='x'/></iq>", i)
		}
		w.now = w.now.Add(6 * time.Minute)
		w.take()
		check.Equal(t, "sessions", w.s.Sessions(), 1)
	}
}

// A session that the client's own stanza ends, because too much waits for the client, leaves nothing of itself in the journal.
func TestEndsItself(t *testing.T) {
	for _, last := range []string{"<message to='anna@ship.example/a' type='chat'><body>x</body></message>", "<presence type='unavailable'/>"} {
		w := newWorld(t, "anna")
		anna := w.login("anna", "a")
		token := w.token(anna)
		w.say(anna, "<presence to='anna@ship.example/a'/>")
		for i := range 1998 {
			w.say(anna, "<iq type='get' id='%d' to='ship.example'><ping xmlns='urn:xmpp:ping'/></iq>", i)
		}
		w.expect(anna, 0, "END")
		w.say(anna, "%s", last)
		w.expect(anna, 1, "END")
		for key := range w.journal {
			check.True(t, "no key of the session", !strings.Contains(key, token), key)
		}
	}
}

// A session that nobody resumes ends after five minutes: others see it go, and messages that it has not read wait.
func TestSessionEnds(t *testing.T) {
	w := newWorld(t, "anna", "alma")
	anna, alma := w.login("anna", "a"), w.login("alma", "b")
	w.say(anna, "<presence to='alma@ship.example/b'/><presence to='room@hq.example/anna'/>")
	w.step(server.Gone{Conn: anna})
	w.say(alma, "<message to='anna@ship.example' type='chat'><body>for later</body></message>")
	w.now = w.now.Add(4 * time.Minute)
	w.take()
	w.expect(alma, 0, "unavailable")
	w.now = w.now.Add(2 * time.Minute)
	w.take()
	w.expect(alma, 1, "unavailable", "anna@ship.example/a")
	if last := w.away[len(w.away)-1]; !strings.Contains(last, "unavailable") || !strings.Contains(last, "room@hq.example/anna") {
		t.Errorf("the room heard last %s", last)
	}
	w.restart()
	w.expect(w.login("anna", "c"), 1, "for later", "delay")
}

// The error of a message goes to its sender's next client if the client that sent it is gone.
func TestLateError(t *testing.T) {
	w := newWorld(t, "anna")
	anna := w.login("anna", "a")
	w.say(anna, "<message to='bert@hq.example' type='chat' id='week'><body>x</body></message>")
	w.step(server.Gone{Conn: anna, Ended: true})
	w.restart()
	w.deliver("<message from='bert@hq.example' to='anna@ship.example/a' type='error' id='week'><error type='wait'/></message>")
	w.expect(w.login("anna", "b"), 1, "id='week'", "type='error'")
	w.expect(w.login("anna", "c"), 0, "id='week'")
}

// Documents that clients store are found again, also after a kill: bookmarks only by the user, the card by all. They are bounded.
func TestPapers(t *testing.T) {
	w := newWorld(t, "anna", "alma")
	anna := w.login("anna", "a")
	w.say(anna, "<iq type='set' id='1'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'><conference jid='mess@conference.ship.example'/></storage></query></iq>")
	w.say(anna, "<iq type='set' id='2'><vCard xmlns='vcard-temp'><FN>Anna</FN></vCard></iq>")
	w.say(anna, "<iq type='set' id='3'><vCard xmlns='vcard-temp'><FN>%s</FN></vCard></iq>", strings.Repeat("x", 40_000))
	w.say(anna, "<iq type='set' id='4'><query xmlns='jabber:iq:private'/></iq>")
	w.expect(anna, 1, "id='3'", "resource-constraint")
	w.expect(anna, 1, "id='4'", "bad-request")
	for i := range 20 {
		w.say(anna, "<iq type='set' id='n%d'><query xmlns='jabber:iq:private'><x xmlns='urn:%d'/></query></iq>", i, i)
	}
	w.expect(anna, 6, "id='n", "resource-constraint")
	w.restart()
	anna, alma := w.login("anna", "b"), w.login("alma", "c")
	w.say(anna, "<iq type='get' id='5'><query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'/></query></iq>")
	w.expect(anna, 1, "id='5'", "<storage xmlns='storage:bookmarks'><conference jid='mess@conference.ship.example'/></storage>")
	w.say(alma, "<iq type='get' id='6' to='anna@ship.example'><vCard xmlns='vcard-temp'/></iq><iq type='set' id='7' to='anna@ship.example'><vCard xmlns='vcard-temp'/></iq>")
	w.expect(alma, 1, "id='6'", "<vCard xmlns='vcard-temp'><FN>Anna</FN></vCard>")
	w.expect(alma, 1, "id='7'", "service-unavailable")
	w.say(alma, "<iq type='get' id='8'><vCard xmlns='vcard-temp'/></iq>")
	w.expect(alma, 1, "id='8'", "<vCard xmlns='vcard-temp'/>")
}

// A client that does not resume at once gets the messages that the client before it has not acknowledged, and only once.
func TestNewClient(t *testing.T) {
	for _, kill := range []bool{false, true} {
		w := newWorld(t, "anna", "alma")
		anna, alma := w.login("anna", "a"), w.login("alma", "b")
		w.say(alma, "<message to='anna@ship.example' type='chat' id='1'><body>kept</body></message><presence to='anna@ship.example/a'/>")
		w.deliver("<message from='room@hq.example/bert' to='anna@ship.example/a' type='groupchat' id='2'><body>in a room</body></message>")
		if kill {
			w.restart()
		} else {
			w.step(server.Gone{Conn: anna})
		}
		next := w.login("anna", "c")
		w.expect(next, 1, "<body>kept</body>", "delay")
		w.expect(next, 0, "in a room")
		w.say(next, "<a xmlns='urn:xmpp:sm:3' h='%d'/>", w.heard(next, "<message")+w.heard(next, "<presence"))
		check.Equal(t, "letters", w.s.Stored(), 1)
		w.now = w.now.Add(6 * time.Minute)
		w.take()
		w.expect(next, 1, "<body>kept</body>")
		check.Equal(t, "letters in the end", w.s.Stored(), 0)
	}
}

// A user that is removed leaves nothing behind, and none of its clients can go on: not even one that has not bound a resource yet, or whose
// login ends later.
func TestRemovedUser(t *testing.T) {
	w := newWorld(t, "anna", "alma")
	anna, early, alma := w.login("anna", "a"), w.came("anna"), w.login("alma", "b")
	w.say(anna, "<presence type='subscribe' to='alma@ship.example'/><message to='alma@ship.example' type='chat'><body>x</body></message>")
	w.step(server.Users{Names: []string{"alma"}})
	w.expect(anna, 1, "END")
	for _, c := range []site.ConnID{early, w.came("anna")} {
		w.expect(c, 1, "not-authorized")
		w.expect(c, 1, "END")
		w.say(c, "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq><enable xmlns='urn:xmpp:sm:3'/><message to='alma@ship.example' type='chat'><body>still here</body></message>")
		w.expect(c, 0, "<jid>")
	}
	w.expect(alma, 0, "still here")
	check.Equal(t, "sessions", w.s.Sessions(), 1)
	for key, value := range w.journal {
		if strings.Contains(key, "anna\x00") || strings.Contains(string(value), "user='anna'") {
			t.Errorf("the journal still has %q", key)
		}
	}
	w.restart()
}

// Whatever clients send, the server goes on, and its memories can be read.
func FuzzClients(f *testing.F) {
	f.Add("<message to='alma@ship.example' type='chat'><body>x</body></message><r xmlns='urn:xmpp:sm:3'/>")
	f.Add("<presence to='alma@ship.example' type='subscribe'/><iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>")
	f.Add("<iq type='set' id='1'><query xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'><before/><max>3</max></set></query></iq>")
	f.Add("<message to='anna@ship.example/a' type='chat'><body>x</body></message><a xmlns='urn:xmpp:sm:3' h='1'/><enable xmlns='urn:xmpp:carbons:2'/>")
	f.Fuzz(func(t *testing.T, text string) {
		w := newWorld(t, "anna", "alma")
		anna, alma := w.login("anna", "a"), w.login("alma", "b")
		var s stanza.Splitter
		seen := 0
		s.Feed([]byte("<stream:stream xmlns='jabber:client' xmlns:stream='"+stanza.Streams+"'>"+text), func(e *stanza.Element, f *stanza.Fault) {
			if seen++; seen == 1 || e == nil {
				return
			}
			w.step(server.Said{Conn: anna, Element: *e, Fault: f})
			w.step(server.Said{Conn: alma, Element: *e, Fault: f})
		})
		w.step(server.Gone{Conn: anna})
		w.restart()
		w.login("anna", "a")
	})
}
