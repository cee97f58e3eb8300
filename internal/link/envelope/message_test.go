package envelope

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

const (
	peerA = "cbid-59616261646162614A7874615032503383569155EBF440C2B9C89E114D3E269303"
	peerB = "uuid-59616261646162614A78746150325033A1B2C3D4E5F60718293A4B5C6D7E8F9003"
	pipeA = "uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04"
)

func track(n int) *site.Message {
	return &site.Message{Published: true, Scope: "jxta-NetGroup", Topic: pipeA, From: peerA,
		Parts: []jxta.Element{{Namespace: "trk", Name: "body", Data: bytes.Repeat([]byte{'x'}, n)}}}
}

func messages() map[string]Message {
	return map[string]Message{
		"track": {Payload: track(200)},
		"routed": {Payload: &site.Message{Scope: "jxta-NetGroup", From: peerA, To: peerB, Service: "PipeService",
			Param: "urn:jxta:" + pipeA, Parts: []jxta.Element{
				{Namespace: "a", Name: "one", Type: "text/xml;charset=UTF-8", Data: []byte("<x/>")},
				{Namespace: "a", Name: "one", Data: []byte{0, 1, 255}, Signature: &jxta.Element{Name: "sig", Type: "x/y", Data: []byte("s"),
					Signature: &jxta.Element{Name: "sig of sig", Data: []byte("t")}}},
				{Name: "", Type: "application/gzip", Encoding: "x", Data: []byte{}},
			}}},
		"no elements":   {Payload: &site.Message{Scope: "uuid-0102", From: peerA, To: peerB, Service: "x", Param: "y"}},
		"asks, nothing": {Asks: true},
		"asks":          {Asks: true, Have: []Hash{{1, 2, 3, 4}, {5, 6, 7, 8}}},
		"void":          {Void: []Hash{{9, 9, 9, 9}}},
		"again":         {Again: []uint32{1, 1 << 31}},
		"roster":        {Roster: []byte("a roster")},
		"renewals":      {Renew: []Renewal{{Hash{1, 2, 3, 4}, 0}, {Hash{5, 6, 7, 8}, 0xffff}}},
		"items": {Items: []site.Item{
			{Kind: site.Endpoint, Scope: "jxta-NetGroup", Owner: peerA, Variant: true, Doc: []byte("<jxta:PA>" + strings.Repeat("abc ", 40))},
			{Kind: site.Document, Scope: "jxta-NetGroup", Owner: peerA, ID: "uuid-0102", Sub: 2, Doc: []byte("x"),
				Expires: time.Unix(1_800_000_000, 0).UTC()},
			{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peerA, ID: pipeA, Sub: jxtabridge.PipePropagate, Gone: true},
		}},
	}
}

func TestRoundTrip(t *testing.T) {
	for name, m := range messages() {
		t.Run(name, func(t *testing.T) {
			b, err := Append(nil, m, 7, true)
			if err != nil {
				t.Fatal(err)
			}
			got, number, defined, err := Parse(b, nil)
			if err != nil || !reflect.DeepEqual(normal(got), normal(m)) {
				t.Fatalf("Parse = %+v, %v; want %+v", got, err, m)
			}
			if m.Payload == nil {
				return
			}
			if number != 7 || defined != FlowOf(m.Payload) {
				t.Errorf("flow %d %x, want 7 %x", number, defined, FlowOf(m.Payload))
			}
			short, err := Append(nil, m, 7, false)
			if err != nil {
				t.Fatal(err)
			}
			got, _, defined, err = Parse(short, func(n uint32) (Flow, bool) { return FlowOf(m.Payload), n == 7 })
			if err != nil || defined != "" || !reflect.DeepEqual(normal(got), normal(m)) {
				t.Errorf("by number: %+v, %q, %v; want %+v", got, defined, err, m)
			}
		})
	}
}

