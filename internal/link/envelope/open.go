package envelope

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// An open message has an envelope that defines its flow, or begins with three octets, 128 to 255 the first, whose low 21 bits are the Ref of
// its flow. A brief envelope of flow refFlow follows without its first octet, and with formPlain without its second, which is
// compact.Stored; with formAlike an envelope of any form follows.
const (
	refBits   = 21
	refFlow   = 1
	formPlain = 0x20
)

// Ref is a hash of the names of a flow.
func (f Flow) Ref() uint32 {
	h := sha256.Sum256([]byte(f))
	return binary.BigEndian.Uint32(h[:]) >> (32 - refBits)
}

// Names are those of p's flow, and the octets that they take in a message. Append has taken p: they are UTF-8.
func Names(p *site.Message) (f Flow, octets int) { return FlowOf(p), proto.Size(definition(p, true)) }

// PackedOpen is an open message as it crosses the link, with the names of its flow or with their Ref.
func PackedOpen(coder *compact.Coder, p *site.Message, names bool, texts *Texts) ([]byte, error) {
	if names {
		return Packed(coder, Message{Payload: p}, 0, true, texts)
	}
	b, err := Packed(coder, Message{Payload: p}, refFlow, false, texts)
	if err != nil {
		return nil, err
	}
	ref, form := FlowOf(p).Ref(), byte(formBrief|formAlike)
	if b[0] == formBrief|refFlow {
		if form, b = formBrief, b[1:]; len(b) > 0 && b[0] == byte(compact.Stored) {
			form, b = formBrief|formPlain, b[1:]
		}
	}
	return append([]byte{form | byte(ref>>16), byte(ref >> 8), byte(ref)}, b...), nil
}

// ParseOpen is the inverse of PackedOpen. lookup gives the names with a Ref; ErrUnknownFlow: it has none. defined are names that the
// message has itself.
func ParseOpen(b []byte, lookup func(ref uint32) (Flow, bool), texts *Texts) (m Message, defined Flow, err error) {
	var flow Flow
	known := false
	if len(b) >= 3 && b[0]&formBrief != 0 {
		ref := (uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])) & (1<<refBits - 1)
		if flow, known = lookup(ref); !known {
			return m, "", ErrUnknownFlow
		}
		rest := b[3:]
		switch b[0] & (formAlike | formPlain) {
		case 0:
			rest = append([]byte{formBrief | refFlow}, rest...)
		case formPlain:
			rest = append([]byte{formBrief | refFlow, byte(compact.Stored)}, rest...)
		}
		b = rest
	}
	m, _, defined, err = ParseCoded(b, func(number uint32) (Flow, bool) { return flow, known && number == refFlow }, texts)
	if known { // then it names nothing for others
		defined = ""
	}
	return m, defined, err
}

// Defined are the names that an open message has itself; false: it has none. No element is expanded.
func Defined(b []byte) (Flow, bool) {
	b, err := unpack(b, MostExpanded(len(b)))
	e := &Envelope{}
	if err != nil || len(b) == 0 || b[0]&formBrief != 0 || count(b) != nil || proto.Unmarshal(b, e) != nil || e.Define == nil || e.Define.spellOut() != nil {
		return "", false
	}
	return Flow(marshal(nil, e.Define)), true
}
