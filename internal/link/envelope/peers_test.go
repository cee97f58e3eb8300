package envelope

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// manyPeers are regular peers, or their withdrawals.
func manyPeers(n int, gone bool) (items []site.Item) {
	for i := range n {
		items = append(items, peerOf(fmt.Appendf(nil, "%016d", i), fmt.Sprint("peer ", i), gone))
		if gone {
			items[i].Doc = nil
		}
	}
	return items
}

// Peers whose items need only a name cross together in 16 octets each and their names; all others cross in the usual form.
func TestShortPeers(t *testing.T) {
	odd := manyPeers(6, false)
	odd[0].Variant = true
	odd[1].Expires = time.Unix(1_800_000_000, 0).UTC()
	odd[2].Scope = "uuid-0102"
	odd[3].Doc = append(odd[3].Doc, ' ')
	odd[4].Owner = "cbid-0103"
	odd[5] = peerOf([]byte("0123456789abcdef"), "two\nlines", false)
	long := peerOf([]byte("0123456789abcdef"), strings.Repeat("long ", 400), false)
	for _, tt := range []struct {
		name  string
		items []site.Item
		most  int // octets of the envelope; 0: any
	}{
		{"one", manyPeers(1, false), 27},
		{"eight", manyPeers(8, false), 8*20 + 4},
		{"as many as a message may have", manyPeers(MaxItems, false), MaxItems * 20},
		{"withdrawals", manyPeers(8, true), 8*16 + 5},
		{"both", slices.Concat(manyPeers(3, false), manyPeers(9, true)[4:]), 3*16 + 20 + 4 + 5*16 + 4},
		{"with others", slices.Concat(odd, manyPeers(2, false), []site.Item{long}), 0},
		{"without a name", []site.Item{peerOf([]byte("0123456789abcdef"), "", false)}, 20},
	} {
		in, texts := check.In(t, tt.name), &Texts{Coder: &compact.Coder{}}
		b, err := AppendCoded(nil, Message{Items: tt.items}, 0, false, texts)
		check.NoError(in, err)
		if tt.most != 0 && len(b) > tt.most {
			t.Errorf("%s: %d octets, want at most %d", tt.name, len(b), tt.most)
		}
		m, _, _, err := ParseCoded(b, nil, texts)
		check.NoError(in, err)
		byKey := func(a, b site.Item) int { return strings.Compare(a.Key(), b.Key()) }
		got, want := slices.SortedFunc(slices.Values(m.Items), byKey), slices.SortedFunc(slices.Values(tt.items), byKey)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: come back as %+v", tt.name, got)
		}
	}
	id := strings.Repeat("11", idOctets)
	for _, bad := range []string{"00", "0000", "0001" + id, "00c0" + id, "0080" + id + "61", "0000" + id + "0a", "0040" + id, "0040" + id + "ff00", "0001" + id + id + "61"} {
		b, _ := hex.DecodeString(bad)
		if _, err := parsePeers(b, nil, (*Texts)(nil).room(1000), MaxItems); !errors.Is(err, ErrMalformed) {
			t.Errorf("the short peers %s are read: %v", bad, err)
		}
	}
	b, _ := hex.DecodeString("0001" + id + id + "0a")
	if _, err := parsePeers(b, nil, (*Texts)(nil).room(1000), 1); !errors.Is(err, ErrLimit) {
		t.Errorf("more peers than there may be: %v", err)
	}
	if _, err := parsePeers(b, nil, (*Texts)(nil).room(200), 2); !errors.Is(err, ErrLimit) {
		t.Errorf("more octets than there may be: %v", err)
	}
}

// FuzzShortPeers: an item that was read and written again reads the same.
func FuzzShortPeers(f *testing.F) {
	for _, items := range [][]site.Item{manyPeers(1, false), manyPeers(8, false), manyPeers(3, true)} {
		list, _ := appendPeers(nil, &compact.Coder{}, items, (*Texts)(nil).room(1<<20))
		f.Add(list[0])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		coder := &compact.Coder{}
		items, err := parsePeers(b, &Texts{Coder: coder}, (*Texts)(nil).room(1<<20), MaxItems)
		if err != nil {
			return
		}
		list, rest := appendPeers(nil, coder, items, (*Texts)(nil).room(1<<20))
		if len(rest) > 0 {
			return // a name that is too long for this form
		}
		again, err := parsePeers(list[0], &Texts{Coder: coder}, (*Texts)(nil).room(1<<20), MaxItems)
		if err != nil || !reflect.DeepEqual(again, items) {
			t.Errorf("%x: %+v is read again as %+v, %v", b, items, again, err)
		}
	})
}
