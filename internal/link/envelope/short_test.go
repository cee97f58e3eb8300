package envelope

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/compact"
	"aldis/internal/site"
)

// Items of adapters other than JXTA's are short on the link, and come back unchanged.
func TestShortItems(t *testing.T) {
	for _, tt := range []struct {
		name string
		it   site.Item
		link string // the envelope, in hex; "": not compared
	}{
		{"presence", site.Item{Adapter: site.XMPP, Kind: site.Endpoint, Owner: "anna", Doc: []byte{1}}, "7a080200" + "04616e6e6101"},
		{"an occupant", site.Item{Adapter: site.XMPP, Kind: site.Listener, Owner: "anna", Scope: "ops@1"}, "7a0d8201" + "04616e6e61056f70734031"},
		{"a withdrawal", site.Item{Adapter: site.XMPP, Kind: site.Endpoint, Owner: "anna", Gone: true}, "7a070210" + "04616e6e61"},
		{"all that it may have", site.Item{Adapter: site.MaxAdapter, Kind: site.Question, Scope: "s", Owner: "o", ID: "i", Sub: 7, Variant: true,
			Expires: time.Unix(1_800_000_000, 0).UTC(), Doc: []byte(strings.Repeat("the same again ", 20))}, ""},
	} {
		in := check.In(t, tt.name)
		texts := &Texts{Coder: &compact.Coder{}}
		b, err := AppendCoded(nil, Message{Items: []site.Item{tt.it}}, 0, false, texts)
		check.NoError(in, err)
		if tt.link != "" {
			check.Equal(in, "on the link", hex.EncodeToString(b), tt.link)
		}
		m, _, _, err := ParseCoded(b, nil, texts)
		check.NoError(in, err)
		if len(m.Items) != 1 || !reflect.DeepEqual(m.Items[0], tt.it) {
			t.Errorf("%s comes back as %+v", tt.name, m.Items)
		}
	}
	for _, bad := range []string{"", "02", "0280", "000004616e6e61", "020005616e6e61", "0201" + "00", "0208" + "00ff", "0204" + "00", "0204" + "00ffff"} {
		b, _ := hex.DecodeString(bad)
		if _, err := parseShort(b, nil, (*Texts)(nil).room(1000)); !errors.Is(err, ErrMalformed) {
			t.Errorf("the short item %s is read: %v", bad, err)
		}
	}
	many := bytes.Repeat([]byte{0x7a, 3, 2, 0, 0}, MaxItems+1)
	if _, _, _, err := ParseCoded(many, nil, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("too many: %v", err)
	}
}

// FuzzShort: an item that was read and written again reads the same.
func FuzzShort(f *testing.F) {
	for _, seed := range []string{"020004616e6e6101", "820104616e6e61056f70734031", "027f0161016201630701" + "0141"} {
		b, _ := hex.DecodeString(seed)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		it, err := parseShort(b, nil, (*Texts)(nil).room(1<<20))
		if err != nil {
			return
		}
		coder := &compact.Coder{}
		again, err := parseShort(appendShort(nil, coder, it, (*Texts)(nil).room(1<<20)), &Texts{Coder: coder}, (*Texts)(nil).room(1<<20))
		if err != nil || !reflect.DeepEqual(again, it) && !(len(again.Doc) == 0 && len(it.Doc) == 0) {
			t.Errorf("%x: %+v is read again as %+v, %v", b, it, again, err)
		}
	})
}
