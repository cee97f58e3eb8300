// Package profile describes links: what a link does to packets, and how a gateway uses it. The profiles that come with
// the gateway are in profiles/ at the top of the repository and are embedded in the binary. Operators may write more.
//
// # Units
//
// Rates are bits per second of IP octets, sizes octets, times time.Duration. In the files every key ends in its unit.
// Loss is percent. The package is pure: it reads no clock and no file; callers give Load a reader.
//
// Read profile.go first, then decode.go and validate.go.
package profile

import "time"

// Direction is one way of a link: up from the terminal, down to it.
type Direction struct {
	RateBps     int           // bits per second of IP octets; 0 is unlimited
	Delay       time.Duration // one way, least
	Jitter      time.Duration // uniform on top of Delay
	QueueOctets int           // drop-tail; 0 is unlimited
	LossPct     float64       // independent, per frame
	LossRef     int           // octets; >0: LossPct is per started block of so many
	GEp, GEr    float64       // Gilbert-Elliott: good to bad, bad to good, per frame
	GEBadPct    float64       // loss while bad
	GEGoodPct   float64       // loss while good
	QueueFrames int           // most in the queue, besides QueueOctets; 0: any number
	QueueAge    time.Duration // a frame that has waited longer is dropped when its turn comes; 0: never
	Compresses  bool          // the modems compress data; RateBps is the rate after that
	Fades       Fades
}

// Fades are losses that last a time: every frame on the air then is hit, one long one or several short ones. Good and bad
// times have exponential lengths. Every 0: there are none.
type Fades struct {
	Every   time.Duration // mean from the end of one to the beginning of the next
	Lasts   time.Duration // mean
	LossPct float64       // of the frames that a fade touches
}

// Calls describes a satellite call that is handed over and can drop, in both directions of a terminal's leg.
type Calls struct {
	HandoverEvery time.Duration // from one to the next; 0: none
	Handover      time.Duration // nothing is sent for so long; nothing is lost
	DropEvery     time.Duration // mean from one dropped call to the next; 0: none
	Redial        time.Duration // until the terminal is on the air again
}

// Profile is one link: what it does to packets, and how a gateway uses it.
type Profile struct {
	Name    string
	Summary string
	// The link.
	Shared        bool // one half-duplex channel that all hear; otherwise a star, each terminal with its own leg
	Up, Down      Direction
	Turnaround    time.Duration // shared: from the end of the last frame to another talker
	MaxHold       time.Duration // shared: the talker yields after so long when others wait
	KeyUp         time.Duration // shared: cost of every new turn on top
	MTU           int           // IP octets
	FrameOverhead int           // octets per frame below IP
	Reorder       bool          // jitter may let a frame overtake
	Calls         Calls         // star: hand-overs and dropped calls
	Bill
	// The gateway's use of it.
	Transport string // NORM or PMul: the protocol that carries messages; "" is NORM
	Sizes
	Window        int           // messages under way per peer, unacknowledged
	AckDelay      time.Duration // an acknowledgement waits so long for something to ride on
	ProbeInterval time.Duration // rare probe while a message is overdue and nothing is heard
	GapAge        time.Duration // a gap under an acknowledged number is sent again when so old
	GRTT          time.Duration // fixed for NORM, the same at all members
	Bundle        time.Duration // messages that become ready within it share a datagram
	CopyAfter     time.Duration // the last short datagram goes again so long after it, on idle air; 0: never
	StateShare    float64       // percent of the rate that news of the sites may take while messages flow; default 25
	PMulUse       PMulUse
}

// Sizes are how large datagrams and segments are, in octets.
type Sizes struct {
	DatagramOctets int // largest UDP payload, while messages of several pipes are to be sent
	LargeOctets    int // the same while one pipe alone has much to send, and for a batch on a shared channel; 0: DatagramOctets
	SegmentOctets  int // NORM segment
}

// PMulUse is the optional section [p_mul]: how P_Mul repeats for silent nodes, and what it may hold. Zero is the default.
type PMulUse struct {
	RepeatCount    int           // blind repetitions for nodes that may be unable to answer, 1..100; 4
	RepeatEvery    time.Duration // least time between them; ten minutes
	Messages       int           // messages that a sender holds; 8192
	Octets         int           // of them; 64 MiB
	Incoming       int           // incomplete messages that a receiver holds, a quarter of them of one sender; 256
	IncomingOctets int           // of them, and of fragments without Address_PDU; 16 MiB
}

// The transports of a profile.
const (
	NORM = "norm"  // datagrams to each peer: long messages in segments, the longest (beyond 1 MiB) over NORM
	PMul = "p_mul" // P_Mul (ACP 142): one transmission for all, receivers may be silent for hours
)

