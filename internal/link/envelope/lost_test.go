package envelope

import (
	"errors"
	"reflect"
	"testing"

	"aldis/internal/site"
)

func TestLost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		list   []Lost
		octets int // of the encoding
	}{
		{"one", []Lost{{Why: site.LifeOver, Stream: 1, Numbers: []uint64{7}}}, 5},
		{"twenty in a row", []Lost{{Why: site.NoRoom, Stream: 1, Numbers: run(100, 20)}}, 5},
		{"with gaps, and in another lane", []Lost{{Why: site.Nobody, Stream: 3, Numbers: []uint64{1, 2, 5, 1 << 40}},
			{Why: site.Nobody, Stream: 3, Queue: 2, Numbers: []uint64{0}}}, 19},
		{"on another bearer", []Lost{{Why: site.LifeOver, Bearer: 200, Stream: 1, Numbers: []uint64{7}}}, 6},
		{"those of a lost store", []Lost{{Why: site.LifeOver, Count: 300}}, 4},
		{"the most", []Lost{{Stream: 1, Numbers: run(1, MaxLost)}}, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Message{Lost: tt.list}
			if got := len(joinLost(tt.list)); got != tt.octets {
				t.Errorf("%d octets, want %d", got, tt.octets)
			}
			b, err := Append(nil, m, 0, true)
			if err != nil {
				t.Fatal(err)
			}
			got, _, _, err := Parse(b, nil)
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("read %+v, %v, want %+v", got, err, m)
			}
		})
	}
}

func run(from uint64, n int) (list []uint64) {
	for i := range n {
		list = append(list, from+uint64(i))
	}
	return list
}

func TestLostFromTheAir(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    []byte
		err  error
	}{
		{"cut in its head", []byte{0x40}, ErrMalformed},
		{"cut behind its bearer", []byte{0xc0, 1, 1}, ErrMalformed},
		{"none counted", []byte{0, 1, 0}, ErrMalformed},
		{"none named", []byte{0x40, 1, 0}, ErrMalformed},
		{"a run longer than the count", []byte{0x40, 1, 2, 1, 2}, ErrMalformed},
		{"cut in a run", []byte{0x40, 1, 2, 1}, ErrMalformed},
		{"numbers beyond 64 bits", []byte{0x40, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0}, ErrMalformed},
		{"more than are read", []byte{0x40, 1, 0x81, 0x20, 1, 0x80, 0x20}, ErrLimit},
	} {
		if _, err := splitLost(tt.b); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.err)
		}
	}
}
