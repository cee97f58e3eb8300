package jxtabridge

import (
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// Events of package lan, the LAN room, for the bridge.
type (
	// Opened: a peer dialled in. Remote is "ip:port". The bridge answers with its own welcome at once, but not over
	// HTTP, which has no welcome: there the connection is a poll.
	Opened struct {
		Conn   site.ConnID
		Remote string
		HTTP   bool
	}
	// Welcomed: the peer's welcome line, parsed; over HTTP made from the names in the poll: the peer, and in Dest the
	// address dialled.
	Welcomed struct {
		Conn    site.ConnID
		Welcome jxta.Welcome
	}
	// Received: the body of one package: a bare binary message and, from signed 2.7 peers, its trailer.
	// From then on Body belongs to the bridge.
	Received struct {
		Conn site.ConnID
		Body []byte
	}
	// Heard: the body of one multicast datagram, as in Received. Remote is "ip:port" and proves nothing. The bridge
	// keeps no reference to Body.
	Heard struct {
		Remote string
		Body   []byte
	}
	// Quiet: nothing more can be written to this connection, and unwritten bodies are lost; the peer may still be heard
	// through it. This is a peer over HTTP between two polls, whose messages come in requests of their own (wire 3.1). It stays
	// so until Closed, soon after the next poll has opened.
	Quiet struct{ Conn site.ConnID }
	// Closed: the connection is gone, whoever closed it. Nothing more comes from it.
	Closed struct{ Conn site.ConnID }
	// Written: every body up to and including the one with this Token is on the peer's machine;
	// over HTTP, was handed to the peer's socket.
	Written struct {
		Conn  site.ConnID
		Token uint64
	}
)

// AdapterEvent marks Opened as an event of a protocol adapter.
func (Opened) AdapterEvent() {}

// AdapterEvent marks Welcomed as an event of a protocol adapter.
func (Welcomed) AdapterEvent() {}

// AdapterEvent marks Received as an event of a protocol adapter.
func (Received) AdapterEvent() {}

// AdapterEvent marks Heard as an event of a protocol adapter.
func (Heard) AdapterEvent() {}

// AdapterEvent marks Quiet as an event of a protocol adapter.
func (Quiet) AdapterEvent() {}

// AdapterEvent marks Closed as an event of a protocol adapter.
func (Closed) AdapterEvent() {}

// AdapterEvent marks Written as an event of a protocol adapter.
func (Written) AdapterEvent() {}

// PipeType is the type of a pipe as Item.Sub of a site.Listener carries it.
const (
	PipePropagate     uint8 = 1 // JxtaPropagate
	PipeUnicast       uint8 = 2 // JxtaUnicast
	PipeUnicastSecure uint8 = 3 // JxtaUnicastSecure
)

// Send hands one body (message and trailer) to a connection. A non-zero Token asks for Written.
type Send struct {
	Conn site.ConnID
	Body []byte
	Rest [][]byte // parts that follow Body if Config.SignLater is set and nothing is signed; they do not change
	// Sign is the source for which Body is signed (jxta.SignMessage) before it goes out; empty: it is not signed.
	Sign  string
	Token uint64
	// Confirms: the peer may forget the block that this acknowledges, so it must not go before the records of earlier Steps are
	// durable: the block may have come twice, the first time over another connection.
	Confirms bool
}

// Welcome is the line that answers Opened.
type Welcome struct {
	Conn site.ConnID
	Line jxta.Welcome
}

// Close ends a connection, after everything that was sent to it is written.
type Close struct{ Conn site.ConnID }

// Concerns follows site.Order: an order that concerns no connection in particular may overtake others.
func (o Welcome) Concerns() (site.ConnID, bool) { return o.Conn, false }

// Concerns is the connection that the order is about, and whether it confirms something.
func (o Send) Concerns() (site.ConnID, bool) { return o.Conn, o.Confirms }

// Concerns is the connection that the order is about, and whether it confirms something.
func (o Close) Concerns() (site.ConnID, bool) { return o.Conn, false }

// Concerns is the connection that the order is about, and whether it confirms something.
func (o Gate) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns is the connection that the order is about, and whether it confirms something.
func (o Shout) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns is the connection that the order is about, and whether it confirms something.
func (o Dial) Concerns() (site.ConnID, bool) { return 0, false }

// orderOctets is about the memory that an order takes besides its body.
const orderOctets = 64

// Octets is about the memory that the order takes while it waits.
func (o Welcome) Octets() int { return orderOctets }

// Octets is about the memory that the order takes while it waits.
func (o Send) Octets() int { return orderOctets + o.Length() }

// Length is the length of the body with Rest, in octets.
func (o Send) Length() int {
	n := len(o.Body)
	for _, b := range o.Rest {
		n += len(b)
	}
	return n
}

// Octets is about the memory that the order takes while it waits.
func (o Close) Octets() int { return orderOctets }

// Octets is about the memory that the order takes while it waits.
func (o Gate) Octets() int { return orderOctets }

// Octets is about the memory that the order takes while it waits.
func (o Shout) Octets() int { return orderOctets + len(o.Body) }

// Octets is about the memory that the order takes while it waits.
func (o Dial) Octets() int { return orderOctets }