// Bill is how a link is paid for.
type Bill struct {
	Tariff     string // what the bill grows with: TariffOctets (also ""), TariffMinutes or TariffNone
	UnitOctets int    // IP octets of a unit: each datagram is billed for the units that it has begun; 0: every octet counts
}

// Units is how many units of the bill a packet of so many IP octets costs; 0 where every octet counts.
func (b Bill) Units(ipOctets int) int {
	if b.UnitOctets == 0 {
		return 0
	}
	return (ipOctets + b.UnitOctets - 1) / b.UnitOctets
}

// Filled is the largest UDP payload that fills the last unit of its bill: DatagramOctets where every octet counts.
func (p Profile) Filled() int {
	if p.UnitOctets == 0 {
		return p.DatagramOctets
	}
	return (p.DatagramOctets+IPUDPOctets)/p.UnitOctets*p.UnitOctets - IPUDPOctets
}

// Largest is the largest UDP payload that ever goes. Where the bill has units, it is the payload that fills one.
func (p Profile) Largest() int {
	if p.UnitOctets > 0 {
		return p.DatagramOctets
	}
	return max(p.DatagramOctets, p.LargeOctets)
}

// The tariffs of a link.
const (
	TariffOctets  = "octets"
	TariffMinutes = "minutes" // of a call: sending during it is free
	TariffNone    = "none"    // an own radio, a leased channel
)

// Free says whether the bill does not grow with octets.
func (p *Profile) Free() bool { return p.Tariff == TariffMinutes || p.Tariff == TariffNone }

// plentyBps: the model takes about 0.7 ms to make a short message 30 octets shorter, which are as long on the air at 340 kbit/s.
const plentyBps = 500_000

// Scarce says whether octets on the air cost more than the work of the model that saves them.
func (p *Profile) Scarce() bool {
	rate := p.SlowerBps()
	return rate > 0 && (rate < plentyBps || !p.Free())
}

// Gathers says whether messages that go together are cheaper than single ones: octets are billed, or each message has a
// header of P_Mul.
func (p *Profile) Gathers() bool { return p.Transport == PMul || !p.Free() && p.Scarce() }

// LeastCopyAfter is the soonest that a datagram goes again on idle air.
const LeastCopyAfter = 100 * time.Millisecond

// IPUDPOctets is how many octets IPv4 and UDP put before a payload.
const IPUDPOctets = 28

// MeanLossPct is the share of short frames that a direction loses, in percent.
func (d Direction) MeanLossPct() float64 {
	pct := d.LossPct
	if sum := d.GEp + d.GEr; sum > 0 {
		pct += (d.GEp*d.GEBadPct + d.GEr*d.GEGoodPct) / sum
	}
	if sum := d.Fades.Every + d.Fades.Lasts; d.Fades.Every > 0 {
		pct += float64(d.Fades.Lasts) / float64(sum) * d.Fades.LossPct
	}
	return pct
}

// Airtime is how long octets take at a rate in bits per second; 0 is an unlimited rate and takes no time.
func Airtime(octets, rateBps int) time.Duration {
	if rateBps <= 0 {
		return 0
	}
	return time.Duration(int64(octets) * 8 * int64(time.Second) / int64(rateBps))
}

// Airtime is how long a frame of so many IP octets occupies this direction of the profile's link.
func (p Profile) Airtime(d Direction, ipOctets int) time.Duration {
	return Airtime(ipOctets+p.FrameOverhead, d.RateBps)
}

// Sending is the direction in which an end sends: down from ashore, else up.
func (p Profile) Sending(shore bool) Direction {
	if shore {
		return p.Down
	}
	return p.Up
}

// OneWayMax is the longest a frame of so many IP octets takes in the slower direction once its turn has come: its own
// airtime, the delay with all jitter, and on a shared channel the change of talker. Queues are not counted.
func (p Profile) OneWayMax(ipOctets int) time.Duration {
	return max(p.oneWay(p.Up, ipOctets), p.oneWay(p.Down, ipOctets))
}

// RoundTripMax is the longest a frame of so many IP octets and a small answer to it (100 IP octets) take without queues.
func (p Profile) RoundTripMax(ipOctets int) time.Duration {
	const answer = 100
	return max(p.oneWay(p.Up, ipOctets)+p.oneWay(p.Down, answer), p.oneWay(p.Down, ipOctets)+p.oneWay(p.Up, answer))
}

func (p Profile) oneWay(d Direction, ipOctets int) time.Duration {
	t := p.Airtime(d, ipOctets) + d.Delay + d.Jitter
	if p.Shared {
		t += p.Turnaround + p.KeyUp
	}
	return t
}

// SlowerBps is the rate of the slower direction; 0 when both are unlimited.
func (p Profile) SlowerBps() int {
	switch up, down := p.Up.RateBps, p.Down.RateBps; {
	case up == 0:
		return down
	case down == 0:
		return up
	default:
		return min(up, down)
	}
}
