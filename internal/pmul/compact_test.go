package pmul

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

const hq, ship NodeID = 1, 300

var year2027 = time.Unix(0x6b36ec80, 0).UTC()

func TestCompact(t *testing.T) {
	address := AddressPDU{Priority: 3, Total: 1, Source: hq, Message: 5000, Expiry: year2027, Destinations: []Destination{to(ship, 70)}}
	again := address
	again.AtOnce = true
	long := address
	long.Total, long.MAP, long.Priority = 40, NotLast, 0
	coded := long
	coded.MAP, coded.Plan = 0, &Plan{Last: 20, Follow: 51}
	data := DataPDU{Priority: 3, Number: 1, Source: hq, Message: 5000, Fragment: []byte("hej")}
	routine := data
	routine.Priority = 0
	fragment := DataPDU{Number: 40, Source: hq, Message: 5000, Fragment: []byte("hej")}
	five := address
	five.Destinations = []Destination{to(2, 70), to(3, 70), to(4, 70), to(6, 70), to(7, 70)}
	differ := five
	differ.Destinations = []Destination{to(2, 70), to(3, 71), to(4, 77), to(6, 70), to(300, 72)}
	fifteen := long
	fifteen.MAP, fifteen.Destinations = 0, nil
	for n := NodeID(2); n <= 16; n++ {
		fifteen.Destinations = append(fifteen.Destinations, to(n, 900))
	}
	alone, behind := address, long
	alone.Priority, alone.After, behind.After = 0, 1, 300
	batch, placed, one := coded, coded, address
	batch.Batch = true
	placed.Batch, placed.MAP, placed.Plan = true, NotFirst|NotLast, nil
	one.Batch = true
	coded15 := fifteen
	coded15.Plan = &Plan{Last: 20, Follow: 51}
	back := five
	back.Total, back.Destinations = 2, []Destination{to(7, 70), to(6, 70), to(4, 70), to(3, 70), to(2, 70)}
	far := five
	far.Total, far.Destinations = 2, []Destination{to(2, 1), to(3, 2), to(4, 1<<32-1), to(6, 3), to(7, 4)}
	ack := func(e ...AckEntry) AckPDU { return AckPDU{Source: ship, Entries: e} }
	tests := []struct {
		name     string
		from, to NodeID
		hex      string
		pdus     []PDU
	}{
		{"whole", hq, 0, "44 8827 03 6b36ec80 01 ac02 46 68656a", []PDU{address, data}},
		{"whole, again", hq, 0, "c4 8827 03 6b36ec80 01 ac02 46 68656a", []PDU{again, data}},
		{"whole and more", hq, 0, "64 8827 03 6b36ec80 01 ac02 46 03 68656a 03 07", []PDU{address, data, DiscardPDU{0, hq, 7}}},
		{"address of several", hq, 0, "82 8827 28 6b36ec80 40 01 ac02 46", []PDU{long}},
		{"whole, read after the one before", hq, 0, "09 01 04 8827 6b36ec80 01 ac02 46 68656a", []PDU{alone, routine}},
		{"address, read after an earlier one", hq, 0, "09 ac02 82 8827 28 6b36ec80 40 01 ac02 46", []PDU{behind}},
		{"whole, to a set", hq, 0, "4c 8827 03 6b36ec80 04 03 01 03 00 46 68656a", []PDU{five, data}},
		{"whole, to a set that differs", hq, 0, "4c 8827 03 6b36ec80 07 03 01 02 ca04 46 03 c821 68656a", []PDU{differ, data}},
		{"address of fifteen", hq, 0, "0a 8827 28 6b36ec80 02 03 0d 8407", []PDU{fifteen}},
		{"address of fifteen of a coded one", hq, 0, "2a 8827 28 6b36ec80 14 33 02 03 0d 8407", []PDU{coded15}},
		{"address of those that do not ascend", hq, 0, "42 8827 03 02 6b36ec80 05 0746 0646 0446 0346 0246", []PDU{back}},
		{"address of those too different for a set", hq, 0, "42 8827 03 02 6b36ec80 05 0201 0302 04ffffffff0f 0603 0704", []PDU{far}},
		{"data", hq, 0, "00 8827 28 68656a", []PDU{fragment}},
		{"data of another", ship, 0, "10 01 8827 28 68656a", []PDU{fragment}},
		{"empty fragment", hq, 0, "20 8827 01 00", []PDU{DataPDU{Number: 1, Source: hq, Message: 5000, Fragment: []byte{}}}},
		{"ack", ship, hq, "01 01 8827 00", []PDU{ack(AckEntry{Source: hq, Message: 5000})}},
		{"ack to a group", ship, 0, "81 01 01 8827 00", []PDU{ack(AckEntry{Source: hq, Message: 5000})}},
		{"ack with lists", ship, hq, "01 03 8827 00 02 06 02 05 03 04 01 03 00",
			[]PDU{ack(AckEntry{Source: hq, Message: 5000}, AckEntry{Source: hq, Message: 5001, Missing: []Run{{2, 2}, {5, 9}, {12, 12}}},
				AckEntry{Source: hq, Message: 5000, Missing: []Run{{1, 1}}, Cut: true})}},
		{"address of a coded one", hq, 0, "22 8827 28 6b36ec80 14 33 01 ac02 46", []PDU{coded}},
		{"address of a batch", hq, 0, "a2 8827 28 6b36ec80 01 14 33 01 ac02 46", []PDU{batch}},
		{"address of a batch, amid several", hq, 0, "82 8827 28 6b36ec80 c1 01 ac02 46", []PDU{placed}},
		{"address of a batch of one fragment", hq, 0, "c2 8827 03 01 6b36ec80 01 01 ac02 46 40 8827 03 01 68656a", []PDU{one, data}},
		{"parity", hq, 0, "05 8827 02 14 68656a", []PDU{ParityPDU{hq, 5000, 2, 20, []byte("hej")}}},
		{"turn", ship, 0, "86 05 01 08 00 8827 28 68656a", []PDU{TurnPDU{ship, 5, 2 * time.Second, hq, true}, DataPDU{Number: 40, Source: ship, Message: 5000, Fragment: []byte("hej")}}},
		{"turn over", ship, 0, "06 ff 00 00", []PDU{TurnPDU{Source: ship, Number: 255}}},
		{"runs", ship, 0, "87 01 02 8827 02 02 00", []PDU{AckPDU{Source: ship, Runs: true, Entries: []AckEntry{{Source: hq, Message: 5000}, {Source: hq, Message: 5001},
			{Source: hq, Message: 5002}, {Source: hq, Message: 5004}}}}},
		{"as in ACP 142", nodeA, 0, "0f 14 0014 0007 0000 7020 0a010001 6745a001 ef010207", []PDU{ReleasePDU{nodeA, 0x6745a001, group7}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			out, err := AppendCompact([]byte("before"), tt.from, tt.to, tt.pdus...)
			if err != nil || !bytes.Equal(out, append([]byte("before"), b...)) {
				t.Errorf("AppendCompact = %s, %v; want %x", hex.EncodeToString(out[6:]), err, b)
			}
			if got, err := ParseCompact(b, tt.from, hq); err != nil || !reflect.DeepEqual(got, tt.pdus) {
				t.Errorf("ParseCompact = %+v, %v; want %+v", got, err, tt.pdus)
			}
		})
	}
}

