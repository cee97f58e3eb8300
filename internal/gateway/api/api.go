package api

import (
	"net/netip"
	"time"

	"aldis/internal/site"
)

// Record is one change to the journal; a nil Value deletes. All Records of one Output are committed in one
// transaction, before anything else in that Output is acted on.
type Record struct {
	Bucket string
	Key    []byte
	Value  []byte
}

// Event is what the edges tell the gateway: one of the types below. A nil Event means that only time passed.
type Event interface{ GatewayEvent() }

// LAN carries an event of a LAN room to its adapter.
type LAN struct {
	Adapter site.Adapter
	Event   site.Event
}

// Datagram is one UDP payload of the link and its far address. When it comes in, nothing in it is trusted yet.
type Datagram struct {
	Bearer int // by which bearer it came or goes: the place of that one in the list of bearers
	Addr   netip.AddrPort
	Data   []byte
	// Of a datagram that came in: how long it lay in this machine, and whether others lie there that came behind it. Timers are
	// looked at after the last of these: a busy machine wakes late, and the answer that it waits for may be among them.
	Waited time.Duration
	More   bool
}

// Silence is the operator's order to transmit nothing at all until Until (zero: until told otherwise), or to end
// a silence. With Announce the peers are told in one last datagram each.
type Silence struct {
	On       bool
	Until    time.Time
	Announce bool
	Bearer   string // the one bearer that it is for; "": all
}

// Stop says that no other event comes: the gateway tells its peers at once what has arrived, so that they do not send it again, and
// writes the bills, which it otherwise writes once in a while.
type Stop struct{}

// Clock says that only time passed, in a run in which the wall clock was set: Ran is how long the run has lasted,
// and Set by how much the wall clock was set in all.
type Clock struct{ Ran, Set time.Duration }

// Forget is the operator's order to forget a peer's starts and addresses: the peer is heard again when it has answered. With
// AnyStart its next start may have any number.
type Forget struct {
	Peer     uint16
	AnyStart bool
}

// Line says that there is a connection to a peer, over which datagrams to Addr go, or that there is none any more. It is for bearers
// that need one (BearerConfig.Lines); whoever has such a connection has proven to be that peer.
type Line struct {
	Bearer int
	Peer   uint16
	Addr   netip.AddrPort // invalid: there is none
}

// Modem is what the modem of a bearer says of itself now (docs/modem.md); the zero value: it says nothing, and the profile counts.
type Modem struct {
	Bearer      int
	Down        bool // nothing goes or comes
	RateBps     int  // at which it sends; 0: it does not say
	QueueOctets int  // IP octets that it was given and has not sent; 0: none, or it does not say
}

// Drain is the operator's order to take no messages of local peers any more, or to take them again.
type Drain struct{ On bool }

// NormUp: the child of this generation runs and takes commands.
type NormUp struct{ Generation uint8 }

// NormDown: the child died or hung and was killed; the objects that it held are gone.
type NormDown struct{ Reason string }

// NormPacket: libnorm wants this packet to go to that peer.
type NormPacket struct {
	Peer uint16
	Data []byte
}

// NormObject: libnorm has a whole object from that peer, of that generation and transport id of the peer's.
// Once it is committed, tell elide (Session.Delivered).
type NormObject struct {
	Peer       uint16
	Generation uint8
	Object     uint16
	Data       []byte
}

// NormSent: libnorm has sent every segment of the object once (or again after a requeue).
type NormSent struct {
	Peer   uint16
	Object uint16 // transport id: 0 is the marker, then counted in order of Enqueue
}

// GatewayEvent marks LAN as an event of the gateway.
func (LAN) GatewayEvent() {}

// GatewayEvent marks Datagram as an event of the gateway.
func (Datagram) GatewayEvent() {}

// GatewayEvent marks Silence as an event of the gateway.
func (Silence) GatewayEvent() {}

// GatewayEvent marks Stop as an event of the gateway.
func (Stop) GatewayEvent() {}

// GatewayEvent marks Clock as an event of the gateway.
func (Clock) GatewayEvent() {}

// GatewayEvent marks Forget as an event of the gateway.
func (Forget) GatewayEvent() {}

// GatewayEvent marks Line as an event of the gateway.
func (Line) GatewayEvent() {}

// GatewayEvent marks Modem as an event of the gateway.
func (Modem) GatewayEvent() {}

// GatewayEvent marks Drain as an event of the gateway.
func (Drain) GatewayEvent() {}

// GatewayEvent marks NormUp as an event of the gateway.
func (NormUp) GatewayEvent() {}

// GatewayEvent marks NormDown as an event of the gateway.
func (NormDown) GatewayEvent() {}

// GatewayEvent marks NormPacket as an event of the gateway.
func (NormPacket) GatewayEvent() {}

// GatewayEvent marks NormObject as an event of the gateway.
func (NormObject) GatewayEvent() {}

// GatewayEvent marks NormSent as an event of the gateway.
func (NormSent) GatewayEvent() {}

// NormFrameOctets is how many octets a NORM frame has besides its segment, at the most (norm-seal 4).
const NormFrameOctets = 8

// NormCommand is an order to the child that runs libnorm.
type NormCommand interface{ normCommand() }

type (
	// NormStart starts a child, in place of any that runs.
	NormStart struct {
		Generation uint8
		Peers      []uint16
	}
	// NormEnqueue sends Data to a peer as one object. In each generation the objects to a peer are numbered 1, 2, 3... in this order
	// (0 is the marker). The child puts elide.PrefixOctets before the data.
	NormEnqueue struct {
		Peer uint16
		Data []byte
	}
	// NormRequeue sends every source segment of an object again, unless libnorm has let go of it.
	NormRequeue struct {
		Peer   uint16
		Object uint16
	}
	// NormCancel lets go of an object: nothing more of it is sent. Its number stays used.
	NormCancel struct {
		Peer   uint16
		Object uint16
	}
	// NormInject gives libnorm a packet as if it had come from that peer.
	NormInject struct {
		Peer uint16
		Data []byte
	}
)

func (NormStart) normCommand() {}

func (NormEnqueue) normCommand() {}

func (NormInject) normCommand() {}

func (NormRequeue) normCommand() {}

func (NormCancel) normCommand() {}

// LANOrder is an order of an adapter to its LAN room.
type LANOrder struct {
	Adapter site.Adapter
	site.Order
}

// Hush is an order to a bearer with connections: while it is On, the bearer ends them all and makes none, since a connection transmits by
// itself. A bearer begins hushed.
type Hush struct {
	Bearer int
	On     bool
}

// Output is what one Step wants done, in this order: commit Records; then the rest. When the commit fails nothing
// else of it may be done.
type Output struct {
	Records   []Record
	LAN       []LANOrder
	Datagrams []Datagram // to send
	Norm      []NormCommand
	Hush      []Hush // after Datagrams
	Silent    []int  // bearers on which a silence has begun: what earlier Steps wanted sent on them and has not left yet may not leave
	Notes     []site.Note
	Deadline  time.Time // zero: nothing to wait for
}
