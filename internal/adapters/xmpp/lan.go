package xmpp

import (
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// Events from the LAN room.
type (
	// Opened: the server has accepted the component of this domain.
	Opened struct {
		Conn   site.ConnID
		Domain string
	}
	// Heard: the server has sent a stanza. Nothing in it is trusted.
	Heard struct {
		Conn    site.ConnID
		Element stanza.Element
	}
	// Skipped: a stanza broke a bound. Element is its first tag; its Name is "" if not even that could be read.
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

// Send makes the LAN room write a stanza.
type Send struct {
	Conn site.ConnID
	XML  []byte
	Soon bool   // the stanza promises nothing
	To   string // the only recipient of the stanza; "": any
}

// Concerns names the connection. A stanza may tell a client that its message has arrived, so that the client forgets it.
func (s Send) Concerns() (site.ConnID, bool) { return s.Conn, !s.Soon }

// Early says whether the stanza may go before the journal has the memories of its Step.
func (s Send) Early() bool { return s.Soon }

// Lane is the recipient of the stanza: recipients do not see each other's stanzas.
func (s Send) Lane() string { return s.To }

// Octets is the size of the stanza.
func (s Send) Octets() int { return len(s.XML) }