// normal makes empty and absent data equal: an element without data is both.
func normal(m Message) Message {
	if m.Payload != nil {
		p := *m.Payload
		p.Parts = nil
		for _, e := range m.Payload.Parts {
			e.Data = append([]byte{}, e.Data...)
			p.Parts = append(p.Parts, e)
		}
		m.Payload = &p
	}
	return m
}

func TestSizes(t *testing.T) {
	tests := []struct {
		name   string
		m      Message
		define bool
		most   int
	}{
		{"200 octets, flow known", Message{Payload: track(200)}, false, 205},
		{"200 octets, first of its flow", Message{Payload: track(200)}, true, 263},
		{"pipe opened", Message{Items: []site.Item{{Kind: site.Listener, Scope: "jxta-NetGroup", Owner: peerA, ID: pipeA, Sub: 1}}}, false, 49},
	}
	for _, tt := range tests {
		b, err := Append(nil, tt.m, 7, tt.define)
		if err != nil || len(b) > tt.most {
			t.Errorf("%s: %d octets, %v; at most %d wanted", tt.name, len(b), err, tt.most)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	known := FlowOf(track(1))
	lookup := func(n uint32) (Flow, bool) { return known, n == 7 }
	bad, _ := Append(nil, Message{Payload: track(1)}, 8, false)
	two := &site.Message{Parts: []jxta.Element{{}, {}}}
	shape, _ := Append(nil, Message{Payload: two}, 7, false)
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"no protobuf", []byte{0xff}, ErrMalformed},
		{"flow unknown", bad, ErrUnknownFlow},
		{"more data than the flow's shape", shape, ErrMalformed},
		{"signature missing", append([]byte{8, 7, 0x12, 0, 0x1a, 4, 0x3a, 2}, 0x28, 1), ErrMalformed},
		{"hashes cut", []byte{0x2a, 3, 1, 2, 3}, ErrMalformed},
		{"item of no kind", []byte{0x22, 0}, ErrMalformed},
		{"item with codec 9", []byte{0x22, 10, 8, 2, 0x12, 1, 1, 0x1a, 1, 1, 0x32, 1, 9}[:13], ErrMalformed},
	}
	for _, tt := range tests {
		if _, _, _, err := Parse(tt.b, lookup); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := Append(nil, Message{Payload: &site.Message{Service: "\xff"}}, 1, false); !errors.Is(err, ErrMalformed) {
		t.Errorf("a service that is not UTF-8: %v, want ErrMalformed", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, m := range messages() {
		b, _ := Append(nil, m, 7, true)
		f.Add(b)
	}
	lookup := func(n uint32) (Flow, bool) { return FlowOf(track(1)), n%2 == 0 }
	f.Fuzz(func(t *testing.T, b []byte) {
		fleeting := Fleeting(b, lookup)
		m, number, _, err := Parse(b, lookup)
		if err != nil {
			return
		}
		if m.Payload != nil && len(b) <= mostFleeting && fleeting != m.Payload.Fleeting {
			t.Fatalf("%+v is fleeting: %v", m.Payload, fleeting)
		}
		out, err := Append(nil, m, number, true)
		if err != nil {
			t.Fatalf("%+v does not encode again: %v", m, err)
		}
		again, _, _, err := Parse(out, nil)
		if err != nil || !reflect.DeepEqual(normal(again), normal(m)) {
			t.Fatalf("%+v %+v comes back as %+v, %v", m, m.Payload, again.Payload, err)
		}
	})
}

// An expiry is the same at both ends, whatever their clocks say within a day, up to forty days ahead.
func TestRenewal(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	for _, ahead := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, RenewalMost} {
		want := now.Add(ahead).Truncate(time.Minute)
		for _, clock := range []time.Duration{-20 * time.Hour, 0, 20 * time.Hour} {
			if got := RenewalOf(Hash{}, want).Expires(now.Add(clock)); !got.Equal(want) {
				t.Errorf("%v ahead, the clock %v off: %v, want %v", ahead, clock, got, want)
			}
		}
	}
	if _, _, _, err := Parse([]byte{12<<3 | 2, 3, 1, 2, 3}, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("half a renewal: %v", err)
	}
}
