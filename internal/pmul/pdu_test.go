package pmul

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	nodeA, nodeB, nodeC, nodeD NodeID    = 0x0a010001, 0x0a01000b, 0x0a01000c, 0x0a01000d
	group7                     GroupAddr = 0xef010207
)

var year2030 = time.Unix(0x70dbd880, 0).UTC()

func to(n NodeID, seq uint32) Destination { return Destination{Node: n, Sequence: seq} }

// vectors are V01 to V25 (p-mul 12); the negative ones are in TestRefused.
var vectors = []struct {
	name, hex string
	want      PDU
	sum       Checksum
}{
	{"V01 Request_PDU", "0014 0005 0000 781a 0a010001 6745a001 ef010207", RequestPDU{nodeA, 0x6745a001, group7}, Fletcher},
	{"V02 Reject_PDU", "0014 0006 0000 9cea 0a01000b 6745a001 ef010207", RejectPDU{nodeB, 0x6745a001, group7}, Fletcher},
	{"V03 Announce_PDU", "0020 0004 0002 9d15 0a010001 6745a001 70dbd880 ef010207 0a01000b 0a01000c",
		AnnouncePDU{Source: nodeA, Message: 0x6745a001, Expiry: year2030, Group: group7, Destinations: []NodeID{nodeB, nodeC}}, Fletcher},
	{"V04 Address_PDU", "0028 0402 0003 c6be 0a010001 6745a001 70dbd880 0002 0000 0a01000b 00000011 0a01000c 00000009",
		AddressPDU{Priority: 4, Total: 3, Source: nodeA, Message: 0x6745a001, Expiry: year2030, Destinations: []Destination{to(nodeB, 17), to(nodeC, 9)}}, Fletcher},
	{"V05 Data_PDU 1", "001a 0400 0001 5c6b 0a010001 6745a001 3c6a7874613a50697065", DataPDU{4, 1, nodeA, 0x6745a001, []byte("<jxta:Pipe")}, Fletcher},
	{"V06 Data_PDU 2", "001a 0400 0002 7bf1 0a010001 6745a001 4164766572746973656d", DataPDU{4, 2, nodeA, 0x6745a001, []byte("Advertisem")}, Fletcher},
	{"V07 Data_PDU 3", "0015 0400 0003 c90a 0a010001 6745a001 656e742f3e", DataPDU{4, 3, nodeA, 0x6745a001, []byte("ent/>")}, Fletcher},
	{"V08 Ack_PDU complete", "0018 0401 0000 d98d 0a01000b 0001 000a 0a010001 6745a001",
		AckPDU{Priority: 4, Source: nodeB, Entries: []AckEntry{{Source: nodeA, Message: 0x6745a001}}}, Fletcher},
	{"V09 Ack_PDU timestamp", "0020 0401 0000 c9be 0a01000b 0001 000a 0a010001 6745a001 00000000000004d2",
		AckPDU{Priority: 4, Source: nodeB, Entries: []AckEntry{{Source: nodeA, Message: 0x6745a001}}, Stamped: true, Timestamp: 1234}, Fletcher},
	{"V10 Ack_PDU missing 2", "001a 0401 0000 065a 0a01000c 0001 000c 0a010001 6745a001 0002",
		AckPDU{Priority: 4, Source: nodeC, Entries: []AckEntry{{Source: nodeA, Message: 0x6745a001, Missing: []Run{{2, 2}}}}}, Fletcher},
	{"V11 Address_PDU again", "0020 0402 0003 b401 0a010001 6745a001 70dbd880 0001 0000 0a01000c 00000009",
		AddressPDU{Priority: 4, Total: 3, Source: nodeA, Message: 0x6745a001, Expiry: year2030, Destinations: []Destination{to(nodeC, 9)}}, Fletcher},
	{"V12 Data_PDU again", "001a 0400 0002 7bf1 0a010001 6745a001 4164766572746973656d", DataPDU{4, 2, nodeA, 0x6745a001, []byte("Advertisem")}, Fletcher},
	{"V13 Ack_PDU two messages", "002c 0401 0000 1ea7 0a01000c 0002 000a 0a010001 6745a001 0014 0a010001 6745a002 0002 0005 0000 0009 000c",
		AckPDU{Priority: 4, Source: nodeC, Entries: []AckEntry{{Source: nodeA, Message: 0x6745a001},
			{Source: nodeA, Message: 0x6745a002, Missing: []Run{{2, 2}, {5, 9}, {12, 12}}}}}, Fletcher},
	{"V14 Ack-Ack", "0018 0402 0003 508e 0a010001 6745a001 70dbd880 0000 0000",
		AddressPDU{Priority: 4, Total: 3, Source: nodeA, Message: 0x6745a001, Expiry: year2030}, Fletcher},
	{"V15 Release_PDU", "0014 0007 0000 7020 0a010001 6745a001 ef010207", ReleasePDU{nodeA, 0x6745a001, group7}, Fletcher},
	{"V16 Address_PDU first", "0020 0442 0001 8ce0 0a010001 6745a003 70dbd880 0001 0000 0a01000b 00000012",
		AddressPDU{Priority: 4, MAP: NotLast, Total: 1, Source: nodeA, Message: 0x6745a003, Expiry: year2030, Destinations: []Destination{to(nodeB, 18)}}, Fletcher},
	{"V17 Address_PDU last", "0020 0482 0001 de55 0a010001 6745a003 70dbd880 0001 0000 0a01000c 0000000a",
		AddressPDU{Priority: 4, MAP: NotFirst, Total: 1, Source: nodeA, Message: 0x6745a003, Expiry: year2030, Destinations: []Destination{to(nodeC, 10)}}, Fletcher},
	{"V18 Address_PDU middle", "0020 04c2 0001 19e2 0a010001 6745a003 70dbd880 0001 0000 0a01000d 00000001",
		AddressPDU{Priority: 4, MAP: NotFirst | NotLast, Total: 1, Source: nodeA, Message: 0x6745a003, Expiry: year2030, Destinations: []Destination{to(nodeD, 1)}}, Fletcher},
	{"V19 Discard_Message_PDU", "0010 0403 0000 b0db 0a010001 6745a003", DiscardPDU{4, nodeA, 0x6745a003}, Fletcher},
	{"V20 Address_PDU reserved field", "0024 0402 0001 f1b0 0a010001 6745a004 70dbd880 0001 0004 0a01000b 00000013 00000001",
		AddressPDU{Priority: 4, Total: 1, Source: nodeA, Message: 0x6745a004, Expiry: year2030, Reserved: 4,
			Destinations: []Destination{{nodeB, 19, []byte{0, 0, 0, 1}}}}, Fletcher},
	{"V21 FEC_Address_PDU", "0026 0408 0004 085b 0a010001 6745a005 70dbd880 04 05 0a0b0c0d 0001 0000 0a01000b 00000014",
		AddressPDU{Priority: 4, Total: 4, Source: nodeA, Message: 0x6745a005, Expiry: year2030, Destinations: []Destination{to(nodeB, 20)},
			FEC: &FEC{5, []byte{10, 11, 12, 13}}}, Fletcher},
	{"V22 Extra_Address_PDU", "0020 0412 0001 ade9 0a010001 6745a006 70dbd880 0001 0000 0a01000b 00000015",
		AddressPDU{Priority: 4, Total: 1, Source: nodeA, Message: 0x6745a006, Expiry: year2030, Destinations: []Destination{to(nodeB, 21)}, Extra: true}, Fletcher},
	{"V23 Extra_FEC_Address_PDU", "0022 0418 0004 4441 0a010001 6745a007 70dbd880 00 05 0001 0000 0a01000b 00000016",
		AddressPDU{Priority: 4, Total: 4, Source: nodeA, Message: 0x6745a007, Expiry: year2030, Destinations: []Destination{to(nodeB, 22)}, Extra: true,
			FEC: &FEC{5, []byte{}}}, Fletcher},
	{"V24 Address_PDU Internet", "0020 0402 0001 970c 0a010001 6745a008 70dbd880 0001 0000 0a01000b 00000017",
		AddressPDU{Priority: 4, Total: 1, Source: nodeA, Message: 0x6745a008, Expiry: year2030, Destinations: []Destination{to(nodeB, 23)}}, Internet},
	{"V25 Data_PDU Internet odd", "0013 0400 0001 2639 0a010001 6745a008 616263", DataPDU{4, 1, nodeA, 0x6745a008, []byte("abc")}, Internet},
}

