package mail

import (
	"errors"
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// ErrRecord says that the journal holds a record that this version does not understand.
var ErrRecord = errors.New("gateway: journal record of another format")

// Common is the part of a carrier's configuration that all carriers of a bearer share.
type Common struct {
	Self     uint16           // this node
	Profile  *profile.Profile // of the bearer, live
	Timing   custody.Config   // timers and windows of the link
	Peers    []*Peer          // by id
	Services Services
	Store    *Store
	Replica  *replica.Replica
	Coder    *compact.Coder
	Air      *Air // of a terminal: one for all peers
	// ModemBps is the rate that the bearer's modem reports, in bits per second; 0: it reports none.
	ModemBps *int
	// Group is the address of all peers on a shared channel, and Ledger counts the octets to it. Invalid: each gets a copy.
	Group  netip.AddrPort
	Ledger *Ledger
	Proofs int                    // octets of proofs after the frames of a datagram to Group, at most
	Behind func(peer uint16) bool // it cannot read datagrams to Group, because its roster is older
	Tells  func(peer uint16) bool // this bearer brings it the site's state; nil: always
	// Introduce returns the datagrams that go before a HELLO to a peer that may not know this node, after so many HELLOs without an
	// answer; nil: none do.
	Introduce func(peer uint16, tries int) [][]byte
}

// Carrier moves messages to peers and promises nothing: custody is the Store's. It is pure, and for one bearer.
type Carrier interface {
	// Accept takes a message for some peers into custody, to go when there is air, and returns those for which it was
	// refused.
	Accept(now time.Time, to []*Peer, content envelope.Message, kind Kind) (refused []*Peer)
	// Receive takes a frame of a peer's datagram; false: it is for another carrier. newest says that no datagram with a
	// higher counter came before.
	Receive(now time.Time, p *Peer, f frame.Frame, octets int, newest bool) bool
	// Start is the first Step of this run. Step does what is due, also while this node is silent. Pump sends what is ready
	// and has air; it is not called while this node is silent.
	Start(now time.Time)
	Step(now time.Time)
	Pump(now time.Time)
	// Due is when Step or Pump has something to do; zero: not by itself.
	Due(now time.Time, silent bool) time.Time
	// Silence says that this node is silent, or no longer is; PeerSilent says the same of a peer.
	Silence(now time.Time, on bool)
	PeerSilent(now time.Time, p *Peer, on bool)
	// Announce tells the peers at once that this node goes silent, whatever the air is doing; false: another carrier does.
	Announce(now time.Time, f frame.Silence) bool
	// NewStore: the peer knows nothing of the messages sent to it. The entries returned have ended and should be accepted again.
	// NewNumbers: it counts its messages from 1 again. Messages that came before their turn have been acknowledged and are
	// delivered first.
	NewStore(p *Peer) (again []*Entry)
	NewNumbers(now time.Time, p *Peer)
	// Unlearn: the peer no longer knows the messages sent before, and cannot read messages coded after them.
	Unlearn(p *Peer)
	// Resume goes on with a message of the carrier's queues; false: they are not its own. Restore takes a record of the
	// carrier's own buckets.
	Resume(r Restored, p *Peer) bool
	Restore(r api.Record) (bool, error)
	// Event is for a process that works for the carrier, such as libnorm's child. Others ignore it.
	Event(now time.Time, ev api.Event)
	// Settle sends every acknowledgement that is owed and can go at once, whatever the air is doing: the gateway stops.
	Settle(now time.Time)
	// Orders are for messages that wait.
	Orders() Orders
	// Owed is what will go out when a silence ends.
	Owed(now time.Time) Owed
	// Report adds the carrier's figures to a status.
	Report(s *api.Status)
}

// Handover is a carrier for messages that change their bearer: docs/decisions/bearers.md.
type Handover interface {
	// Adopt takes an entry that another bearer has given up, or another attempt of it; false: there is no room. Rest is the rest of a
	// long message under way, which the peer is not known to have, with the marks of its segments; nil: that is all of it. Elsewhere says
	// that the message of an attempt under way has arrived on another bearer.
	Adopt(now time.Time, e *Entry) bool
	// Room is how many octets, as journalled, the carrier may be given now: messages with a number do not come back.
	Room() int
	Rest(e *Entry) ([]envelope.Moved, *envelope.Rest)
	Elsewhere(now time.Time, e *Entry)
	// Used marks the number of a message of the peer as used, because the message came on another bearer; read: it has been read here.
	// Whole is a message of the peer as coded, whose rest came on another bearer; nil: the part before the rest is not here.
	Used(p *Peer, at TransmissionID) (read bool)
	// Beside acknowledges messages of the peer, for a HELLO on another bearer; Acked takes the peer's for messages of ours.
	Beside(p *Peer) []frame.Beside
	Acked(now time.Time, p *Peer, f frame.Beside)
	Whole(p *Peer, at TransmissionID, rest *envelope.Rest) []byte
}

// Undivided is what a Handover does whose carrier says of no message how much of it has arrived, and whose acknowledgements go by themselves:
// nothing.
type Undivided struct{}

func (Undivided) Rest(*Entry) ([]envelope.Moved, *envelope.Rest)     { return nil, nil }
func (Undivided) Beside(*Peer) []frame.Beside                        { return nil }
func (Undivided) Acked(time.Time, *Peer, frame.Beside)               {}
func (Undivided) Whole(*Peer, TransmissionID, *envelope.Rest) []byte { return nil }

// Orders are an operator's questions and orders about messages that a carrier has. An order holds for all recipients that have the same
// number of the message.
type Orders interface {
	// Together says that one transmission serves several peers: a message has its numbers when it is accepted, peers do not
	// share the rate, and the traffic shows nothing of the link to one of them.
	Together() bool
	// Waits says that nothing of a message has been on the air, Whole that a recipient may have all of it.
	Waits(e *Entry) bool
	Whole(e *Entry) bool
	Hold(now time.Time, e *Entry, on bool)
	Cancel(now time.Time, e *Entry)
	Precede(now time.Time, e *Entry, p site.Precedence) error
	// Queue has the messages that wait for a peer. Ahead is how many octets, as journalled, go before those that Box.Backlog counts;
	// negative: so many of the latter have left this end.
	Queue(now time.Time, p *Peer) Queued
	Ahead(now time.Time, p *Peer) int
}

// Queued has the messages that wait for a peer at a carrier.
type Queued struct {
	Places   []Place
	Ordered  bool // in the order in which they go
	UnderWay int  // octets, as journalled, before all of them
}

// Members is a carrier whose peers can come and go while it works.
type Members interface {
	// Join adds a peer, also one that has left in this run: its numbers are as they were. Leave removes a peer. Messages held for
	// it are cancelled; why is noted in their lives.
	Join(now time.Time, p *Peer) error
	Leave(now time.Time, p *Peer, why string)
}

// Channel is a carrier that shares its channel with its peers, and so wants to know what else happens there. Its messages have numbers
// of their own.
type Channel interface {
	// Hello adds to a HELLO for a peer which of its messages the carrier has. Compare takes from the peer's HELLO which of ours it has.
	Hello(p *Peer, h *frame.Hello)
	Compare(now time.Time, p *Peer, h frame.Hello)
	// Resend sends messages once more that the peer has acknowledged and cannot read.
	Resend(now time.Time, p *Peer, numbers []uint32)
	// OnAir says that a datagram of a peer, of so many octets above UDP, has used the air. Started: the peer has a new start. Gone: the
	// roster no longer names it, and messages that wait for it end.
	OnAir(now time.Time, p *Peer, octets int)
	// Spoke says the same of a datagram that another part of this node has sent.
	Spoke(now time.Time, octets int)
	Started(p *Peer)
	Gone(now time.Time, p *Peer)
}

// Others has datagrams of other nodes with messages in custody, heard on a shared channel, to transmit them again for their senders.
type Others interface {
	// Overhear says which datagram to all is being taken, nil: none that may go again. Again takes a frame of such a datagram of a peer
	// that another node transmits; known: the datagram has come before.
	Overhear(sealed []byte)
	Again(now time.Time, p *Peer, sealed []byte, f frame.PMul, known bool)
}

// Link is the link to one peer: whether it answers, what it is greeted with, and the numbers of the messages to and from it.
type Link interface {
	// Dead says that it does not answer, Listening that the peer is believed to be silent.
	Dead() bool
	Listening() bool
	// Heard notes an authentic datagram of the peer. Restarted: it was the first of a start, and the acknowledgements that it had to
	// give were in it.
	Heard(now time.Time)
	Restarted()
	// Ask asks the peer at once which of the messages under way have arrived: the way there is back.
	Ask()
	// Doubt asks the peer at once whether it is there: datagrams to it have no answer.
	Doubt()
	// Late says that this machine is late by so much: measurements over that time say nothing of the link.
	Late(now time.Time, by time.Duration)
	// Hello puts into a HELLO to the peer which numbers this node and the peer have. Compare takes what the HELLO of the peer's start
	// says of them: docs/decisions/put-back.md.
	Hello(h *frame.Hello)
	Compare(now time.Time, h frame.Hello, incarnation uint32)
	// Together says that the peer is greeted at once with all others of a shared channel; Greeting takes what it says to all. The
	// caller of Greeting bounds how often it calls it for datagrams that anybody could have sent. Greet sends a HELLO at once, to an address that
	// is not believed to be the peer's.
	Together() bool
	Greeting(now time.Time, f frame.Greeting)
	Greet(now time.Time, to netip.AddrPort, hello frame.Hello)
	// Readdress takes an address that the operator has written anew; an invalid one: he no longer names one, and known addresses stay.
	Readdress(addr netip.AddrPort)
	// Record makes the numbers durable, RecordPaths the addresses.
	Record()
	RecordPaths()
	// Air is the transmitter that reaches the peer, and its rate in bits per second.
	Air() (*Air, int)
	// Progress is how many octets of a long message are at the peer, and how many it has as coded; 0, 0: unknown.
	Progress(e *Entry) (there, all int)
}

// Owed is what a carrier has to send. Octets are IP octets, approximately: before deflating.
type Owed struct {
	Acks      int // peers that wait for acknowledgements
	Messages  int // that wait or may have to go again
	Items     int // of this site that some peer lacks, each peer counted
	Octets    int
	Datagrams int
	Airtime   time.Duration
}

// Services is the part of the gateway above that custody and the carriers need.
type Services interface {
	// Record changes the journal, with the other records of this Step. RecordPeer makes a peer's numbers durable.
	Record(bucket string, key, value []byte)
	RecordPeer(p *Peer)
	// Note says something in the operator's log; Drop counts a datagram or packet that came to nothing.
	Note(level, text string, attrs ...any)
	Drop(reason string)
	// Open reads a message of a peer in its turn and hands it on. OpenSlice does as much of it as this turn of the loop has room
	// for; compact.ErrUnfinished: it is to be called again.
	Open(now time.Time, p *Peer, at TransmissionID, body []byte) error
	OpenSlice(now time.Time, p *Peer, at TransmissionID, body []byte) error
	// Unread says that a message of a peer is acknowledged and cannot be read: its sender is told. Gone says so of a message of
	// ours that nobody has any more.
	Unread(now time.Time, from *Peer, at TransmissionID)
	Gone(now time.Time, to *Peer, at TransmissionID)
	// TellFates tells the adapters what has become of their messages.
	TellFates(now time.Time)
	// Hello is a HELLO to a peer as it must read now.
	Hello(now time.Time, p *Peer) frame.Hello
	// Texts codes for these peers; nil: one of them has another model, or none is known.
	Texts(to ...*Peer) *envelope.Texts
	// News is a message to a peer about items that it lacks, and the items as it will hold them.
	News(now time.Time, p *Peer, items []site.Item) (envelope.Message, []site.Item)
	// Seal makes a datagram of frames to a peer or seal.Group; false: it cannot, and the log says so. Send puts it on the air.
	Seal(to uint16, long bool, frames []byte) ([]byte, bool)
	Send(to netip.AddrPort, data []byte)
	// Norm is an order to the child that runs libnorm.
	Norm(order api.NormCommand)
}
