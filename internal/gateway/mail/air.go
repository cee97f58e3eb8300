package mail

import (
	"net/netip"
	"time"

	"aldis/internal/due"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// Air is a transmitter. Free is when the last datagram has left it.
//
// Where the bill does not grow with what is sent, a transmitter repeats the last short datagram with a message once: the
// same octets, which a receiver that has them drops as a replay. Who lost the first then needs not ask.
// docs/decisions/idle-air.md
type Air struct {
	Free  time.Time
	quiet time.Time // a shared channel counts as busy until then
	copy  copyOf
}

// copyOf is a datagram that is repeated when nobody else wants the air. The zero value is none.
type copyOf struct {
	at   time.Time
	to   netip.AddrPort
	data []byte
	peer *Peer // nil: it went to a group
	own  *Ledger
	long bool
}

const (
	copyMost = 320 // octets of a UDP payload: of longer ones the second copy is worth less than the air it takes
	copyLate = 4   // times the profile's wait: what found no idle air by then is asked for by others
	busy     = 4   // a shared channel is busy while more than one part in so many of its time is used
)

// Took notes that a datagram of so many octets above UDP goes out now, at a rate in bits per second.
func (a *Air) Took(now time.Time, p *profile.Profile, octets, rateBps int) {
	air := profile.Airtime(profile.IPUDPOctets+octets+p.FrameOverhead, rateBps)
	a.Free = due.Latest(a.Free, now).Add(air)
	a.use(now, p, air)
}

// Heard notes a datagram of somebody else of so many octets above UDP.
func (a *Air) Heard(now time.Time, p *profile.Profile, octets int) {
	a.use(now, p, profile.Airtime(profile.IPUDPOctets+octets+p.FrameOverhead, p.Up.RateBps))
}

func (a *Air) use(now time.Time, p *profile.Profile, air time.Duration) {
	if p.Shared {
		a.quiet = due.Latest(a.quiet, now).Add(busy * air)
	}
}

// Again keeps a datagram with a message, the last that went to this peer or group, in the long form or not. It replaces
// what was kept: whoever has this one notices that the other is missing.
func (a *Air) Again(p *profile.Profile, to netip.AddrPort, data []byte, peer *Peer, own *Ledger, long bool) {
	a.copy = copyOf{}
	if p.CopyAfter > 0 && p.Tariff != profile.TariffOctets && len(data) <= copyMost {
		a.copy = copyOf{a.Free.Add(p.CopyAfter), to, data, peer, own, long}
	}
}

// Needless drops what is kept: it has arrived, or this node goes silent.
func (a *Air) Needless() { a.copy = copyOf{} }

// Idle repeats what is kept if its time has come. The caller says that nothing else waits for this transmitter.
func (a *Air) Idle(now time.Time, p *profile.Profile, rateBps int, road Road) {
	c := a.copy
	if !due.Reached(now, a.Due()) {
		return
	}
	a.copy = copyOf{}
	if now.Sub(c.at) > copyLate*p.CopyAfter {
		return
	}
	a.Took(now, p, len(c.data), rateBps)
	c.own.Head(Sent, c.long)
	c.own.Add(Sent, Repair, len(c.data)-seal.Overhead(c.long))
	if c.peer != nil {
		c.peer.Counts.DatagramsSent++
		c.peer.LastSent = now
	}
	road.Send(c.to, c.data)
}

// Due is when Idle has something to do; zero: not by itself.
func (a *Air) Due() time.Time {
	if a.copy.at.IsZero() {
		return time.Time{}
	}
	return due.Latest(a.copy.at, due.Latest(a.Free, a.quiet))
}
