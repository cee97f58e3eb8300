package code

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"aldis/internal/adapters/xmpp/stanza"
)

// ErrMalformed is the error of all Parse functions.
var ErrMalformed = errors.New("xmpp: not a coded record")

// MostNumbers is how many numbers of messages there are: two octets hold a number and an outcome.
const MostNumbers = 1 << 12

// Kind is the type of a message.
type Kind uint8

// Kinds.
const (
	Chat Kind = iota
	Normal
	Headline
	Group // in a room
	kinds
)

// About says how a message relates to an earlier one.
type About uint8

// Values of About.
const (
	Nothing  About = iota
	Corrects       // XEP-0308
	Replies        // XEP-0461
	ReactsTo       // XEP-0444
	Retracts       // XEP-0424
	abouts
)

// Ref names an earlier message by its number: one of the site of the sender, or of the receiver.
type Ref struct {
	Number uint16
	Yours  bool // it came from the receiver's site
}

// Tag says what a Field is.
type Tag uint8

// Tags.
const (
	Subject     Tag = 1 + iota
	Thread          // its id
	Parent          // id of the thread that it came from
	Lang            // xml:lang
	URL             // XEP-0066
	URLText         // its description
	Label           // XEP-0258: the displayed text
	LabelColors     // its foreground and background, with a blank between them
	Delay           // XEP-0203: the stamp
	Reaction        // one of them
	Fallback        // XEP-0428: first and last character of the part of the body that quotes the earlier message, with a blank between them
	Nick            // XEP-0172
	ReplyTo         // JID of the sender of the message that is replied to
	Private         // in a room: the only occupant who gets it
	Invite          // XEP-0249: the room to which the receiver is invited
)

// Field is an optional part of a message.
type Field struct {
	Tag  Tag
	Text string
}

// File is a file that a message offers: its site has it, and it crosses when somebody asks for it.
type File struct {
	Hash [32]byte // SHA-256
	Size uint64   // octets, at most MaxFile
	Name string
	MIME string
}

// MaxFile is the largest file that may be offered, in octets.
const MaxFile = 1 << 30

// Message is a message of a client. The order of Fields is kept.
type Message struct {
	Number   uint16 // below MostNumbers
	Kind     Kind
	Ask      bool // a receipt is asked for (XEP-0184)
	Markable bool // XEP-0333
	About    About
	Ref      Ref
	Fields   []Field
	File     *File // nil: it offers none
	Body     string
}

// Get is the first field of a tag; "": there is none.
func (m *Message) Get(tag Tag) string {
	for _, f := range m.Fields {
		if f.Tag == tag {
			return f.Text
		}
	}
	return ""
}

// Bounds of a message.
const (
	MaxFields = 64
	MaxOctets = 256 << 10
)

// The first octet of a record.
const (
	hasAsk = 1 << iota
	hasMarkable
	hasKind
	hasAbout
	hasFields
	hasFile
	notMessage = 0x80 // a Subscription
)

// Append appends the message:
//
//	octet   flags
//	varint  number
//	octet   kind                             if a flag says so
//	octet   about << 1 | yours, varint ref   likewise
//	octet   count, for each: octet tag, varint length, octets   likewise
//	32 octets hash, varint size, text name, name MIME (as in AppendPayload)   likewise
//	octets  body
func (m *Message) Append(dst []byte) []byte {
	flags := byte(0)
	for bit, when := range map[byte]bool{hasAsk: m.Ask, hasMarkable: m.Markable, hasKind: m.Kind != Chat, hasAbout: m.About != Nothing, hasFields: len(m.Fields) > 0, hasFile: m.File != nil} {
		if when {
			flags |= bit
		}
	}
	dst = binary.AppendUvarint(append(dst, flags), uint64(m.Number))
	if m.Kind != Chat {
		dst = append(dst, byte(m.Kind))
	}
	if m.About != Nothing {
		about := byte(m.About) << 1
		if m.Ref.Yours {
			about |= 1
		}
		dst = binary.AppendUvarint(append(dst, about), uint64(m.Ref.Number))
	}
	if len(m.Fields) > 0 {
		dst = append(dst, byte(len(m.Fields)))
		for _, f := range m.Fields {
			dst = append(binary.AppendUvarint(append(dst, byte(f.Tag)), uint64(len(f.Text))), f.Text...)
		}
	}
	if f := m.File; f != nil {
		dst = appendText(binary.AppendUvarint(append(dst, f.Hash[:]...), f.Size), f.Name)
		dst = appendWord(dst, f.MIME)
	}
	return append(dst, m.Body...)
}

