package envelope

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"aldis/internal/link/compact"
)

// The first octet of an envelope on the link says which of three forms it has. A Protocol Buffers tag is neither 0 nor,
// for the fields below 16 that an Envelope has, above 127:
//
//	0              deflated: an envelope of another form follows, as compact.Deflated
//	1 to 127       Protocol Buffers
//	128 to 255     brief: a message of a known flow, as nearly all are on a busy link
//
// A brief envelope has the flow's number in the low six bits (63: an unsigned varint with it follows). In flows whose
// messages have a key, three octets of the key follow. Then it has codec and code of each element, and before all but the
// last an unsigned varint with the octets of both. With formAlike the codecs are left out: each is compact.Alike.
//
// Flow 0 has no messages. A brief envelope of flow 0 defines a flow from one user to another (FlowDef.pair) and carries its
// first message. After formBrief alone it has an unsigned varint with the flow's number, each of the two names after an
// unsigned varint with its octets, and codec and code of the only element.
const (
	formDeflated = 0x00
	formBrief    = 0x80
	formAlike    = 0x40
	longFlow     = 0x3f
)

// Pack returns an envelope as it crosses the link, deflated where that is shorter; the result is valid until coder's next use.
func Pack(coder *compact.Coder, b []byte) []byte {
	const modelled = formBrief | formAlike
	if len(b) == 0 || b[0]&modelled == modelled { // compression has nothing left to gain
		return b
	}
	if out, ok := coder.Deflate(b); ok && len(out)+1 < len(b) {
		return append([]byte{formDeflated}, out...)
	}
	return b
}

// Packed is a message as it crosses the link: AppendCoded, then Pack, filled up to the length that its expanded size
// requires (MostExpanded). It is valid until coder's next use.
func Packed(coder *compact.Coder, m Message, number uint32, define bool, texts *Texts) ([]byte, error) {
	b, err := AppendCoded(nil, m, number, define, texts)
	if err != nil {
		return nil, err
	}
	out := b
	if texts == nil || !texts.Sparing {
		out = Pack(coder, b)
	}
	octets := m.Octets()
	if m.Rest != nil {
		octets = 0
	}
	least := leastOctets(max(octets, len(b)))
	if len(out) >= least {
		return out, nil
	}
	if out[0] != formDeflated {
		out = append([]byte{formDeflated}, coder.Deflated(b)...)
	}
	return append(out, make([]byte, max(0, least-len(out)))...), nil // the octets after the end of deflated data are not read
}

// Octets is how many octets of data and documents the message has.
func (m *Message) Octets() (n int) {
	if m.Payload != nil {
		for _, e := range flat(m.Payload.Parts) {
			n += len(e.Data)
		}
	}
	for i := range m.Items {
		n += len(m.Items[i].Doc)
	}
	return n
}

// unpack undoes Pack, to most octets.
func unpack(b []byte, most int) ([]byte, error) {
	if len(b) == 0 || b[0] != formDeflated {
		return b, nil
	}
	out, err := compact.Expand(compact.Deflated, b[1:], most)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, beyond(err))
	}
	if len(out) > 0 && out[0] == formDeflated {
		return nil, fmt.Errorf("%w: deflated twice", ErrMalformed)
	}
	return out, nil
}

// appendBrief appends e in brief form; false where the form cannot hold e. alike says whether an element's codec may be
// left out; nil: no codec may.
func appendBrief(dst []byte, e *Envelope, alike func(i int, codec compact.Codec, code []byte) bool) ([]byte, bool) {
	coded := e.Coded
	if len(coded) == 0 {
		for _, d := range e.Data {
			coded = append(coded, append([]byte{byte(compact.Stored)}, d...))
		}
	}
	if e.Flow != 0 && len(coded) == 1 && e.Define != nil && len(e.Define.Pair) > 0 && proto.Size(e) == proto.Size(&Envelope{Flow: e.Flow, Data: e.Data, Coded: e.Coded, Define: &FlowDef{Pair: e.Define.Pair}}) {
		from, w := binary.Uvarint(e.Define.Pair)
		names := e.Define.Pair[w:]
		dst = binary.AppendUvarint(append(dst, formBrief), uint64(e.Flow))
		dst = append(binary.AppendUvarint(dst, from), names[:from]...)
		dst = append(binary.AppendUvarint(dst, uint64(len(names))-from), names[from:]...)
		return append(dst, coded[0]...), true
	}
	if e.Flow == 0 || proto.Size(e) != proto.Size(&Envelope{Flow: e.Flow, Data: e.Data, Coded: e.Coded, Key: e.Key}) {
		return dst, false
	}
	form := byte(formBrief)
	if alike != nil && len(coded) > 0 {
		all := true
		for i, c := range coded {
			all = all && alike(i, compact.Codec(c[0]), c[1:])
		}
		if all {
			form |= formAlike
		}
	}
	if e.Flow < longFlow {
		dst = append(dst, form|byte(e.Flow))
	} else {
		dst = binary.AppendUvarint(append(dst, form|longFlow), uint64(e.Flow))
	}
	if e.Key != 0 {
		dst = append(dst, byte(e.Key>>16), byte(e.Key>>8), byte(e.Key))
	}
	for i, c := range coded {
		if form&formAlike != 0 {
			c = c[1:]
		}
		if i < len(coded)-1 {
			dst = binary.AppendUvarint(dst, uint64(len(c)))
		}
		dst = append(dst, c...)
	}
	return dst, true
}

