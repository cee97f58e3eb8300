package xmpp_test

import (
	"fmt"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/lab/check"
)

const week = 7 * 24 * time.Hour

// A message to somebody who left a week ago has one outcome at its sender's client, the true one, although gateways, servers
// and link were restarted after it was sent: refused there, acknowledged another week later, or never on the air.
func TestMessageToWhoLeftAWeekAgo(t *testing.T) {
	const reason = "<service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
	for seed := uint64(1); seed <= 3; seed++ {
		for _, want := range []string{reason, "<received xmlns='urn:xmpp:receipts' id='m'/>", "<remote-server-timeout "} {
			in := check.In(t, fmt.Sprint("seed ", seed, ": ", want))
			w := newWorld(t, 2, "iridium-dialup", seed, func(c *xmpp.Config) { c.Life = time.Hour })
			hq, ship := w.servers[1], w.servers[2]
			w.Run(time.Minute)
			hq.say("ship2.example", "<presence from='%s' to='anna@ship2.example'/>", bert)
			ship.line("hq.example", anna, "bert@hq.example", "before", "Are you there", "")
			w.Run(time.Minute)
			hq.say("ship2.example", "<presence from='%s' to='anna@ship2.example' type='unavailable'/>", bert)
			w.Run(week)

			out := 10 * time.Minute
			if want == "<remote-server-timeout " {
				out = 3 * time.Hour
			}
			w.Outage(w.Nodes[1], out)
			for i := range 80 * int(out/(3*time.Hour)) { // messages on the air are carried through: these fill the window before the message
				ship.line("hq.example", anna, "carl@hq.example", fmt.Sprint("fill", i), "In the way", "")
			}
			ship.line("hq.example", anna, "bert@hq.example", "m", "Call me when you are back", "<request xmlns='urn:xmpp:receipts'/>")
			w.Run(time.Minute)
			w.kill(2)
			ship.stop()
			w.kill(1)
			hq.stop()
			ship.connect()
			w.Run(2 * time.Minute)
			hq.connect()
			w.Run(out)
			if want == "<remote-server-timeout " {
				hq.has(0, "Call me")
			} else if hq.has(1, "Call me"); hq.count("Call me") == 1 {
				got := parse(t, hq.got[indexOf(hq.got, "Call me")])
				if want == reason {
					hq.say("ship2.example", "<message from='bert@hq.example' to='anna@ship2.example' type='error' id='%s'><error type='cancel'>%s</error></message>", got.Get("id"), reason)
				} else {
					w.Run(week) // the far server keeps it
					w.kill(2)
					w.kill(1)
					hq.say("ship2.example", "<message from='%s' to='anna@ship2.example' id='r'><received xmlns='urn:xmpp:receipts' id='%s'/></message>", bert, got.Get("id"))
				}
			}
			w.Run(3 * time.Hour)
			w.kill(2)
			w.Run(week)
			check.Equal(in, "ends", ship.count("to='"+anna+"'", "id='m'"), 1)
			check.Equal(in, "such ends", ship.count("to='"+anna+"'", "id='m'", want), 1)
		}
	}
}
