package pmul

import (
	"cmp"
	"math/rand/v2"
	"time"

	"aldis/internal/link/profile"
)

// Coding is how PDUs are written.
type Coding uint8

const (
	ACP142  Coding = iota // byte by byte, a PDU a datagram
	Compact               // inside sealed datagrams
)

// Config of a Sender or a Receiver. Make it with ConfigFor and change the fields that differ.
type Config struct {
	Self     NodeID
	Peers    []NodeID // the nodes that exist; nil: any
	Group    GroupAddr
	Coding   Coding
	Checksum Checksum
	Runs     bool // missing lists may have runs; libjpmul reads them wrongly
	AckAck   bool // an Address_PDU without destinations says that all have acknowledged

	// The link.
	RateBps        int           // bits per second of IP octets; 0: unlimited
	Overhead       int           // octets around the PDUs of a datagram: IP, UDP, seal
	DatagramOctets int           // most octets of PDUs in one datagram
	LargeOctets    int           // the same in the datagrams of a batch, at least DatagramOctets
	Delay, Jitter  time.Duration // one way
	Turnaround     time.Duration // to another talker on a shared channel, keying included
	Hold           time.Duration // a talker of a shared channel yields after so long if others wait
	Reorder        bool          // a datagram may overtake another by up to Jitter
	Hears          bool          // the caller reports to the Sender all that it hears on a shared channel: Busy

	// Procedures.
	AckGroup     bool          // compact coding: Ack_PDUs to several nodes share a datagram to the group
	AckHold      time.Duration // a complete Ack waits so long for others to the same sender
	ProbeEvery   time.Duration // between questions to a node that does not answer
	Parity       bool          // compact coding: erasure coding for repairs and repetitions
	Loss         float64       // share of frames that one receiver loses, until it is measured
	Burst        float64       // mean number of frames lost in a row; at least 1
	ParityShare  float64       // parity shards of a blind repetition over fragments; at least two
	RepeatCount  int           // EMCON_RTC: blind repetitions for silent nodes
	RepeatEvery  time.Duration // EMCON_RTI: least time between them
	ClockError   time.Duration // how far two clocks may disagree
	OrphanFor    time.Duration // Unidentified_Data_PDU_Validity
	RememberFor  time.Duration // most that a finished message is remembered; its Expiry_Time is the limit if sooner
	GroupPool    []GroupAddr   // dynamic groups to choose from
	FirstMessage MessageID     // of a new store; 0: from the clock, so that a lost store reuses no number
	Limits       Limits
	Rand         *rand.Rand
}

// Limits bound the state, whatever nodes send.
type Limits struct {
	Messages       int // messages that a Sender holds
	Octets         int // octets of these
	Destinations   int // of one message
	Fates          int // finished (message, recipient) pairs that can be looked up
	Incoming       int // incomplete messages at a Receiver, in all
	IncomingSource int // of one Source_ID
	IncomingOctets int // of their fragments and of Orphans, in all
	Orphans        int // Data_PDUs without Address_PDU, in all
	Remembered     int // finished messages at a Receiver, in all
	// Of the last three, one Source_ID may have a quarter; if the nodes are known (Peers), twice its part.
}

// IDs are reserved in blocks of so many: one write to the journal each.
const idBlock = 256

// ConfigFor derives all timers from a link profile. seal is the overhead of the compact coding: the octets that the seal adds.
func ConfigFor(p profile.Profile, self NodeID, coding Coding, seal int, rng *rand.Rand) Config {
	c := Config{
		Self: self, Coding: coding, Runs: coding == Compact, AckAck: coding == ACP142, Parity: coding == Compact, ParityShare: 0.2,
		RateBps: p.SlowerBps(), Overhead: profile.IPUDPOctets + p.FrameOverhead + seal, DatagramOctets: p.DatagramOctets - seal, LargeOctets: p.Largest() - seal,
		Delay: max(p.Up.Delay, p.Down.Delay), Jitter: max(p.Up.Jitter, p.Down.Jitter), Turnaround: p.Turnaround + p.KeyUp, Hold: p.MaxHold,
		Reorder:    p.Reorder,
		ProbeEvery: p.ProbeInterval, RepeatCount: 4, RepeatEvery: 10 * time.Minute, ClockError: 5 * time.Minute,
		OrphanFor: 30 * time.Minute, RememberFor: 7 * 24 * time.Hour,
		Limits: Limits{Messages: 8192, Octets: 64 << 20, Destinations: 1024, Fates: 1 << 16,
			Incoming: 256, IncomingSource: 64, IncomingOctets: 16 << 20, Orphans: 8192, Remembered: 1 << 16},
		Rand: rng,
	}
	c.Loss, c.Burst = expectedLoss(p)
	u, l := p.PMulUse, &c.Limits
	c.RepeatCount, c.RepeatEvery = cmp.Or(u.RepeatCount, c.RepeatCount), cmp.Or(u.RepeatEvery, c.RepeatEvery)
	l.Messages, l.Octets = cmp.Or(u.Messages, l.Messages), cmp.Or(u.Octets, l.Octets)
	l.Incoming, l.IncomingOctets = cmp.Or(u.Incoming, l.Incoming), cmp.Or(u.IncomingOctets, l.IncomingOctets)
	l.IncomingSource = max(1, l.Incoming/4)
	return c
}

