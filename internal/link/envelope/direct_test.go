package envelope

import (
	"errors"
	"net/netip"
	"testing"

	"aldis/internal/lab/check"
)

// What gateways say of direct sessions is read as it was written, on the link and in the journal, also with the marks of another bearer.
func TestDirectIsReadAsWritten(t *testing.T) {
	for _, d := range []Direct{{}, {Bearer: 7, Peer: 3}, {Peer: 65535, Addr: netip.MustParseAddrPort("10.1.2.3:40000")}, {Bearer: 255, Peer: 1, Addr: netip.MustParseAddrPort("[2001:db8::1]:7")}} {
		for _, moved := range [][]Moved{nil, {{Bearer: 1, Stream: 2, Number: 3}}} {
			b, err := Append(nil, Message{Direct: &d, Moved: moved}, 0, true)
			check.NoError(t, err)
			m, _, _, err := Parse(b, nil)
			check.NoError(t, err)
			check.True(t, "a word", m.Direct != nil, b)
			check.Equal(t, "word", *m.Direct, d)
			check.Equal(t, "marks", len(m.Moved), len(moved))
		}
	}
	for _, bad := range [][]byte{{1}, {1, 0}, {1, 0, 2, 9}, {1, 0, 2, 9, 9}, {1, 0, 2, 9, 9, 1, 2, 3}, make([]byte, 3+2+17)} {
		if _, err := splitDirect(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%x: %v", bad, err)
		}
	}
}
