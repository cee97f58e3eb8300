package trace

import (
	"bytes"
	"errors"
	"slices"

	"aldis/internal/adapters/xmpp/stanza"
)

// xmppPorts are those of XMPP: clients, servers, components.
var xmppPorts = []uint16{5222, 5223, 5269, 5270, 5347}

var markStream = []byte("<stream:stream")

// tlsHandshake begins a connection with TLS.
const tlsHandshake = 0x16

// maxXMPPKinds bounds the kinds of stanzas that are told apart, because strangers name them.
const maxXMPPKinds = 64

// XMPPReport is the traffic of XMPP servers, clients and components by purpose, with all octets of the streams.
type XMPPReport struct {
	Streams int64 `json:"streams"` // directions of TCP connections
	Octets  int64 `json:"octets"`
	Kinds   []Row `json:"kinds"`
	kinds   map[string]*Tally
}

// xmppStream is one direction of a connection with XMPP.
type xmppStream struct {
	split stanza.Splitter
	fed   int  // octets of an unfinished stanza
	tls   bool // the rest cannot be read
}

// looksXMPP says whether a stream is of XMPP by its first octets.
func (d *dialog) looksXMPP(b []byte) bool {
	known := slices.Contains(xmppPorts, d.c.key.a.Port()) || slices.Contains(xmppPorts, d.c.key.b.Port())
	return bytes.HasPrefix(b, markStream) || known && (b[0] == '<' || b[0] == tlsHandshake)
}

// stanzas reads a stream of XMPP.
func (d *dialog) stanzas(side int, s *stream, b []byte) (int, bool) {
	if d.a.xmpp == nil {
		d.a.xmpp = &XMPPReport{kinds: map[string]*Tally{}}
		if d.a.totals.packets == 0 && d.a.cot == nil && d.a.link == nil {
			d.a.start = s.at
		}
	}
	r, all := d.a.xmpp, len(b)
	if s.xmpp == nil {
		s.xmpp = &xmppStream{tls: b[0] == tlsHandshake}
		r.Streams++
	}
	note := func(kind string) {
		if r.kinds[kind] == nil && len(r.kinds) >= maxXMPPKinds {
			kind = "others"
		}
		tallyIn(r.kinds, kind, s.xmpp.fed)
		r.Octets += int64(s.xmpp.fed)
		d.a.read.xmpp += int64(s.xmpp.fed)
		s.xmpp.fed = 0
	}
	for len(b) > 0 {
		if s.xmpp.tls {
			s.xmpp.fed = len(b)
			note("TLS, not to be read")
			break
		}
		if !s.xmpp.split.Open() && (bytes.HasPrefix(b, markDeclaration) || bytes.HasPrefix(b, markStream)) { // again, after a negotiation
			s.xmpp.split = stanza.Splitter{}
		}
		piece := b[:bytes.IndexByte(b, '>')+1]
		if len(piece) == 0 {
			piece = b
		}
		b = b[len(piece):]
		s.xmpp.fed += len(piece)
		err := s.xmpp.split.Feed(piece, func(e *stanza.Element, _ *stanza.Fault) {
			if note(xmppKind(e)); e != nil && e.Name == "proceed" {
				d.tls()
			} else if e != nil {
				d.said(side, s, e)
			}
		})
		switch {
		case errors.Is(err, stanza.ErrEnded):
			note(xmppSetUp)
		case err != nil:
			note("not readable")
			d.a.read.unread += int64(len(b))
			s.state = atForeign
			return all, false
		case s.xmpp.fed > 0 && len(bytes.TrimSpace(piece)) == 0 && !s.xmpp.split.Open():
			note("white space, to keep the connection")
		}
	}
	return all, false
}

// XMPP is a message or presence in a capture on its way from a client to its server, or between servers.
type XMPP struct {
	At       float64 // s from the capture's beginning
	From, To string  // JIDs
	Client   bool    // a client sent it to its own server, so that this is the LAN of From
	XML      []byte  // as a component would send it
}

// PipeXMPP is the kind of the pipe of stanzas in a trace.
const PipeXMPP = "xmpp"

// xmppPart is the name of the only part of such a message.
const xmppPart = "xmpp:stanza"