// endOfList is N07: accepted, and the list says nothing above 4.
const endOfList = "001e 0401 0000 b699 0a01000c 0001 0010 0a010001 6745a001 0002 0004 0004"

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			b := unhex(t, v.hex)
			got, sum, err := Parse(b)
			if err != nil || sum != v.sum || !reflect.DeepEqual(got, v.want) {
				t.Errorf("Parse = %+v, %v, %v; want %+v, %v", got, sum, err, v.want, v.sum)
			}
			out, err := Append([]byte("before"), v.want, v.sum)
			if want := append([]byte("before"), b...); err != nil || !bytes.Equal(out, want) {
				t.Errorf("Append = %x, %v; want %x", out, err, want)
			}
		})
	}
}

func TestEndOfList(t *testing.T) {
	b := unhex(t, endOfList)
	p, _, err := Parse(b)
	want := AckPDU{Priority: 4, Source: nodeC, Entries: []AckEntry{{nodeA, 0x6745a001, []Run{{2, 2}, {4, 4}}, true}}}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("Parse = %+v, %v; want %+v", p, err, want)
	}
	if out, err := Append(nil, want, Fletcher); err != nil || !bytes.Equal(out, b) {
		t.Errorf("Append = %x, %v; want %x", out, err, b)
	}
}

