package jxta

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	peerA  = "cbid-59616261646162614A787461503250336D05A710FF3CF2DBFB25ADEC2FEE183803"
	pipeA  = "uuid-59616261646162614E50472050325033BFB25ADEC2FEE1836D05A710FF3CF2DB04"
	groupA = "uuid-0102030405060708090A0B0C0D0E0F1002"
)

func TestNormalize(t *testing.T) {
	tests := []struct {
		name, in, want string
		err            error
	}{
		{"cbid peer", peerA, peerA, nil},
		{"upper-cased by 2.2", strings.ToUpper(peerA), peerA, nil},
		{"lower-cased digits", "uuid-" + strings.ToLower(peerA[5:]), "uuid-" + peerA[5:], nil},
		{"zero saving", "uuid-59616261646162614A78746150325033D43B200003", "uuid-59616261646162614A78746150325033D43B2003", nil},
		{"all zero", "uuid-000003", "uuid-03", nil},
		{"net group by bytes", "uuid-59616261646162614E5047205032503302", NetGroup, nil},
		{"world group by bytes", "uuid-59616261646162614A7874615032503302", WorldGroup, nil},
		{"well-known in upper case", "JXTA-NETGROUP", NetGroup, nil},
		{"unknown format stays", "binaryID-AbC_1", "binaryID-AbC_1", nil},
		{"odd digits", "uuid-596", "", ErrSyntax},
		{"no hex", "uuid-59G103", "", ErrSyntax},
		{"no format", "5961", "", ErrMissing},
		{"unknown well-known", "jxta-Group", "", ErrMismatch},
		{"slash", "x-a/b", "", ErrSyntax},
		{"too long", "uuid-" + strings.Repeat("11", 65), "", ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Normalize(tt.in)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Normalize = %q, %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

func TestIDParts(t *testing.T) {
	for _, id := range []string{peerA, pipeA, groupA, ClassRelay, "uuid-03"} {
		p, ok := SplitID(id)
		if !ok || p.Unique() != id {
			t.Errorf("%s: %+v, %v, again %s", id, p, ok, p.Unique())
		}
	}
	p, _ := SplitID(peerA)
	if !p.CBID || p.Kind != KindPeer || p.Group != WorldUUID {
		t.Errorf("parts of a peer id: %+v", p)
	}
	for _, id := range []string{NetGroup, "binaryID-1", "uuid-" + strings.Repeat("11", 40)} {
		if p, ok := SplitID(id); ok {
			t.Errorf("%s: %+v", id, p)
		}
	}
}

// An id that ends in a zero octet is drawn again (ghosts 2).
func TestNewIDAvoidsTrailingZero(t *testing.T) {
	r := bytes.NewReader(append(make([]byte, 16), bytes.Repeat([]byte{7}, 16)...))
	id, err := NewID(KindPeer, WorldUUID, r)
	if err != nil || id != "uuid-59616261646162614A78746150325033"+strings.Repeat("07", 16)+"03" {
		t.Errorf("NewID = %s, %v", id, err)
	}
	if _, err := NewID(KindPeer, WorldUUID, bytes.NewReader(nil)); err == nil {
		t.Error("no randomness, no error")
	}
}

func TestAddress(t *testing.T) {
	tests := []struct {
		in   string
		want Address
		text string // as written again
	}{
		{"jxta://" + peerA, Address{"jxta", peerA, "", ""}, ""},
		{"tcp://10.66.0.2:38268/EndpointService:jxta-NetGroup/urn:jxta:uuid-DEADBEEFDEAFBABAFEEDBABE0000000605/jxta-NetGroup",
			Address{"tcp", "10.66.0.2:38268", "EndpointService:jxta-NetGroup", URN(ClassRendezvous) + "/jxta-NetGroup"}, ""},
		{"urn:jxta:" + peerA + "#PipeService/" + URN(pipeA), Address{"jxta", peerA, "PipeService", URN(pipeA)}, "jxta://" + peerA + "/PipeService/" + URN(pipeA)},
		{"  jxta://" + strings.ToUpper(peerA) + "\n", Address{"jxta", peerA, "", ""}, "jxta://" + peerA},
	}
	for _, tt := range tests {
		got, err := ParseAddress(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseAddress(%q) = %+v, %v", tt.in, got, err)
		}
		if tt.text == "" {
			tt.text = tt.in
		}
		if got.String() != tt.text {
			t.Errorf("%q written again: %q", tt.in, got)
		}
	}
	for _, bad := range []string{"", "tcp", "tcp://", "jxta://nonsense", "://x", "tcp://" + strings.Repeat("a", 5000)} {
		if a, err := ParseAddress(bad); err == nil {
			t.Errorf("ParseAddress(%.20q) = %+v", bad, a)
		}
	}
	g, s, p := Demangle(Mangle(groupA, "PipeService", URN(pipeA)))
	if g != groupA || s != "PipeService" || p != URN(pipeA) {
		t.Errorf("Demangle: %q %q %q", g, s, p)
	}
	if g, s, p = Demangle("PipeService", "x/y"); g != "" || s != "PipeService" || p != "x/y" {
		t.Errorf("nothing to demangle: %q %q %q", g, s, p)
	}
}

// Lines of real peers (wire 2.1; baseline 2).
func TestWelcome(t *testing.T) {
	dial := "tcp://10.66.0.1:9701/EndpointService:jxta-NetGroup/uuid-DEADBEEFDEAFBABAFEEDBABE0000000F05/connect,3600000,keep,true"
	tests := []struct {
		name, line string
		want       Welcome
		err        error
	}{
		{"2.7", "JXTAHELLO tcp://10.66.0.1:9701 tcp://10.66.0.2:9701 urn:jxta:" + peerA + " 0 1.1\r\n",
			Welcome{"tcp://10.66.0.1:9701", "tcp://10.66.0.2:9701", URN(peerA), false, 0, "1.1"}, nil},
		{"relay dial of 2.2", "JXTAHELLO " + dial + " tcp://10.66.0.2:0 urn:jxta:" + peerA + " 1 1.1\r\n",
			Welcome{dial, "tcp://10.66.0.2:0", URN(peerA), true, 0, "1.1"}, nil},
		{"3.0", "JXTAHELLO tcp://a:1 tcp://b:2 urn:jxta:" + peerA + " 0 1 3.0\r\n",
			Welcome{"tcp://a:1", "tcp://b:2", URN(peerA), false, 1, "3.0"}, nil},
		{"seven fields in 1.1", "JXTAHELLO a b urn:jxta:" + peerA + " 0 1 1.1\r\n", Welcome{}, ErrMismatch},
		{"unknown version", "JXTAHELLO a b urn:jxta:" + peerA + " 0 2.0\r\n", Welcome{}, ErrMismatch},
		{"flag", "JXTAHELLO a b urn:jxta:" + peerA + " x 1.1\r\n", Welcome{}, ErrMismatch},
		{"no peer", "JXTAHELLO a b c 0 1.1\r\n", Welcome{}, ErrMismatch},
		{"garbage", "GET / HTTP/1.1\r\n", Welcome{}, ErrMismatch},
		{"not text", "JXTAHELLO \xff b urn:jxta:" + peerA + " 0 1.1\r\n", Welcome{}, ErrSyntax},
		{"too long", "JXTAHELLO " + strings.Repeat("a", 4096) + "\r\n", Welcome{}, ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseWelcome([]byte(tt.line))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Fatalf("ParseWelcome = %+v, %v; want %+v, %v", got, err, tt.want, tt.err)
			}
			if tt.err == nil {
				if again, err := AppendWelcome(nil, got); err != nil || string(again) != tt.line {
					t.Errorf("again %q, %v", again, err)
				}
			}
		})
	}
	for _, w := range []Welcome{{}, {Dest: "a b", Public: "x", Peer: "y"}, {Dest: "a", Public: "x", Peer: "y", Version: "2.0"},
		{Dest: strings.Repeat("a", 5000), Public: "x", Peer: "y"}} {
		if b, err := AppendWelcome([]byte("kept"), w); err == nil || string(b) != "kept" {
			t.Errorf("AppendWelcome(%.30v) = %q, %v", w, b, err)
		}
	}
}

// The 63 octets of a header (wire 2.2), and the same in the order of JXTA 2.2.
func TestPackageHeader(t *testing.T) {
	length := "0e 636f6e74656e742d6c656e677468 0008 0000000000000b16"
	kind := "0c 636f6e74656e742d74797065 0016 6170706c69636174696f6e2f782d6a7874612d6d7367"
	want := PackageHeader{2838, MessageType}
	tests := []struct {
		name, hex string
		want      PackageHeader
		n         int
		err       error
	}{
		{"2.7", length + kind + "00", want, 63, nil},
		{"2.2", kind + length + "00", want, 63, nil},
		{"unknown header", "03 616263 0001 ff" + kind + length + "00", want, 70, nil},
		{"body behind", length + kind + "00 6a786d67", want, 63, nil},
		{"cut in a value", length + kind[:41], PackageHeader{}, 0, ErrShort},
		{"empty", "", PackageHeader{}, 0, ErrShort},
		{"no length", kind + "00", PackageHeader{}, 0, ErrMissing},
		{"no type", length + "00", PackageHeader{}, 0, ErrMissing},
		{"length twice", length + length + kind + "00", PackageHeader{}, 0, ErrMismatch},
		{"short length", "0e 636f6e74656e742d6c656e677468 0004 00000b16" + kind + "00", PackageHeader{}, 0, ErrMismatch},
		{"name of 128", "80", PackageHeader{}, 0, ErrTooLong},
		{"endless value", "03 616263 ffff", PackageHeader{}, 0, ErrTooLong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, n, err := ParsePackageHeader(unhex(t, tt.hex))
			check.ErrorIs(t, err, tt.err)
			check.Equal(t, "n", n, tt.n)
			check.True(t, "err != nil || got == tt.want", err != nil || got == tt.want)
		})
	}
	if got := AppendPackageHeader(nil, 2838); !bytes.Equal(got, unhex(t, length+kind+"00")) {
		t.Errorf("AppendPackageHeader = %x", got)
	}
}

