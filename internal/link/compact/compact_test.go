package compact

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func TestID(t *testing.T) {
	tests := []struct{ id, hex string }{
		{"", "00"},
		{"jxta-NetGroup", "01"},
		{"jxta-WorldGroup", "02"},
		{"cbid-59616261646162614A7874615032503383569155EBF440C2B9C89E114D3E269303", "89 83569155ebf440c2b9c89e114d3e2693 03"},
		{"uuid-59616261646162614E50472050325033A1B2C3D4E5F60718293A4B5C6D7E8F9004", "90 a1b2c3d4e5f60718293a4b5c6d7e8f90 04"},
		{"uuid-DEADBEEFDEAFBABAFEEDBABE0000000605", "98 0605"},
		{"uuid-59616261646162614E50472050325033DEADBEEFDEAFBABAFEEDBABE0000000F04", "a0 deafbabafeedbabe0000000f 04"},
		{"uuid-0102", "80 0102"},
		{"uuid-abcd", "40 757569642d61626364"}, // lower case would come back as upper case
		{"uuid-012", "40 757569642d303132"},
		{"binaryID-xyz", "40 62696e61727949442d78797a"},
	}
	for _, tt := range tests {
		got := AppendID(nil, tt.id)
		if want := unhex(t, tt.hex); !bytes.Equal(got, want) {
			t.Errorf("AppendID(%q) = %x, want %x", tt.id, got, want)
		}
		if back, err := ParseID(got); back != tt.id || err != nil {
			t.Errorf("ParseID(%x) = %q, %v; want %q", got, back, err, tt.id)
		}
	}
	for _, bad := range []string{"", "05", "0100", "87", "c0", "b8"} {
		if id, err := ParseID(unhex(t, bad)); !errors.Is(err, ErrID) {
			t.Errorf("ParseID(%s) = %q, %v; want ErrID", bad, id, err)
		}
	}
}

// msa is a specification as JXSE 2.7 publishes it; its ids are not in the dictionary.
const msa = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE jxta:MSA>
<jxta:MSA xml:space="preserve" xmlns:jxta="http://jxta.org">
	
<MSID>urn:jxta:uuid-4C6F9A1B2C3D4E5F60718293A4B5C6D72F5DBB4FA33540B79D3B4C43F5A7E2A106</MSID><Name>JXTASPEC:hq-svc</Name><Crtr>aldis</Crtr><SURI>http://aldis</SURI><Vers>1.0</Vers><jxta:PipeAdvertisement xml:space="preserve" xmlns:jxta="http://jxta.org"><Id>urn:jxta:uuid-59616261646162614E504720503250336A0F7D3C91E84B5C8D2E1F3A4B5C6D7E04</Id><Type>JxtaPropagate</Type><Name>hq-svc</Name></jxta:PipeAdvertisement></jxta:MSA>
`

func TestAppendExpandsToTheSame(t *testing.T) {
	random := unhex(t, strings.Repeat("a7f30c5599e1", 20))
	tests := []struct {
		name string
		text []byte
		most int
	}{
		{"nothing", nil, 0},
		{"one octet", []byte{0}, 1},
		{"the id mark itself", []byte("\x01urn:jxta:uuid-0102"), 19},
		{"an id cut short", []byte("urn:jxta:"), 9},
		{"no dictionary helps", random[:6], 6},
		{"module specification", []byte(msa), 125},
		{"two ids only", []byte("urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000605 urn:jxta:jxta-NetGroup"), 15},
	}
	var c Coder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			coded, codec := c.Append(nil, tt.text)
			if len(coded) > tt.most {
				t.Errorf("%d octets for %d, at most %d wanted", len(coded), len(tt.text), tt.most)
			}
			back, err := Expand(codec, coded, len(tt.text))
			if err != nil || !bytes.Equal(back, tt.text) {
				t.Errorf("Expand = %q, %v; want %q", back, err, tt.text)
			}
			if len(tt.text) > 0 {
				if _, err := Expand(codec, coded, len(tt.text)-1); !errors.Is(err, ErrTooLong) {
					t.Errorf("Expand over the limit: %v, want ErrTooLong", err)
				}
			}
		})
	}
	if _, err := Expand(9, nil, 10); !errors.Is(err, ErrCode) {
		t.Errorf("Expand of codec 9: %v, want ErrCode", err)
	}
}

func TestExpandStopsAtTheLimit(t *testing.T) {
	var c Coder
	bomb, codec := c.Append(nil, make([]byte, 10<<20))
	if _, err := Expand(codec, bomb, 1<<16); !errors.Is(err, ErrTooLong) {
		t.Errorf("10 MiB of zeros in %d octets: %v, want ErrTooLong", len(bomb), err)
	}
}

func FuzzExpand(f *testing.F) {
	var c Coder
	for _, s := range []string{msa, "", "\x01\x02\x98\x06", strings.Repeat("x", 300)} {
		b, codec := c.Append(nil, []byte(s))
		f.Add(byte(codec), b)
	}
	f.Fuzz(func(t *testing.T, codec byte, b []byte) {
		text, err := Expand(Codec(codec), b, 1<<16)
		if err != nil {
			return
		}
		var c Coder
		coded, k := c.Append(nil, text)
		if back, err := Expand(k, coded, len(text)); err != nil || !bytes.Equal(back, text) {
			t.Fatalf("%q comes back as %q, %v", text, back, err)
		}
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkAppendModuleSpecification(b *testing.B) {
	var c Coder
	for b.Loop() {
		c.Append(nil, []byte(msa))
	}
}
