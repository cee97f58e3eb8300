package compact

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// A coder with the results and the models of others makes the same codes and texts in the same slices of the same work, without a model.
func TestKnown(t *testing.T) {
	m := NewMaker(5, testWords)
	var texts [][]byte
	for i := range 2 * mostStates {
		texts = append(texts, fmt.Appendf(nil, "report %d from ship1: position 54 %d N, course 1%d", i, 10+3*i, 20+i), m.Octets(200))
	}
	texts = append(texts, nil, benchmarkText(3000), m.Employees(20), benchmarkText(3100), m.Employees(21), m.Spec(0), m.Octets(3000))
	play := func(k *Known) (said []string) {
		c := Coder{Known: k}
		h := History{Complete: true}
		say := func(what any, more ...any) {
			said = append(said, fmt.Sprint(append([]any{what, " work ", c.Work()}, more...)...))
		}
		for i, text := range texts {
			n := uint64(i + 1)
			for !c.PrepareAfter(text, &h, n, 100) {
				say("prepared ", i)
			}
			b, codec := c.AppendAfter(nil, text, &h, n)
			say(codec, b)
			for _, more := range []string{" and", " or"} { // other texts after the same window
				code, codec := c.AppendAfter(nil, append(bytes.Clone(text), more...), &h, n)
				say(codec, code)
			}
			var r Reading
			var got []byte
			for err := ErrUnfinished; errors.Is(err, ErrUnfinished); say("read ", err) {
				c.Read(&r, 100, func() { got, err = c.ExpandAfter(codec, b, &h, n, 1<<14) })
			}
			if !bytes.Equal(got, text) {
				t.Errorf("text %d does not come back", i)
			}
			_, short := c.ExpandAfter(codec, b, &h, n, len(text)/2)
			say(short)
			if len(b) > 4 {
				damaged := bytes.Clone(b)
				damaged[len(b)-1] ^= 1
				_, err := c.ExpandAfter(codec, damaged, &h, n, 1<<14)
				say(err)
			}
			h.Add(n, text)
		}
		return said
	}
	k := new(Known)
	want := play(nil)
	for _, who := range []string{"the first", "the second"} {
		entries := len(k.of)
		got := play(k)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%s: step %d of %d and %d: %s, alone %s", who, i, len(got), len(want), got[min(i, len(got)-1)], want[min(i, len(want)-1)])
			}
		}
		if who == "the second" && len(k.of) != entries {
			t.Errorf("the second made %d codes anew", len(k.of)-entries)
		}
		if len(k.states) != mostStates {
			t.Errorf("%d models are kept, want %d", len(k.states), mostStates)
		}
	}
}
