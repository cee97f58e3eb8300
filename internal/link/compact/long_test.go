package compact

import (
	"bytes"
	"errors"
	"testing"
)

// longFlows make flows of long documents, each like the one before.
func longFlows() map[string]func(i int) []byte {
	return map[string]func(i int) []byte{
		"employees": func(i int) []byte { return NewMaker(uint64(600+i), testWords).Employees(570) },
		"track text": func(i int) []byte {
			m := NewMaker(uint64(700+i), testWords)
			return Texts([]*Track{m.Track(), m.Track()}, 100_000)
		},
		"random": func(i int) []byte { return NewMaker(uint64(800+i), testWords).Octets(100_000) },
	}
}

// The second long document of a flow costs less than the first: both ends hold the beginning of the first.
func TestLongMessagesTeach(t *testing.T) {
	for name, next := range longFlows() {
		t.Run(name, func(t *testing.T) {
			c, h := Coder{}, &History{Long: true}
			first, _ := c.AppendAfter(nil, next(1), h, 1)
			h.Add(1, next(1))
			text := next(2)
			var sliced Coder
			for !sliced.PrepareAfter(text, h, 2, 9000) {
			}
			before := sliced.Work()
			second, codec := sliced.AppendAfter(nil, text, h, 2)
			alone, _ := c.Append(nil, text)
			t.Logf("%d octets: first %d, second %d, alone %d, %v", len(text), len(first), len(second), len(alone), codec)
			if len(second) > len(alone) || (name != "random") != (codec == Following) {
				t.Errorf("second %d octets, %v, alone %d", len(second), codec, len(alone))
			}
			if codec == Stored {
				return
			}
			if sliced.Work() != before {
				t.Error("it was not prepared")
			}
			if atOnce, _ := new(Coder).AppendAfter(nil, text, h, 2); !bytes.Equal(atOnce, second) {
				t.Error("prepared it is another code than at once")
			}
			if back, err := c.ExpandAfter(codec, second, h, 2, len(text)); err != nil || !bytes.Equal(back, text) {
				t.Errorf("does not come back: %v", err)
			}
			other := &History{Long: true}
			if _, err := c.ExpandAfter(codec, second, other, 2, len(text)); !errors.Is(err, ErrHistory) {
				t.Errorf("without the first: %v", err)
			}
			other.Add(1, next(3))
			if _, err := c.ExpandAfter(codec, second, other, 2, len(text)); !errors.Is(err, ErrHistory) && !errors.Is(err, ErrCorrupt) {
				t.Errorf("after another one: %v", err)
			}
		})
	}
}

// Only a few long messages are kept, and none is coded after one that the far end may not keep any more.
func TestLongMessagesAreBounded(t *testing.T) {
	h := &History{Long: true}
	text := NewMaker(5, testWords).Employees(300)
	for n := range uint64(20) {
		gone := h.Add(n+1, text)
		if want := int(n) >= longKept; (len(gone) == 1) != want {
			t.Fatalf("message %d: %v gone", n+1, gone)
		}
	}
	if len(h.long) != longKept || h.Octets() > 2*longKept*maxTaught || !h.Holds(20) || h.Holds(20-longKept) {
		t.Errorf("%d kept, %d octets", len(h.long), h.Octets())
	}
	var sender History
	sender.Long = true
	sender.Sent(1)
	sender.Add(1, text)
	for n := uint64(2); n < 10; n++ {
		if got, want := len(sender.longBefore(text, n, 0)) > 0, n < 2+longKept; got != want {
			t.Errorf("message %d, with %d under way: coded after the first %t, want %t", n, n-2, got, want)
		}
		sender.Sent(n)
	}
	if sender.Reset(); len(sender.long) > 0 {
		t.Error("a history that was reset holds something")
	}
	if gone := new(History).Add(1, text); len(gone) > 0 {
		t.Error("a history that is not for long messages keeps one")
	}
}
