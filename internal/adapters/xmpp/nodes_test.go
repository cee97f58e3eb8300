package xmpp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const (
	geoloc  = "http://jabber.org/protocol/geoloc"
	avatar  = "urn:xmpp:avatar:metadata"
	subject = "<pubsub xmlns='http://jabber.org/protocol/pubsub'>"
)

// capable makes a client here come with features, and answer when it is asked for them.
func (s *server) capable(domain, from, to, ver string, nodes ...string) {
	s.w.t.Helper()
	before := len(s.got)
	s.present(domain, from, to, "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='urn:client' ver='"+ver+"'/>")
	if len(s.got) == before || !strings.Contains(s.got[before], "node='urn:client#"+ver+"'") {
		s.w.t.Errorf("%s is not asked for its features: %q", from, s.got[before:])
		return
	}
	asked := parse(s.w.t, s.got[before])
	text := ""
	for _, n := range nodes {
		text += "<feature var='" + n + "+notify'/>"
	}
	s.say(domain, "<iq type='result' id='%s' from='%s' to='%s'><query xmlns='http://jabber.org/protocol/disco#info'>%s</query></iq>", asked.Get("id"), from, to, text)
}

// publish sends the event that the server sends a far user when a user here has published.
func (s *server) publish(domain, from, to, node, inside string) {
	s.w.t.Helper()
	s.say(domain, "<message from='%s' to='%s' type='headline'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='%s'>%s</items></event></message>", from, to, node, inside)
}

// Items that users publish in their personal nodes come to subscribers at other sites whose clients want them: the
// newest once, at once to users who log in later, also without the link. Pictures only cross by rule.
func TestPersonalNodes(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	w.subscribe(hq, ship, "bert", "anna")
	w.subscribe(ship, hq, "anna", "bert")
	place := func(lat string) string {
		return "<item id='x" + lat + "'><geoloc xmlns='" + geoloc + "'><lat>" + lat + "</lat><lon>24.7</lon></geoloc></item>"
	}
	ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", geoloc, place("59.1"))
	w.Run(time.Minute)
	hq.capable("ship2.example", bert, "anna@ship2.example", "v1", geoloc, avatar, "urn:unknown")
	w.Run(time.Minute)
	ship.has(1, "from='bert@hq.example/aldis'", "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='urn:aldis:gateway'")
	shown := parse(t, ship.got[len(ship.got)-1])
	ver := shown.Kid("http://jabber.org/protocol/caps", "c").Get("ver")
	ship.say("hq.example", "<iq type='get' id='disco' from='anna@ship2.example' to='bert@hq.example/aldis'><query xmlns='http://jabber.org/protocol/disco#info' node='urn:aldis:gateway#%s'/></iq>", ver)
	ship.has(1, "id='disco'", "var='"+geoloc+"+notify'", "var='"+avatar+"+notify'")
	ship.has(0, "tune+notify")
	up, down := w.Octets(w.Nodes[1])
	ship.publish("hq.example", "anna@ship2.example/forged", "bert@hq.example/aldis", geoloc, place("1.0"))
	ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", avatar, "<item id='h'><metadata xmlns='"+avatar+"'><info id='h' type='image/png' bytes='9'/></metadata></item>")
	w.Run(time.Minute)
	upNow, downNow := w.Octets(w.Nodes[1])
	check.Equal(t, "octets of a picture", upNow+downNow-up-down, 0)
	ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", geoloc, place("59.4"))
	w.Run(time.Minute)
	hq.has(1, "<message from='anna@ship2.example' to='"+bert+"' type='headline'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='"+geoloc+
		"'><item id='current'><geoloc xmlns='"+geoloc+"'><lat>59.4</lat><lon>24.7</lon></geoloc></item></items></event></message>")
	upNow, downNow = w.Octets(w.Nodes[1])
	t.Logf("a place: %d octets with all headers", upNow+downNow-up-down)
	for range 3 {
		ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", geoloc, place("59.4"))
	}
	w.Run(time.Minute)
	up, down = w.Octets(w.Nodes[1])
	check.Equal(t, "octets of the same again", up+down-upNow-downNow, 0)
	for i := range 20 {
		ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", geoloc, place(fmt.Sprint("58.", i)))
	}
	w.Run(time.Minute)
	hq.has(1, "<lat>58.19</lat>")
	if n := hq.count("<lat>58."); n > 2 {
		t.Errorf("%d of 20 places came within five seconds", n)
	}
	w.Outage(w.Nodes[1], time.Hour)
	hq.capable("ship2.example", "bert@hq.example/phone", "anna@ship2.example", "v2", geoloc)
	hq.has(1, "to='bert@hq.example/phone'", "<lat>58.19</lat>")
	w.kill(1)
	w.Run(2 * time.Hour)
	hq.capable("ship2.example", bert, "anna@ship2.example", "v1", geoloc)
	hq.has(2, "to='"+bert+"'", "<lat>58.19</lat>")
	ship.publish("hq.example", "anna@ship2.example", "bert@hq.example/aldis", geoloc, "<retract id='x58.19'/>")
	w.Run(time.Minute)
	hq.has(1, "<retract id='current'/>")
}

