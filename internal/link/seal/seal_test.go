package seal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"aldis/internal/lab/check"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// countKey is 00 01 02 … 1f.
func countKey() (k Key) {
	for i := range k {
		k[i] = byte(i)
	}
	return k
}

// The expected keys come from Python's hashlib: blake2b(b"", digest_size=32, key=net, salt=id little endian and
// eight zeros, person=b"aldisdg1" and eight zeros).
func TestSubkey(t *testing.T) {
	tests := []struct {
		node        uint16
		incarnation Incarnation
		want        string
	}{
		{1, Incarnation{1, 0}, "5be5873e0463f491c94309f8b1bac41fa7055b855e5869f7c0cdd5c9cf694320"},
		{2, Incarnation{0x656d0100, 0xbeef}, "d4e9df089ae7ec869c5cd75b0eb538eb92ee5cb00ebd13d2d7307d95087381ac"},
		{0x0102, Incarnation{math.MaxUint32, 0xffff}, "3c678573f4209d1f3c42a873696f282eee26e1113af4e750a17a307fd9f58f60"},
	}
	network := countKey()
	for _, tt := range tests {
		got := subkey(&network, tt.node, tt.incarnation)
		if hex.EncodeToString(got[:]) != tt.want {
			t.Errorf("subkey(%d, %v) = %x, want %s", tt.node, tt.incarnation, got, tt.want)
		}
	}
}

// independent seals with golang.org/x/crypto, from the layout in doc.go and the sub-keys of TestSubkey.
func independent(t *testing.T, subkey string, from, to uint16, incarnation Incarnation, counter uint32, long bool, body []byte) []byte {
	t.Helper()
	aead, err := chacha20poly1305.New(unhex(t, subkey))
	if err != nil {
		t.Fatal(err)
	}
	head := []byte{0x20 | byte(from)&0x0f}
	if long {
		head[0] |= 0x10
		head = binary.BigEndian.AppendUint32(head, incarnation.Number)
		head = binary.BigEndian.AppendUint16(head, incarnation.Salt)
		head = binary.BigEndian.AppendUint32(head, counter)
	} else {
		head = append(head, byte(counter>>8), byte(counter))
	}
	ad := append(bytes.Clone(head), byte(from>>8), byte(from), byte(to>>8), byte(to))
	nonce := []byte{0, 0, 0, 0, 0, 0, 0, 0, byte(counter >> 24), byte(counter >> 16), byte(counter >> 8), byte(counter)}
	return aead.Seal(head, nonce, body, ad)
}

func TestSealVectors(t *testing.T) {
	const key2 = "d4e9df089ae7ec869c5cd75b0eb538eb92ee5cb00ebd13d2d7307d95087381ac"
	incarnation := Incarnation{0x656d0100, 0xbeef}
	tests := []struct {
		name    string
		to      uint16
		counter uint32
		long    bool
		body    string
		want    string // frozen; compared with the independent implementation as well
	}{
		{"first, long", 1, 1, true, "68656a",
			"32 656d0100 beef 00000001 500a64 34e1e6d5e09cfa39ea4b21d84750fd2a"},
		{"short", 1, 2, false, "68656a",
			"22 0002 4540b1 390c7f523ad7969112ded8584d3e6132"},
		{"to the network, empty", Group, 0x1_0003, false, "",
			"22 0003 5eb1a987b7d9d50304f3032b2742a047"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSealer(countKey(), 2, incarnation)
			s.counter = tt.counter - 1
			got, err := s.Seal([]byte("before"), tt.to, tt.long, unhex(t, tt.body))
			if err != nil {
				t.Fatal(err)
			}
			got = got[len("before"):]
			if want := unhex(t, tt.want); !bytes.Equal(got, want) {
				t.Errorf("Seal = %x, want %x", got, want)
			}
			if other := independent(t, key2, 2, tt.to, incarnation, tt.counter, tt.long, unhex(t, tt.body)); !bytes.Equal(got, other) {
				t.Errorf("Seal = %x, golang.org/x/crypto says %x", got, other)
			}
		})
	}
}

func TestSealRefusesWhenCountersAreSpent(t *testing.T) {
	s := NewSealer(countKey(), 2, Incarnation{1, 1})
	s.counter = math.MaxUint32 - 1
	if _, err := s.Seal(nil, 1, true, nil); err != nil {
		t.Fatalf("the last counter: %v", err)
	}
	for range 2 {
		if got, err := s.Seal([]byte{7}, 1, true, nil); !errors.Is(err, ErrSpent) || len(got) != 1 {
			t.Errorf("after the last counter: %x, %v; want ErrSpent and nothing appended", got, err)
		}
	}
}