// TestCompactHeaders: the cost of one 60-octet message to one ship, besides its octets and the seal.
func TestCompactHeaders(t *testing.T) {
	const far, of = 65535, MessageID(2_000_000) // the largest gateway id; the two millionth message
	address := AddressPDU{Priority: 5, Total: 1, Source: hq, Message: of, Expiry: year2027, Destinations: []Destination{to(far, 16000)}}
	out, err := AppendCompact(nil, hq, 0, address, DataPDU{Priority: 5, Number: 1, Source: hq, Message: of, Fragment: make([]byte, 60)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := AppendCompact(nil, far, hq, AckPDU{Source: far, Entries: []AckEntry{{Source: hq, Message: of}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Address and Data %d octets, Ack %d octets; ACP 142: %d and %d", len(out)-60, len(back), addressHeader+addressEntry+dataHeader, ackHeader+ackEntryHeader)
	if n := len(out) - 60 + len(back); n > 24 {
		t.Errorf("headers take %d octets, want 24 or fewer", n)
	}
}

func TestCompactRefused(t *testing.T) {
	tests := []struct {
		name, hex, field string
		err              error
	}{
		{"unknown type", "08 8827", "PDU_Type", ErrType},
		{"cut in Message_ID", "00 88", "Message_ID", ErrShort},
		{"Message_ID of 33 bits", "00 8080808020 01", "Message_ID", ErrValue},
		{"number 0", "00 8827 00 68", "Sequence_Number", ErrValue},
		{"number 65536", "00 8827 808004 68", "Sequence_Number", ErrValue},
		{"fragment cut", "20 8827 01 05 68", "fragment", ErrShort},
		{"count lies", "02 8827 01 6b36ec80 ff03 ac02 46", "Count_of_Destination_Entries", ErrValue},
		{"no runs of a set", "0a 8827 01 6b36ec80 00 46", "Count_of_Destination_Entries", ErrValue},
		{"runs of a set lie", "0a 8827 01 6b36ec80 ff03 03 0d 46", "Count_of_Destination_Entries", ErrValue},
		{"a set of 1025", "0a 8827 01 6b36ec80 02 03 ff07 46", "Destination_ID", ErrValue},
		{"sets of 1025", "0a 8827 01 6b36ec80 04 03 fe03 01 ff03 46", "Destination_ID", ErrValue},
		{"a run beyond 32 bits", "0a 8827 01 6b36ec80 02 fdffffff1f 05 46", "Destination_ID", ErrValue},
		{"a set cut in its runs", "0a 8827 01 6b36ec80 02 03", "Destination_ID", ErrShort},
		{"a set without sequence", "0a 8827 01 6b36ec80 02 03 0d", "Message_Sequence_Number", ErrShort},
		{"a set without differences", "0a 8827 01 6b36ec80 03 03 0d 46", "Message_Sequence_Number", ErrShort},
		{"differences of 0 bits", "0a 8827 01 6b36ec80 03 03 0d 46 00", "Message_Sequence_Number", ErrValue},
		{"differences of 33 bits", "0a 8827 01 6b36ec80 03 03 00 46 21 0102030405060708090a", "Message_Sequence_Number", ErrValue},
		{"differences cut", "0a 8827 01 6b36ec80 03 03 0d 46 08 0102", "Message_Sequence_Number", ErrShort},
		{"a sequence beyond 32 bits", "0a 8827 01 6b36ec80 03 03 00 ffffffff0f 01 02", "Message_Sequence_Number", ErrValue},
		{"no priority", "40 05", "Priority", ErrShort},
		{"no expiry", "02 05 01 6b36", "Expiry_Time", ErrShort},
		{"no entries", "01 00", "Count_of_Ack_Info_Entries", ErrValue},
		{"entries lie", "01 7f 05 00", "Count_of_Ack_Info_Entries", ErrValue},
		{"list beyond 65535", "01 01 05 04 feff07 02", "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"cut of nothing", "01 01 05 01", "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"turn cut", "06 05 01", "Left", ErrShort},
		{"a turn of more than a minute", "06 05 01 f101", "Left", ErrValue},
		{"no runs", "07 00", "Count_of_Ack_Info_Entries", ErrValue},
		{"runs lie", "07 7f 05 00", "Count_of_Ack_Info_Entries", ErrValue},
		{"a run of 257", "07 01 05 8002", "Count_of_Messages", ErrValue},
		{"runs of 257", "07 02 05 7f 00 8001", "Count_of_Messages", ErrValue},
		{"read after what it does not say", "09", "after", ErrShort},
		{"read after, and nothing follows", "09 01", "PDU_Type", ErrShort},
		{"read after, and no address follows", "09 01 00 8827 28 68656a", "after", ErrMismatch},
		{"read after a distance of 33 bits", "09 8080808010 00", "after", ErrValue},
		{"standard cut", "0f 14 0014", "Length_of_PDU", ErrShort},
		{"standard broken", "0f 04 0014 0007", "Length_of_PDU", ErrShort},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ParseCompact(unhex(t, tt.hex), hq, ship)
			var e *PDUError
			check.True(t, "no p", p == nil, p)
			check.ErrorIs(t, err, tt.err)
			check.True(check.Fatal(t), "errors.As(err, &e)", errors.As(err, &e), err)
			check.Equal(t, "e.Field", e.Field, tt.field)
		})
	}
}

// FuzzParseCompact: PDUs that parse are written and read again as the same PDUs.
func FuzzParseCompact(f *testing.F) {
	for _, s := range []string{"09 01 04 8827 6b36ec80 01 ac02 46 68656a", "44 8827 03 6b36ec80 01 ac02 46 68656a", "82 8827 28 6b36ec80 40 01 ac02 46", "20 8827 01 00",
		"a2 8827 28 6b36ec80 01 14 33 01 ac02 46", "82 8827 01 6b36ec80 01 01 ac02 46 00 8827 01 68656a",
		"81 01 01 8827 00", "01 03 8827 00 02 06 02 05 03 04 01 03 00", "05 8827 28 14 02 68656a", "22 8827 28 6b36ec80 14 33 01 ac02 46", "03 07",
		"86 05 01 08 00 8827 28 68656a", "4c 8827 03 6b36ec80 07 03 01 02 ca04 46 03 c821 68656a", "2a 8827 28 6b36ec80 14 33 02 03 0d 8407",
		"0a 8827 01 6b36ec80 03 03 00 46 20 0000000001000000", "87 01 02 8827 02 02 00",
		"0f 14 0014 0007 0000 7020 0a010001 6745a001 ef010207"} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseCompact(b, ship, hq)
		if err != nil {
			return
		}
		out, err := AppendCompact(nil, ship, hq, p...)
		if err != nil {
			t.Fatalf("AppendCompact(%+v): %v", p, err)
		}
		if q, err := ParseCompact(out, ship, hq); err != nil || !reflect.DeepEqual(p, q) {
			t.Fatalf("%+v came back as %+v, %v", p, q, err)
		}
	})
}
