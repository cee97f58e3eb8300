package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/profile"
)

// What a bearer's modem says of itself: docs/modem.md. Package internal/edge/modem has the socket, and bounds what it may say.

// mostQueued is how long a bearer waits at the most for what a modem says that it has in its queue, counted from when it has said so: a
// modem that says so for ever stops nothing for longer than it speaks.
const mostQueued = time.Minute

// hearModem takes the word of the bearer's modem: it counts from the next datagram on. A bearer that is down sends nothing, and its
// messages go on over another one in this turn.
func (b *bearer) hearModem(now time.Time, ev api.Modem) {
	wasDown, before := b.modem.Down, map[*mail.Air]int{}
	var legs []*leg
	for _, p := range b.road.g.peers {
		if l := p.legs[b.index]; l != nil {
			air, rate := l.Link.Air()
			legs, before[air] = append(legs, l), rate
		}
	}
	b.modem, b.ModemBps = ev, ev.RateBps
	if wasDown != ev.Down { // P_Mul sends in its own time: it stops as in a silence
		for _, c := range b.Carriers {
			c.Silence(now, b.mute())
		}
	}
	for _, l := range legs {
		air, rate := l.Link.Air()
		if was, first := before[air]; first {
			air.Retimed(now, was, rate)
			delete(before, air)
		}
		air.Free = due.Latest(air.Free, now.Add(min(mostQueued, profile.Airtime(ev.QueueOctets, rate))))
		b.settle(l)
		if wasDown && !l.Off {
			l.Link.Ask()
		}
	}
}

// mute says that nothing may be transmitted on the bearer.
func (b *bearer) mute() bool { return b.silence.quiet() || b.modem.Down }

// settle says whether anything gets to a leg now.
func (b *bearer) settle(l *leg) {
	l.Off = b.modem.Down || b.lines.needed && !b.lines.at[l.ID].IsValid()
}
