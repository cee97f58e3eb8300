package envelope

import (
	"errors"
	"reflect"
	"testing"

	"aldis/internal/link/compact"
	"aldis/internal/site"
)

func TestMovedAndRest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		moved  []Moved
		rest   *Rest
		octets int
	}{
		{"one number", []Moved{{Bearer: 0x7f, Stream: 1, Queue: 0, Number: 5}}, nil, 5},
		{"a run and its message, on two bearers", []Moved{{9, 1, 0, 300, 40}, {9, 1, 1, 3, 0}, {200, 255, 2, 1 << 30, 0}}, &Rest{10_000, []byte("rest")}, 6 + 5 + 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := len(joinMoved(tt.moved)); got != tt.octets {
				t.Errorf("%d octets, want %d", got, tt.octets)
			}
			m := Message{Moved: tt.moved, Rest: tt.rest}
			if tt.rest == nil {
				m.Payload = &site.Message{Published: true, Scope: "s", Topic: "t", Parts: []site.Part{{Name: "n", Data: []byte("data")}}}
			}
			b, err := AppendCoded(nil, m, 3, true, &Texts{Coder: &compact.Coder{}})
			if err != nil {
				t.Fatal(err)
			}
			got, _, _, err := Parse(b, nil)
			if err != nil || !reflect.DeepEqual(got.Moved, m.Moved) || !reflect.DeepEqual(got.Rest, m.Rest) || (got.Payload == nil) != (m.Payload == nil) {
				t.Errorf("read %+v, %v, want %+v", got, err, m)
			}
		})
	}
}

// The rest of a message goes without the other fields.
func TestARestGoesAlone(t *testing.T) {
	m := Message{Payload: &site.Message{Published: true, Scope: "s", Topic: "t", Parts: []site.Part{{Name: "n", Data: make([]byte, 5000)}}},
		Moved: []Moved{{Bearer: 1, Stream: 1, Queue: 1, Number: 1}}, Rest: &Rest{From: 4000, Octets: []byte("behind")}}
	b, err := Packed(&compact.Coder{}, m, 1, true, nil)
	if err != nil || len(b) > 30 {
		t.Errorf("%d octets, %v", len(b), err)
	}
}

func TestMovedFromTheAir(t *testing.T) {
	for name, b := range map[string][]byte{
		"cut in its head": {1, 1}, "no number": {1, 1, 0}, "number 0": {1, 1, 0, 0, 0}, "no run": {1, 1, 0, 5}, "a run too long": {1, 1, 0, 5, 0x81, 0x20},
	} {
		if _, err := splitMoved(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := splitRest([]byte{0x80}); !errors.Is(err, ErrMalformed) {
		t.Error("a rest without its place: ", err)
	}
}
