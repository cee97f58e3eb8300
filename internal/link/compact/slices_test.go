package compact

import (
	"bytes"
	"fmt"
	"testing"
)

// Prepare makes the code that Append makes, in slices of bounded work, and Append then does no work.
func TestPrepare(t *testing.T) {
	m := NewMaker(5, testWords)
	random := m.Octets(3000)
	for _, tt := range []struct {
		name string
		text []byte
	}{
		{"empty", nil},
		{"short", []byte("a report")},
		{"a report of 3 kB", benchmarkText(3000)},
		{"a report of 20 kB", benchmarkText(20_000)},
		{"XML", m.Employees(20)},
		{"more XML", m.Employees(150)},
		{"an advertisement", m.Spec(0)},
		{"random", random},
		{"random, 20 kB", m.Octets(20_000)},
		{"blank", make([]byte, 5000)},
		{"XML that ends early", m.Employees(20)[:1500]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var plain, sliced Coder
			want, wantCodec := plain.Append(nil, tt.text)
			const slice = 256
			for i := 0; ; i++ {
				before := sliced.Work()
				done := sliced.Prepare(tt.text, slice)
				if work := sliced.Work() - before; work > lightOctets*slice {
					t.Fatalf("a slice of %d octets took %d octets of work", slice, work)
				}
				if done {
					break
				}
				if i > 10*len(tt.text) {
					t.Fatal("it never ends")
				}
			}
			before := sliced.Work()
			got, codec := sliced.Append(nil, tt.text)
			if len(tt.text) >= shortText && sliced.Work() != before {
				t.Errorf("coding it afterwards took %d octets of work", sliced.Work()-before)
			}
			if codec != wantCodec || !bytes.Equal(got, want) {
				t.Errorf("%v in %d octets, want %v in %d", codec, len(got), wantCodec, len(want))
			}
			if back, err := plain.Expand(codec, got, len(tt.text)); err != nil || !bytes.Equal(back, tt.text) {
				t.Errorf("it does not come back: %v", err)
			}
		})
	}
}

// A text that is prepared while others are coded and expanded gets the same code as alone.
func TestPrepareBesideOthers(t *testing.T) {
	var c, alone Coder
	text := benchmarkText(4000)
	want, _ := alone.Append(nil, text)
	for i := 0; !c.Prepare(text, 200); i++ {
		other := fmt.Appendf(nil, "another text, number %d", i)
		code, codec := c.Append(nil, other)
		if back, err := c.Expand(codec, code, len(other)); err != nil || !bytes.Equal(back, other) {
			t.Fatalf("%q does not come back: %q, %v", other, back, err)
		}
	}
	if got, _ := c.Append(nil, text); !bytes.Equal(got, want) {
		t.Errorf("%d octets, want %d", len(got), len(want))
	}
}

// The codes kept of the last texts are bounded.
func TestMadeCodesAreBounded(t *testing.T) {
	c := Coder{}
	m := NewMaker(6, testWords)
	for i := range 3 * mostMade {
		c.Append(nil, m.Octets(longCode))
		if i%20 == 0 {
			c.Append(nil, m.Octets(MaxModelled/3))
			c.Append(nil, m.Octets(MaxModelled))
		}
	}
	short, long := c.made.short, c.made.long
	if len(c.made.codes) != len(short.order)+len(long.order) {
		t.Errorf("%d codes, %d and %d in order", len(c.made.codes), len(short.order), len(long.order))
	}
	if len(short.order) > mostMade || short.octets > mostOctets {
		t.Errorf("%d codes of %d octets", len(short.order), short.octets)
	}
	if len(long.order) > mostLong || long.octets > longOctets {
		t.Errorf("%d long codes of %d octets", len(long.order), long.octets)
	}
}

// PrepareAfter makes the code that AppendAfter makes, in slices, and AppendAfter then does no work.
func TestPrepareAfter(t *testing.T) {
	m := NewMaker(7, testWords)
	xml := func(i int) []byte { return NewMaker(uint64(i), testWords).Employees(12 + i%3) }
	texts := func(i int) []byte { return append(benchmarkText(2500), fmt.Sprintf("number %d", i)...) }
	for _, tt := range []struct {
		name   string
		before int // messages
		text   func(i int) []byte
	}{
		{"the first of its flow", 0, texts},
		{"after one", 1, texts},
		{"after twelve", 12, texts},
		{"XML after one", 1, xml},
		{"XML after forty", 40, xml},
		{"random after random", 3, func(int) []byte { return m.Octets(2000) }},
		{"the same again", 3, func(int) []byte { return xml(1) }},
		{"longer than what is learned", 2, func(i int) []byte { return append(benchmarkText(MaxLearned), byte(i)) }},
		{"short", 5, func(i int) []byte { return fmt.Appendf(nil, "report %d", i) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := new(History)
			for i := range tt.before {
				h.Add(uint64(i+1), tt.text(i))
			}
			number, text := uint64(tt.before+1), tt.text(tt.before)
			var plain, sliced, far Coder
			want, wantCodec := plain.AppendAfter(nil, text, h, number)
			const slice = 300
			for i := 0; ; i++ {
				before := sliced.Work()
				done := sliced.PrepareAfter(text, h, number, slice)
				if work := sliced.Work() - before; work > lightOctets*slice {
					t.Fatalf("a slice of %d octets took %d octets of work", slice, work)
				}
				if done {
					break
				}
				if i > 1000 {
					t.Fatal("it never ends")
				}
			}
			before := sliced.Work()
			got, codec := sliced.AppendAfter(nil, text, h, number)
			if wantCodec != Stored && len(text) >= shortText && sliced.Work() != before {
				t.Errorf("coding it afterwards took %d octets of work", sliced.Work()-before)
			}
			if codec != wantCodec || !bytes.Equal(got, want) {
				t.Errorf("%v in %d octets, want %v in %d", codec, len(got), wantCodec, len(want))
			}
			if back, err := far.ExpandAfter(codec, got, h, number, len(text)); err != nil || !bytes.Equal(back, text) {
				t.Errorf("it does not come back: %v", err)
			}
		})
	}
}

// TestSameForMany: a text after the same messages is coded once, whatever their numbers are, and expands for each peer.
func TestSameForMany(t *testing.T) {
	var c Coder
	_, text := historyOfTwelve()
	histories := make([]*History, 5)
	for i := range histories {
		histories[i] = new(History)
		m := NewMaker(3, testWords)
		tracks := []*Track{m.Track(), m.Track(), m.Track()}
		for n := range 12 {
			histories[i].Add(uint64(100*i+n+1), Texts(tracks, 200))
		}
	}
	var first uint64
	for i, h := range histories {
		number := uint64(100*i + 13)
		before := c.Work()
		code, codec := c.AppendAfter(nil, text, h, number)
		if worked := c.Work() - before; i == 0 {
			first = worked
		} else if worked > 0 {
			t.Errorf("peer %d: %d octets of work for what was coded before, after %d for the first", i, worked, first)
		}
		if back, err := c.ExpandAfter(codec, code, h, number, len(text)); err != nil || string(back) != string(text) {
			t.Errorf("peer %d: %q, %v", i, back, err)
		}
	}
	if first == 0 {
		t.Error("the first costs nothing")
	}
}
