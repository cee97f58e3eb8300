package pmul

import (
	"time"

	"aldis/internal/ground/due"
)

// Event is an event of a Sender or a Receiver: one of the types below, or a PDU of this package as it was received. A nil
// Event means that only time has passed.
type Event any

type (
	// Submit gives the Sender a message. Output.Accepted has the answer under the same Ref.
	Submit struct {
		Ref      uint64 // the caller's own
		Payload  []byte // kept until the message has ended; the caller does not change it
		To       []NodeID
		Group    GroupAddr // 0: the group of the Config
		Dynamic  bool      // a group of its own is requested first (p-mul 8); Group is then the first one requested
		Priority uint8     // a message of greater Priority goes first
		Source   string    // the source of the message: sources share the air, and messages of one source are delivered in order
		AtOnce   bool      // its receivers acknowledge it at once, if it is short and they are many on a shared channel
		Expires  time.Time // rounded down to a second
		Fleeting bool      // it is not repeated for silent nodes
		Held     bool      // it waits until a Hold lets it go
	}
	// Told is an Ack_PDU that came to this node's own address and not to a group. An entry in it that names the
	// acknowledging node itself as the message's sender, as libjpmul writes it, counts as this node's if such a message is
	// under way from here to that node: no node acknowledges its own messages to another.
	Told struct{ AckPDU }
	// Cancel ends a message for all recipients that do not have it yet.
	Cancel struct{ Message MessageID }
	// Ride asks the Receiver for PDUs that may go along in a datagram to the group with so many octets left: Output.Ride.
	// Compact coding only. Put them in front of the datagram's other PDUs. PDUs that are due and do
	// not fit go in the next Step.
	Ride struct{ Octets int }
	// Elsewhere tells the Receiver that a message has come another way. The Receiver drops its fragments of the message,
	// and acknowledges it like a complete one. A Message without Payload reports its Message_Sequence_Number, as soon as
	// that is known.
	Elsewhere struct{ Key }
	// Recite makes the Receiver acknowledge again the messages of a node that became complete lately, so that other nodes
	// learn of it. It needs Config.Hears.
	Recite struct{ Source NodeID }
	// EMCON orders this node to be silent, or lifts the order. Sender and Receiver both get it.
	EMCON struct{ Silent bool }
	// PeerEMCON is the operator's knowledge of another node. A Sender also learns from an Ack_PDU that a node has left
	// silence.
	PeerEMCON struct {
		Node   NodeID
		Silent bool
	}
)

// State is the state of a message for one recipient; all but Waiting are final.
type State uint8

const (
	Waiting   State = iota
	Delivered       // acknowledged as complete and durable
	Expired
	Refused   // dropped: for a message of greater Priority when the store was full, before it was sent, or because its recipient is Gone
	Cancelled // by its origin
)

// String is the name of the state.
func (s State) String() string {
	return [...]string{"waiting", "delivered", "expired", "refused", "cancelled"}[s]
}

// Fate is the end of a message for one recipient.
type Fate struct {
	Message  MessageID
	To       NodeID
	State    State
	At       time.Time
	Sequence uint32 // Message_Sequence_Number towards it; 0 after a restart
}

// Message is complete at the receiver.
type Message struct {
	Key
	Priority uint8
	Expiry   time.Time
	Sequence uint32 // Message_Sequence_Number: a gap shows that an earlier message never came
	Payload  []byte // empty: the message has come another way (Elsewhere)
	// Free: of earlier messages, it need not wait for those after the one with the Message_Sequence_Number After. Compact coding
	// only.
	Free  bool
	After uint32
}

// Accepted answers a Submit. Err is nil, or one of the errors of package pmul wrapped: then every recipient is refused.
type Accepted struct {
	Ref     uint64
	Message MessageID
	Err     error
}

// Record is one change to the journal; a nil Value deletes. All Records of an Output are committed in one transaction.
type Record struct {
	Bucket string
	Key    []byte
	Value  []byte
}

// Port is one of the four UDP ports (p-mul 3).
type Port uint8

const (
	DataPort     Port = iota // DPORT: Address, Data, Discard_Message, to the group
	AckPort                  // APORT: Ack, to the sender
	RequestPort              // TPORT: Request, Release, Reject
	AnnouncePort             // RPORT: Announce
)

// Packet is one datagram to send: to a node, or to a group when To is 0; Group 0 is the group of all nodes (GG).
type Packet struct {
	To    NodeID
	Group GroupAddr
	Port  Port
	PDUs  []PDU // one in ACP 142; several may share a datagram in the compact coding
}

// Output is what the caller must do after one Step, in this order. Records are committed and Deliver is made durable,
// together or Deliver first and again under the same Key after a crash; if that fails nothing else may be done.
type Output struct {
	Records     []Record
	Deliver     []Message
	Accepted    []Accepted
	Fates       []Fate
	Send        []Packet
	Ride        []PDU // answers a Ride
	Odd         []Odd
	Join, Leave []GroupAddr
	Deadline    time.Time // when to Step again if no event comes; zero: there is nothing to wait for
}

// Odd is conduct of a member of the group that no member shows in good order. It is reported once in half an hour.
type Odd struct {
	Node NodeID
	What Oddity
}

// Oddity is one of the following.
type Oddity int

const (
	// TakesAllTurns: its turns on the shared channel are ignored for half an hour.
	TakesAllTurns Oddity = iota
	// AcknowledgesUnsent: it has acknowledged many messages that this node has not sent. They are sent all the same.
	AcknowledgesUnsent
)

func (o *Output) record(bucket string, key, value []byte) {
	o.Records = append(o.Records, Record{bucket, key, value})
}

// wake makes the deadline at or earlier; a zero at changes nothing.
func (o *Output) wake(at time.Time) { o.Deadline = due.Earliest(o.Deadline, at) }
