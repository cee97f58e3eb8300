package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// While the link is down, a line in a room of a far site reaches another client of this LAN at most 2 ms later than a line in a room of
// the server itself, both through the same unmodified Prosody. The lines alternate, so that a busy machine delays both alike.
func TestXMPPLocalLatency(t *testing.T) {
	air := newRelay(t, 2, false, 1, func(int, []int, []byte) {})
	aboard := newProsody(t, "ship.example", []string{"anna", "alma"}, "hq.example", "conference.hq.example", "pubsub.hq.example")
	aboard.start(t)
	ship := newSite(t, 2, "")
	ship.link = air.links[1].String()
	ship.writeXMPP(t, aboard, 1, "hq.example", "1 "+air.address(1, 0))
	ship.start(t)
	anna, alma := aboard.login(t, "anna"), aboard.login(t, "alma")
	rooms := []string{"plain@conference.ship.example", "ops@conference.hq.example"}
	for _, room := range rooms {
		for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma} {
			c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", room, name)
			check.Until(t, 2*patience, name+" is in "+room, func() bool { return c.count("<presence", room+"/"+name, "110") > 0 })
		}
	}
	const lines = 200
	var took [2][]time.Duration
	for i := range lines {
		for at, room := range rooms {
			began := time.Now()
			anna.say("<message to='%s' type='groupchat' id='%d-%d'><body>Line %03d of %d.</body></message>", room, at, i, i, at)
			text := fmt.Sprintf("Line %03d of %d.", i, at)
			check.Until(t, patience, text, func() bool { return alma.count(text) == 1 })
			took[at] = append(took[at], alma.newest().Sub(began))
		}
	}
	for _, list := range took {
		slices.Sort(list)
	}
	plain, far := took[0], took[1]
	t.Logf("another client has a line, median and 95 of 100: in a room of Prosody %v and %v, in one of a far site %v and %v",
		plain[lines/2], plain[lines*95/100], far[lines/2], far[lines*95/100])
	check.True(t, "within 2 ms at the median", far[lines/2] <= plain[lines/2]+2*time.Millisecond, far[lines/2]-plain[lines/2])
}