// expectedLoss is the larger of the losses that a profile expects of its directions, and the mean length of bursts.
func expectedLoss(p profile.Profile) (loss, burst float64) {
	burst = 1
	for _, d := range []profile.Direction{p.Up, p.Down} {
		one, frames := d.LossPct/100, 1.0
		if d.GEp > 0 && d.GEr > 0 {
			bad := d.GEp / (d.GEp + d.GEr)
			one += (1 - one) * (bad*d.GEBadPct + (1-bad)*d.GEGoodPct) / 100
			frames = 1 / d.GEr
		}
		loss, burst = max(loss, one), max(burst, frames)
	}
	return loss, burst
}

// FragmentOctets is the size of a message's fragments: a Data_PDU with one fills a datagram.
func (c Config) FragmentOctets() int { return c.fragment(c.DatagramOctets) }

// fragment is the size of the fragment of a Data_PDU that fills a datagram of so many octets.
func (c *Config) fragment(octets int) int {
	if c.Coding == Compact {
		return octets - compactDataMost
	}
	return octets - dataHeader
}

// most is how many octets of PDUs a datagram with parts of a message may have.
func (c *Config) most(batch bool) int {
	if batch {
		return max(c.DatagramOctets, c.LargeOctets)
	}
	return c.DatagramOctets
}

// compactDataMost is the longest header of a Data_PDU in the compact coding from its own sender.
const compactDataMost = 1 + 5 + 3

// Encode writes a packet's datagram, before any seal.
func (c Config) Encode(b []byte, p Packet) ([]byte, error) {
	if c.Coding == Compact {
		return AppendCompact(b, c.Self, p.To, p.PDUs...)
	}
	for _, pdu := range p.PDUs {
		var err error
		if b, err = Append(b, pdu, c.Checksum); err != nil {
			return b, err
		}
	}
	return b, nil
}

// octets is the size of a packet, without overhead.
func (c *Config) octets(p Packet) int {
	b, err := c.Encode(nil, p)
	if err != nil {
		panic("pmul: an engine made a PDU that cannot be written: " + err.Error())
	}
	return len(b)
}

func (c *Config) knows(n NodeID) bool {
	if c.Peers == nil {
		return true
	}
	for _, p := range c.Peers {
		if p == n {
			return true
		}
	}
	return false
}

// The timers (p-mul 5), computed from the link.

func (c *Config) air(octets int) time.Duration { return profile.Airtime(octets+c.Overhead, c.RateBps) }

// fullAir is the airtime of a full datagram.
func (c *Config) fullAir() time.Duration { return c.air(c.DatagramOctets) }

// largeAir is the airtime of a full datagram of a batch.
func (c *Config) largeAir() time.Duration { return c.air(c.most(true)) }

// ackAir is the airtime of an Ack_PDU with a short list.
func (c *Config) ackAir() time.Duration { return c.air(ackHeader + ackEntryHeader + 8) }

// slack covers delays that no profile has: processing, timers that fire late.
func (c *Config) slack() time.Duration { return max(c.ackAir(), 50*time.Millisecond) }

// spread is the bound of the random delay before an Ack_PDU when so many nodes may answer.
func (c *Config) spread(nodes int) time.Duration { return time.Duration(nodes) * c.ackAir() }

// oneWay is the longest from the end of a transmission to its arrival.
func (c *Config) oneWay() time.Duration { return c.Delay + c.Jitter }

// settle is the longest gap between two Ack_PDUs of nodes that answer one after the other.
func (c *Config) settle() time.Duration { return c.Turnaround + c.ackAir() + c.Jitter + c.slack() }

