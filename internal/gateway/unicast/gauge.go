package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// What the link does is learned here from the messages that it carries anyway: mail.Gauge and mail.Evidence.

// aired notes when the messages of a datagram went, and how much the transmitter had sent with it. When a message goes again, nobody
// can tell from its acknowledgement which of its datagrams arrived. But all octets before the first of them are out by then.
func (l *datagramBuilder) aired(now time.Time, to *peerLink, air *mail.Air) {
	went, again := false, false // counted by datagrams, since a datagram is lost as a whole
	for _, what := range l.carries {
		e := what.of
		air.Gauge.Carried(what.octets, what.again)
		if !what.again && (e.At.Queue == frame.Bulk || e.Aired.So == 0) { // each segment of NORM's is another
			e.Aired.At, e.Aired.So = now, air.Octets()
		}
		if e.At.Queue == frame.Direct && !e.Twice() && !to.sender.IsListening() { // these go twice in any case
			went, again = true, again || what.again
		}
	}
	if went {
		to.Shows.Went(again)
	}
}

// shows notes that a message is known to be there.
func (l *peerLink) shows(now time.Time, e *mail.Entry) {
	if e.Aired.So == 0 {
		return
	}
	air, _ := l.Air()
	if *l.of.ModemBps > 0 { // nothing is to be found out
		air.Gauge.Idle()
	}
	air.Gauge.There(now, e.Aired.At, e.Aired.So, l.of.Profile, l.of.Profile.Sending(l.of.Shore).RateBps)
	if e.Aired.Asked && e.Aired.Alone && e.Aired.At.After(l.late) {
		l.Shows.There(now.Sub(e.Aired.At))
	}
}

// noteIdle tells the gauge of each transmitter for which nothing waits.
func noteIdle(c *Carrier) {
	all := true
	for _, l := range c.order {
		idle := l.Box.Waiting(frame.Direct, frame.Bulk) == 0 || !l.Addr.IsValid() || l.sender.IsListening()
		all = all && idle
		if c.Shore && idle {
			l.air.Gauge.Idle()
		}
	}
	if !c.Shore && all {
		c.Air.Gauge.Idle()
	}
}
