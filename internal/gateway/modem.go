package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/profile"
)

// Reports of a bearer's modem: docs/modem.md. Package internal/edge/modem has the socket, and bounds what they may say.

// mostQueued is how long a bearer waits at most for the octets in a modem's queue, counted from the report of the modem: a modem that
// reports a queue for ever stops nothing for longer than it reports.
const mostQueued = time.Minute

// hearModem takes a report of the bearer's modem: it counts from the next datagram on. A bearer that is down sends nothing, and its
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

// settle notes whether datagrams reach a leg now.
func (b *bearer) settle(l *leg) {
	l.Off = b.modem.Down || b.lines.needed && !b.lines.at[l.ID].IsValid()
}
