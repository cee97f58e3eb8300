package group

import "testing"

// TestAcksRecord: the journal's record of acknowledgements is read as it was written, also the record that an earlier version wrote.
func TestAcksRecord(t *testing.T) {
	for _, r := range []acks{{highest: 1}, {highest: 300, start: 300, before: 7, told: true}, {highest: 1<<32 - 1, before: 1<<32 - 1}} {
		if got, err := parseAcks(r.append(nil)); err != nil || got != r {
			t.Errorf("%+v is read as %+v, %v", r, got, err)
		}
	}
	if got, err := parseAcks([]byte{0, 0, 1, 2}); err != nil || got != (acks{highest: 258, start: 258, told: true}) {
		t.Errorf("of an earlier version: %+v, %v", got, err)
	}
	for _, n := range []int{0, 3, 5, 12, 14} {
		if _, err := parseAcks(make([]byte, n)); err == nil {
			t.Errorf("%d octets are taken", n)
		}
	}
}
