package segment

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"aldis/internal/link/frame"
)

func text(n, octets int) []byte {
	b := make([]byte, octets)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// Segments of several messages fill datagrams, and messages that were cut are joined again.
func TestCutAndJoin(t *testing.T) {
	for _, octets := range []int{1, 23, 24, 100, 482, 600, 4000, MaxObject} {
		var c Cutter
		var j Joiner
		var got [][]byte
		at := uint64(0)
		for n := range 3 {
			c.Begin(uint64(n+1), 3, false, text(n, octets))
		}
		for room := 484; ; {
			f, last, ok := c.Cut(room)
			if !ok && room < 484 {
				room = 484
				continue
			}
			if !ok {
				break
			}
			if room -= len(f.Body) + 5; f.Total > 0 {
				room -= 2
			}
			if !last && room > 0 {
				t.Fatalf("%d octets: a segment leaves %d octets and is not the last", octets, room)
			}
			if room < 0 {
				room = 484
			}
			at++
			c.Gave(at, f)
			whole, over, gaveUp, err := j.Add(at, f)
			if err != nil || gaveUp > 0 {
				t.Fatal(err, gaveUp)
			}
			if whole != nil {
				got = append(got, whole.Body)
			}
			if last != (whole != nil) || last != (len(over) > 0) {
				t.Fatalf("%d octets: last %v, whole %v, over %v", octets, last, whole != nil, over)
			}
		}
		for n, b := range got {
			if !bytes.Equal(b, text(n, octets)) {
				t.Errorf("%d octets: object %d is another", octets, n)
			}
		}
		if len(got) != 3 || len(j.open) != 0 {
			t.Errorf("%d octets: %d objects, %d open", octets, len(got), len(j.open))
		}
	}
}

// The most urgent object is cut first, also when another is half cut.
func TestUrgent(t *testing.T) {
	var c Cutter
	c.Begin(1, 2, false, text(1, 1000))
	f, _, _ := c.Cut(300)
	c.Gave(1, f)
	c.Begin(2, 4, false, text(2, 600))
	c.Begin(3, 2, false, text(3, 600))
	if f, _, _ := c.Cut(300); f.Free || f.Total != 600 {
		t.Errorf("%+v", f)
	}
	c.Begin(2, 4, true, text(2, 600))
	if f, _, _ := c.Cut(300); !f.Free || f.Total != 600 {
		t.Errorf("%+v", f)
	}
	var order []uint64
	for at := uint64(2); ; at++ {
		n, _, ok := c.Next()
		if !ok {
			break
		}
		f, _, _ := c.Cut(300)
		c.Gave(at, f)
		order = append(order, n)
	}
	if want := []uint64{2, 2, 2, 1, 1, 1, 3, 3, 3}; !slices.Equal(order, want) {
		t.Errorf("cut in the order %v, want %v", order, want)
	}
}

// A lost segment goes again unchanged; of one that is not needed any more only the number goes, and its receiver forgets the object.
func TestAgain(t *testing.T) {
	var c Cutter
	var j Joiner
	c.Begin(1, 2, false, text(1, 1000))
	var sent []frame.Segment
	for at := uint64(1); at <= 2; at++ {
		f, _, _ := c.Cut(400)
		c.Gave(at, f)
		sent = append(sent, f)
	}
	if again, n, ok := c.Repeat(1); !ok || n != 1 || again.Total != 1000 || !bytes.Equal(again.Body, sent[0].Body) {
		t.Errorf("again %+v of %d, %v", again, n, ok)
	}
	j.Add(1, sent[0])
	c.Begin(1, 2, false, text(9, 500)) // in another coding
	f, n, ok := c.Repeat(2)
	if !ok || n != 0 || len(f.Body) != 0 {
		t.Errorf("a segment of what begins anew: %+v of %d, %v", f, n, ok)
	}
	if _, over, _, err := j.Add(2, f); err != nil || !slices.Equal(over, []uint64{1, 2}) || len(j.open) != 0 {
		t.Errorf("over %v, %v, %d open", over, err, len(j.open))
	}
	if f, _, _ = c.Cut(600); f.Total != 500 {
		t.Errorf("anew: %+v", f)
	}
	if c.Octets() != 0 || c.Flying() != 2 {
		t.Errorf("%d octets, %d segments under way", c.Octets(), c.Flying())
	}
	for at := uint64(1); at <= 2; at++ {
		if !c.Arrived(at, true) || c.Arrived(at, true) {
			t.Errorf("segment %d", at)
		}
	}
}

// A message that the peer lacks although it has all segments is named after so many answers.
func TestStrikes(t *testing.T) {
	var c Cutter
	c.Begin(1, 2, false, text(1, 100))
	f, _, _ := c.Cut(400)
	c.Gave(5, f)
	for range 5 {
		if list := c.Strike(3); len(list) > 0 {
			t.Fatalf("%v while a segment is under way", list)
		}
	}
	c.Arrived(5, false)
	for i := range 3 {
		if list := c.Strike(3); (len(list) > 0) != (i == 2) {
			t.Errorf("answer %d: %v", i, list)
		}
	}
}

// Whatever a peer sends, a Joiner holds a bounded part of it, and refuses the rest with a reason.
func TestHostile(t *testing.T) {
	var j Joiner
	for _, tt := range []struct {
		what string
		f    frame.Segment
		want error
	}{
		{"longer than any", frame.Segment{Object: 1, Total: MaxObject + 1, Body: []byte{1}}, ErrLarge},
		{"longer than it says", frame.Segment{Object: 1, Total: 2, Body: []byte{1, 2, 3}}, ErrLarge},
		{"not the first", frame.Segment{Object: 1, Body: []byte{1}}, ErrOrphan},
	} {
		if _, over, _, err := j.Add(7, tt.f); !errors.Is(err, tt.want) || !slices.Equal(over, []uint64{7}) || len(j.open) != 0 {
			t.Errorf("%s: %v, over %v", tt.what, err, over)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	kept, gaveUps := map[uint64]bool{}, 0
	for at := uint64(1); at < 3_000; at++ {
		f := frame.Segment{Object: uint8(rng.IntN(128)), Body: make([]byte, rng.IntN(400_000))}
		if rng.IntN(3) == 0 {
			f.Total = 1 + rng.IntN(MaxObject+MaxObject/8)
		}
		_, over, gaveUp, _ := j.Add(at, f)
		kept[at] = true
		for _, n := range over {
			if !kept[n] {
				t.Fatalf("segment %d is over twice, or was never kept", n)
			}
			delete(kept, n)
		}
		gaveUps += gaveUp
		numbers := 0
		for _, p := range j.open {
			numbers += len(p.numbers)
		}
		if len(j.open) > MostOpen || j.held() > MostHeld || numbers != len(kept) {
			t.Fatalf("%d open with %d octets, %d segments, %d kept", len(j.open), j.held(), numbers, len(kept))
		}
	}
	if gaveUps == 0 {
		t.Error("nothing was given up")
	}
	if over := j.Clear(); len(over) != len(kept) || len(j.open) != 0 {
		t.Errorf("%d of %d", len(over), len(kept))
	}
}

func TestNumber(t *testing.T) {
	for _, near := range []uint64{0, 1, 63, 64, 127, 128, 65_535, 65_536, 1 << 40} {
		for d := -MostUnder; d <= MostUnder; d++ {
			if n := int64(near) + int64(d); n >= 0 && Number(idOf(uint64(n)), near) != uint16(n) {
				t.Errorf("object %d near %d is %d", n, near, Number(idOf(uint64(n)), near))
			}
		}
	}
}

func FuzzJoiner(f *testing.F) {
	f.Add([]byte{0xc2, 1, 3, 4, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		var j Joiner
		for at := uint64(1); len(b) > 0; at++ {
			n := min(len(b), 1+int(b[0])%40)
			if p, _, err := frame.Parse(b[:n]); err == nil {
				if p, ok := p.(frame.Segment); ok {
					whole, _, _, err := j.Add(at, p)
					if whole != nil && (len(whole.Body) > MaxObject || err != nil) || j.held() > MostHeld {
						t.Fatalf("%v, %v, %d held", whole, err, j.held())
					}
				}
			}
			b = b[n:]
		}
	})
}
