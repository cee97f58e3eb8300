package pmul

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"
)

// forge writes a number into a PDU and corrects its checksum and Length_of_PDU.
func forge(b []byte, at int, v uint16) []byte {
	binary.BigEndian.PutUint16(b[at:], v)
	binary.BigEndian.PutUint16(b, uint16(len(b)))
	b[6], b[7] = 0, 0
	putChecksum(b, Fletcher)
	return b
}

// TestLongLists: lists that claim 65,535 entries are refused where they end; the longest lists that a PDU can hold are
// read, and the engines take them without growing.
func TestLongLists(t *testing.T) {
	expiry := time.Unix(1_900_000_000, 0).UTC()
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	address := must(appendAddress(nil, AddressPDU{Total: 1, Source: 1, Message: 1, Expiry: expiry, Destinations: []Destination{{Node: 2}}}, Fletcher))
	ack := must(appendAck(nil, AckPDU{Source: 2, Entries: []AckEntry{{Source: 1, Message: 1, Missing: []Run{{1, 1}}}}}, Fletcher))
	announce := must(appendAnnounce(nil, AnnouncePDU{Source: 1, Message: 1, Expiry: expiry, Group: 0xef000001, Destinations: []NodeID{2}}, Fletcher))
	for _, tt := range []struct {
		name, field string
		pdu         []byte
		err         error
	}{
		{"65,535 destinations", "Count_of_Destination_Entries", forge(append([]byte(nil), address...), 20, math.MaxUint16), ErrShort},
		{"65,535 octets reserved in each", "Count_of_Destination_Entries", forge(append([]byte(nil), address...), 22, math.MaxUint16), ErrShort},
		{"65,535 entries of an Ack", "Count_of_Ack_Info_Entries", forge(append([]byte(nil), ack...), 12, math.MaxUint16), ErrShort},
		{"an entry of 65,534 octets", "Length_of_Ack_Info_Entry", forge(append([]byte(nil), ack...), 14, math.MaxUint16-1), ErrShort},
		{"65,535 announced", "Count_of_Destination_IDs", forge(append([]byte(nil), announce...), 4, math.MaxUint16), ErrShort},
	} {
		_, _, err := Parse(tt.pdu)
		var pe *PDUError
		if !errors.Is(err, tt.err) || !errors.As(err, &pe) || pe.Field != tt.field {
			t.Errorf("%s: %v, want %v at %s", tt.name, err, tt.err, tt.field)
		}
	}

	var long AckEntry
	long.Source, long.Message = 1, 1
	for n := 1; n <= 32_000; n++ {
		long.Missing = append(long.Missing, Run{uint16(2 * n), uint16(2 * n)})
	}
	long.Missing = long.Missing[:32_000]
	b := must(appendAck(nil, AckPDU{Source: 2, Entries: []AckEntry{long}}, Fletcher))
	p, err := parseAck(b)
	if err != nil || len(p.Entries[0].Missing) != 32_000 {
		t.Fatalf("%d missing, %v", len(p.Entries[0].Missing), err)
	}
	now := time.Unix(1_800_000_000, 0).UTC()
	cfg := Config{Self: 1, FirstMessage: 1, RateBps: 1 << 20, DatagramOctets: 500, Limits: Limits{Messages: 10, Octets: 1 << 20, Destinations: 10_000, Fates: 20_000}}
	s, err := NewSender(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Step(now, Submit{Payload: make([]byte, 1000), To: []NodeID{2}, Expires: expiry})
	out := s.Step(now.Add(time.Minute), p)
	if len(out.Send) > 10 || s.Stats().Illegal == 0 {
		t.Errorf("%d datagrams, %+v", len(out.Send), s.Stats())
	}
	if state, _ := s.Fate(1, 2); state != Waiting {
		t.Errorf("%v", state)
	}

	// As many destinations as a PDU has room for, to a receiver that is the last of them.
	var all []Destination
	for n := range NodeID((math.MaxUint16 - addressHeader) / addressEntry) {
		all = append(all, Destination{Node: n + 10})
	}
	self := all[len(all)-1].Node
	b = must(appendAddress(nil, AddressPDU{Total: 1, Source: 1, Message: 1, Expiry: expiry, Destinations: all}, Fletcher))
	a, err := parseAddress(b)
	if err != nil || len(a.Destinations) != len(all) {
		t.Fatalf("%d destinations, %v", len(a.Destinations), err)
	}
	cfg.Self, cfg.Limits = self, Limits{Incoming: 4, IncomingSource: 4, IncomingOctets: 1000, Orphans: 4, Remembered: 10}
	r, err := NewReceiver(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Step(now, a)
	if out := r.Step(now, DataPDU{Source: 1, Message: 1, Number: 1, Fragment: []byte("x")}); len(out.Deliver) != 1 || len(out.Records) > 4 {
		t.Errorf("%d delivered, %d records", len(out.Deliver), len(out.Records))
	}
}