func TestNextIncarnation(t *testing.T) {
	at := func(unix int64) time.Time { return time.Unix(unix, 999) }
	tests := []struct {
		name     string
		previous uint32
		now      time.Time
		want     uint32
		fails    bool
	}{
		{"first start", 0, at(1_700_000_000), 1_700_000_000, false},
		{"later", 1_700_000_000, at(1_700_000_060), 1_700_000_060, false},
		{"twice in a second", 1_700_000_000, at(1_700_000_000), 1_700_000_001, false},
		{"clock went back", 1_700_000_000, at(1_600_000_000), 1_700_000_001, false},
		{"clock at 1970", 0, at(0), 1, false},
		{"clock before 1970", 5, at(-1000), 6, false},
		{"clock after 2106", 5, at(1 << 33), math.MaxUint32, false},
		{"used up", math.MaxUint32, at(1 << 33), 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NextIncarnation(tt.previous, tt.now)
			if got != tt.want || (err != nil) != tt.fails {
				t.Errorf("NextBoot = %d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestKeyText(t *testing.T) {
	good := countKey()
	if got, err := ParseKey(good.Text()); got != good || err != nil {
		t.Errorf("ParseKey(Text) = %x, %v", [32]byte(got), err)
	}
	if got, other := good.Fingerprint(), (Key{1}).Fingerprint(); len(got) != 24 || got == other || got != good.Fingerprint() {
		t.Errorf("fingerprints of two keys: %s, %s", got, other)
	}
	if got, err := ParseKey(strings.ReplaceAll(good.Text(), "\n", "\r\n")); got != good || err != nil {
		t.Errorf("with CR LF: %v", err)
	}
	for name, text := range map[string]string{
		"empty":       "",
		"no header":   strings.SplitN(good.Text(), "\n", 2)[1],
		"other":       strings.Replace(good.Text(), "key 1", "key 2", 1),
		"short":       keyHeader + "\nAAECAw==\n",
		"long":        keyHeader + "\n" + strings.Repeat("AAEC", 11) + "\n",
		"not base64":  keyHeader + "\n" + strings.Repeat("?", 44) + "\n",
		"three lines": good.Text() + "more\n",
		"zero":        Key{}.Text(),
	} {
		if _, err := ParseKey(text); !errors.Is(err, ErrKeyText) {
			t.Errorf("%s: %v, want ErrKeyText", name, err)
		}
	}
	if s := good.String() + good.GoString(); strings.Contains(s, "01") || strings.Contains(s, "AAEC") {
		t.Errorf("a key shows itself: %s", s)
	}
}

// pair is a sender (node 2) and a receiver (node 1) without state of it.
func pair(incarnation Incarnation) (*Sealer, *Opener) {
	return NewSealer(countKey(), 2, incarnation),
		NewOpener(countKey(), 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}})
}

func mustSeal(t *testing.T, s *Sealer, to uint16, long bool, body string) []byte {
	t.Helper()
	d, err := s.Seal(nil, to, long, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpen(t *testing.T) {
	incarnation := Incarnation{100, 7}
	s, o := pair(incarnation)
	early := mustSeal(t, s, 1, false, "early")
	first := mustSeal(t, s, 1, true, "first")
	second := mustSeal(t, s, 1, false, "second")
	toAll := mustSeal(t, s, Group, false, "to all")
	toThree := mustSeal(t, s, 3, false, "to three")
	empty := mustSeal(t, s, 1, false, "")

	check := func(d []byte, wantBody string, want OpenInfo, wantErr error) {
		t.Helper()
		from, body, info, err := o.Open(d)
		if !errors.Is(err, wantErr) || (wantErr == nil) != (err == nil) {
			t.Fatalf("Open = %v, want %v", err, wantErr)
		}
		if err == nil {
			must := check.Fatal(t)
			check.Equal(must, "from", from, 2)
			check.Equal(must, "string(body)", string(body), wantBody)
			check.Equal(must, "info", info, want)
		}
	}
	check(early, "", OpenInfo{}, ErrUnknownIncarnation)
	check(first, "first", OpenInfo{Newest: true, NewIncarnation: true, Long: true, Incarnation: incarnation, Counter: 2}, nil)
	check(first, "", OpenInfo{}, ErrReplay)
	check(toAll, "to all", OpenInfo{Newest: true, Group: true, Incarnation: incarnation, Counter: 4}, nil)
	check(second, "second", OpenInfo{Incarnation: incarnation, Counter: 3}, nil) // overtaken: not the newest
	check(early, "early", OpenInfo{Incarnation: incarnation, Counter: 1}, nil)
	check(toThree, "", OpenInfo{}, ErrAuth)
	check(empty, "", OpenInfo{Newest: true, Incarnation: incarnation, Counter: 6}, nil)
	for _, d := range [][]byte{early, first, second, toAll, empty} {
		check(d, "", OpenInfo{}, ErrReplay)
	}
}

func TestOpenIncarnations(t *testing.T) {
	s100, o := pair(Incarnation{100, 7})
	s101 := NewSealer(countKey(), 2, Incarnation{101, 9})
	twin := NewSealer(countKey(), 2, Incarnation{101, 10})

	open := func(d []byte) (uint16, OpenInfo, error) {
		from, _, info, err := o.Open(d)
		return from, info, err
	}
	if _, info, err := open(mustSeal(t, s100, 1, true, "a")); err != nil || !info.NewIncarnation {
		t.Fatalf("first incarnation: %+v, %v", info, err)
	}
	if _, _, err := open(mustSeal(t, s101, 1, false, "b")); !errors.Is(err, ErrAuth) {
		t.Fatalf("short form of an unknown incarnation: %v", err)
	}
	late := mustSeal(t, s100, 1, false, "sent before the restart")
	if _, info, err := open(mustSeal(t, s101, 1, true, "c")); err != nil || !info.NewIncarnation || info.Counter != 2 {
		t.Fatalf("second incarnation: %+v, %v", info, err)
	}
	if _, info, err := open(mustSeal(t, s101, 1, true, "d")); err != nil || info.NewIncarnation {
		t.Fatalf("second incarnation again: %+v, %v", info, err)
	}
	for range 2 { // recognised, and never accepted
		from, info, err := open(late)
		check.ErrorIs(t, err, ErrStaleIncarnation)
		check.Equal(t, "from", from, 2)
		check.Equal(t, "info.Boot.Number", info.Incarnation.Number, 100)
		check.Equal(t, "info.Counter", info.Counter, 2)
	}
	before := o.State(2)
	if from, _, err := open(mustSeal(t, s100, 1, true, "e")); !errors.Is(err, ErrStaleIncarnation) || from != 2 {
		t.Errorf("old incarnation: %d, %v", from, err)
	}
	if from, _, err := open(mustSeal(t, twin, 1, true, "f")); !errors.Is(err, ErrTwin) || from != 2 {
		t.Errorf("same incarnation number, other salt: %d, %v", from, err)
	}
	if o.State(2) != before {
		t.Error("a refused datagram changed the state")
	}
}

func TestOpenOwnID(t *testing.T) {
	self := Incarnation{50, 50}
	o := NewOpener(countKey(), 1, self, map[uint16]PeerState{2: {}})
	other := NewSealer(countKey(), 1, Incarnation{60, 1})
	for _, to := range []uint16{Group, 1} {
		if from, _, _, err := o.Open(mustSeal(t, other, to, true, "x")); !errors.Is(err, ErrOwnID) || from != 1 {
			t.Errorf("another node with our id, to %d: %d, %v", to, from, err)
		}
	}
	mirror := NewSealer(countKey(), 1, self)
	if _, _, _, err := o.Open(mustSeal(t, mirror, Group, true, "x")); !errors.Is(err, ErrReplay) {
		t.Errorf("our own datagram sent back: %v", err)
	}
	if _, _, _, err := o.Open(mustSeal(t, NewSealer(countKey(), 3, self), 1, true, "x")); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("a node that is not configured: %v", err)
	}
}

// Ids 0x0102 and 0x0202 give the same hint.
func TestOpenPeersWithOneHint(t *testing.T) {
	peers := map[uint16]PeerState{0x0102: {}, 0x0202: {}}
	o := NewOpener(countKey(), 1, Incarnation{1, 1}, peers)
	a, b := NewSealer(countKey(), 0x0102, Incarnation{7, 1}), NewSealer(countKey(), 0x0202, Incarnation{8, 1})
	if from, _, _, err := o.Open(mustSeal(t, b, 1, false, "?")); from != 0 || !errors.Is(err, ErrUnknownIncarnation) {
		t.Errorf("unknown incarnations: %d, %v", from, err)
	}
	if from, _, _, err := o.Open(mustSeal(t, b, 1, true, "b")); from != 0x0202 || err != nil {
		t.Fatalf("long form: %d, %v", from, err)
	}
	if from, _, _, err := o.Open(mustSeal(t, a, 1, false, "?")); from != 0x0102 || !errors.Is(err, ErrUnknownIncarnation) {
		t.Errorf("one unknown incarnation: %d, %v", from, err)
	}
	if from, _, _, err := o.Open(mustSeal(t, a, 1, true, "a")); from != 0x0102 || err != nil {
		t.Fatalf("long form: %d, %v", from, err)
	}
	for range 3 {
		if from, _, _, err := o.Open(mustSeal(t, a, 1, false, "a")); from != 0x0102 || err != nil {
			t.Errorf("short form of a: %d, %v", from, err)
		}
		if from, _, _, err := o.Open(mustSeal(t, b, 1, false, "b")); from != 0x0202 || err != nil {
			t.Errorf("short form of b: %d, %v", from, err)
		}
	}
}

func TestOpenRefusesWhatWasChanged(t *testing.T) {
	for _, long := range []bool{false, true} {
		s, o := pair(Incarnation{100, 7})
		if _, _, _, err := o.Open(mustSeal(t, s, 1, true, "hello")); err != nil {
			t.Fatal(err)
		}
		before := o.State(2)
		d := mustSeal(t, s, 1, long, "a body of some octets")
		for n := range d {
			if _, _, _, err := o.Open(d[:n]); err == nil {
				t.Errorf("long %v: cut to %d octets: opened", long, n)
			}
		}
		for bit := range len(d) * 8 {
			bad := bytes.Clone(d)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, _, _, err := o.Open(bad); err == nil {
				t.Errorf("long %v: bit %d flipped: opened", long, bit)
			}
		}
		if _, _, _, err := o.Open(append(bytes.Clone(d), 0)); !errors.Is(err, ErrAuth) {
			t.Errorf("long %v: one octet more: %v", long, err)
		}
		if o.State(2) != before {
			t.Errorf("long %v: a changed datagram changed the state", long)
		}
		if _, body, _, err := o.Open(d); err != nil || string(body) != "a body of some octets" {
			t.Errorf("long %v: the datagram itself: %q, %v", long, body, err)
		}
	}
}

func TestOpenAnotherNetworksKey(t *testing.T) {
	other := countKey()
	other[31]++
	s := NewSealer(other, 2, Incarnation{100, 7})
	_, o := pair(Incarnation{1, 1})
	for _, long := range []bool{true, false, true} {
		want := ErrAuth
		if !long {
			want = ErrUnknownIncarnation
		}
		if _, _, _, err := o.Open(mustSeal(t, s, 1, long, "x")); !errors.Is(err, want) {
			t.Errorf("long %v: %v, want %v", long, err, want)
		}
	}
	if o.State(2) != (PeerState{}) {
		t.Error("another network's datagram changed the state")
	}
}

func TestOpenShort(t *testing.T) {
	_, o := pair(Incarnation{1, 1})
	for _, tt := range []struct {
		name, hex string
		want      error
	}{
		{"nothing", "", ErrShort},
		{"no tag", "220001", ErrShort},
		{"long form cut", "32" + strings.Repeat("00", 20), ErrShort},
		{"version 0", "02" + strings.Repeat("00", 30), ErrVersion},
		{"version 2", "42" + strings.Repeat("00", 30), ErrVersion},
		{"version 4", "82" + strings.Repeat("00", 30), ErrVersion},
		{"unknown peer", "29" + strings.Repeat("00", 30), ErrUnknownPeer},
		{"counter 0", "32 00000001 0000 00000000" + strings.Repeat("00", 20), ErrAuth},
		{"incarnation 0", "32 00000000 0000 00000001" + strings.Repeat("00", 20), ErrAuth},
	} {
		if _, _, _, err := o.Open(unhex(t, tt.hex)); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestParsePeerStateRefuses(t *testing.T) {
	good := (&PeerState{Incarnation: 1, Salt: 2, window: window{highest: 3}}).Append(nil)
	newer := bytes.Clone(good)
	newer[0] = 2
	for name, b := range map[string][]byte{"empty": nil, "cut": good[:len(good)-1], "long": append(bytes.Clone(good), 0), "newer": newer} {
		if _, err := ParsePeerState(b); !errors.Is(err, ErrPeerState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// After a restart of the receiver, the state from the journal still refuses datagrams received before.
func TestOpenAfterRestart(t *testing.T) {
	s, o := pair(Incarnation{100, 7})
	var old [][]byte
	for range 100 {
		d := mustSeal(t, s, 1, true, "x")
		old = append(old, d)
		if _, _, _, err := o.Open(d); err != nil {
			t.Fatal(err)
		}
	}
	state := o.State(2)
	kept, err := ParsePeerState(state.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	o = NewOpener(countKey(), 1, Incarnation{51, 3}, map[uint16]PeerState{2: kept})
	for i, d := range old {
		if _, _, _, err := o.Open(d); !errors.Is(err, ErrReplay) {
			t.Errorf("datagram %d again: %v", i, err)
		}
	}
	if _, _, info, err := o.Open(mustSeal(t, s, 1, false, "y")); err != nil || !info.Newest || info.Counter != 101 {
		t.Errorf("the next one: %+v, %v", info, err)
	}
}

func FuzzOpen(f *testing.F) {
	s := NewSealer(countKey(), 2, Incarnation{100, 7})
	for _, long := range []bool{true, false} {
		d, _ := s.Seal(nil, 1, long, []byte("seed"))
		f.Add(d)
		f.Add(d[:len(d)-1])
	}
	f.Add([]byte{0x32, 2})
	f.Fuzz(func(t *testing.T, d []byte) {
		_, o := pair(Incarnation{1, 1})
		first := mustSeal(t, NewSealer(countKey(), 2, Incarnation{100, 7}), 1, true, "seed")
		from, body, info, err := o.Open(d)
		if err == nil {
			// Only a holder of the key makes a datagram that opens: it must come out of the Sealer again.
			s := NewSealer(countKey(), 2, info.Incarnation)
			s.counter = info.Counter - 1
			to := uint16(1)
			if info.Group {
				to = Group
			}
			again, err := s.Seal(nil, to, info.Long, body)
			if from != 2 || err != nil || !bytes.Equal(again, d) {
				t.Fatalf("opened %x, but sealed again it is %x, %v", d, again, err)
			}
			return
		}
		if _, _, _, err := o.Open(first); err != nil {
			t.Fatalf("after %x an honest datagram is refused: %v", d, err)
		}
	})
}

func BenchmarkSealOpen(b *testing.B) {
	s, o := pair(Incarnation{100, 7})
	body := make([]byte, 200)
	var d []byte
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		d, _ = s.Seal(d[:0], 1, s.counter == 0, body)
		if _, _, _, err := o.Open(d); err != nil {
			b.Fatal(err)
		}
	}
}

// A strict Opener accepts nothing of a peer without state until Confirm says that a datagram is of now; from then on no
// earlier datagram counts, of whichever start.
func TestStrangersMustBeConfirmed(t *testing.T) {
	s, o := pair(Incarnation{100, 7})
	o.Strict()
	yesterday := NewSealer(countKey(), 2, Incarnation{90, 3})
	var old [][]byte
	for i := range 30 {
		old = append(old, mustSeal(t, yesterday, 1, i%3 == 0, "yesterday"), mustSeal(t, s, 1, i%3 == 0, "before the store was lost"))
	}
	for _, d := range old {
		from, _, _, err := o.Open(d)
		check.True(t, "a stranger is not taken", (errors.Is(err, ErrUnproven) || errors.Is(err, ErrUnknownIncarnation)) && from == 2, from, err)
	}
	if o.State(2) != (PeerState{}) || o.HeardIncarnation(2) != 100 {
		t.Fatalf("state %+v, heard %d; want none, and 100", o.State(2), o.HeardIncarnation(2))
	}
	late := mustSeal(t, s, 1, true, "late")
	from, body, info, err := o.Open(mustSeal(t, s, 1, false, "an answer")) // the short form of the start that was heard
	if from != 2 || string(body) != "an answer" || !errors.Is(err, ErrUnproven) {
		t.Fatalf("%d %q %v", from, body, err)
	}
	if err := o.Confirm(2, info); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(old, late) {
		if _, _, _, err := o.Open(d); err == nil {
			t.Error("a datagram from before the answer was taken")
		}
	}
	next := mustSeal(t, s, 1, false, "next")
	if _, body, info, err := o.Open(next); err != nil || string(body) != "next" || !info.Newest {
		t.Errorf("%q %+v %v", body, info, err)
	}

	// Forgotten, and confirmed again: datagrams that counted do not count again.
	if !o.Forget(2, false) || o.State(2) != (PeerState{}) {
		t.Fatal("it was not forgotten")
	}
	again := mustSeal(t, s, 1, true, "again")
	_, _, info, err = o.Open(again)
	check.ErrorIs(t, err, ErrUnproven)
	check.True(t, "confirmed", o.Confirm(2, info) == nil)
	for _, d := range [][]byte{next, again} {
		_, _, _, err := o.Open(d)
		check.ErrorIs(t, err, ErrReplay)
	}
	for range ForgetMost - 1 {
		check.True(t, "it is forgotten", o.Forget(2, false))
	}
	check.True(t, "it was forgotten too often", !o.Forget(2, false) && !o.Forget(9, false))
}

// A start beyond the bound is refused and changes nothing; the operator may allow one, and then those soon after it.
func TestStartsBeyondTheBound(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s, o := pair(Incarnation{100, 7})
		if strict {
			o.Strict()
		}
		o.Bound(200)
		open := func(s *Sealer) error {
			_, _, info, err := o.Open(mustSeal(t, s, 1, true, "x"))
			if errors.Is(err, ErrUnproven) {
				err = o.Confirm(2, info)
			}
			return err
		}
		far := NewSealer(countKey(), 2, Incarnation{math.MaxUint32 - 1, 1})
		check.True(t, "the near start", open(s) == nil)
		check.ErrorIs(t, open(far), ErrFarIncarnation)
		check.True(t, "the near start again", open(s) == nil)
		o.Forget(2, true)
		check.True(t, "the far start that the operator allowed", open(far) == nil || !strict)
		if strict {
			check.True(t, "the start behind it", open(NewSealer(countKey(), 2, Incarnation{math.MaxUint32, 1})) == nil)
			o.Forget(2, false)
			check.ErrorIs(t, open(far), ErrFarIncarnation)
			check.True(t, "the true start after that", open(s) == nil)
		}
	}
}

// A datagram of an earlier start of a peer reveals a second node only if its counter is new.
func TestTwinsAreAlive(t *testing.T) {
	s, o := pair(Incarnation{100, 7})
	first := mustSeal(t, s, 1, true, "1")
	open := func(d []byte) (bool, error) {
		_, _, info, err := o.Open(d)
		return info.Alive, err
	}
	open(first)
	lost := mustSeal(t, s, 1, true, "2")
	open(mustSeal(t, s, 1, false, "3"))
	open(mustSeal(t, NewSealer(countKey(), 2, Incarnation{101, 9}), 1, true, "x"))
	state := o.State(2)
	kept, err := ParsePeerState(state.Append(nil))
	if err != nil || kept != state {
		t.Fatalf("kept %+v, %v; want %+v", kept, err, state)
	}
	o = NewOpener(countKey(), 1, Incarnation{51, 3}, map[uint16]PeerState{2: kept})
	short, long := mustSeal(t, s, 1, false, "4"), mustSeal(t, s, 1, true, "5")
	for _, tt := range []struct {
		name  string
		d     []byte
		alive bool
	}{{"a replay", first, false}, {"one that was lost", lost, false}, {"a new short one", short, true}, {"again", short, false},
		{"a new long one", long, true}, {"again", long, false}, {"an older start", mustSeal(t, NewSealer(countKey(), 2, Incarnation{90, 1}), 1, true, "x"), false}} {
		alive, err := open(tt.d)
		check.ErrorIs(t, err, ErrStaleIncarnation)
		check.Equal(t, tt.name, alive, tt.alive)
	}
	if _, err := ParsePeerState(state.Append(nil)[:peerStateShort]); err != nil {
		t.Errorf("a record of version 0.1: %v", err)
	}
	// A datagram of this node's own earlier starts to the network, sent back, does not reveal a second node.
	mine := NewSealer(countKey(), 1, Incarnation{50, 50})
	if _, err := open(mustSeal(t, mine, Group, true, "x")); !errors.Is(err, ErrReplay) {
		t.Errorf("our own of yesterday: %v", err)
	}
}

// Close shuts out datagrams sealed before the newest one, received or not, and none after it.
func TestClose(t *testing.T) {
	s, o := pair(Incarnation{100, 7})
	early := mustSeal(t, s, 1, true, "early")
	if _, _, _, err := o.Open(mustSeal(t, s, 1, true, "newest")); err != nil {
		t.Fatal(err)
	}
	o.Close(2)
	_, _, _, err := o.Open(early)
	check.ErrorIs(t, err, ErrReplay)
	if _, _, _, err := o.Open(mustSeal(t, s, 1, false, "behind it")); err != nil {
		t.Error(err)
	}
}
