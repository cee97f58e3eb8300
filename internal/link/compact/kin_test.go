package compact

import (
	"bytes"
	"errors"
	"testing"

	"aldis/internal/lab/check"
)

// The first message of a flow costs less after those of another flow of its kind, and never more than alone. If the far end
// holds other messages, the code does not expand.
func TestKin(t *testing.T) {
	for _, s := range strangerKinds {
		flows := strangerFlows(s)
		var h History
		for i, text := range flows[0][:6] {
			h.Add(uint64(3*i+1), text)
		}
		var sums [3]int
		for _, flow := range flows[1:] {
			var c Coder
			text := flow[0]
			const number = 400
			h.Complete = true
			plain, _ := c.Append(nil, text)
			code, codec := c.AppendKin(nil, text, &h, 7, number)
			for i, n := range []int{len(text), 1 + len(plain), 1 + len(code)} {
				sums[i] += n
			}
			check.True(t, "never longer", len(code) <= len(plain), s.kind, len(code), len(plain))
			sliced := Coder{}
			for !sliced.PrepareKin(text, &h, number, 64) {
			}
			again, _ := sliced.AppendKin(nil, text, &h, 7, number)
			check.True(t, "the same in slices", bytes.Equal(again, code), s.kind)
			if codec != Kin {
				continue
			}
			flow, ok := KinOf(code)
			check.True(t, "its flow", ok && flow == 7, flow)
			back, err := c.ExpandKin(code, &h, number, len(text))
			check.NoError(t, err)
			check.True(t, "comes back", bytes.Equal(back, text), s.kind)
			var r Reading
			for turns := 0; ; turns++ {
				c.Read(&r, 100, func() { back, err = c.ExpandKin(code, &h, number, len(text)) })
				if !errors.Is(err, ErrUnfinished) {
					break
				}
				check.True(check.Fatal(t), "ends", turns < 1000)
			}
			check.NoError(t, err)
			check.True(t, "comes back in slices", bytes.Equal(back, text), s.kind)
			_, err = c.ExpandKin(code, &h, number+1, 1<<20)
			check.ErrorIs(t, err, ErrHistory)
			var other History
			other.Add(16, []byte("something else"))
			_, err = c.ExpandKin(code, &other, number, 1<<20)
			check.ErrorIs(t, err, ErrHistory)
		}
		t.Logf("%s: %d octets, %d alone, %d after another flow", s.kind, sums[0]/4, sums[1]/4, sums[2]/4)
	}
}

// Invented codes end with a typed error.
func FuzzExpandKin(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 4, 5})
	f.Add([]byte{3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, code []byte) {
		var h History
		h.Add(3, []byte("a report of the day"))
		var c Coder
		_, err := c.ExpandKin(code, &h, 5, 4096)
		for _, known := range []error{nil, ErrHistory, ErrCorrupt, ErrTooLong} {
			if errors.Is(err, known) {
				return
			}
		}
		t.Fatal(err)
	})
}

// A message is not coded after another flow's messages that messages under way may push out of the far end's history.
func TestKinReaches(t *testing.T) {
	var h History
	text := bytes.Repeat([]byte("wind north by east, "), 8)
	h.Add(1, text)
	l := LikenessOf(text)
	check.True(t, "near", l.To(&h, 20) > 0)
	check.Equal(t, "far", l.To(&h, 200), 0)
	h.Sent(2)
	check.True(t, "one under way", l.To(&h, 200) > 0)
	for n := range uint64(shortBack) {
		h.Sent(3 + n)
	}
	check.Equal(t, "many under way", l.To(&h, 200), 0)
	check.Equal(t, "nothing alike", LikenessOf([]byte("quite another text, of other words and of another kind")).To(&h, 20), 0)
}

// Every codec has a number, a name of its own, and an answer to any octets.
func TestCodings(t *testing.T) {
	names := map[string]Codec{}
	var c Coder
	for n := range 256 {
		codec := Codec(n)
		if other, there := names[codec.String()]; there {
			t.Errorf("%d and %d are both called %s", other, codec, codec)
		}
		names[codec.String()] = codec
		_, err := c.Expand(codec, []byte{1, 2, 3, 4}, 100)
		known := codings[codec] != nil
		check.True(t, codec.String(), known || errors.Is(err, ErrCode) || errors.Is(err, ErrModel), err)
		check.True(t, codec.String()+" by the model", known || !codec.ByModel())
	}
}
