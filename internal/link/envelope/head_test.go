package envelope

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"aldis/internal/jxtabridge"
	"aldis/internal/link/compact"
)

// flash is a message with all that the operator's rules give one.
func flash() *jxtabridge.Payload {
	p := track(200)
	p.Precedence, p.Key, p.Expires = 3, 0xabcdef, time.Unix(1_800_000_000, 0).UTC()
	return p
}

func TestHead(t *testing.T) {
	p := flash()
	lookup := func(n uint32) (Flow, bool) { return FlowOf(p), n == 7 }
	want := Head{Payload: true, Group: p.Group, Pipe: p.Pipe, Src: p.Src, Precedence: 3, Key: 0xabcdef}
	texts := &Texts{Coder: &compact.Coder{}}
	for _, define := range []bool{true, false} {
		b, err := AppendCoded(nil, Message{Payload: p}, 7, define, texts)
		if err != nil {
			t.Fatal(err)
		}
		if brief := b[0]&formBrief != 0; brief == define {
			t.Errorf("define %v: brief %v", define, brief)
		}
		b = Pack(texts.Coder, b)
		if h, err := ReadHead(b, lookup); err != nil || h != want {
			t.Errorf("define %v: %+v, %v", define, h, err)
		}
		m, _, _, err := ParseCoded(b, lookup, texts)
		got := *p
		got.MsgID, got.Expires = "", time.Time{} // stays with the sender
		if err != nil || !reflect.DeepEqual(*m.Payload, got) {
			t.Errorf("define %v: %+v, %v", define, m.Payload, err)
		}
		for n := range b { // cut anywhere
			if h, err := ReadHead(b[:n], lookup); err == nil && h.Payload && h.Precedence != 3 {
				t.Errorf("cut to %d: %+v", n, h)
			}
		}
	}
	kept, _ := Append(nil, Message{Payload: p}, 0, true)
	if m, _, _, err := Parse(kept, nil); err != nil || !m.Payload.Expires.Equal(p.Expires) || m.Payload.Key != p.Key || m.Payload.Precedence != 3 {
		t.Errorf("from the journal: %+v, %v", m.Payload, err)
	}
	plain, _ := AppendCoded(nil, Message{Payload: track(200)}, 7, false, texts)
	rich, _ := AppendCoded(nil, Message{Payload: p}, 7, false, texts)
	if len(rich) != len(plain)+3 {
		t.Errorf("a key costs %d octets, want 3; precedence none", len(rich)-len(plain))
	}
	state, _ := AppendCoded(nil, Message{Items: []jxtabridge.Item{{Kind: jxtabridge.ItemPipe, Group: p.Group, ID: p.Pipe}}}, 0, false, texts)
	if h, err := ReadHead(state, nil); err != nil || h != (Head{Items: 1}) {
		t.Errorf("state: %+v, %v", h, err)
	}
	if _, err := ReadHead(rich, func(uint32) (Flow, bool) { return "", false }); !errors.Is(err, ErrUnknownFlow) {
		t.Errorf("unknown flow: %v", err)
	}
	bad := flash()
	bad.Precedence = 6
	b, _ := Append(nil, Message{Payload: bad}, 0, true)
	if _, _, _, err := Parse(b, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("a precedence that there is not: %v", err)
	}
}

// Whatever can be parsed has the head that its content has.
func FuzzHead(f *testing.F) {
	p := flash()
	texts := &Texts{Coder: &compact.Coder{}}
	for _, define := range []bool{true, false} {
		b, _ := AppendCoded(nil, Message{Payload: p}, 7, define, texts)
		f.Add(b)
	}
	lookup := func(n uint32) (Flow, bool) { return FlowOf(p), n%2 == 1 }
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _, _, err := ParseCoded(b, lookup, texts)
		h, headErr := ReadHead(b, lookup)
		if err != nil {
			return
		}
		if headErr != nil || h.Payload != (m.Payload != nil) {
			t.Fatalf("%+v, %v; the message is %+v", h, headErr, m)
		}
		if p := m.Payload; p != nil && h != (Head{Payload: true, Group: p.Group, Pipe: p.Pipe, Src: p.Src, Dst: p.Dst, Precedence: p.Precedence, Key: p.Key}) {
			t.Errorf("%+v of %+v", h, p)
		}
	})
}
