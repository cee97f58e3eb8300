package xmpp_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// subscribe subscribes a user to another one, who agrees.
func (w *world) subscribe(from, to *server, fromUser, toUser string) {
	w.t.Helper()
	here, there := domainOf(from.node.ID), domainOf(to.node.ID)
	from.say(there, "<presence type='subscribe' from='%s@%s' to='%s@%s'/>", fromUser, here, toUser, there)
	w.Run(20 * time.Second)
	to.has(1, fmt.Sprintf("<presence from='%s@%s' to='%s@%s' type='subscribe'/>", fromUser, here, toUser, there))
	to.say(here, "<presence type='subscribed' from='%s@%s' to='%s@%s'/>", toUser, there, fromUser, here)
	w.Run(20 * time.Second)
	from.has(1, fmt.Sprintf("<presence from='%s@%s' to='%s@%s' type='subscribed'/>", toUser, there, fromUser, here))
}

// present sends a client's presence.
func (s *server) present(domain, from, to, more string) {
	s.w.t.Helper()
	s.say(domain, "<presence from='%s' to='%s'>%s</presence>", from, to, more)
}

// Presence crosses as state: the newest wins, whoever is subscribed sees it, probes are answered here. It survives restarts, and shows
// its age while the link is down.
func TestPresence(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *xmpp.Config) { c.Drawn, c.Gone = 5*time.Minute, time.Hour })
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	w.subscribe(ship, hq, "anna", "bert")
	ship.say("hq.example", "<presence type='probe' from='anna@ship2.example' to='bert@hq.example'/>")
	w.Run(time.Second)
	ship.has(2, "<presence from='bert@hq.example/aldis' to='anna@ship2.example' type='unavailable'/>") // one behind his consent
	hq.present("ship2.example", bert, "anna@ship2.example", "")
	w.Run(20 * time.Second)
	ship.has(1, "<presence from='bert@hq.example/aldis' to='anna@ship2.example'/>")
	hq.present("ship2.example", bert, "anna@ship2.example", "<show>away</show><status>tea</status><priority>5</priority>")
	hq.present("ship2.example", "bert@hq.example/phone", "anna@ship2.example", "<show>dnd</show>")
	w.Run(20 * time.Second)
	away := "<show>away</show><status>tea</status><priority>5</priority></presence>"
	ship.has(1, "from='bert@hq.example/aldis' to='anna@ship2.example'>"+away)
	ship.has(0, "dnd")
	w.Outage(w.Nodes[1], 2*time.Hour)
	ship.line("hq.example", anna, "bert@hq.example", "a1", "Are you there?", "") // nobody asks whether an idle link is up
	w.Run(7 * time.Minute)
	ship.has(1, "<show>xa</show><status>no link since 08:0", "Z: tea</status>", "<delay xmlns='urn:xmpp:delay' from='hq.example' stamp='2027-01-15T08:0")
	gone := ship.count("type='unavailable'")
	w.Run(time.Hour)
	ship.has(gone+1, "type='unavailable'")
	ship.say("hq.example", "<presence type='probe' from='anna@ship2.example' to='bert@hq.example'/>")
	ship.has(gone+2, "type='unavailable'")
	w.Run(time.Hour)
	ship.has(2, away)
	// The gateway of the ship knows him after a restart; the gateway of HQ asks its server.
	w.kill(2)
	ship.has(3, away)
	hq.got = nil
	w.kill(1)
	hq.has(1, "<presence type='probe' from='anna@ship2.example' to='bert@hq.example'/>")
	hq.present("ship2.example", bert, "anna@ship2.example", "<show>away</show><status>tea</status><priority>5</priority>")
	w.Run(time.Minute)
	ship.has(3, away)
	hq.say("ship2.example", "<presence type='unavailable' from='%s' to='anna@ship2.example'/>", bert)
	w.Run(20 * time.Second)
	ship.has(gone+3, "type='unavailable'")
	// The users of a server that is away, or that does not know them any more, count as gone.
	for _, end := range []func(){func() { hq.stop(); w.Run(90 * time.Second); hq.connect() }, func() { w.kill(1); w.Run(40 * time.Second) }} {
		hq.present("ship2.example", bert, "anna@ship2.example", "")
		w.Run(20 * time.Second)
		gone = ship.count("type='unavailable'")
		end()
		w.Run(20 * time.Second)
		ship.has(gone+1, "type='unavailable'")
	}
	// A subscriber sees nothing more once the consent is withdrawn.
	hq.present("ship2.example", bert, "anna@ship2.example", "")
	w.Run(20 * time.Second)
	hq.say("ship2.example", "<presence type='unsubscribed' from='bert@hq.example' to='anna@ship2.example'/>")
	w.Run(20 * time.Second)
	seen := len(ship.got)
	hq.present("ship2.example", bert, "anna@ship2.example", "<show>xa</show>")
	w.Run(20 * time.Second)
	if len(ship.got) != seen {
		t.Errorf("after the end of the subscription came %q", ship.got[seen:])
	}
}

