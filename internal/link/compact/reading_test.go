package compact

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// Texts of a message that are expanded in slices are the same as at once; the slices have bounded work, even while another
// message is read between them.
func TestReading(t *testing.T) {
	m := NewMaker(5, testWords)
	var plain, sliced Coder
	var h History
	h.Complete = true
	type code struct {
		codec Codec
		b     []byte
		text  []byte
	}
	var codes []code
	for i, text := range [][]byte{nil, []byte("a report"), benchmarkText(3000), benchmarkText(20_000), m.Employees(20), m.Employees(150),
		m.Spec(0), m.Octets(3000), make([]byte, 5000), benchmarkText(3100), m.Employees(21)} {
		b, codec := plain.AppendAfter(nil, text, &h, uint64(i+1))
		codes = append(codes, code{codec, bytes.Clone(b), text})
		h.Add(uint64(i+1), text)
	}
	const slice = 256
	var one, other Reading
	expand := func(r *Reading, from int) (unfinished int, done bool) {
		for i := from; i < len(codes); i += 2 {
			before := sliced.Work()
			var got []byte
			var err error
			sliced.Read(r, slice, func() { got, err = sliced.ExpandAfter(codes[i].codec, codes[i].b, &h, uint64(i+1), 1<<20) })
			if work := sliced.Work() - before; work > lightOctets*slice {
				t.Fatalf("a slice of %d octets took %d octets of work", slice, work)
			}
			if errors.Is(err, ErrUnfinished) {
				return 1, false
			}
			if err != nil || !bytes.Equal(got, codes[i].text) {
				t.Fatalf("text %d does not come back: %v", i, err)
			}
		}
		return 0, true
	}
	slices, left := 0, 2
	for left > 0 {
		left = 0
		for i, r := range []*Reading{&one, &other} {
			n, done := expand(r, i)
			if slices += n; !done {
				left++
			}
		}
		if slices > 10_000 {
			t.Fatal("it never ends")
		}
	}
	if slices < 100 {
		t.Errorf("only %d slices", slices)
	}
	bad := codes[3]
	for n := range 40 {
		var r Reading
		for i := 0; ; i++ {
			var sErr error
			var got []byte
			b := bad.b[:len(bad.b)-1-n]
			sliced.Read(&r, slice, func() { got, sErr = sliced.Expand(bad.codec, b, 1<<20) })
			if errors.Is(sErr, ErrUnfinished) {
				continue
			}
			want, pErr := plain.Expand(bad.codec, b, 1<<20)
			if (sErr == nil) != (pErr == nil) || !bytes.Equal(got, want) {
				t.Fatalf("a code that is cut by %d: %v, at once %v", n+1, sErr, pErr)
			}
			break
		}
	}
}

// It makes no difference to the text if a slice ends between two messages of the history: short messages, a time in 13
// digits each, make such ends common.
func TestSlicesEndBetweenMessages(t *testing.T) {
	var coder Coder
	var h History
	h.Complete = true
	for i := range uint64(60) {
		text := fmt.Appendf(nil, "%d", 1790000000000+i*617)
		b, codec := coder.AppendAfter(nil, text, &h, i+1)
		b = bytes.Clone(b)
		for slice := 1; slice <= 64; slice++ {
			var r Reading
			err := ErrUnfinished
			var got []byte
			for errors.Is(err, ErrUnfinished) {
				coder.Read(&r, slice, func() { got, err = coder.ExpandAfter(codec, b, &h, i+1, 1<<10) })
			}
			if err != nil || !bytes.Equal(got, text) {
				t.Fatalf("text %d in slices of %d octets: %q, %v", i+1, slice, got, err)
			}
		}
		h.Add(i+1, text)
	}
}
