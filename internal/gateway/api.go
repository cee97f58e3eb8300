package gateway

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/compact"
	"aldis/internal/link/roster"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// Event is what the edges tell the gateway: one of the types below. A nil Event means that only time passed.
type Event interface{ gatewayEvent() }

type (
	// LAN carries an event of a LAN room to its face.
	LAN struct {
		Face  site.Face
		Event site.Event
	}
	// Datagram is one UDP payload of the link and its far address. Coming in, nothing of it is trusted yet.
	Datagram struct {
		Addr netip.AddrPort
		Data []byte
		// Of one that came in: how long it lay in this machine, and whether more are there that came behind it. What is due is
		// looked at when the last of them is heard: a busy machine wakes late, and the answer it waits for may be among them.
		Waited time.Duration
		More   bool
	}
	// Silence is the operator's order to transmit nothing at all until Until (zero: until told otherwise), or to end
	// that. With Announce the peers are told in one last datagram each.
	Silence struct {
		On       bool
		Until    time.Time
		Announce bool
	}
	// Stop says that no other event comes: peers are told at once what has arrived, so that they send nothing of it again, and
	// what is written once in a while is written.
	Stop struct{}
	// Clock says that only time passed, in a run in which the wall clock was set: Ran is how long the run has lasted,
	// Set by how much the wall clock was set, in sum.
	Clock struct{ Ran, Set time.Duration }
	// Forget is the operator's order to know nothing of a peer's starts and addresses any more: it is heard again when it
	// has answered. With AnyStart its next start may have any number.
	Forget struct {
		Peer     uint16
		AnyStart bool
	}
	// NewRules is the operator's order to replace the rules: which items and messages cross, how messages are marked, and
	// how hard elements are tried to make smaller (before compact.DefaultRules).
	NewRules struct {
		Filter   []filter.Rule
		Messages []mark.Rule
		Compact  []compact.Rule
	}
	// NewRoster is the operator's order to go by a newer roster and to tell it to all peers.
	NewRoster struct{ Roster *roster.Roster }
	// NewLink is the operator's order to take names and addresses of peers from what he has written anew, to take in those
	// that are new, to let go of those that are not named, and to take keepalive, tariff and windows of silence.
	NewLink struct {
		Peers     []PeerConfig
		Keepalive time.Duration
		Tariff    string // as profile.Profile has it
		Windows   calendar.Windows
	}
	// Drain is the operator's order to take no messages of local peers any more, or to take them again.
	Drain struct{ On bool }
	// NormUp: the child of this generation runs and takes commands.
	NormUp struct{ Generation uint8 }
	// NormDown: the child died or hung and was killed; what it held is gone.
	NormDown struct{ Reason string }
	// NormPacket: libnorm wants this packet to go to that peer.
	NormPacket struct {
		Peer uint16
		Data []byte
	}
	// NormObject: libnorm has a whole object from that peer, of that generation and transport id of the peer's.
	// Once it is committed, tell elide (Session.Delivered).
	NormObject struct {
		Peer       uint16
		Generation uint8
		Object     uint16
		Data       []byte
	}
	// NormSent: libnorm has sent every segment of the object once (or again after a requeue).
	NormSent struct {
		Peer   uint16
		Object uint16 // transport id: 0 is the marker, then counted in order of Enqueue
	}
)

func (LAN) gatewayEvent()        {}
func (Datagram) gatewayEvent()   {}
func (Silence) gatewayEvent()    {}
func (Stop) gatewayEvent()       {}
func (Clock) gatewayEvent()      {}
func (Forget) gatewayEvent()     {}
func (NewRoster) gatewayEvent()  {}
func (NewRules) gatewayEvent()   {}
func (NewLink) gatewayEvent()    {}
func (Drain) gatewayEvent()      {}
func (NormUp) gatewayEvent()     {}
func (NormDown) gatewayEvent()   {}
func (NormPacket) gatewayEvent() {}
func (NormObject) gatewayEvent() {}
func (NormSent) gatewayEvent()   {}

// Record is one change to the journal; a nil Value deletes. All Records of one Output are committed in one
// transaction, before anything else in that Output is acted on.
type Record = mail.Record

// NormCommand is an order to the norm room; unicast.Libnorm says what each means.
type NormCommand interface{ normCommand() }

type (
	// NormStart starts a child, in place of any that runs.
	NormStart struct {
		Generation uint8
		Peers      []uint16
	}
	// NormEnqueue sends Data to a peer as one object.
	NormEnqueue struct {
		Peer uint16
		Data []byte
	}
	// NormRequeue sends every source segment of an object again, unless libnorm has let go of it.
	NormRequeue struct {
		Peer   uint16
		Object uint16
	}
	// NormCancel lets go of an object.
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

func (NormStart) normCommand()   {}
func (NormEnqueue) normCommand() {}
func (NormInject) normCommand()  {}
func (NormRequeue) normCommand() {}
func (NormCancel) normCommand()  {}

// libnorm puts a carrier's orders into the Output of this Step.
type libnorm struct{ g *Gateway }

func (n libnorm) order(c NormCommand) { n.g.out.Norm = append(n.g.out.Norm, c) }

func (n libnorm) Start(generation uint8, peers []uint16) {
	n.order(NormStart{Generation: generation, Peers: peers})
}
func (n libnorm) Enqueue(peer uint16, data []byte)  { n.order(NormEnqueue{Peer: peer, Data: data}) }
func (n libnorm) Cancel(peer, object uint16)        { n.order(NormCancel{Peer: peer, Object: object}) }
func (n libnorm) Inject(peer uint16, packet []byte) { n.order(NormInject{Peer: peer, Data: packet}) }

// NormFrameOctets is what a NORM frame has beside its segment, at the most.
const NormFrameOctets = unicast.NormFrameOctets

// LANOrder is an order of a face to its LAN room.
type LANOrder struct {
	Face site.Face
	site.Order
}

// Output is what one Step wants done, in this order: commit Records; then the rest. When the commit fails nothing
// else of it may be done.
type Output struct {
	Records   []Record
	LAN       []LANOrder
	Datagrams []Datagram // to send
	Norm      []NormCommand
	Notes     []site.Note
	Deadline  time.Time // zero: nothing to wait for
}
