package trace

import (
	"bytes"
	"fmt"
	"strings"

	"aldis/internal/ground/due"
)

// maxSeen bounds how many events a Recorder remembers, to recognise copies.
const maxSeen = 1 << 17

// Recorder turns the events of a capture into a trace: each event once, however often it crosses the capture on its way from peer to
// rendezvous to peer, and as the action of the peer that did it first.
type Recorder struct {
	f    *FileWriter
	edge string // address
	peer string // its peer, "" when the capture does not show it
	seen *due.Recent[[16]byte]
}

// NewRecorder records into f. Events of edgePeer are the edge's; if edgePeer is empty, events of the address edge in its own name. Its
// Event is an Options.Sink.
func NewRecorder(f *FileWriter, edge, edgePeer string) *Recorder {
	return &Recorder{f: f, edge: edge, peer: edgePeer, seen: due.NewRecent[[16]byte](maxSeen)}
}

// Event takes in one event.
func (r *Recorder) Event(e Event) {
	who := e.Origin
	if who == "" {
		who = e.From
	}
	var l Line
	switch e.Event {
	case EventPublish:
		if !r.seen.Add(digest("publish", e.Name, e.ID)) {
			return
		}
		l = Line{Name: e.Name, ID: e.ID, Octets: e.Octets}
	case EventQuery:
		if !r.seen.Add(digest("query", who, e.ID, e.Attr, e.Name)) {
			return
		}
		l = Line{Name: e.Name, Attr: e.Attr}
	case EventOpen:
		if !r.seen.Add(digest("open", who, e.Pipe, fmt.Sprint(e.Listen))) {
			return
		}
		l = Line{Listen: e.Listen}
	case EventSend:
		if e.ID != "" && !r.seen.Add(digest("send", e.ID, e.Pipe)) || e.ID == "" && !r.seen.Add(digest(r.content(who, &e)...)) {
			return
		}
		l = Line{Octets: e.Octets}
		for _, p := range e.Elements {
			l.Parts = append(l.Parts, PartWith(p.Name, p.Type, p.Data))
		}
	}
	own := e.From == r.edge && (e.FromPeer == "" || e.Origin == "" || e.Origin == e.FromPeer)
	if r.peer != "" && e.Origin != "" {
		own = e.Origin == r.peer
	}
	address := ""
	if e.Origin == "" || e.Origin == e.FromPeer {
		address = e.From
	}
	l.T, l.Do = e.At, e.Event
	l.Peer = r.f.Peer(e.At, who, address, "", own)
	if e.Pipe != "" || e.Event != EventQuery {
		l.Pipe = r.f.Pipe(e.At, e.Pipe, e.Kind)
	}
	r.f.Write(l)
}

// CoT takes in an event of a TAK device, as a message of the device's connection on the pipe of TAK. All devices are on the ship's side,
// where the capture was made. Events that never leave a LAN are left out.
func (r *Recorder) CoT(c CoT) {
	if kind := cotKind(c.Event); c.Copy || kind == cotPing || kind == cotVersions {
		return
	}
	l := Line{T: c.At, Do: EventSend, Octets: len(c.XML), Parts: []PartOf{PartWith(cotPart, "text/xml", c.XML)}}
	l.Peer = r.f.Peer(c.At, c.From, c.From, c.Event.Callsign(), true)
	l.Pipe = r.f.Pipe(c.At, PipeTAK, PipeTAK)
	r.f.Write(l)
}

// XMPP takes in a stanza of a user of XMPP, as a message of the user on the pipe of XMPP. A copy on the way to another client or server
// is recognised by its text, within two seconds.
func (r *Recorder) XMPP(x XMPP) {
	from, _, _ := strings.Cut(x.From, "/")
	to, _, _ := strings.Cut(x.To, "/")
	body := x.XML[max(0, bytes.IndexByte(x.XML, '>')):]
	if !bytes.HasPrefix(x.XML, []byte("<presence")) && !bytes.Contains(body, []byte("<body")) || !r.seen.Add(digest("xmpp", from, to, string(body), fmt.Sprint(int64(x.At)/2))) {
		return
	}
	l := Line{T: x.At, Do: EventSend, Octets: len(x.XML), Parts: []PartOf{PartWith(xmppPart, "text/xml", x.XML)}}
	l.Peer = r.f.Peer(x.At, from, "", "", x.Client)
	l.Pipe = r.f.Pipe(x.At, PipeXMPP, PipeXMPP)
	r.f.Write(l)
}

// content identifies a message without an id: an equal message on another connection within a minute is the same message.
func (r *Recorder) content(who string, e *Event) []string {
	var b strings.Builder
	for _, p := range e.Elements {
		fmt.Fprintf(&b, "%s %d:%s", p.Name, len(p.Data), p.Data)
	}
	return []string{"send", who, e.Pipe, b.String(), fmt.Sprint(int64(e.At) / 60)}
}
