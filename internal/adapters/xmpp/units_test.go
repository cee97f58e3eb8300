package xmpp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const pubsub = "xmlns='http://jabber.org/protocol/pubsub'"

// Units of other adapters are items of a node, for clients of the LAN's server and of the gateway's own: a subscribed client is
// told of each as often as the rule says, and of its end. A unit that a client publishes goes to the other adapters under the
// client's name. None of this crosses.
func TestUnitsInNodes(t *testing.T) {
	w := newWorld(t, 2, "iridium-dialup", 7, func(c *xmpp.Config) {
		c.Nodes = "tak." + c.Domain
		if c.ID == 2 {
			c.Own, c.Users = true, []string{"anna"}
		}
	})
	before := w.servers[1]
	lastConn++
	before.conn["tak.hq.example"] = lastConn
	w.DeliverLAN(w.Nodes[0], site.XMPP, xmpp.Opened{Conn: lastConn, Domain: "tak.hq.example"})
	anna := w.newClient(2, "anna")
	w.Run(time.Minute)
	for id, c := range map[uint16]struct {
		user string
		say  func(string)
		got  func() []string
	}{
		1: {"bert@hq.example", func(text string) { before.say("tak.hq.example", "%s", text) }, func() []string { return before.got }},
		2: {"anna@ship2.example", func(text string) { anna.say("%s", text) }, func() []string { return anna.got }},
	} {
		to := "tak." + domainOf(id)
		up, down := w.Octets(w.Nodes[1])
		iq := func(kind, id, inside string) {
			t.Helper()
			c.say(fmt.Sprintf("<iq type='%s' id='%s' from='%s/x' to='%s'><pubsub %s>%s</pubsub></iq>", kind, id, c.user, to, pubsub, inside))
			w.Run(time.Second)
		}
		has := func(want int, texts ...string) {
			t.Helper()
			n := 0
		lines:
			for _, line := range c.got() {
				for _, text := range texts {
					if !strings.Contains(line, text) {
						continue lines
					}
				}
				n++
			}
			if n != want {
				t.Errorf("at node %d %d stanzas with %q, want %d: %s", id, n, texts, want, strings.Join(c.got(), "\n"))
			}
		}
		iq("set", "s0", "<subscribe node='units' jid='"+c.user+"'/>")
		has(1, "id='s0'", "item-not-found")
		w.DeliverLAN(w.Nodes[id-1], site.XMPP, xmpp.Ears{Nodes: map[string]bool{"units": true, "seen": false}})
		iq("set", "s1", "<subscribe node='units' jid='"+c.user+"'/>")
		iq("set", "s2", "<subscribe node='seen' jid='"+c.user+"'/>")
		has(1, "id='s1'", "subscription='subscribed'")
		unit := func(node, id2 string, lat float64, life time.Duration) {
			w.DeliverLAN(w.Nodes[id-1], site.XMPP, xmpp.Unit{Node: node, ID: id2, Name: "FALCON <1>", Type: "a-f-S", Lat: lat, Lon: 10.1, Moves: true, Course: 90, Speed: 5,
				Time: w.Now, Until: w.Now.Add(life), Every: 5 * time.Second})
		}
		unit("units", "B-7", 54.3, time.Minute)
		unit("units", "B-7", 54.4, time.Minute)
		unit("units", "B-7", 54.5, time.Minute)
		unit("elsewhere", "B-7", 54.5, time.Minute)
		w.Run(time.Second)
		has(1, "<item id='B-7'", "<lat>54.3</lat><lon>10.1</lon><bearing>90</bearing><speed>5</speed><description>FALCON &lt;1&gt;</description><text>a-f-S</text><timestamp>")
		has(0, "<lat>54.4")
		w.Run(5 * time.Second)
		has(1, "<item id='B-7'", "<lat>54.5</lat>")
		iq("get", "g1", "<items node='units'/>")
		has(1, "id='g1'", "<lat>54.5</lat>")
		c.say(fmt.Sprintf("<iq type='get' id='d1' from='%s/x' to='%s'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>", c.user, to))
		w.Run(time.Minute)
		has(1, "id='d1'", "node='units'", "node='seen'")
		has(1, "<retract id='B-7'/>")
		iq("get", "g2", "<items node='units'/>")
		has(1, "id='g2'", "<items node='units'/>")
		for i := range 510 { // more than a node holds: units that expire first make room
			unit("units", fmt.Sprintf("M-%d", i), 1, time.Minute+time.Duration(i)*time.Second)
		}
		w.Run(time.Second)
		has(1, "<retract id='M-0'/>")
		has(0, "<retract id='M-10'/>")

		// Units that clients publish.
		place := "<publish node='%s'><item id='%s'><geoloc xmlns='http://jabber.org/protocol/geoloc'>%s</geoloc></item></publish>"
		iq("set", "p1", fmt.Sprintf(place, "units", "current", "<lat>54.25</lat><lon>-10.5</lon><description>Pinnace</description><text>a-f-S-X</text><bearing>90</bearing><speed>3</speed><timestamp>2026-11-27T08:00:00Z</timestamp>"))
		iq("set", "p2", fmt.Sprintf(place, "units", "gig", "<lat>1</lat><lon>2</lon>"))
		has(1, "id='p1'", "type='result'", "<item id='XMPP."+c.user+"'/>")
		for name, bad := range map[string]string{
			"north of the pole": fmt.Sprintf(place, "units", "a", "<lat>91</lat><lon>2</lon>"), "no longitude": fmt.Sprintf(place, "units", "a", "<lat>1</lat>"),
			"no number": fmt.Sprintf(place, "units", "a", "<lat>NaN</lat><lon>2</lon>"), "no time": fmt.Sprintf(place, "units", "a", "<lat>1</lat><lon>2</lon><timestamp>noon</timestamp>"),
			"a long name": fmt.Sprintf(place, "units", strings.Repeat("n", 100), "<lat>1</lat><lon>2</lon>"), "no place": "<publish node='units'><item><x xmlns='y'/></item></publish>", "nothing": "<publish node='units'/>",
		} {
			iq("set", "bad", bad)
			has(1, "id='bad'", "not-acceptable")
			if t.Failed() {
				t.Fatalf("of %s", name)
			}
			if id == 1 {
				before.got = nil
			} else {
				anna.got = nil
			}
		}
		iq("set", "p3", fmt.Sprintf(place, "seen", "a", "<lat>1</lat><lon>2</lon>"))
		has(1, "id='p3'", "forbidden")
		at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
		check.Equal(t, "units", len(w.units[id]), 2)
		check.Equal(t, "the first", w.units[id][0], xmpp.Unit{Node: "units", ID: "XMPP." + c.user, Name: "Pinnace", Type: "a-f-S-X", Lat: 54.25, Lon: -10.5, Moves: true, Course: 90, Speed: 3, Time: at})
		user, _, _ := strings.Cut(c.user, "@")
		check.Equal(t, "the second", w.units[id][1], xmpp.Unit{Node: "units", ID: "XMPP." + c.user + "/gig", Name: user, Lat: 1, Lon: 2})
		upNow, downNow := w.Octets(w.Nodes[1])
		check.Equal(t, "octets on the link", upNow+downNow-up-down, 0)

		// After a kill the subscription is there. A node without a rule is not.
		w.Kill(w.Nodes[id-1], time.Second)
		w.Run(2 * time.Second)
		if id == 1 {
			lastConn++
			before.conn["tak.hq.example"] = lastConn
			w.DeliverLAN(w.Nodes[0], site.XMPP, xmpp.Opened{Conn: lastConn, Domain: "tak.hq.example"})
		} else {
			anna.resume()
		}
		w.DeliverLAN(w.Nodes[id-1], site.XMPP, xmpp.Ears{Nodes: map[string]bool{"units": true}})
		unit("units", "B-8", 54.6, time.Minute)
		unit("seen", "B-8", 54.6, time.Minute)
		w.Run(time.Second)
		has(1, "<items node='units'>", "<item id='B-8'", "<lat>54.6</lat>")
		has(0, "<items node='seen'>", "<item id='B-8'")
		w.Run(time.Minute)
	}
}
