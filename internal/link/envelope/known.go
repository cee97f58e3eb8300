package envelope

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// known are flows that every network with an adapter other than JXTA's has. A message that defines one has its number, one
// octet, instead of its names. The numbers are part of the protocol: none is reused, and new ones are added at the end.
var known = [...]site.Message{
	1:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "units", Parts: []site.Part{{Name: "units"}}},
	2:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "event"}, // its element has the name of the event's type
	3:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "ask", Parts: []site.Part{{Name: "ask"}}},
	4:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "want", Parts: []site.Part{{Name: "want"}}},
	5:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "part", Parts: []site.Part{{Name: "part"}}},
	6:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "chat", Parts: []site.Part{{Name: "b-t-f"}}},
	7:          {Adapter: site.TAK, Published: true, Scope: "tak", Topic: "receipt", Parts: []site.Part{{Name: "r"}}},
	8:          {Adapter: site.XMPP, Published: true, Topic: "outcome", Parts: []site.Part{{}}},
	userToUser: {Adapter: site.XMPP, From: "*", To: "*", Parts: []site.Part{{}}},
}

// userToUser is the number of flows from one user to another: a definition has both names instead of this number.
const userToUser = 9

// knownAs is the number of a message's known flow; 0: it has none.
func knownAs(p *site.Message) (number uint32) {
	for n := 1; n < len(known); n++ {
		k := &known[n]
		if k.From != "" && p.Adapter == k.Adapter && !p.Published && p.From != "" && p.To != "" && p.Scope == "" && p.Service == "" && p.Param == "" && len(p.Parts) > 0 {
			return uint32(n)
		}
		if p.Adapter == k.Adapter && p.Published && p.From == "" && p.Scope == k.Scope && p.Topic == k.Topic && len(p.Parts) > 0 {
			return uint32(n)
		}
	}
	return 0
}

// definition is the flow of p as a message defines it: on the link by its known number, if it has one; in the journal always in full.
func definition(p *site.Message, short bool) *FlowDef {
	def, n := flowDef(p), knownAs(p)
	if n == 0 || !short {
		return def
	}
	byNumber := &FlowDef{Known: n, Precedence: def.Precedence, Keyed: def.Keyed, Fleeting: def.Fleeting}
	if known[n].From != "" {
		byNumber.Known, byNumber.Pair = 0, append(append(binary.AppendUvarint(nil, uint64(len(p.From))), p.From...), p.To...)
	}
	if implied := known[n].Parts; len(implied) == 0 || len(def.Shape) != 1 || !proto.Equal(def.Shape[0], &Shape{Name: implied[0].Name}) {
		byNumber.Shape = def.Shape
	}
	return byNumber
}

// spellOut undoes definition.
func (f *FlowDef) spellOut() error {
	if f.Known == 0 && f.Pair == nil {
		return nil
	}
	n := f.Known
	if f.Pair != nil {
		n = userToUser
	}
	if int(n) >= len(known) || f.Face != 0 || f.Pair != nil && f.Known != 0 || f.Pair == nil && n == userToUser ||
		len(f.Group)+len(f.Pipe)+len(f.Src)+len(f.Dst)+len(f.Service)+len(f.Param)+len(f.ParamPipe) > 0 {
		return fmt.Errorf("%w: known flow %d", ErrMalformed, n)
	}
	k := flowDef(&known[n])
	f.Face, f.Group, f.Pipe, f.Src, f.Known = k.Face, k.Group, k.Pipe, k.Src, 0
	if f.Pair != nil {
		from, w := binary.Uvarint(f.Pair)
		if w <= 0 || from == 0 || from >= uint64(len(f.Pair)-w) {
			return fmt.Errorf("%w: a pair of users", ErrMalformed)
		}
		names := string(f.Pair[w:])
		f.Src, f.Dst, f.Pair = compact.AppendID(nil, names[:from]), compact.AppendID(nil, names[from:]), nil
	}
	if len(f.Shape) == 0 {
		f.Shape = k.Shape
	}
	return nil
}
