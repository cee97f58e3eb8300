package envelope

import (
	"encoding/hex"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// Flows that each network has are defined by number; afterwards they mean the same as flows spelt out for others.
func TestKnownFlows(t *testing.T) {
	named := func(topic, name string) *site.Message {
		return &site.Message{Adapter: site.TAK, Published: true, Scope: "tak", Topic: topic, Parts: []site.Part{{Name: name, Data: []byte("x")}}}
	}
	urgent := named("event", "b-a-o-tbl")
	urgent.Precedence, urgent.Key = site.Flash, 0x123456
	from := named("units", "units")
	from.From = "somebody"
	two := named("units", "units")
	two.Parts = append(two.Parts, site.Part{Name: "more", Data: []byte("y")})
	for _, tt := range []struct {
		name   string
		p      *site.Message
		define string // the FlowDef on the link, in hex
	}{
		{"units", named("units", "units"), "6801"},
		{"an event", named("event", "a-u-G"), "3a071205612d752d476802"},
		{"an alert", urgent, "3a0b1209622d612d6f2d74626c480350016802"},
		{"what is asked for", named("ask", "ask"), "6803"},
		{"what is wanted", named("want", "want"), "6804"},
		{"a part", named("part", "part"), "6805"},
		{"words", named("chat", "b-t-f"), "6806"},
		{"a receipt", named("receipt", "r"), "6807"},
		{"an outcome of XMPP", &site.Message{Adapter: site.XMPP, Published: true, Topic: "outcome", Parts: []site.Part{{Data: []byte("x")}}}, "6808"},
		{"from one user of XMPP to another", &site.Message{Adapter: site.XMPP, From: "anna", To: "bert", Parts: []site.Part{{Data: []byte("x")}}}, "720904616e6e6162657274"},
		{"another element", named("chat", "b-t-x"), "3a071205622d742d786806"},
		{"two elements", two, "3a0712" + "05756e6974733a0612046d6f72656801"},
		{"a topic that has no number", named("other", "x"), "0a044074616b120640" + "6f746865721a01003a03120178" + "5801"},
		{"from somebody", from, "0a044074616b120640756e6974731a0940736f6d65626f64793a071205756e6974735801"},
	} {
		in := check.In(t, tt.name)
		b, err := AppendCoded(nil, Message{Payload: tt.p}, 5, true, &Texts{Coder: &compact.Coder{}})
		check.NoError(in, err)
		e := &Envelope{}
		if b[0]&formBrief != 0 {
			check.Equal(in, "on the link", hex.EncodeToString(b), "8005"+"04616e6e61"+"0462657274"+"0078")
			e, err = parseBrief(b, nil)
			check.NoError(in, err)
		} else {
			check.NoError(in, proto.Unmarshal(b, e))
		}
		check.Equal(in, "the definition", hex.EncodeToString(marshal(nil, e.Define)), tt.define)
		m, number, defined, err := ParseCoded(b, nil, &Texts{Coder: &compact.Coder{}})
		check.NoError(in, err)
		check.Equal(in, "number", number, uint32(5))
		check.Equal(in, "what it means", defined, FlowOf(tt.p))
		check.Equal(in, "flow of what is read", FlowOf(m.Payload), FlowOf(tt.p))

		kept, err := AppendCoded(nil, Message{Payload: tt.p}, 5, true, nil)
		check.NoError(in, err)
		check.NoError(in, proto.Unmarshal(kept, e))
		check.Equal(in, "in the journal", Flow(marshal(nil, e.Define)), FlowOf(tt.p))
	}
}

// An unused number, or a number together with names that it stands for, is refused.
func TestUnknownKnownFlows(t *testing.T) {
	for name, def := range map[string]*FlowDef{
		"none": {Known: uint32(len(known))}, "huge": {Known: 1<<32 - 1}, "with a group": {Known: 1, Group: []byte("@tak")}, "with a pipe": {Known: 1, Pipe: []byte("@x")},
		"with a source": {Known: 1, Src: []byte{0}}, "with a face": {Known: 1, Face: 1}, "with a service": {Known: 1, Service: "s"},
		"from nobody": {Pair: []byte("\x00b")}, "to nobody": {Pair: []byte("\x01a")}, "a pair by number": {Known: 9, Pair: []byte("\x01ab")}, "nobody at all": {Known: 9}, "half a pair": {Pair: []byte("\x05ab")},
		"a pair with a source": {Pair: []byte("\x01ab"), Src: []byte("@a")}, "to somebody": {Known: 1, Dst: []byte("@b")},
	} {
		b := marshal(nil, &Envelope{Flow: 1, Define: def, Data: [][]byte{[]byte("x")}})
		if _, _, _, err := ParseCoded(b, nil, &Texts{Coder: &compact.Coder{}}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The token of a message is in the journal if it must outlive the process, and never on the link.
func TestLastingTokens(t *testing.T) {
	p := &site.Message{From: "a", To: "b", Parts: []site.Part{{Data: []byte("x")}}, Token: 1<<40 + 7}
	for _, tt := range []struct {
		name    string
		lasting bool
		texts   *Texts
		want    uint64
	}{{"journal", true, nil, p.Token}, {"journal, one that ends with the process", false, nil, 0}, {"link", true, &Texts{Coder: &compact.Coder{}}, 0}} {
		p.Lasting = tt.lasting
		b, err := AppendCoded(nil, Message{Payload: p}, 5, true, tt.texts)
		check.NoError(t, err)
		m, _, _, err := ParseCoded(b, nil, tt.texts)
		check.NoError(t, err)
		check.Equal(t, tt.name, m.Payload.Token, tt.want)
		check.Equal(t, tt.name+": lasting", m.Payload.Lasting, tt.want != 0)
	}
}