// A node of a service comes to a site when somebody there subscribes or asks, with its items; the gateway answers there, also
// without the link and after restarts. A rule keeps nodes here, and a user who asks for one is told.
func TestServiceNodes(t *testing.T) {
	w := newWorld(t, 3, "iridium-dialup", 7, func(c *xmpp.Config) {
		c.Rules = []rule.Rule{{Kind: rule.PubSub, To: "secret*", Local: true}}
	})
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	// answer plays the service of headquarters.
	answered := 0
	answer := func(items string) {
		t.Helper()
		for ; answered < len(hq.got); answered++ {
			e := parse(t, hq.got[answered])
			if e.Name != "iq" || e.Get("to") != "pubsub.hq.example" {
				continue
			}
			inside := items
			if e.Get("type") == "set" {
				inside = ""
			}
			from := e.Get("from")
			hq.say(from[strings.Index(from, "@")+1:], "<iq type='result' id='%s' from='pubsub.hq.example' to='%s'>%s</iq>", e.Get("id"), from, inside)
		}
	}
	ask := func(s *server, from, id, what string) {
		s.say("pubsub.hq.example", "<iq type='%s' id='%s' from='%s' to='pubsub.hq.example'>%s%s</pubsub></iq>", map[bool]string{true: "get", false: "set"}[strings.HasPrefix(what, "<items")], id, from, subject, what)
	}
	alert := func(n int) string {
		return fmt.Sprintf("<item id='a%d'><alert xmlns='urn:alert'>number %d</alert></item>", n, n)
	}
	ask(ship, anna, "s1", "<subscribe node='alerts' jid='anna@ship2.example'/>")
	ship.has(1, "id='s1'", "type='result'", "subscription='subscribed'")
	ask(ship, "greta@ship2.example/g", "i1", "<items node='alerts'/>")
	w.Run(20 * time.Second)
	hq.has(1, "<subscribe node='alerts' jid='aldis@ship2.example'/>")
	answer(subject + "<items node='alerts'>" + alert(1) + alert(2) + "</items></pubsub>")
	w.Run(20 * time.Second)
	ship.has(1, "id='i1'", "type='result'", alert(1), alert(2))
	ship.has(1, "to='anna@ship2.example'", "<event ", alert(2))
	hq.publish("ship2.example", "pubsub.hq.example", "aldis@ship2.example", "alerts", alert(3))
	hq.publish("ship2.example", "pubsub.hq.example", "aldis@ship2.example", "others", alert(4))
	w.Run(20 * time.Second)
	ship.has(1, "to='anna@ship2.example'", "<event ", alert(3))
	ship.has(0, "number 4")
	if w.servers[3].count("number 3") != 0 {
		t.Error("an item has come to a site that has not asked")
	}
	ask(ship, anna, "s2", "<subscribe node='secrets' jid='anna@ship2.example'/>")
	ask(ship, anna, "i2", "<items node='secrets'/>")
	w.Run(20 * time.Second)
	ship.has(1, "to='anna@ship2.example'", "<subscription node='secrets' jid='anna@ship2.example' subscription='none'/>")
	ship.has(1, "id='i2'", "type='error'", "<not-allowed ")
	ask(ship, anna, "s3", "<subscribe node='alerts' jid='greta@ship2.example'/>")
	ship.has(1, "id='s3'", "<bad-request ")
	w.Outage(w.Nodes[1], 10*time.Minute)
	ask(ship, "greta@ship2.example/g", "i3", "<items node='alerts' max_items='1'/>")
	ship.has(1, "id='i3'", "type='result'", alert(3))
	ask(ship, "greta@ship2.example/g", "i4", "<items node='unknown'/>")
	w.Run(2 * time.Minute)
	ship.has(1, "id='i4'", "type='error'", "<remote-server-timeout ")
	w.kill(2)
	w.Run(10 * time.Minute)
	w.kill(1)
	answer(subject + "<items node='alerts'>" + alert(3) + alert(5) + "</items></pubsub>") // two were retracted in the meantime
	w.Run(time.Minute)
	ask(ship, anna, "i5", "<items node='alerts'/>")
	ship.has(1, "id='i5'", alert(3), alert(5))
	if ship.count("id='i5'", "number 1") != 0 {
		t.Error("an item that was taken back is there")
	}
	ask(ship, anna, "u1", "<unsubscribe node='alerts'/>")
	w.Run(2 * time.Hour)
	hq.has(1, "<unsubscribe node='alerts' jid='aldis@ship2.example'/>")
}

