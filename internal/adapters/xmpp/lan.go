package xmpp

import (
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// What the LAN room tells.
type (
	// Opened: the server has taken the component of this domain.
	Opened struct {
		Conn   site.ConnID
		Domain string
	}
	// Heard: the server has sent a stanza. Nothing of it is trusted.
	Heard struct {
		Conn    site.ConnID
		Element stanza.Element
	}
	// Skipped: a stanza broke a bound. Element is its first tag; its Name is "" where not even that was read.
	Skipped struct {
		Conn    site.ConnID
		Element stanza.Element
		Fault   *stanza.Fault
	}
	// Closed: a connection is no more.
	Closed struct{ Conn site.ConnID }
)

// AdapterEvent marks Opened as an event of a protocol adapter.
func (Opened) AdapterEvent() {}

// AdapterEvent marks Heard as an event of a protocol adapter.
func (Heard) AdapterEvent() {}

// AdapterEvent marks Skipped as an event of a protocol adapter.
func (Skipped) AdapterEvent() {}

// AdapterEvent marks Closed as an event of a protocol adapter.
func (Closed) AdapterEvent() {}

// Send has the LAN room write a stanza.
type Send struct {
	Conn site.ConnID
	XML  []byte
	Soon bool   // it promises nothing to anybody
	To   string // the only recipient of it; "": any
}

// Concerns is the connection. A stanza may tell a client that its message has arrived, so that the client forgets it.
func (s Send) Concerns() (site.ConnID, bool) { return s.Conn, !s.Soon }

// Early says whether the stanza may go before what the Step has for the journal.
func (s Send) Early() bool { return s.Soon }

// Lane is the recipient of the stanza: nobody sees what is for others.
func (s Send) Lane() string { return s.To }

// Octets of the stanza.
func (s Send) Octets() int { return len(s.XML) }
