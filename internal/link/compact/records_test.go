package compact

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
)

// codedFlow is the cost of each message of a flow after those before; all come back.
func codedFlow(t *testing.T, messages [][]byte) (octets []int) {
	t.Helper()
	var c Coder
	var h History
	for i, text := range messages {
		n := uint64(i + 1)
		code, codec := c.AppendAfter(nil, text, &h, n)
		octets = append(octets, len(code))
		back, err := c.ExpandAfter(codec, bytes.Clone(code), &h, n, len(text))
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("message %d, %v: %v", n, codec, err)
		}
		h.Add(n, text)
	}
	return octets
}

// A correct checksum costs next to nothing; a wrong one comes back all the same.
func TestChecksums(t *testing.T) {
	random := NewMaker(31, testWords)
	var right, wrong, none [][]byte
	for i := range 12 {
		body := fmt.Sprintf("contact %X at %d;", random.Octets(6), i)
		sum := crc32.ChecksumIEEE([]byte(body))
		right = append(right, fmt.Appendf(nil, "%s%08x", body, sum))
		wrong = append(wrong, fmt.Appendf(nil, "%s%08x", body, sum^uint32(i+1)*0x9e3779b9))
		none = append(none, []byte(body))
	}
	last := len(right) - 1
	a, b, c := codedFlow(t, right)[last], codedFlow(t, wrong)[last], codedFlow(t, none)[last]
	if a > c+2 || b < c+3 {
		t.Errorf("%d octets with a CRC-32, %d with a wrong one, %d with none", a, b, c)
	}
	if s := Sentence("GPGLL,4916.45,N,12311.12,W,225444,A"); s != "$GPGLL,4916.45,N,12311.12,W,225444,A*31\r\n" {
		t.Errorf("a sentence is %q", s)
	}
	for _, odd := range []string{"*00", "$*00", "$A*", "$A*4", "!x\n*00", strings.Repeat("$", 9000), "$A*41$A*41", strings.Repeat("0", 17) + "00000000"} {
		codedFlow(t, [][]byte{[]byte(odd), []byte(odd + "x"), []byte(odd)})
	}
}

// A track's values are found again, wherever in a message they are.
func TestRecordsFoundAgain(t *testing.T) {
	names := []string{"K-17", "B-4", "Z-903", "M-55", "Q-8", "R-221"}
	message := func(step int, order []int, keyed bool) []byte {
		var b strings.Builder
		b.WriteString("<plots>\n")
		for _, i := range order {
			id := names[i]
			if !keyed {
				id = "?"
			}
			fmt.Fprintf(&b, "<plot id=%q><lat>%d</lat><lon>%d</lon></plot>\n", id, 5000000+i*i*77777+step*(40+i*7), 1000000+i*i*55555-step*(30+i*11))
		}
		return []byte(b.String() + "</plots>\n")
	}
	orders := [][]int{{0, 1, 2, 3, 4, 5}, {3, 1, 5}, {4, 0, 2}, {5, 3, 0, 1}, {2, 4, 1}, {0, 5, 3}, {1, 4, 2}, {5, 0, 4, 3}, {2, 1, 0}}
	var keyed, not [][]byte
	for step, order := range orders {
		keyed, not = append(keyed, message(step, order, true)), append(not, message(step, order, false))
	}
	last := len(orders) - 1
	with, without := codedFlow(t, keyed)[last], codedFlow(t, not)[last]
	t.Logf("%d octets for three tracks with names, %d without", with, without)
	if with >= without {
		t.Errorf("%d octets with names, %d without", with, without)
	}
}

// The prediction continues from most values where a clock is late now and then, and from all of them otherwise; at the
// limits nothing breaks.
func TestFurther(t *testing.T) {
	for _, tt := range []struct {
		y    []int64
		want int64
	}{
		{[]int64{30, 20, 10}, 40},
		{[]int64{80, 70, 60, 50, 40, 30, 20, 10}, 90},
		{[]int64{80, 70, 60, 950, 40, 30, 20, 10}, 90},
		{[]int64{5, 5, 5, 5, 5}, 5},
		{[]int64{9999999999999, 9999999999999, 9999999999999}, 9999999999999},
		{[]int64{-9999999999999, 9999999999999, -9999999999999, 9999999999999, 0, 1, 2, 3}, further([]int64{-9999999999999, 9999999999999, -9999999999999, 9999999999999, 0, 1, 2, 3})},
	} {
		if got := further(tt.y); got != tt.want {
			t.Errorf("%v goes on with %d, want %d", tt.y, got, tt.want)
		}
	}
}

// Messages out of order get their places, and both bounds hold.
func TestInsert(t *testing.T) {
	var h History
	for _, n := range []uint64{5, 2, 9, 2, 7, 1} {
		h.Insert(n, fmt.Appendf(nil, "message %d", n), 100, 1<<20)
	}
	if got, want := entryNumbers(h.held), []uint64{1, 2, 5, 7, 9}; !slices.Equal(got, want) {
		t.Fatalf("held: %v, want %v", got, want)
	}
	if gone := h.Insert(10, make([]byte, MaxLearned+1), 100, 1<<20); gone != nil || h.Holds(10) {
		t.Errorf("one too long is held, %v are gone", gone)
	}
	for n := uint64(11); n < 300; n++ {
		h.Insert(n, []byte("x"), 100, 1<<20)
	}
	if got := entryNumbers(h.held); len(got) != 100 || got[0] != 200 {
		t.Errorf("%d are held from %d on, want 100 from 200 on", len(got), got[0])
	}
	gone := h.Insert(3, []byte("late"), 100, 1<<20)
	if !slices.Equal(gone, []uint64{3}) || h.Holds(3) {
		t.Errorf("one older than all that is kept: %v are gone", gone)
	}
	if gone := h.Insert(300, make([]byte, 5000), 100, 4000); len(gone) == 0 || len(entryNumbers(h.held)) > windowMessages {
		t.Errorf("%d are gone, %d held: octets are not bounded", len(gone), len(entryNumbers(h.held)))
	}
}