// sealed gives hex the right length and checksum, so that only the intended fault is met.
func sealed(t testing.TB, s string) []byte {
	b := unhex(t, s)
	b[0], b[1] = byte(len(b)>>8), byte(len(b))
	b[6], b[7] = 0, 0
	putChecksum(b, Fletcher)
	return b
}

func TestRefused(t *testing.T) {
	raw := func(s string) []byte { return unhex(t, s) }
	fix := func(s string) []byte { return sealed(t, s) }
	const head = "0000 0401 0000 0000 0a01000c 0001 "
	tests := []struct {
		name  string
		b     []byte
		field string
		err   error
	}{
		{"N01 bad checksum", raw("0013 0400 0001 62fb 0a010001 6745a009 616262"), "Checksum", ErrChecksum},
		{"N02 length too small", raw("0014 0400 0001 d853 0a010001 6745a00a 616263646566"), "Length_of_PDU", ErrMismatch},
		{"N03 Data_PDU 0", raw("0013 0400 0000 74e8 0a010001 6745a00b 616263"), "Sequence_Number", ErrValue},
		{"N04 range backwards", raw("001e 0401 0000 fa51 0a01000c 0001 0010 0a010001 6745a001 0009 0000 0005"), "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"N05 entry length 8", raw("0018 0401 0000 cd9a 0a01000c 0001 0008 0a010001 6745a001"), "Length_of_Ack_Info_Entry", ErrValue},
		{"N06 missing 0", raw("001a 0401 0000 e180 0a01000c 0001 000c 0a010001 6745a001 0000"), "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"empty", nil, "PDU_Type", ErrShort},
		{"cut in Source_ID", raw("0010 0400 0001 0673 0a00"), "Length_of_PDU", ErrShort},
		{"length too large", raw("0015 0400 0001 2639 0a010001 6745a008 616263"), "Length_of_PDU", ErrMismatch},
		{"unknown type", fix("0000 043f 0001 0000 0a010001 6745a008"), "PDU_Type", ErrType},
		{"odd entry length", fix(head + "000b 0a010001 6745a001 00"), "Length_of_Ack_Info_Entry", ErrValue},
		{"entry longer than PDU", fix(head + "000c 0a010001 6745a001"), "Length_of_Ack_Info_Entry", ErrShort},
		{"entries missing", fix("0000 0401 0000 0000 0a01000c ffff 000a 0a010001 6745a001"), "Count_of_Ack_Info_Entries", ErrShort},
		{"more data", fix(head + "000a 0a010001 6745a001 0000"), "Count_of_Ack_Info_Entries", ErrMismatch},
		{"run without end", fix(head + "000e 0a010001 6745a001 0002 0000"), "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"run of none", fix(head + "0010 0a010001 6745a001 0002 0000 0002"), "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"run of runs", fix(head + "0014 0a010001 6745a001 0002 0000 0005 0000 0009"), "Missing_Data_PDU_Seq_Numbers", ErrValue},
		{"destinations missing", fix("0000 0402 0001 0000 0a010001 6745a001 70dbd880 ffff 0000 0a01000b 00000011"), "Count_of_Destination_Entries", ErrShort},
		{"destinations too many", fix("0000 0402 0001 0000 0a010001 6745a001 70dbd880 0000 0000 0a01000b 00000011"), "Count_of_Destination_Entries", ErrMismatch},
		{"reserved field lies", fix("0000 0402 0001 0000 0a010001 6745a001 70dbd880 0001 ffff 0a01000b 00000011"), "Count_of_Destination_Entries", ErrShort},
		{"FEC parameters lie", fix("0000 0408 0001 0000 0a010001 6745a001 70dbd880 ff 05 0001 0000 0a01000b 00000011"), "Length_of_FEC_Parameters", ErrShort},
		{"announced IDs missing", fix("0000 0004 0002 0000 0a010001 6745a001 70dbd880 ef010207 0a01000b"), "Count_of_Destination_IDs", ErrShort},
		{"announced IDs too many", fix("0000 0004 0000 0000 0a010001 6745a001 70dbd880 ef010207 0a01000b"), "Count_of_Destination_IDs", ErrMismatch},
		{"discard with more", fix("0000 0403 0000 0000 0a010001 6745a001 00"), "Length_of_PDU", ErrTooLong},
		{"request with more", fix("0000 0005 0000 0000 0a010001 6745a001 ef010207 00"), "Length_of_PDU", ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _, err := Parse(tt.b)
			var e *PDUError
			check.True(t, "no p", p == nil, p)
			check.ErrorIs(t, err, tt.err)
			check.True(check.Fatal(t), "errors.As(err, &e)", errors.As(err, &e), err)
			check.Equal(t, "e.Field", e.Field, tt.field)
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	ack := func(e AckEntry) PDU { return AckPDU{Source: nodeB, Entries: []AckEntry{e}} }
	tests := []struct {
		name  string
		p     PDU
		field string
	}{
		{"fragment too long", DataPDU{Number: 1, Fragment: make([]byte, math.MaxUint16-15)}, "Length_of_PDU"},
		{"Data_PDU 0", DataPDU{}, "Sequence_Number"},
		{"expiry in 2106", AddressPDU{Expiry: time.Unix(1<<32, 0)}, "Expiry_Time"},
		{"expiry before 1970", AnnouncePDU{Expiry: time.Unix(-1, 0)}, "Expiry_Time"},
		{"expiry of half a second", AddressPDU{Expiry: time.Unix(1, 1)}, "Expiry_Time"},
		{"8190 destinations", AddressPDU{Expiry: year2030, Destinations: make([]Destination, 8190)}, "Length_of_PDU"},
		{"reserved field differs", AddressPDU{Expiry: year2030, Reserved: 4, Destinations: []Destination{to(nodeB, 1)}}, "Reserved"},
		{"256 octets of FEC parameters", AddressPDU{Expiry: year2030, FEC: &FEC{1, make([]byte, 256)}}, "Length_of_FEC_Parameters"},
		{"16379 announced", AnnouncePDU{Expiry: year2030, Destinations: make([]NodeID, 16379)}, "Count_of_Destination_IDs"},
		{"missing 0", ack(AckEntry{Missing: []Run{{0, 0}}}), "Missing_Data_PDU_Seq_Numbers"},
		{"run backwards", ack(AckEntry{Missing: []Run{{9, 5}}}), "Missing_Data_PDU_Seq_Numbers"},
		{"not ascending", ack(AckEntry{Missing: []Run{{5, 9}, {9, 9}}}), "Missing_Data_PDU_Seq_Numbers"},
		{"cut of nothing", ack(AckEntry{Cut: true}), "Missing_Data_PDU_Seq_Numbers"},
		{"no PDU", nil, "PDU_Type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Append([]byte("kept"), tt.p, Fletcher)
			var e *PDUError
			if string(b) != "kept" || !errors.As(err, &e) || e.Field != tt.field {
				t.Errorf("Append = %q, %v; want an error of %s", b, err, tt.field)
			}
		})
	}
}

// TestFletcherIsALineCheck: 00 and FF are equal modulo 255 (p-mul 4). Integrity comes from the seal.
func TestFletcherIsALineCheck(t *testing.T) {
	b := unhex(t, vectors[4].hex)
	b[4] = 0xff // Sequence_Number 0x0001 becomes 0xff01
	if p, sum, err := Parse(b); err != nil || sum != Fletcher || p.(DataPDU).Number != 0xff01 {
		t.Errorf("Parse = %+v, %v, %v", p, sum, err)
	}
}

// FuzzParse: a value that parses is written and read again as the same value, in both checksums; nothing panics.
func FuzzParse(f *testing.F) {
	for _, v := range vectors {
		f.Add(unhex(f, v.hex))
	}
	f.Add(unhex(f, endOfList))
	f.Fuzz(func(t *testing.T, b []byte) {
		again := bytes.Clone(b)
		if len(again) >= 8 && len(again) <= math.MaxUint16 { // let the mutations past length and checksum
			again[0], again[1], again[6], again[7] = byte(len(again)>>8), byte(len(again)), 0, 0
			putChecksum(again, Fletcher)
		}
		for _, in := range [][]byte{b, again} {
			p, _, err := Parse(in)
			if err != nil {
				var e *PDUError
				if p != nil || !errors.As(err, &e) {
					t.Fatalf("Parse(%x) = %+v, %v", in, p, err)
				}
				continue
			}
			for _, sum := range []Checksum{Fletcher, Internet} {
				out, err := Append(nil, p, sum)
				if err != nil {
					t.Fatalf("Append(%+v): %v", p, err)
				}
				if q, _, err := Parse(out); err != nil || !reflect.DeepEqual(p, q) {
					t.Fatalf("%+v came back as %+v, %v", p, q, err)
				}
			}
		}
	})
}
