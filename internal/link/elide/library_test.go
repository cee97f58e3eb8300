package elide

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// A simulation sends the packets that libnorm sent in the captures, except for the sequence number.
func TestLibrary(t *testing.T) {
	one := Config{Self: 1, Peer: 40000, Segment: 64, GRTT: 100 * time.Millisecond}
	other := Config{Self: 40000, Peer: 1, Segment: 64, GRTT: 100 * time.Millisecond}
	nacks := map[string][]Repair{
		"NACK, one item":        {{Object: 2, Symbol: 2}},
		"NACK, item and range":  {{Object: 3, Symbol: 17}, {Object: 4, Symbol: 7}, {Object: 4, Symbol: 8}, {Object: 4, Symbol: 9}},
		"NACK, two items twice": {{Object: 9, Symbol: 7}, {Object: 9, Symbol: 8}, {Object: 10, Symbol: 7}, {Object: 10, Symbol: 8}},
	}
	for _, tt := range captured {
		packet := unhex(t, tt.packet)
		var got []byte
		switch {
		case tt.info.Kind == Data:
			got = one.AppendData(nil, 1, tt.info.Object, tt.info.Size, tt.info.Block, tt.info.Symbol, packet[dataLen:])
		case tt.info.Kind == Nack:
			got = other.AppendNack(nil, 1, nacks[tt.name])
			if list, err := ParseNack(packet); err != nil || !reflect.DeepEqual(list, nacks[tt.name]) {
				t.Errorf("%s: ParseNack = %+v, %v; want %+v", tt.name, list, err, nacks[tt.name])
			}
		case tt.name == "FLUSH":
			{
				object, block, symbol, ok := FlushOf(packet)
				check.True(t, "ok", ok)
				check.Equal(t, "object", object, 9)
				check.Equal(t, "block", block, 0)
				check.Equal(t, "symbol", symbol, 6)
			}
			continue
		default:
			continue
		}
		copy(got[offSequence:offSource], packet[offSequence:offSource])
		if !bytes.Equal(got, packet) {
			t.Errorf("%s:\n%x, libnorm sent\n%x", tt.name, got, packet)
		}
	}
	squelch := one.AppendSquelch(nil, 1, 77)
	a, b := pair(t)
	frame, _, err := a.Pack(nil, squelch)
	if err != nil {
		t.Fatal(err)
	}
	packets, _, err := b.Restore(frame)
	if err != nil {
		t.Fatal(err)
	}
	if object, ok := SquelchOf(packets[len(packets)-1]); !ok || object != 77 {
		t.Errorf("SquelchOf = %d, %v", object, ok)
	}
	whole := []Repair{{Object: 5, Whole: true}, {Object: 6, Symbol: 1}}
	if list, err := ParseNack(other.AppendNack(nil, 1, whole)); err != nil || !reflect.DeepEqual(list, whole) {
		t.Errorf("a whole object: %+v, %v", list, err)
	}
	for _, cut := range []int{0, nackLen - 1, nackLen + 2, nackLen + requestLen + 3} {
		if _, err := ParseNack(other.AppendNack(nil, 1, whole)[:cut]); err == nil {
			t.Errorf("a NACK of %d octets is read", cut)
		}
	}
}
