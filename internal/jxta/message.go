package jxta

import (
	"encoding/binary"
	"math"
	"slices"
)

// Limits bound what ParseMessage accepts.
type Limits struct {
	Elements int // elements, signature elements included
	Name     int // octets of a name, MIME type or namespace
	Total    int // octets of the whole body
}

// DefaultLimits are far above what peers send and bound the work of one message.
var DefaultLimits = Limits{Elements: 1024, Name: 1024, Total: 16 << 20}

const (
	maxNamespaces = 253 // besides "" and "jxta" (wire 2.3)
	maxString     = math.MaxInt16

	flagType      = 0x01 // wire version 0
	flagEncoding  = 0x02
	flagSignature = 0x04

	flag1Lengths64 = 0x01 // wire version 1
	flag1Literal   = 0x02
	flag1Type      = 0x04
	flag1Signature = 0x08

	nameLiteral = 0xFFFF
)

// Find returns the first element of a namespace and name, nil if there is none.
func (m *Message) Find(namespace, name string) *Element {
	for i := range m.Elements {
		if e := &m.Elements[i]; e.Name == name && e.Namespace == namespace {
			return e
		}
	}
	return nil
}

// AppendMessage appends m in the wire version that it names. Namespaces enter the table in order of first use.
func AppendMessage(b []byte, m Message) ([]byte, error) {
	return appendMessage(b, m, nil)
}

// MessageParts is the output of AppendMessage in parts that follow each other: the octets of large elements are not copied,
// and must not change while the parts are used.
func MessageParts(m Message) ([][]byte, error) {
	room := 64
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			room += 32 + len(e.Namespace) + len(e.Name) + len(e.Type)
			if len(e.Data) < longData {
				room += len(e.Data)
			}
		}
	}
	var out cuts
	b, err := appendMessage(make([]byte, 0, room), m, &out)
	if err != nil {
		return nil, err
	}
	parts, from := make([][]byte, 0, 2*len(out)+1), 0
	for _, c := range out {
		parts, from = append(parts, b[from:c.at], c.data), c.at
	}
	return append(parts, b[from:]), nil
}

// cuts are the places of data that was not copied.
type cuts []struct {
	at   int
	data []byte
}

const longData = 16 << 10 // octets from which the data of an element is a part of its own

// data appends the octets of an element, or notes where they belong.
func (c *cuts) data(b, data []byte) []byte {
	if c == nil || len(data) < longData {
		return append(b, data...)
	}
	*c = append(*c, struct {
		at   int
		data []byte
	}{len(b), data})
	return b
}

func appendMessage(b []byte, m Message, out *cuts) ([]byte, error) {
	if len(m.Elements) > math.MaxInt16 {
		return b, fail("message", "elementCount", ErrTooLong)
	}
	switch m.Version {
	case 0:
		return appendMessage0(b, m, out)
	case 1:
		return appendMessage1(b, m, out)
	}
	return b, fail("message", "version", ErrMismatch)
}

// nameTable collects names in order of first use; "" and "jxta" have fixed places.
type nameTable struct {
	list []string
	more map[string]int // numbers in list, if it is long
}

const fewNames = 8 // so many are searched without a map

func (t *nameTable) id(s string) (id int, known bool) {
	switch {
	case s == "":
		return 0, true
	case s == "jxta":
		return 1, true
	case t.more != nil:
		id, known = t.more[s]
		return id, known
	}
	i := slices.Index(t.list, s)
	return 2 + i, i >= 0
}

func (t *nameTable) add(s string) {
	if _, known := t.id(s); known {
		return
	}
	t.list = append(t.list, s)
	if len(t.list) > fewNames && t.more == nil {
		t.more = map[string]int{}
		for i, name := range t.list {
			t.more[name] = 2 + i
		}
	} else if t.more != nil {
		t.more[s] = 1 + len(t.list)
	}
}

// at is the number of a name that was added.
func (t *nameTable) at(s string) int {
	id, _ := t.id(s)
	return id
}

func appendMessage0(b []byte, m Message, out *cuts) ([]byte, error) {
	start := len(b)
	names := &nameTable{}
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			names.add(e.Namespace)
		}
	}
	if len(names.list) > maxNamespaces {
		return b, fail("message", "nsCount", ErrTooLong)
	}
	b = append(b, "jxmg\x00"...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(names.list)))
	var err error
	for _, s := range names.list {
		if b, err = appendString(b, s); err != nil {
			return b[:start], err
		}
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Elements)))
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			if b, err = appendElement0(b, e, names, out); err != nil {
				return b[:start], err
			}
		}
	}
	return b, nil
}

