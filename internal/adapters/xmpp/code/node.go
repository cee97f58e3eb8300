package code

import (
	"encoding/binary"
	"slices"
	"strings"

	"aldis/internal/adapters/xmpp/stanza"
)

// Nodes are personal nodes (XEP-0163) that cross as a number, at most 8: a bit of Presence.Wants each.
var Nodes = []string{"http://jabber.org/protocol/geoloc", "http://jabber.org/protocol/tune", "http://jabber.org/protocol/mood",
	"http://jabber.org/protocol/activity", "http://jabber.org/protocol/nick", "urn:xmpp:avatar:metadata"}

// MaxNode is the longest name of a node or an item, MaxPayload the longest payload of an item, in octets.
const (
	MaxNode    = 256
	MaxPayload = 16 << 10
)

// NodeName is the name of a node on the link: one of Nodes as one character below the blank, others unchanged.
func NodeName(node string) string {
	if i := slices.Index(Nodes, node); i >= 0 {
		return string(rune(1 + i))
	}
	return node
}

// NodeOf undoes NodeName; false: no node has this name on the link.
func NodeOf(name string) (string, bool) {
	if len(name) == 1 && name[0] >= 1 && int(name[0]) <= len(Nodes) {
		return Nodes[name[0]-1], true
	}
	return name, name != "" && len(name) <= MaxNode && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' }) && stanza.Printable(name)
}

// words are names that cross as a number: of elements of XEP-0080, 0107, 0108, 0118 and 0172, of MIME types, and of namespaces. The numbers are
// part of the protocol: new ones are added at the end.
var words = append([]string{"accuracy", "alt", "altaccuracy", "area", "bearing", "building", "country", "countrycode", "datum", "description",
	"error", "floor", "lat", "locality", "lon", "postalcode", "region", "room", "speed", "street", "text", "timestamp", "tzo", "uri",
	"artist", "length", "rating", "source", "title", "track", "geoloc", "tune", "mood", "activity", "nick", "metadata", "info",
	"image/jpeg", "image/png", "application/pdf", "text/plain", "video/mp4", "audio/ogg", "image/webp", "application/zip"}, Nodes...)

// Bounds of a payload.
const (
	maxDepth = 8
	maxParts = 512
)

// AppendPayload appends the payload of an item; false: it is too long or too deep to cross. After each element's name:
//
//	octet   1: its only content is one text; 2: its namespace follows, otherwise it is its parent's; count of attributes << 2
//	each attribute: name, value
//	text, or varint count of the nodes inside; each is a text behind an empty name, or an element
//
// A name is varint n << 1 of a word, or octets << 1 | 1 and the octets; a text is varint octets and the octets.
func AppendPayload(dst []byte, e *stanza.Element) ([]byte, bool) {
	begin, parts := len(dst), 0
	dst = appendElement(dst, e, "", 0, &parts)
	return dst, parts <= maxParts && len(dst)-begin <= MaxPayload
}

func appendElement(dst []byte, e *stanza.Element, around string, depth int, parts *int) []byte {
	if *parts++; depth > maxDepth || *parts > maxParts || len(e.Attrs) > 60 {
		*parts = maxParts + 1
		return dst
	}
	dst = appendWord(dst, e.Name)
	flags := byte(0)
	text := len(e.Kids) == 1 && e.Kids[0].Name == ""
	if text {
		flags = 1
	}
	if e.Space != around {
		flags |= 2
	}
	var attrs []stanza.Attr
	for _, a := range e.Attrs {
		if nameOf(a.Name) {
			attrs = append(attrs, a)
		}
	}
	dst = append(dst, flags|byte(len(attrs))<<2)
	if flags&2 != 0 {
		dst = appendWord(dst, e.Space)
	}
	for _, a := range attrs {
		dst = appendText(appendWord(dst, a.Name), a.Value)
	}
	if text {
		return appendText(dst, e.Kids[0].Text)
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.Kids)))
	for i := range e.Kids {
		if k := &e.Kids[i]; k.Name != "" {
			dst = appendElement(dst, k, e.Space, depth+1, parts)
		} else {
			*parts++
			dst = appendText(append(dst, 1), k.Text)
		}
	}
	return dst
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendWord(dst []byte, name string) []byte {
	if i := slices.Index(words, name); i >= 0 {
		return binary.AppendUvarint(dst, uint64(i)<<1)
	}
	return append(binary.AppendUvarint(dst, uint64(len(name))<<1|1), name...)
}

// nameOf says whether a text may be the name of an attribute here: the only prefix may be xml.
func nameOf(text string) bool { return stanza.IsName(strings.TrimPrefix(text, "xml:")) }

// ParsePayload reads what AppendPayload appended. The error is ErrMalformed.
func ParsePayload(b []byte) (e stanza.Element, err error) {
	r, parts := &reader{b: b}, 0
	if len(b) > MaxPayload {
		r.fail("a payload of %d octets", len(b))
	}
	e = r.element(r.word(), "", 0, &parts)
	if len(r.b) > 0 {
		r.fail("%d octets behind a payload", len(r.b))
	}
	return e, r.err
}

func (r *reader) printable() string {
	text := r.text(r.uvarint())
	if !stanza.Printable(text) {
		r.fail("a text that XML has not")
	}
	return text
}

func (r *reader) word() string {
	n := r.uvarint()
	if n&1 == 1 {
		text := r.text(n >> 1)
		if slices.Contains(words, text) {
			r.fail("the word %q in full", text)
		}
		return text
	}
	if n>>1 >= uint64(len(words)) {
		r.fail("word %d", n>>1)
		return ""
	}
	return words[n>>1]
}

func (r *reader) element(name, around string, depth int, parts *int) stanza.Element {
	e := stanza.Element{Name: name, Space: around}
	flags := r.octet()
	if *parts++; depth > maxDepth || *parts > maxParts || !stanza.IsName(name) {
		r.fail("an element %q, level %d", name, depth)
	}
	if flags&2 != 0 {
		if e.Space = r.word(); !stanza.IsSpace(e.Space) {
			r.fail("a namespace that XML has not")
		}
	}
	for range flags >> 2 {
		a := stanza.Attr{Name: r.word(), Value: r.printable()}
		if !nameOf(a.Name) || a.Name == "xmlns" || slices.ContainsFunc(e.Attrs, func(o stanza.Attr) bool { return o.Name == a.Name }) {
			r.fail("an attribute %q", a.Name)
		}
		e.Attrs = append(e.Attrs, a)
	}
	if flags&1 != 0 {
		e.Kids = []stanza.Element{{Text: r.printable()}}
		return e
	}
	for range min(r.uvarint(), maxParts+1) {
		if r.err != nil {
			break
		}
		if k := r.word(); k != "" {
			e.Kids = append(e.Kids, r.element(k, e.Space, depth+1, parts))
		} else {
			*parts++
			e.Kids = append(e.Kids, stanza.Element{Text: r.printable()})
		}
	}
	return e
}