// One user cannot use up the nodes of all, and a site that lies about its nodes reaches nobody.
func TestHostileNodes(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	ship := w.servers[2]
	w.Run(time.Minute)
	for i := range 150 {
		ship.say("pubsub.hq.example", "<iq type='set' id='s%d' from='%s' to='pubsub.hq.example'>%s<subscribe node='n%d' jid='anna@ship2.example'/></pubsub></iq>", i, anna, subject, i)
	}
	check.Equal(t, "subscriptions", ship.count("type='result'", "<subscription "), 100)
	check.Equal(t, "refusals", ship.count("type='error'", "<resource-constraint "), 50)
	ship.say("hq.example", "<iq type='get' id='p' from='%s' to='bert@hq.example'>%s<items node='%s'/></pubsub></iq>", anna, subject, geoloc)
	ship.has(1, "id='p'", "<not-authorized ")
	before := w.adapters[2].Counts()["far_unreadable"]
	lies := []site.Item{{Scope: "n1", ID: "x", Doc: []byte{1, 2, 3}}, {Scope: "n1", ID: "x\x01"}, {Scope: "\x07", ID: "x"}, {Scope: "n1", Owner: "Bad Name"}, {Scope: "n1", Sub: 2},
		{Scope: "n1", Sub: 1, Doc: []byte{1, 1}}, {Scope: "n1", ID: strings.Repeat("x", 300)}, {Kind: site.Question, ID: "\x09"}, {Kind: site.Question, ID: "n", Owner: "Bad Name"}}
	for _, it := range lies {
		if it.Kind == 0 {
			it.Kind = site.Document
		}
		if out := w.adapters[2].Step(w.Now, site.FarItem{Site: 1, Item: it}); len(out.Orders) > 0 {
			t.Errorf("%+v reaches %q", it, out.Orders)
		}
	}
	check.Equal(t, "lies", w.adapters[2].Counts()["far_unreadable"]-before, len(lies))
}
