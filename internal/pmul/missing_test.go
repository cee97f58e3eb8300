package pmul

import (
	"reflect"
	"testing"
)

// TestMissing: lists of runs and of singles, cut where a datagram ends, shards counted as fragments.
func TestMissing(t *testing.T) {
	tests := []struct {
		name         string
		total        uint16
		have, parity []uint16
		runs         bool
		datagram     int
		want         []Run
		cut          bool
	}{
		{"nothing yet", 3, nil, nil, false, 500, []Run{{1, 1}, {2, 2}, {3, 3}}, false},
		{"nothing yet, as a run", 3, nil, nil, true, 500, []Run{{1, 3}}, false},
		{"first and last", 4, []uint16{2, 3}, nil, true, 500, []Run{{1, 1}, {4, 4}}, false},
		{"2, 5..9, 12", 12, []uint16{1, 3, 4, 10, 11}, nil, true, 500, []Run{{2, 2}, {5, 9}, {12, 12}}, false},
		{"the last is there", 5, []uint16{1, 5}, nil, true, 500, []Run{{2, 4}}, false},
		{"two shards", 5, []uint16{1, 5}, []uint16{0, 7}, true, 500, []Run{{4, 4}}, false},
		{"shards over two gaps", 6, []uint16{2, 4}, []uint16{0, 1}, true, 500, []Run{{5, 6}}, false},
		{"cut", 65535, nil, nil, false, 34, []Run{{1, 1}, {2, 2}, {3, 3}, {4, 4}}, true},
		{"65535 as a run", 65535, nil, nil, true, 34, []Run{{1, 65535}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &incoming{total: tt.total, fragments: map[uint16][]byte{}, parity: map[uint16][]byte{}}
			for _, n := range tt.have {
				m.fragments[n] = []byte{}
			}
			for _, i := range tt.parity {
				m.parity[i] = []byte{}
			}
			r := &Receiver{cfg: Config{Runs: tt.runs, DatagramOctets: tt.datagram}}
			e := r.missing(m)
			if !reflect.DeepEqual(e.Missing, tt.want) || e.Cut != tt.cut {
				t.Errorf("missing %v, cut %v; want %v, %v", e.Missing, e.Cut, tt.want, tt.cut)
			}
			if b, err := appendAck(nil, AckPDU{Entries: []AckEntry{e}}, Fletcher); err != nil || len(b) > tt.datagram {
				t.Errorf("%d octets, %v", len(b), err)
			}
		})
	}
}