func TestParseMessage(t *testing.T) {
	lease := Element{Namespace: "relay", Name: "lease", Type: "text/plain", Data: []byte("60")}
	body := Element{Name: "body", Data: []byte("TRK")}
	sig := Element{Namespace: "jxta", Name: "s", Data: []byte{1}}
	signed := Element{Namespace: "jxta", Name: "x", Data: []byte{2}, Signature: &sig}
	const (
		head0  = "6a786d67 00 0001 0005 72656c6179 "
		lease0 = "6a78656c 02 01 0005 6c65617365 000a 746578742f706c61696e 00000002 3630 "
		body0  = "6a78656c 00 00 0004 626f6479 00000003 54524b "
	)
	tests := []struct {
		name, hex string
		want      []Element
		rest      int
		err       error
	}{
		{"version 0", head0 + "0002" + lease0 + body0, []Element{lease, body}, 0, nil},
		{"trailer behind", head0 + "0001" + lease0 + "0000", []Element{lease}, 2, nil},
		{"uncounted", head0 + "0000" + lease0 + body0, []Element{lease, body}, 0, nil},
		{"signature element", "6a786d67 00 0000 0001 6a78656c 01 04 0001 78 00000001 02 6a78656c 01 00 0001 73 00000001 01", []Element{signed}, 0, nil},
		{"empty", "6a786d67 00 0000 0000", nil, 0, nil},
		// Version 1 as JXTA-C writes it: namespaces by reference of two octets, names literal.
		{"version 1", "6a786d67 01 00 0002 0005 72656c6179 000a 746578742f706c61696e 0002" +
			"6a78656c 06 0002 0005 6c65617365 0003 00000002 3630" + "6a78656c 02 0000 0004 626f6479 00000003 54524b", []Element{lease, body}, 0, nil},
		{"version 1, long length, literal namespace", "6a786d67 01 00 0000 0001" +
			"6a78656c 03 ffff 0005 72656c6179 0001 78 0000000000000001 09", []Element{{Namespace: "relay", Name: "x", Data: []byte{9}}}, 0, nil},
		{"version 1, UTF-16", "6a786d67 01 01 0000 0000", nil, 0, ErrMismatch},
		{"version 1, encodings", "6a786d67 01 00 0000 0001 6a78656c 12 0000 0001 78 00000000", nil, 0, ErrMismatch},
		{"version 1, name out of table", "6a786d67 01 00 0000 0001 6a78656c 02 0005 0001 78 00000000", nil, 0, ErrMismatch},
		{"version 2", "6a786d67 02 0000 0000", nil, 0, ErrMismatch},
		{"no magic", "6a786d66 00 0000 0000", nil, 0, ErrMismatch},
		{"short", "6a786d", nil, 0, ErrShort},
		{"65,535 elements", "6a786d67 00 0000 ffff", nil, 0, ErrTooLong},
		{"300 namespaces", "6a786d67 00 012c", nil, 0, ErrTooLong},
		{"name of 65,535", "6a786d67 00 0000 0001 6a78656c 00 00 ffff", nil, 0, ErrTooLong},
		{"namespace out of table", "6a786d67 00 0000 0001 6a78656c 02 00 0001 78 00000000", nil, 0, ErrMismatch},
		{"unknown flag", "6a786d67 00 0000 0001 6a78656c 00 08 0001 78 00000000", nil, 0, ErrMismatch},
		{"data of 4 GiB", "6a786d67 00 0000 0001 6a78656c 00 00 0001 78 ffffffff 00", nil, 0, ErrShort},
		{"element cut", head0 + "0002" + lease0, nil, 0, ErrShort},
		{"element magic", head0 + "0001" + "6a78656d" + lease0[9:], nil, 0, ErrMismatch},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.hex)
			got, rest, err := ParseMessage(b, DefaultLimits)
			if !errors.Is(err, tt.err) || len(rest) != tt.rest || !reflect.DeepEqual(got.Elements, tt.want) {
				t.Fatalf("ParseMessage = %+v, %d left, %v; want %+v, %v", got, len(rest), err, tt.want, tt.err)
			}
			if err != nil || tt.name == "uncounted" || strings.HasSuffix(tt.name, "literal namespace") {
				return
			}
			if again, err := AppendMessage(nil, got); err != nil || !bytes.Equal(again, b[:len(b)-tt.rest]) {
				t.Errorf("again %x, %v", again, err)
			}
		})
	}
	if _, _, err := ParseMessage(make([]byte, 100), Limits{10, 10, 50}); !errors.Is(err, ErrTooLong) {
		t.Errorf("beyond Total: %v", err)
	}
	chain := Message{Elements: []Element{{Name: "a"}}} // signature elements of signature elements count, too
	for e, i := &chain.Elements[0], 0; i < 20; i++ {
		e.Signature = &Element{Name: "s"}
		e = e.Signature
	}
	b, err := AppendMessage(nil, chain)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ParseMessage(b, Limits{20, 10, 1 << 20}); !errors.Is(err, ErrTooLong) {
		t.Errorf("chain of signatures: %v", err)
	}
	for _, m := range []Message{{Version: 7}, {Elements: []Element{{Name: strings.Repeat("a", 40000)}}},
		{Version: 1, Elements: []Element{{Encoding: "gzip"}}}, {Elements: make([]Element, 40000)}} {
		if got, err := AppendMessage([]byte("kept"), m); err == nil || string(got) != "kept" {
			t.Errorf("AppendMessage of what cannot be written: %.20q, %v", got, err)
		}
	}
}