// said passes on the stanzas of users. A server's stanza to a client was sent before, or comes from elsewhere: of these only messages
// are passed on.
func (d *dialog) said(side int, s *stream, e *stanza.Element) {
	if bind := e.Kid("urn:ietf:params:xml:ns:xmpp-bind", "bind"); bind != nil && e.Get("type") == "result" {
		d.jid = bind.Kid(bind.Space, "jid").Inside()
		return
	}
	d.a.end = max(d.a.end, s.at)
	if d.a.opt.XMPP == nil || e.Name != "message" && e.Name != "presence" || e.Get("to") == "" {
		return
	}
	x := XMPP{At: float64(s.at-d.a.start) / 1e9, From: e.Get("from"), To: e.Get("to")}
	if x.Client = x.From == "" && d.jid != ""; x.Client {
		x.From = d.jid
		e.Attrs = append(slices.Clone(e.Attrs), stanza.Attr{Name: "from", Value: d.jid})
	}
	if x.From == "" || e.Space == "jabber:client" && !x.Client && (e.Name != "message" || e.Get("type") == "error") {
		return
	}
	plain := asComponent(*e, e.Space)
	x.XML = plain.Append(nil, stanza.Component)
	d.a.opt.XMPP(x)
}

// asComponent is a stanza in the namespace of components.
func asComponent(e stanza.Element, space string) stanza.Element {
	if e.Space == space {
		e.Space = stanza.Component
	}
	kids := e.Kids
	e.Kids = nil
	for _, k := range kids {
		e.Kids = append(e.Kids, asComponent(k, space))
	}
	return e
}

// tls notes that both directions continue with TLS.
func (d *dialog) tls() {
	for side := range d.dir {
		if s := &d.dir[side]; s.xmpp != nil {
			s.xmpp.tls = true
		}
	}
}

const xmppSetUp = "set-up and end of streams"

// xmppKind is the purpose of an element of a stream.
func xmppKind(e *stanza.Element) string {
	switch kind := ""; {
	case e == nil || e.Name == "":
		return "not readable"
	case e.Get("type") == "error":
		return e.Name + ": error"
	case e.Name == "message" && slices.ContainsFunc(e.Kids, func(k stanza.Element) bool { return k.Name == "body" }):
		return "message with text"
	case e.Name == "message":
		return "message without text"
	case e.Name == "presence":
		if kind = e.Get("type"); kind != "" && kind != "unavailable" {
			return "presence: " + kind
		}
		return "presence"
	case e.Name == "iq":
		for _, k := range e.Kids {
			if k.Name != "" {
				return "iq: " + k.Space
			}
		}
		return "iq: answer without content"
	case e.Space == "jabber:server:dialback":
		return "dialback"
	case e.Space == "urn:xmpp:sm:3":
		return "stream management"
	}
	return xmppSetUp
}

func (r *XMPPReport) finish() *XMPPReport {
	if r != nil {
		r.Kinds = rowsOf(r.kinds)
		slices.SortFunc(r.Kinds, func(a, b Row) int { return int(b.Octets - a.Octets) })
	}
	return r
}

// writeText prints the figures of XMPP, if there are any.
func (r *XMPPReport) writeText(w *Writer) {
	if r == nil {
		return
	}
	w.F("\nXMPP: %d octets in %d streams\n", r.Octets, r.Streams)
	w.rows("Stanzas", "octets", r.Kinds)
}

// XMPPCost is the cost of the stanzas of users of two domains between two gateways.
type XMPPCost struct {
	Profile string `json:"profile"`
	Summary string `json:"summary,omitempty"`
	Seed    uint64 `json:"seed"`
	Stanzas int    `json:"stanzas"` // that concern the other site
	XMPP    int64  `json:"xmpp_octets"`
	// Octets and Datagrams are those on the link, both directions, all headers included.
	Octets     int64      `json:"octets"`
	Datagrams  int64      `json:"datagrams"`
	BusyPct    float64    `json:"busy_percent"`
	AirMinutes float64    `json:"air_minutes"`
	UnaidedPct float64    `json:"unaided_percent"` // how full the stanzas alone would make the link, each once, without any header
	Kinds      []XMPPKind `json:"kinds"`
}

// XMPPKind is the results of the stanzas of one kind.
type XMPPKind struct {
	Kind    string  `json:"kind"`
	Said    int     `json:"said"`
	Came    int     `json:"came"`    // only those with a text
	Ended   int     `json:"ended"`   // their senders got an error
	Missing int     `json:"missing"` // neither came nor ended, five minutes after the last
	MedianS float64 `json:"median_s"`
	MaxS    float64 `json:"max_s"`
}
