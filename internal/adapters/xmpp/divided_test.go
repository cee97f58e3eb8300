package xmpp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
)

// nicks are the nicks in the room that a client at another site than its home is told.
func (c far) nicks() (list []string) {
	before := len(c.s.got)
	c.s.say("conference.hq.example", "<iq type='get' id='who' from='%s' to='%s'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>", c.jid, room)
	e := parse(c.s.w.t, c.s.got[before])
	for _, k := range e.Kids[0].Kids {
		list = append(list, k.Get("name"))
	}
	slices.Sort(list)
	return list
}

// Three sites share a room; one of them is cut off for an hour, in which all send lines, and users of each take the same ten nicks. At
// the end everybody has each line once, and each occupant has the same nick everywhere.
func TestRoomDivided(t *testing.T) {
	for _, name := range []string{"iridium-directip", "hf-2400"} {
		for seed := uint64(1); seed <= 3; seed++ {
			w := newWorld(t, 3, name, seed)
			m := w.servers[1].room()
			w.Run(time.Minute)
			anna := far{w.servers[2], "anna@ship2.example/g", "anna"}
			dora := far{w.servers[3], "dora@ship3.example/g", "dora"}
			m.enter(bert, "bert")
			anna.enter()
			dora.enter()
			w.Run(5 * time.Minute)
			w.Outage(w.Nodes[1], time.Hour)
			for i := range 10 {
				nick := fmt.Sprint("Watch", i)
				for _, s := range []*server{w.servers[2], w.servers[3]} {
					far{s, fmt.Sprintf("user%d@%s/x", i, domainOf(s.node.ID)), nick}.enter()
				}
				m.enter(fmt.Sprintf("user%d@hq.example/x", i), nick)
				anna.say(fmt.Sprint("a", i), fmt.Sprintf("anna %d.", i))
				dora.say(fmt.Sprint("d", i), fmt.Sprintf("dora %d.", i))
				m.say(bert, fmt.Sprint("b", i), fmt.Sprintf("<body>bert %d.</body>", i))
				w.Run(2 * time.Minute)
			}
			w.Run(3 * time.Hour)
			for i := range 10 {
				for _, who := range []string{"anna", "dora", "bert"} {
					line := fmt.Sprintf("<body>%s %d.</body>", who, i)
					check.Equal(t, fmt.Sprintf("%s, seed %d: anna has %s", name, seed, line), anna.heard(line), 1)
					check.Equal(t, fmt.Sprintf("%s, seed %d: dora has %s", name, seed, line), dora.heard(line), 1)
					check.Equal(t, fmt.Sprintf("%s, seed %d: bert has %s", name, seed, line), m.heard(bert, line), 1)
				}
			}
			list := slices.Sorted(slices.Values(m.list))
			check.Equal(t, "occupants", len(list), 33)
			check.Equal(t, "nicks aboard 2", strings.Join(anna.nicks(), " "), strings.Join(list, " "))
			check.Equal(t, "nicks aboard 3", strings.Join(dora.nicks(), " "), strings.Join(list, " "))
		}
	}
}

// A line that expires for one of several sites has one outcome for its sender, although another site has it.
func TestRoomLineExpires(t *testing.T) {
	w := newWorld(t, 3, "iridium-directip", 7, func(c *xmpp.Config) { c.Life = time.Hour })
	m := w.servers[1].room()
	w.Run(time.Minute)
	m.enter(bert, "bert")
	anna := far{w.servers[2], "anna@ship2.example/g", "anna"}
	dora := far{w.servers[3], "dora@ship3.example/g", "dora"}
	anna.enter()
	dora.enter()
	w.Run(5 * time.Minute)
	w.Outage(w.Nodes[2], 4*time.Hour)
	for range 80 { // the first lines are on the air, and are carried through
		anna.say("air", "it was before")
		w.Run(time.Second)
	}
	anna.say("late", "too late for one")
	w.Run(30 * time.Minute)
	w.kill(2)
	w.Run(5 * time.Hour)
	check.Equal(t, "bert has it", m.heard(bert, "too late for one"), 1)
	check.Equal(t, "dora has it", dora.heard("too late for one"), 0)
	anna.s.has(1, "to='"+anna.jid+"'", "id='late'", "type='error'", "<remote-server-timeout ")
}
