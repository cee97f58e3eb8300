package tak

import (
	"slices"

	"aldis/internal/site"
)

// Events from the LAN room.
type (
	// Opened: a device has connected to us, or with Server we have connected to the LAN's own server.
	Opened struct {
		Conn   site.ConnID
		Remote string // address and port
		Server bool
	}
	// Heard: a device sent this frame, with the framing of its stream. Nothing in it is trusted.
	Heard struct {
		Conn  site.ConnID
		Frame []byte
	}
	// Broken: the stream of a device could not be split into events; its connection is closed.
	Broken struct {
		Conn site.ConnID
		Err  error
	}
	// Taken: the machine of a device has an event of an order with this token.
	Taken struct {
		Conn  site.ConnID
		Token uint64
	}
	// Closed: a connection is no more.
	Closed struct{ Conn site.ConnID }
)

// AdapterEvent marks Opened as an event of a protocol adapter.
func (Opened) AdapterEvent() {}

// AdapterEvent marks Heard as an event of a protocol adapter.
func (Heard) AdapterEvent() {}

// AdapterEvent marks Broken as an event of a protocol adapter.
func (Broken) AdapterEvent() {}

// AdapterEvent marks Taken as an event of a protocol adapter.
func (Taken) AdapterEvent() {}

// AdapterEvent marks Closed as an event of a protocol adapter.
func (Closed) AdapterEvent() {}

// Orders to the LAN room.
type (
	// Send gives one device an event in the version that it reads. With a Token, Taken or Closed follows.
	Send struct {
		Conn       site.ConnID
		XML, Proto []byte
		Token      uint64
	}
	// Spread gives an event to all devices but those in Except. With a Token, Taken or Closed of each follows.
	Spread struct {
		Except     []site.ConnID
		XML, Proto []byte
		Token      uint64
		Reckoned   bool // the position is extrapolated from the unit's last report; the event's time is the time of that report
	}
	// Speak makes the LAN room send version 1 to a device from now on, after everything that was sent before.
	Speak struct{ Conn site.ConnID }
)

// Given is the event, as XML, that an order gives to the device of a connection; nil: none. It is for callers that simulate devices
// without a LAN room.
func Given(o site.Order, conn site.ConnID) []byte {
	switch o := o.(type) {
	case Send:
		if o.Conn == conn {
			return o.XML
		}
	case Spread:
		if !slices.Contains(o.Except, conn) {
			return o.XML
		}
	}
	return nil
}

// Concerns names the device; an event confirms nothing.
func (s Send) Concerns() (site.ConnID, bool) { return s.Conn, false }

// Octets is the size of both versions.
func (s Send) Octets() int { return len(s.XML) + len(s.Proto) }

// Concerns names no device: the event is for all.
func (s Spread) Concerns() (site.ConnID, bool) { return 0, false }

// Octets is the size of both versions.
func (s Spread) Octets() int { return len(s.XML) + len(s.Proto) }

// Concerns names the device.
func (s Speak) Concerns() (site.ConnID, bool) { return s.Conn, false }

// Octets is the size of the fields.
func (Speak) Octets() int { return 16 }