func appendElement0(b []byte, e *Element, names *nameTable, out *cuts) ([]byte, error) {
	var flags byte
	if e.Type != "" {
		flags |= flagType
	}
	if e.Encoding != "" {
		flags |= flagEncoding
	}
	if e.Signature != nil {
		flags |= flagSignature
	}
	b = append(b, 'j', 'x', 'e', 'l', byte(names.at(e.Namespace)), flags)
	b, err := appendString(b, e.Name)
	if err == nil && e.Type != "" {
		b, err = appendString(b, e.Type)
	}
	if err == nil && e.Encoding != "" {
		b, err = appendString(b, e.Encoding)
	}
	if err != nil {
		return b, err
	}
	if len(e.Data) > math.MaxInt32 {
		return b, fail("message", "dataLen", ErrTooLong)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Data)))
	return out.data(b, e.Data), nil
}

func appendMessage1(b []byte, m Message, out *cuts) ([]byte, error) {
	start := len(b)
	names := &nameTable{}
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			if e.Encoding != "" {
				return b, fail("message", "encodings", ErrMismatch) // lengths before encoding are unknown to us
			}
			names.add(e.Namespace)
			names.add(e.Type)
		}
	}
	if len(names.list) > nameLiteral-2 {
		return b, fail("message", "namesCount", ErrTooLong)
	}
	b = append(b, "jxmg\x01\x00"...)
	b = binary.BigEndian.AppendUint16(b, uint16(len(names.list)))
	var err error
	for _, s := range names.list {
		if b, err = appendString(b, s); err != nil {
			return b[:start], err
		}
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Elements)))
	for i := range m.Elements {
		for e := &m.Elements[i]; e != nil; e = e.Signature {
			flags := byte(flag1Literal)
			if e.Type != "" {
				flags |= flag1Type
			}
			if e.Signature != nil {
				flags |= flag1Signature
			}
			b = append(b, 'j', 'x', 'e', 'l', flags)
			b = binary.BigEndian.AppendUint16(b, uint16(names.at(e.Namespace)))
			if b, err = appendString(b, e.Name); err != nil {
				return b[:start], err
			}
			if e.Type != "" {
				b = binary.BigEndian.AppendUint16(b, uint16(names.at(e.Type)))
			}
			if len(e.Data) > math.MaxInt32 {
				return b[:start], fail("message", "dataLen", ErrTooLong)
			}
			b = binary.BigEndian.AppendUint32(b, uint32(len(e.Data)))
			b = out.data(b, e.Data)
		}
	}
	return b, nil
}

func appendString(b []byte, s string) ([]byte, error) {
	if len(s) > maxString {
		return b, fail("message", "string", ErrTooLong)
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...), nil
}

// ParseMessage reads a binary message of wire version 0 or 1 and returns the octets after its last element (the CBJX
// trailer of a signed peer, or none). Element data aliases b.
func ParseMessage(b []byte, lim Limits) (Message, []byte, error) {
	if len(b) > lim.Total {
		return Message{}, nil, fail("message", "body", ErrTooLong)
	}
	if len(b) < 5 {
		return Message{}, nil, fail("message", "jxmg", ErrShort)
	}
	if string(b[:4]) != "jxmg" {
		return Message{}, nil, fail("message", "jxmg", ErrMismatch)
	}
	r := &messageReader{b: b[5:], lim: lim, names: []string{"", "jxta"}}
	m := Message{Version: b[4]}
	switch m.Version {
	case 0:
	case 1:
		if flags := r.next(1, "flags"); r.err == nil && flags[0] != 0 {
			return Message{}, nil, fail("message", "flags", ErrMismatch) // UTF-16 and UTF-32 strings: nobody sends them
		}
	default:
		return Message{}, nil, fail("message", "version", ErrMismatch)
	}
	r.version = m.Version
	n := int(r.u16("nsCount"))
	if r.err == nil && (n > maxNamespaces && m.Version == 0 || n > 2*lim.Elements) {
		return Message{}, nil, fail("message", "nsCount", ErrTooLong)
	}
	for i := 0; i < n && r.err == nil; i++ {
		r.names = append(r.names, r.str("namespace"))
	}
	count := int(r.u16("elementCount"))
	if r.err != nil {
		return Message{}, nil, r.err
	}
	if count > lim.Elements {
		return Message{}, nil, fail("message", "elementCount", ErrTooLong)
	}
	const least = 12 // octets of an element
	m.Elements = slices.Grow(m.Elements, min(count, len(r.b)/least))
	for i := 0; i < count || count == 0 && len(r.b) >= 4 && string(r.b[:4]) == "jxel"; i++ {
		e := r.element()
		if r.err != nil {
			return Message{}, nil, r.err
		}
		m.Elements = append(m.Elements, e)
	}
	return m, r.b, nil
}

