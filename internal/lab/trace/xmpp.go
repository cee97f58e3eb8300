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

// maxXMPPKinds bounds the kinds of stanzas that are told apart: strangers name them.
const maxXMPPKinds = 64

// XMPPReport is what XMPP servers, clients and components said: what it is for, with all octets of the streams.
type XMPPReport struct {
	Streams int64 `json:"streams"` // directions of TCP connections
	Octets  int64 `json:"octets"`
	Kinds   []Row `json:"kinds"`
	kinds   map[string]*Tally
}

// xmppStream is one direction of a connection with XMPP.
type xmppStream struct {
	split stanza.Splitter
	fed   int  // octets of what has not ended
	tls   bool // what follows cannot be read
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

// tls says that both directions go on with TLS.
func (d *dialog) tls() {
	for side := range d.dir {
		if s := &d.dir[side]; s.xmpp != nil {
			s.xmpp.tls = true
		}
	}
}

const xmppSetUp = "set-up and end of streams"

// xmppKind is what an element of a stream is for.
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

// writeText prints what XMPP said; nothing where there was nothing.
func (r *XMPPReport) writeText(w *Writer) {
	if r == nil {
		return
	}
	w.F("\nXMPP: %d octets in %d streams\n", r.Octets, r.Streams)
	w.rows("Stanzas", "octets", r.Kinds)
}