// The presence of a user who changes it all the time goes once in five seconds, the newest; a user with hundreds of contacts logs in
// without a refusal.
func TestPresenceThatFlaps(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	w.subscribe(ship, hq, "anna", "bert")
	before := w.adapters[1].Counts()["stated"]
	for i := range 100 {
		if i%3 == 0 {
			hq.say("ship2.example", "<presence type='unavailable' from='%s' to='anna@ship2.example'/>", bert)
		} else {
			hq.present("ship2.example", bert, "anna@ship2.example", fmt.Sprintf("<status>number %d.</status>", i))
		}
		w.Run(200 * time.Millisecond)
	}
	hq.present("ship2.example", bert, "anna@ship2.example", "<status>the last</status>")
	w.Run(time.Minute)
	if stated := w.adapters[1].Counts()["stated"] - before; stated > 6 {
		t.Errorf("in 20 s far sites were told %d times", stated)
	}
	ship.has(1, "the last")
	for i := range 600 {
		ship.present("hq.example", anna, fmt.Sprintf("user%d@hq.example", i), "")
		ship.say("hq.example", "<presence type='probe' from='anna@ship2.example' to='user%d@hq.example'/>", i)
	}
	ship.has(600, "type='unavailable'", "/aldis' to='anna@ship2.example'", "user")
	if n := w.adapters[2].Counts()["refused rate"]; n != 0 {
		t.Errorf("%d presences of a login were refused", n)
	}
}

// One component that reconnects says nothing of the others: the users here, and the occupants of far rooms, stay as long as the server
// has another component for them.
func TestOneComponentReconnects(t *testing.T) {
	w := newWorld(t, 3, "iridium-dialup", 7)
	hq, ship := w.servers[1], w.servers[2]
	w.Run(time.Minute)
	w.subscribe(ship, hq, "anna", "bert")
	hq.present("ship2.example", bert, "anna@ship2.example", "")
	far{ship, anna, "anna"}.enter()
	hq.room().enter(bert, "bert")
	w.Run(time.Minute)
	reconnect := func(s *server, domains ...string) {
		for _, domain := range domains {
			w.DeliverLAN(s.node, site.XMPP, xmpp.Closed{Conn: s.conn[domain]})
		}
		w.Run(250 * time.Millisecond)
		for _, domain := range domains {
			lastConn++
			s.conn[domain] = lastConn
			w.DeliverLAN(s.node, site.XMPP, xmpp.Opened{Conn: lastConn, Domain: domain})
		}
	}
	unavailable, left := ship.count("type='unavailable'", "bert@hq.example"), hq.room().heard(bert, "type='unavailable'", room+"/anna")
	reconnect(hq, "conference.ship2.example", "conference.ship3.example", "pubsub.ship2.example")
	reconnect(ship, "hq.example", "ship3.example", "pubsub.hq.example")
	w.Run(5 * time.Minute)
	ship.has(unavailable, "type='unavailable'", "bert@hq.example")
	check.Equal(t, "bert sees anna leave", hq.room().heard(bert, "type='unavailable'", room+"/anna"), left)
	for _, domain := range []string{"ship2.example", "conference.ship3.example"} { // one of several stays away
		w.DeliverLAN(hq.node, site.XMPP, xmpp.Closed{Conn: hq.conn[domain]})
	}
	w.DeliverLAN(ship.node, site.XMPP, xmpp.Closed{Conn: ship.conn["conference.ship3.example"]})
	w.Run(5 * time.Minute)
	ship.has(unavailable, "type='unavailable'", "bert@hq.example")
	check.Equal(t, "bert sees anna leave", hq.room().heard(bert, "type='unavailable'", room+"/anna"), left)
	w.DeliverLAN(hq.node, site.XMPP, xmpp.Closed{Conn: hq.conn["ship3.example"]}) // now none is there for users
	w.Run(5 * time.Minute)
	ship.has(unavailable+1, "type='unavailable'", "bert@hq.example")
}
