package pmul

import (
	"errors"
	"fmt"
	"time"
)

// NodeID is a Source_ID or Destination_ID: a name, not a route. It is written as an IPv4 address.
type NodeID uint32

// String is the id in the notation of an IPv4 address.
func (n NodeID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// GroupAddr is an IPv4 multicast address.
type GroupAddr uint32

// String is the group in the notation of an IPv4 address.
func (g GroupAddr) String() string { return NodeID(g).String() }

// MessageID is unique within one Source_ID.
type MessageID uint32

// Key names a message everywhere (p-mul 1).
type Key struct {
	Source  NodeID
	Message MessageID
}

// Kind is a PDU_Type.
type Kind uint8

// PDU types (p-mul 2).
const (
	KindData            Kind = 0x00
	KindAck             Kind = 0x01
	KindAddress         Kind = 0x02
	KindDiscard         Kind = 0x03
	KindAnnounce        Kind = 0x04
	KindRequest         Kind = 0x05
	KindReject          Kind = 0x06
	KindRelease         Kind = 0x07
	KindFECAddress      Kind = 0x08
	KindExtraAddress    Kind = 0x12
	KindExtraFECAddress Kind = 0x18
)

var kindNames = map[Kind]string{
	KindData: "Data_PDU", KindAck: "Ack_PDU", KindAddress: "Address_PDU", KindDiscard: "Discard_Message_PDU",
	KindAnnounce: "Announce_PDU", KindRequest: "Request_PDU", KindReject: "Reject_PDU", KindRelease: "Release_PDU",
	KindFECAddress: "FEC_Address_PDU", KindExtraAddress: "Extra_Address_PDU", KindExtraFECAddress: "Extra_FEC_Address_PDU",
	kindTurn: "turn",
}

// String is the name of the PDU in ACP 142.
func (k Kind) String() string {
	if s := kindNames[k]; s != "" {
		return s
	}
	return fmt.Sprintf("PDU_Type %#02x", uint8(k))
}

// MAP places an Address_PDU or Announce_PDU in a set of several.
type MAP uint8

// The two bits of MAP (p-mul 2): only one PDU 0, first of several NotLast, middle both, last NotFirst.
const (
	NotFirst MAP = 0x80
	NotLast  MAP = 0x40
)

// PDU is one of the types below. A PDU that Parse returns aliases the packet.
type PDU interface{ Kind() Kind }

type (
	// AddressPDU starts a message, or says which nodes still lack parts of it. Without destinations it is the Ack-Ack.
	AddressPDU struct {
		Priority     uint8
		MAP          MAP
		Total        uint16 // Total_Number_of_PDUs: Data_PDUs of the message
		Source       NodeID
		Message      MessageID
		Expiry       time.Time // whole seconds, 1970 to 2106
		Reserved     int       // Length_of_Reserved_Field: octets of Reserved in every entry
		Destinations []Destination
		Extra        bool  // PDU_Type 0x12 or 0x18
		FEC          *FEC  // PDU_Type 0x08 or 0x18
		Plan         *Plan // compact coding: the message is coded
		Batch        bool  // compact coding: it is of several messages (batch.go)
		AtOnce       bool  // compact coding, followed by the whole of a short message: the message is repeated, and acknowledged at once
		// After, compact coding: by how much lower the Message_Sequence_Number of the last message is after which this one
		// is read; 0: that is the message before it.
		After uint32
	}
	// Plan is the additional part of the Address_PDU of a coded message, in the compact coding only.
	Plan struct {
		Last   uint16 // octets of the last fragment, from 1; all others are as long as a shard
		Follow uint16 // fragments and shards still to come in this turn of the sender; until then no node answers
	}
	// Destination is one entry of an AddressPDU.
	Destination struct {
		Node     NodeID
		Sequence uint32 // Message_Sequence_Number, counted per sender and destination
		Reserved []byte // nil when Length_of_Reserved_Field is 0
	}
	// FEC is the additional block of the FEC kinds of Address_PDU. Its meaning is not known here.
	FEC struct {
		ID         uint8
		Parameters []byte
	}
	// DataPDU is one fragment.
	DataPDU struct {
		Priority uint8
		Number   uint16 // Sequence_Number, from 1
		Source   NodeID
		Message  MessageID
		Fragment []byte
	}
	// AckPDU says which messages its Source has received, and what it lacks of others.
	AckPDU struct {
		Priority uint8
		Source   NodeID // of the acknowledging node
		Entries  []AckEntry
		// Timestamp is in units of 100 ms; its purpose is not known here. Stamped tells that it is present.
		Stamped   bool
		Timestamp uint64
		Runs      bool // compact coding: messages that are complete and follow each other are written as runs
	}
	// AckEntry is about one message. If Missing is empty, the message is complete.
	AckEntry struct {
		Source  NodeID // of the message
		Message MessageID
		Missing []Run
		Cut     bool // the list ends with an end of list indicator: it says nothing of higher numbers
	}
	// Run is From..To, or one number when both are equal.
	Run struct{ From, To uint16 }
	// DiscardPDU is a Discard_Message_PDU: receivers drop their fragments of the message.
	DiscardPDU struct {
		Priority uint8
		Source   NodeID
		Message  MessageID
	}
	// AnnouncePDU asks nodes to join a group for a message.
	AnnouncePDU struct {
		MAP          MAP
		Source       NodeID
		Message      MessageID
		Expiry       time.Time // whole seconds, 1970 to 2106
		Group        GroupAddr
		Destinations []NodeID
	}
	// RequestPDU asks whether a group is free.
	RequestPDU struct {
		Source  NodeID
		Message MessageID
		Group   GroupAddr
	}
	// RejectPDU says that the group is not free.
	RejectPDU struct {
		Source  NodeID
		Message MessageID
		Group   GroupAddr
	}
	// ReleasePDU gives a group back.
	ReleasePDU struct {
		Source  NodeID
		Message MessageID
		Group   GroupAddr
	}
)

// Kind is the type of the PDU.
func (p AddressPDU) Kind() Kind {
	switch {
	case p.Extra && p.FEC != nil:
		return KindExtraFECAddress
	case p.Extra:
		return KindExtraAddress
	case p.FEC != nil:
		return KindFECAddress
	}
	return KindAddress
}

// Kind is the type of the PDU.
func (DataPDU) Kind() Kind { return KindData }

// Kind is the type of the PDU.
func (AckPDU) Kind() Kind { return KindAck }

// Kind is the type of the PDU.
func (DiscardPDU) Kind() Kind { return KindDiscard }

// Kind is the type of the PDU.
func (AnnouncePDU) Kind() Kind { return KindAnnounce }

// Kind is the type of the PDU.
func (RequestPDU) Kind() Kind { return KindRequest }

// Kind is the type of the PDU.
func (RejectPDU) Kind() Kind { return KindReject }

// Kind is the type of the PDU.
func (ReleasePDU) Kind() Kind { return KindRelease }

// SourceOf is the Source_ID of a PDU: the node in whose name it speaks.
func SourceOf(pdu PDU) NodeID {
	switch p := pdu.(type) {
	case AddressPDU:
		return p.Source
	case DataPDU:
		return p.Source
	case AckPDU:
		return p.Source
	case DiscardPDU:
		return p.Source
	case AnnouncePDU:
		return p.Source
	case RequestPDU:
		return p.Source
	case RejectPDU:
		return p.Source
	case ReleasePDU:
		return p.Source
	case ParityPDU:
		return p.Source
	case TurnPDU:
		return p.Source
	}
	return 0
}

// Errors that a PDUError unwraps to.
var (
	ErrShort    = errors.New("cut short")
	ErrTooLong  = errors.New("too long")
	ErrMismatch = errors.New("does not agree with the rest of the PDU")
	ErrChecksum = errors.New("neither the Fletcher nor the Internet checksum")
	ErrValue    = errors.New("illegal value")
	ErrType     = errors.New("unknown PDU_Type")
)

// PDUError names the place in the standard's spelling.
type PDUError struct {
	PDU, Field string
	Err        error
}

// Error names the PDU, the field and the cause.
func (e *PDUError) Error() string { return "pmul: " + e.PDU + ": " + e.Field + ": " + e.Err.Error() }

// Unwrap is the cause.
func (e *PDUError) Unwrap() error { return e.Err }
