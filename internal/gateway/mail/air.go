package mail

import (
	"net/netip"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// Air is a transmitter. Free is when the last datagram has left it.
//
// Where the bill does not grow with octets, a transmitter repeats the last short datagram with a message, usually once: the
// same octets, which a receiver that has them drops as a replay. A receiver that lost the first then need not ask. A
// silent receiver cannot ask: for it each of the last maxCopies is repeated, CopiesForSilent times. docs/decisions/idle-air.md
type Air struct {
	Free   time.Time
	Gauge  Gauge
	quiet  time.Time // a shared channel counts as busy until then
	copies []copyOf  // in the order in which they are due
}

// copyOf is a datagram that is repeated when nobody else wants the air.
type copyOf struct {
	at   time.Time
	to   netip.AddrPort
	data []byte
	peer *Peer // nil: it went to a group
	own  *Ledger
	of   Shares // of its octets
	long bool
	left int  // how often it is repeated yet
	kept bool // for a silent receiver: no later datagram takes its place
}

// CopiesForSilent is how often a datagram is repeated for a receiver that has announced its silence. At 5 % loss one
// message in 400 would be lost with one copy, and hold up those behind it until the silence ends; with three, one in 160,000.
const CopiesForSilent = 3

const (
	copyMost  = 320 // octets of a UDP payload: of longer ones the second copy is worth less than the air it takes
	copyLate  = 4   // times the profile's wait: a copy that finds no idle air by then does not go, for a lost datagram is asked for otherwise
	busy      = 4   // a shared channel is busy while more than one part in so many of its time is used
	maxCopies = 8
)

// Sent notes that a datagram of so many octets above UDP goes out now, at a rate in bits per second.
func (a *Air) Sent(now time.Time, p *profile.Profile, octets, rateBps int) {
	air := profile.Airtime(profile.IPUDPOctets+octets+p.FrameOverhead, rateBps)
	a.Gauge.octets += int64(profile.IPUDPOctets + octets + p.FrameOverhead)
	a.Free = due.Latest(a.Free, now).Add(air)
	a.use(now, p, air)
}

// Octets is how many octets have gone.
func (a *Air) Octets() int64 { return a.Gauge.octets }

// Retimed says that the octets on the air go at another rate than was believed.
func (a *Air) Retimed(now time.Time, before, bps int) {
	if left := a.Free.Sub(now); left > 0 && before > 0 && bps > 0 {
		a.Free = now.Add(time.Duration(float64(left) * float64(before) / float64(bps)))
	}
}

// Heard notes a datagram of another node, of so many octets above UDP.
func (a *Air) Heard(now time.Time, p *profile.Profile, octets int) {
	a.use(now, p, profile.Airtime(profile.IPUDPOctets+octets+p.FrameOverhead, a.Gauge.Pace(p.Up.RateBps)))
}

func (a *Air) use(now time.Time, p *profile.Profile, air time.Duration) {
	if p.Shared {
		a.quiet = due.Latest(a.quiet, now).Add(busy * air)
	}
}

// KeepCopy keeps a datagram with a message, that went to this peer or group (nil), in the long form or not, to repeat it so many times. It
// replaces the one that was kept before: a receiver that has this one notices that the other is missing. For a silent receiver
// both are kept.
func (a *Air) KeepCopy(p *profile.Profile, to netip.AddrPort, data []byte, peer *Peer, own *Ledger, of Shares, long bool, times int, silent bool) {
	a.copies = slices.DeleteFunc(a.copies, func(c copyOf) bool { return !c.kept })
	if times == 0 || p.CopyAfter == 0 || p.Tariff == profile.TariffOctets || len(data) > copyMost {
		return
	}
	c := copyOf{a.Free.Add(p.CopyAfter), to, data, peer, own, of, long, times, silent}
	if silent {
		c.left = CopiesForSilent
	}
	if len(a.copies) == maxCopies {
		a.copies = a.copies[1:]
	}
	a.copies = append(a.copies, c)
}

// Arrived drops the copies for a peer: it has all datagrams.
func (a *Air) Arrived(peer *Peer) {
	a.copies = slices.DeleteFunc(a.copies, func(c copyOf) bool { return c.peer == peer })
}

// Needless drops all copies: every receiver has the datagrams, or this node goes silent.
func (a *Air) Needless() { a.copies = nil }

// Quiet is when a shared channel counts as idle, as far as is known.
func (a *Air) Quiet() time.Time { return due.Latest(a.Free, a.quiet) }

// Idle repeats one of the kept datagrams if its time has come. It is for callers that have nothing else for this transmitter.
func (a *Air) Idle(now time.Time, p *profile.Profile, rateBps int, services Services) {
	if !due.Reached(now, a.Due()) {
		return
	}
	c := a.copies[0]
	a.copies = a.copies[1:]
	if now.Sub(c.at) > copyLate*p.CopyAfter {
		return
	}
	a.Sent(now, p, len(c.data), rateBps)
	c.left--
	if c.left > 0 {
		c.at = a.Free.Add(p.CopyAfter)
		a.copies = append(a.copies, c)
	}
	c.own.Head(Sent, c.long)
	c.own.Charge(Sent, Repair, c.of.Scaled(len(c.data)-seal.Overhead(c.long)))
	if c.peer != nil {
		c.peer.Counts.DatagramsSent++
		c.peer.LastSent = now
	}
	services.Send(c.to, c.data)
}

// Due is when Idle has something to do; zero: not by itself.
func (a *Air) Due() time.Time {
	if len(a.copies) == 0 {
		return time.Time{}
	}
	return due.Latest(a.copies[0].at, due.Latest(a.Free, a.quiet))
}