// ParseMessage reads what Append appended. The error is ErrMalformed.
func ParseMessage(b []byte) (m Message, err error) {
	r := &reader{b: b}
	flags := r.octet()
	if flags >= hasFile<<1 || len(b) > MaxOctets {
		return m, fmt.Errorf("%w: flags %#x, %d octets", ErrMalformed, flags, len(b))
	}
	m = Message{Number: r.number(), Ask: flags&hasAsk != 0, Markable: flags&hasMarkable != 0}
	if flags&hasKind != 0 {
		if m.Kind = Kind(r.octet()); m.Kind == Chat || m.Kind >= kinds {
			r.fail("kind %d", m.Kind)
		}
	}
	if flags&hasAbout != 0 {
		about := r.octet()
		m.About, m.Ref.Yours = About(about>>1), about&1 != 0
		if m.Ref.Number = r.number(); m.About == Nothing || m.About >= abouts {
			r.fail("about %d", m.About)
		}
	}
	if flags&hasFields != 0 {
		count := r.octet()
		if count == 0 || count > MaxFields {
			r.fail("%d fields", count)
		}
		for range count {
			if r.err != nil {
				break
			}
			f := Field{Tag: Tag(r.octet())}
			f.Text = r.text(r.uvarint())
			m.Fields = append(m.Fields, f)
		}
	}
	if flags&hasFile != 0 {
		m.File = &File{}
		if n := copy(m.File.Hash[:], r.b); n < len(m.File.Hash) {
			r.fail("cut short")
		} else {
			r.b = r.b[n:]
		}
		m.File.Size, m.File.Name, m.File.MIME = r.uvarint(), r.printable(), r.word()
		if m.File.Size > MaxFile || !stanza.Printable(m.File.MIME) || strings.ContainsFunc(m.File.MIME, unicode.IsControl) {
			r.fail("a file of %d octets, type %q", m.File.Size, m.File.MIME)
		}
	}
	m.Body = r.text(uint64(len(r.b)))
	return m, r.err
}

// isBatch begins a batch.
const isBatch = notMessage | 0x20

// IsMessage says whether a record is a Message, IsBatch whether it is a batch of several.
func IsMessage(b []byte) bool { return len(b) > 0 && b[0]&notMessage == 0 }

// IsBatch says whether a record is a batch.
func IsBatch(b []byte) bool { return len(b) > 0 && b[0] == isBatch }

// AppendBatch appends messages: one as it is, several as octet 0xA0, for each varint length and octets.
func AppendBatch(dst []byte, lines [][]byte) []byte {
	if len(lines) == 1 {
		return append(dst, lines[0]...)
	}
	dst = append(dst, isBatch)
	for _, line := range lines {
		dst = append(binary.AppendUvarint(dst, uint64(len(line))), line...)
	}
	return dst
}

// MaxBatch is how many messages a batch has at most.
const MaxBatch = 256

// ParseBatch reads a batch of several messages that AppendBatch appended. The error is ErrMalformed.
func ParseBatch(b []byte) (lines [][]byte, err error) {
	r := &reader{b: b}
	if r.octet() != isBatch {
		r.fail("no batch")
	}
	for len(r.b) > 0 {
		n := r.uvarint()
		if n == 0 || n > uint64(len(r.b)) || !IsMessage(r.b) || len(lines) >= MaxBatch {
			r.fail("a message of %d octets", n)
			break
		}
		lines, r.b = append(lines, r.b[:n]), r.b[n:]
	}
	if r.err == nil && len(lines) < 2 {
		r.fail("%d messages", len(lines))
	}
	return lines, r.err
}

// IsSubscription says whether a record is a Subscription, not a message.
func IsSubscription(b []byte) bool { return len(b) > 0 && b[0]&notMessage != 0 }

// reader takes coded octets apart.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

func (r *reader) octet() byte {
	if len(r.b) == 0 {
		r.fail("cut short")
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n != len(binary.AppendUvarint(nil, v)) {
		r.fail("cut short")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) number() uint16 {
	n := r.uvarint()
	if n >= MostNumbers {
		r.fail("number %d", n)
		return 0
	}
	return uint16(n)
}

func (r *reader) text(octets uint64) string {
	if octets > uint64(len(r.b)) || !utf8.Valid(r.b[:octets]) {
		r.fail("a text is cut short, or no UTF-8")
		return ""
	}
	text := string(r.b[:octets])
	r.b = r.b[octets:]
	return text
}

// Drop leaves out the fields of these tags.
func (m *Message) Drop(tags ...Tag) {
	m.Fields = slices.DeleteFunc(m.Fields, func(f Field) bool { return slices.Contains(tags, f.Tag) })
}