// queue is how long so many Ack_PDUs take to get through a shared channel: this node's may be the last.
func (c *Config) queue(nodes int) time.Duration {
	return time.Duration(max(nodes-few, 0)) * (c.Turnaround + c.ackAir())
}

// completeWait holds back the Ack of a complete message until a re-transmission for other nodes would have been heard, so
// that nodes that lack something are heard first. For a message of one fragment this is not worthwhile: a node that missed
// it has heard nothing and asks for nothing, and is found by the answers of others.
func (c *Config) completeWait(nodes int, fragments uint16) time.Duration {
	if nodes < 2 || fragments < 4 {
		return c.hold(nodes)
	}
	return c.hold(nodes) + c.spread(nodes) + 2*c.oneWay() + c.turns(nodes) + c.Turnaround + c.fullAir() + c.slack()
}

// reorderWait is how long a gap may turn out to be a late arrival.
func (c *Config) reorderWait() time.Duration {
	if c.Reorder {
		return c.Jitter
	}
	return 0
}

// ackWait is ACK_RE-TRANSMISSION_TIME for the first answer: the time from the end of the last PDU until Ack_PDUs must have
// come. Each further Ack_PDU extends it by settle.
func (c *Config) ackWait(nodes int, fragments uint16) time.Duration {
	return 2*c.oneWay() + c.reorderWait() + c.completeWait(nodes, fragments) + 2*c.spread(nodes) + c.turns(nodes+1) + c.slack()
}

// ownTalk is how long an answer waits on a shared channel for this node to finish, if so many of its messages are to be
// sent.
func (c *Config) ownTalk(messages int) time.Duration {
	most := c.Hold
	if c.Coding == Compact { // receivers wait for a pause of this node, for so long
		most = max(most, mostHolds*c.AckHold)
	}
	return min(most, time.Duration(messages)*c.fullAir())
}

// mostHolds is how many times its wait an Ack may be put off while its sender talks.
const mostHolds = 4

// pause is how long nothing comes from a sender that has stopped talking.
func (c *Config) pause() time.Duration { return 2*c.fullAir() + c.Jitter + c.slack() }

// turns is how long so many nodes need to answer one after the other; for more than few, the answers extend the wait.
func (c *Config) turns(nodes int) time.Duration {
	return time.Duration(min(nodes, few+1)) * (c.Turnaround + c.ackAir())
}

// repairWait is the same for nodes whose missing fragments were repaired: they answer at once.
func (c *Config) repairWait(nodes int) time.Duration {
	return 2*c.oneWay() + c.reorderWait() + c.idle(1) + c.spread(nodes) + c.turns(nodes) + c.slack()
}

// questionAir is the cost of a question that brings only a missing list: two changes of talker and the way there and back.
func (c *Config) questionAir() time.Duration { return 2 * (c.Turnaround + c.oneWay()) }

// fragmentAir is the airtime of a message's first fragment.
func (c *Config) fragmentAir(m *outgoing) time.Duration {
	return c.air(len(m.fragments[0]) + dataHeader)
}

// repeatEvery is EMCON_RTI: not below four times the message's own airtime, and all repetitions before it expires.
func (c *Config) repeatEvery(now time.Time, m *outgoing) time.Duration {
	own := time.Duration(len(m.fragments)+1) * c.fullAir()
	return min(max(c.RepeatEvery, 4*own), m.expiry.Sub(now)/time.Duration(c.RepeatCount-m.repeats+1))
}

// unheard is how long after a transmission an Ack_PDU of one of so many nodes cannot know of it.
func (c *Config) unheard(nodes int) time.Duration { return 2*c.Delay + c.queue(nodes) }

// waitsForPause says that an answer amid a burst costs the sender a turn, so that both ends let answers wait until it
// pauses. Plain ACP 142 has no such rule.
func (c *Config) waitsForPause() bool { return c.Coding == Compact && c.Turnaround > 0 }

// ownReturn says that an Ack_PDU costs the sender no turn and that a gap is a loss: then a receiver reports gaps while the
// message is still going out.
func (c *Config) ownReturn() bool { return c.Turnaround == 0 && !c.Reorder && c.RateBps > 0 }

// idleMost is the most missing PDUs in a row for which a receiver waits.
const idleMost = 16

// idle is how long a receiver waits for PDUs that should follow before it reports what it lacks.
func (c *Config) idle(pdus int) time.Duration {
	return time.Duration(min(pdus, idleMost)+1)*c.fullAir() + c.Jitter + c.slack()
}
