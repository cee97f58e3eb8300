package stanza

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
)

// Bounds of a stanza.
const (
	MaxStanza = 512 << 10 // octets; servers let clients send half of that
	MaxDepth  = 32        // levels
	MaxNodes  = 10_000    // elements, attributes and texts
	maxHead   = 16 << 10  // octets of a tag
)

// Reason is why something was not read: a word for counters.
type Reason string

// Reasons.
const (
	Syntax  Reason = "syntax"   // no XML, or not in the form of XMPP
	TooLong Reason = "too_long" // more than MaxStanza octets, or a tag of more than 16 KiB
	TooDeep Reason = "too_deep" // more than MaxDepth levels or MaxNodes nodes
	Doctype Reason = "doctype"  // a document type, or a custom entity
	Letters Reason = "letters"  // a character that XML does not allow, no UTF-8, or a name that is not of ASCII
)

// Fault is why a stanza or a stream was not read.
type Fault struct {
	Reason Reason
	Text   string // for people
}

// Error is the reason in a sentence.
func (f *Fault) Error() string { return "xmpp: " + f.Text }

func fault(r Reason, format string, args ...any) *Fault {
	return &Fault{r, fmt.Sprintf(format, args...)}
}

// ErrEnded says that the other side has closed the stream.
var ErrEnded = errors.New("xmpp: the stream has ended")

// Splitter cuts a stream into stanzas. It holds at most Most octets of a stanza; 0: MaxStanza.
type Splitter struct {
	Most   int
	buf    []byte // the incomplete stanza
	depth  int    // levels that are open, the stream included
	tag    []byte // the incomplete tag, from its <
	quote  byte   // the quote of an incomplete attribute value in it
	cdata  bool   // text follows, up to ]]>
	opened bool   // the stream's own element was read
	spaces []Attr // namespaces that it declares
	skip   *Fault // the stanza is not kept any more
	head   []byte // its first tag
	broken error  // the stream cannot be read any more
}

// Within reads a stream without a head (XEP-0361): its stanzas stand in this namespace.
func Within(space string) Splitter {
	return Splitter{opened: true, depth: 1, spaces: []Attr{{"", space}, {"stream", Streams}}}
}

// Open says whether a stanza is incomplete.
func (s *Splitter) Open() bool { return s.depth > 1 || len(s.tag) > 0 }

// Feed takes octets of the stream and gives each whole element of it to do: first the stream's own element, without its content. With a
// fault the element is the first tag alone, or nil if not even that can be read. After an error, which is ErrEnded or a
// *Fault, the stream cannot be read any more.
func (s *Splitter) Feed(b []byte, do func(e *Element, fault *Fault)) error {
	for len(b) > 0 && s.broken == nil {
		b = b[s.take(b, do):]
	}
	return s.broken
}

// take takes a part of b and returns its length.
func (s *Splitter) take(b []byte, do func(*Element, *Fault)) int {
	switch {
	case s.cdata:
		return s.text(b)
	case len(s.tag) == 0:
		i := bytes.IndexByte(b, '<')
		if i < 0 {
			i = len(b)
		}
		if s.depth > 1 {
			s.keep(b[:i])
		} else if len(bytes.TrimLeft(b[:i], " \t\r\n")) > 0 && !(s.depth == 0 && !s.opened && bytes.Equal(b[:i], []byte("\uFEFF"))) {
			s.broken = fault(Syntax, "text between stanzas")
		}
		if i < len(b) {
			s.tag = append(s.tag, '<')
			i++
		}
		return i
	}
	for i, c := range b {
		s.tag = append(s.tag, c)
		switch {
		case s.quote != 0:
			if c == s.quote {
				s.quote = 0
			}
		case c == '\'' || c == '"':
			s.quote = c
		case c == '>':
			s.tagged(do)
			return i + 1
		case c == '<':
			s.broken = fault(Syntax, "a tag within a tag")
			return i + 1
		case c == '[' && string(s.tag) == "<![CDATA[":
			s.cdata = true
			s.keep(s.tag)
			s.tag = s.tag[:0]
			return i + 1
		case s.tag[1] == '!' && len(s.tag) > 2 && s.tag[2] != '[':
			s.broken = fault(Doctype, "a document type or a comment: XMPP has none")
			return i + 1
		}
		if len(s.tag) > maxHead {
			s.broken = fault(TooLong, "a tag of more than %d octets", maxHead)
			return i + 1
		}
	}
	return len(b)
}

// text takes the content of CDATA. Its end may come in parts: tag holds the last octets, to find it.
func (s *Splitter) text(b []byte) int {
	for i, c := range b {
		if s.tag = append(s.tag, c); len(s.tag) > 3 {
			s.tag = s.tag[len(s.tag)-3:]
		}
		if string(s.tag) == "]]>" {
			s.keep(b[:i+1])
			s.cdata, s.tag = false, s.tag[:0]
			return i + 1
		}
	}
	s.keep(b)
	return len(b)
}

// keep holds a part of the stanza, as long as it is short enough.
func (s *Splitter) keep(b []byte) {
	if s.skip != nil {
		return
	}
	if most := cmp.Or(s.Most, MaxStanza); len(s.buf)+len(b) > most {
		s.skip, s.buf = fault(TooLong, "a stanza of more than %d octets", most), nil
		return
	}
	s.buf = append(s.buf, b...)
}

// tagged takes a whole tag.
func (s *Splitter) tagged(do func(*Element, *Fault)) {
	tag := s.tag
	s.tag = s.tag[:0]
	switch {
	case tag[1] == '?':
		if s.opened || s.depth > 0 || tag[len(tag)-2] != '?' {
			s.broken = fault(Syntax, "an instruction: XMPP has none")
		}
		return
	case tag[1] == '!':
		s.broken = fault(Doctype, "a document type or a comment: XMPP has none")
		return
	case tag[1] == '/' && s.depth == 1:
		s.broken = ErrEnded
		return
	case s.depth == 0:
		s.stream(tag, do)
		return
	}
	if s.depth == 1 {
		s.buf, s.skip, s.head = s.buf[:0], nil, append(s.head[:0], tag...)
	}
	s.keep(tag)
	switch {
	case tag[1] == '/':
		s.depth--
	case tag[len(tag)-2] != '/':
		s.depth++
		if s.depth > MaxDepth+1 && s.skip == nil {
			s.skip, s.buf = fault(TooDeep, "a stanza of more than %d levels", MaxDepth), nil
		}
	}
	if s.depth == 1 {
		s.whole(do)
	}
}

// stream takes the tag that begins the stream.
func (s *Splitter) stream(tag []byte, do func(*Element, *Fault)) {
	p := &parser{b: tag, at: 1, most: ofStreams}
	e, f := p.start(nil)
	switch {
	case s.opened || f != nil || e.Name != "stream" || e.Space != Streams || tag[len(tag)-2] == '/':
		s.broken = fault(Syntax, "no XMPP stream")
		return
	}
	s.opened, s.depth, s.spaces = true, 1, p.spaces
	do(&e, nil)
}

// whole gives a stanza to do.
func (s *Splitter) whole(do func(*Element, *Fault)) {
	f := s.skip
	if f == nil {
		e, err := parse(s.buf, s.spaces, ofStreams)
		if err == nil {
			do(&e, nil)
			return
		}
		if err.Reason == Syntax || err.Reason == Doctype {
			s.broken = err
			return
		}
		f = err
	}
	p := &parser{b: s.head, at: 1, most: ofStreams, spaces: s.spaces}
	if e, err := p.start(p.spaces); err == nil {
		do(&e, f)
		return
	}
	do(nil, f)
}