// briefFlow is the number of a brief envelope's flow, and the octets after it.
func briefFlow(b []byte) (number uint32, rest []byte, err error) {
	number, rest = uint32(b[0]&longFlow), b[1:]
	if number < longFlow {
		return number, rest, nil
	}
	flow, n := binary.Uvarint(rest)
	if n <= 0 || flow < longFlow || flow > 1<<32-1 {
		return 0, nil, fmt.Errorf("%w: flow number", ErrMalformed)
	}
	return uint32(flow), rest[n:], nil
}

// mostFleeting is the longest message on the link that Fleeting looks at: messages of fleeting flows are short.
const mostFleeting = 1024

// Fleeting says whether a message on the link is of a flow whose messages need not wait for earlier ones. It expands no
// element. A message that cannot be read, or whose flow is not known, is not fleeting.
func Fleeting(b []byte, lookup func(number uint32) (Flow, bool)) bool {
	if len(b) > mostFleeting {
		return false
	}
	b, err := unpack(b, MostExpanded(len(b)))
	if err != nil || len(b) == 0 {
		return false
	}
	number, e := uint32(0), &Envelope{}
	if b[0]&formBrief != 0 {
		number, _, err = briefFlow(b)
	} else if err = count(b); err == nil {
		err = proto.Unmarshal(b, e)
		number = e.Flow
	}
	if err != nil {
		return false
	}
	if e.Define != nil {
		return e.Define.Fleeting
	}
	flow, known := lookup(number)
	def := &FlowDef{}
	return known && proto.Unmarshal([]byte(flow), def) == nil && def.Fleeting
}

// parsePair reads a brief envelope that defines a flow from one user to another, without its first octet.
func parsePair(b []byte) (*Envelope, error) {
	number := func() uint64 {
		n, w := binary.Uvarint(b)
		if w <= 0 {
			n, w = 0, len(b)
		}
		b = b[w:]
		return n
	}
	flow := number()
	var names [2][]byte
	for i := range names {
		n := number()
		if n == 0 || n > uint64(len(b)) {
			return nil, fmt.Errorf("%w: a pair of users", ErrMalformed)
		}
		names[i], b = b[:n], b[n:]
	}
	if flow == 0 || flow > 1<<32-1 || len(b) == 0 {
		return nil, fmt.Errorf("%w: the first message of a pair of users", ErrMalformed)
	}
	pair := append(binary.AppendUvarint(nil, uint64(len(names[0]))), names[0]...)
	return &Envelope{Flow: uint32(flow), Define: &FlowDef{Pair: append(pair, names[1]...)}, Coded: [][]byte{b}}, nil
}

// parseBrief is the inverse of appendBrief; lookup says how many elements the flow's messages have.
func parseBrief(b []byte, lookup func(number uint32) (Flow, bool)) (*Envelope, error) {
	if b[0] == formBrief {
		return parsePair(b[1:])
	}
	alike := b[0]&formAlike != 0
	e := &Envelope{}
	var err error
	if e.Flow, b, err = briefFlow(b); err != nil {
		return nil, err
	}
	var flow Flow
	known := false
	if lookup != nil {
		flow, known = lookup(e.Flow)
	}
	if !known || e.Flow == 0 {
		return nil, fmt.Errorf("%w: %d", ErrUnknownFlow, e.Flow)
	}
	var def FlowDef
	if err := proto.Unmarshal([]byte(flow), &def); err != nil {
		return nil, fmt.Errorf("%w: flow %d: %v", ErrMalformed, e.Flow, err)
	}
	if def.Keyed {
		if len(b) < 3 {
			return nil, fmt.Errorf("%w: key cut short", ErrMalformed)
		}
		e.Key, b = uint32(b[0])<<16|uint32(b[1])<<8|uint32(b[2]), b[3:]
	}
	for i := range def.Shape {
		c := b
		if i < len(def.Shape)-1 {
			size, n := binary.Uvarint(b)
			if n <= 0 || size > uint64(len(b)-n) {
				return nil, fmt.Errorf("%w: element %d cut short", ErrMalformed, i)
			}
			c = b[n : n+int(size)]
			b = b[n:]
		}
		b = b[len(c):]
		if alike {
			c = append([]byte{byte(compact.Alike)}, c...)
		}
		e.Coded = append(e.Coded, c)
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%w: %d octets behind a message", ErrMalformed, len(b))
	}
	return e, nil
}