func TestSignMessage(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	cert := captured(t, "jxse27-relay") // its trailer's certificate will do as a body for a foreign key
	m, rest, err := ParseMessage(cert, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := ParseTrailer(rest)
	if err != nil {
		t.Fatal(err)
	}
	message, err := AppendMessage(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := SignMessage(bytes.Clone(message), key, tr.Cert, URN(peerA))
	if err != nil {
		t.Fatal(err)
	}
	own, err := ParseTrailer(signed[len(message):])
	if err != nil || own.Source != URN(peerA) || len(own.Sig) != 128 {
		t.Fatalf("trailer %+v, %v", own, err)
	}
	if own.Verify(message) == nil {
		t.Error("a signature of another key than the certificate's verifies")
	}
	for _, cut := range []int{0, 3, 4, 100, len(rest) - 1} {
		if _, err := ParseTrailer(rest[:cut]); !errors.Is(err, ErrShort) {
			t.Errorf("trailer cut at %d: %v", cut, err)
		}
	}
	if _, err := ParseTrailer(append(bytes.Clone(rest), 0)); !errors.Is(err, ErrTooLong) {
		t.Errorf("trailer and one octet: %v", err)
	}
	if _, err := ParseTrailer(unhex(t, "ffffffff 00")); !errors.Is(err, ErrTooLong) {
		t.Errorf("certificate of 4 GiB: %v", err)
	}
	if err := (Trailer{Cert: []byte("x")}).Verify(nil); err == nil {
		t.Error("no certificate, no error")
	}
}
