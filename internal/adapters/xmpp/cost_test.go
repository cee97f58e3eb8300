package xmpp_test

import (
	"fmt"
	"testing"
	"time"
)

// sentences are in no corpus; each has 48 octets.
var sentences = []string{
	"Our starboard winch jammed twice before midnight",
	"Send the blue crates over when the swell is less",
	"The cook wants forty eggs and the purser says no",
	"Visibility fell below a mile near the old shoals",
	"Helicopter deck is clear, we wait for your pilot",
	"Pump three leaks again but the bilge stays quite",
	"Please repeat the berth number, we read nineteen",
	"Two fishing boats without lights crossed our bow",
	"Tug asks for the towing line on the port quarter",
	"Doctor on board again, the patient walks already",
}

// others are ten more of them, for a room.
var others = []string{
	"Galley reports the freezer door will not latch ok",
	"Bosun needs nine shackles and a new snatch block",
	"Wind backed to the northeast, gusts near thirty.",
	"Our second radar shows nothing past eleven miles",
	"The agent brings papers and two barrels of paint",
	"Harbour says berth four is taken until Wednesday",
	"Divers found a net around the starboard thruster",
	"Chief expects the spare valve by the next launch",
	"A yacht drifts across the channel, horn unheeded",
	"Nobody may smoke on deck while we take on diesel",
}

// header is the octets of a datagram around its content on each link: IP, UDP, seal and an acknowledgement.
var header = map[string]int64{"iridium-directip": 50, "hf-2400": 57}

// TestCost measures the table of docs/xmpp.md: octets on the link in both directions, of the content alone where one datagram has
// it, and with all headers. They stay within bounds, except if the channel of hf-2400 has lost a datagram.
func TestCost(t *testing.T) {
	for _, name := range []string{"iridium-directip", "hf-2400"} {
		for seed := uint64(1); seed <= 3; seed++ {
			w := newWorld(t, 2, name, seed)
			hq, ship := w.servers[1], w.servers[2]
			const settle = 3 * time.Minute
			w.Run(2 * time.Minute)
			// measure logs the cost of do. most bounds the octets, for each of count things: all octets if whole, otherwise the content.
			measure := func(what string, count, most int64, whole bool, do func()) {
				t.Helper()
				up, down := w.Octets(w.Nodes[1])
				do()
				w.Run(settle)
				upNow, downNow := w.Octets(w.Nodes[1])
				all := upNow - up + downNow - down
				content := max(upNow-up, downNow-down) - header[name]
				t.Logf("%s, seed %d: %s: content %.1f, with all headers %.1f", name, seed, what, float64(max(0, content))/float64(count), float64(all)/float64(count))
				limit := most * count
				if name == "hf-2400" && !whole {
					limit += 5 // P_Mul's own before a message
				}
				lost := name == "hf-2400" && count == 1 && content >= header[name] // it went twice
				if judged := map[bool]int64{true: all, false: content}[whole]; judged > limit && !lost {
					t.Errorf("%s, seed %d: %s: %d octets, at most %d", name, seed, what, judged, limit)
				}
			}
			measure("nothing", 1, 0, true, func() {})
			for i := range 10 {
				ship.say("hq.example", "<presence type='subscribed' from='anna@ship2.example' to='user%d@hq.example'/>", i)
			}
			w.Run(settle)
			present := func(more string) func() {
				return func() {
					for i := range 10 {
						ship.present("hq.example", anna, fmt.Sprintf("user%d@hq.example", i), more)
					}
				}
			}
			measure("login with ten contacts", 1, 12, false, present(""))
			measure("status change", 1, 10, false, present("<show>away</show>"))
			measure("status change with a text of five octets", 1, 15, false, present("<show>away</show><status>Lunch</status>"))
			measure("the same again", 1, 0, true, present("<show>away</show><status>Lunch</status>"))
			const ask = "<request xmlns='urn:xmpp:receipts'/>"
			measure("first line of a pair", 1, 40, false, func() { ship.line("hq.example", anna, "bert@hq.example", "first", sentences[0], ask) })
			measure("first line of another pair", 1, 45, false, func() {
				ship.line("hq.example", "greta@ship2.example/g", "fritz@hq.example", "first", sentences[1], ask)
			})
			ids := len(hq.got)
			measure("a line, in ten at once", 10, 45, true, func() {
				for i, s := range sentences {
					ship.line("hq.example", anna, "bert@hq.example", fmt.Sprint("line", i), s, ask)
				}
			})
			measure("a receipt, in ten at once", 10, 2, false, func() {
				for _, one := range hq.got[ids:] {
					if e := parse(t, one); e.Name == "message" {
						hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' id='r'><received xmlns='urn:xmpp:receipts' id='%s'/></message>", bert, e.Get("id"))
					}
				}
			})
			m := hq.room()
			for i := range 5 {
				m.enter(fmt.Sprintf("user%d@hq.example/h", i), fmt.Sprint("user", i))
			}
			a := far{ship, anna, "anna"}
			measure("join of a room of five", 1, 12, false, a.enter)
			measure("a line in a room, in ten at once", 10, 45, true, func() {
				for i, s := range others {
					a.say(fmt.Sprint("g", i), s)
				}
			})
			measure("leave", 1, 6, false, func() {
				ship.say("conference.hq.example", "<presence type='unavailable' from='%s' to='%s/anna'/>", anna, room)
			})
		}
	}
}
