package trace

import "net/netip"

// Names of events.
const (
	EventPublish = "publish"
	EventQuery   = "query"
	EventOpen    = "open"
	EventSend    = "send"
)

// Event is an action of an application, as a capture shows it.
type Event struct {
	at       int64 // ns since 1970 UTC
	At       float64
	Event    string
	From, To string // IP addresses of the two ends of the connection
	FromPeer string // peer at From, unique value, when it is known
	Kind     string // of the pipe: "propagate" or "unicast"
	Listen   bool   // open: for receiving
	Origin   string // peer that made the message, unique value
	Name     string // service
	Attr     string // for queries: the attribute whose value is Name
	ID       string
	Pipe     string
	Octets   int // of the application
	Elements []Part
	Echo     bool // the message came back to its origin
}

// Part is one element of the application.
type Part struct {
	Name, Type string
	Octets     int
	Data       []byte // aliases the message
}

func (e *Event) add(name, mime string, data []byte) {
	e.Elements = append(e.Elements, Part{name, mime, len(data), data})
	e.Octets += len(data)
}

func (a *Analyser) emit(e Event) {
	if a.opt.Sink == nil {
		return
	}
	if addr, err := netip.ParseAddr(e.From); err == nil && a.hosts[addr] != nil {
		e.FromPeer = a.hosts[addr].peer
	}
	e.At = float64(e.at-a.start) / 1e9
	a.opt.Sink(e)
}