type messageReader struct {
	b       []byte
	lim     Limits
	names   []string
	version uint8
	read    int // elements so far
	err     error
}

func (r *messageReader) next(n int, field string) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.b) {
		r.err = fail("message", field, ErrShort)
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *messageReader) u16(field string) uint16 {
	p := r.next(2, field)
	if p == nil {
		return 0
	}
	return binary.BigEndian.Uint16(p)
}

func (r *messageReader) str(field string) string {
	n := int(r.u16(field))
	if r.err == nil && n > min(r.lim.Name, maxString) {
		r.err = fail("message", field, ErrTooLong)
	}
	b := r.next(n, field)
	if s, ok := wellKnown[string(b)]; ok {
		return s
	}
	return string(b)
}

// name reads a reference of wire version 1.
func (r *messageReader) name(field string) string {
	id := int(r.u16(field))
	switch {
	case r.err != nil:
		return ""
	case id == nameLiteral:
		return r.str(field)
	case id >= len(r.names):
		r.err = fail("message", field, ErrMismatch)
		return ""
	}
	return r.names[id]
}

func (r *messageReader) element() Element {
	first := Element{}
	for e := &first; ; e = e.Signature {
		r.read++
		if r.read > r.lim.Elements {
			r.err = fail("message", "element", ErrTooLong)
			return first
		}
		if magic := r.next(4, "jxel"); r.err == nil && string(magic) != "jxel" {
			r.err = fail("message", "jxel", ErrMismatch)
		}
		signed := false
		if r.version == 0 {
			signed = r.element0(e)
		} else {
			signed = r.element1(e)
		}
		if r.err != nil || !signed {
			return first
		}
		e.Signature = &Element{}
	}
}

func (r *messageReader) element0(e *Element) (signed bool) {
	p := r.next(2, "flags")
	if r.err != nil {
		return false
	}
	ns, flags := int(p[0]), p[1]
	if ns >= len(r.names) {
		r.err = fail("message", "nsId", ErrMismatch)
		return false
	}
	if flags&^(flagType|flagEncoding|flagSignature) != 0 {
		r.err = fail("message", "flags", ErrMismatch)
		return false
	}
	e.Namespace, e.Name = r.names[ns], r.str("name")
	if flags&flagType != 0 {
		e.Type = r.str("type")
	}
	if flags&flagEncoding != 0 {
		e.Encoding = r.str("encoding")
	}
	e.Data = r.data(false)
	return flags&flagSignature != 0
}

func (r *messageReader) element1(e *Element) (signed bool) {
	p := r.next(1, "flags")
	if r.err != nil {
		return false
	}
	flags := p[0]
	if flags&^(flag1Lengths64|flag1Literal|flag1Type|flag1Signature) != 0 {
		r.err = fail("message", "flags", ErrMismatch) // encodings (0x10, 0x20): JXTA-C refuses them, too
		return false
	}
	e.Namespace = r.name("nsId")
	if flags&flag1Literal != 0 {
		e.Name = r.str("name")
	} else {
		e.Name = r.name("name")
	}
	if flags&flag1Type != 0 {
		e.Type = r.name("type")
	}
	e.Data = r.data(flags&flag1Lengths64 != 0)
	return flags&flag1Signature != 0
}

func (r *messageReader) data(long bool) []byte {
	var n uint64
	if long {
		if p := r.next(8, "dataLen"); p != nil {
			n = binary.BigEndian.Uint64(p)
		}
	} else if p := r.next(4, "dataLen"); p != nil {
		n = uint64(binary.BigEndian.Uint32(p))
	}
	if r.err == nil && n > uint64(len(r.b)) {
		r.err = fail("message", "dataLen", ErrShort)
	}
	return r.next(int(n), "data")
}
