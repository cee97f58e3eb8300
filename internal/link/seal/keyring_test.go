package seal

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/chacha20poly1305"

	"aldis/internal/lab/check"
)

// nodeKey is the key of a node in tests: 32 octets of its number.
func nodeKey(id uint16) *SigningKey {
	return NewSigningKey([seedLen]byte(bytes.Repeat([]byte{byte(id)}, seedLen)))
}

func epochOf(number uint32, ids ...uint16) Epoch {
	e := Epoch{Number: number, Secret: GroupSecret{byte(number), 7}}
	for _, id := range ids {
		e.Members = append(e.Members, Member{id, nodeKey(id).Public()})
	}
	return e
}

func ringOf(t testing.TB, self uint16, epochs ...Epoch) *Keyring {
	t.Helper()
	k, err := NewKeyring(self, nodeKey(self), epochs...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The same numbers from other libraries: Go's Ed25519, X25519 and SHA-512, and BLAKE2b of golang.org/x/crypto.
func scalarOf(id uint16) []byte {
	seed := nodeKey(id).Seed()
	h := sha512.Sum512(seed[:])
	h[0] &= 248
	h[31] = h[31]&127 | 64
	return h[:32]
}

func blake(t *testing.T, octets int, key []byte, parts ...[]byte) []byte {
	t.Helper()
	h, err := blake2b.New(octets, key)
	check.NoError(check.Fatal(t), err)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func independentPair(t *testing.T, a, b uint16) []byte {
	t.Helper()
	mine, err := ecdh.X25519().NewPrivateKey(scalarOf(a))
	check.NoError(check.Fatal(t), err)
	other, err := ecdh.X25519().NewPrivateKey(scalarOf(b))
	check.NoError(check.Fatal(t), err)
	shared, err := mine.ECDH(other.PublicKey())
	check.NoError(check.Fatal(t), err)
	pa, pb := nodeKey(min(a, b)).Public(), nodeKey(max(a, b)).Public()
	return blake(t, 32, shared, []byte("aldis pair key 1"),
		binary.BigEndian.AppendUint16(nil, min(a, b)), pa[:], binary.BigEndian.AppendUint16(nil, max(a, b)), pb[:])
}

func TestPublicHalf(t *testing.T) {
	k := nodeKey(2)
	seed := k.Seed()
	std := ed25519.NewKeyFromSeed(seed[:])
	check.Equal(t, "public", hex.EncodeToString(k.public[:]), hex.EncodeToString(std.Public().(ed25519.PublicKey)))
	s := k.Sign("purpose", []byte("text"))
	check.True(t, "Go's Ed25519 takes the signature", ed25519.Verify(std.Public().(ed25519.PublicKey), []byte("purpose\x00text"), s[:]))
	check.True(t, "so do we", k.Public().Verify("purpose", []byte("text"), s))
	check.True(t, "not for another purpose", !k.Public().Verify("other", []byte("text"), s))
	check.True(t, "not of another", !nodeKey(3).Public().Verify("purpose", []byte("text"), s))
	p := k.Public()
	sum := blake(t, 32, nil, []byte("aldis public key 1"), p[:])
	check.Equal(t, "fingerprint", strings.ReplaceAll(p.Fingerprint(), " ", ""), hex.EncodeToString(sum[:10]))
	for _, shown := range []string{k.String(), k.GoString(), GroupSecret{1}.String(), fmt.Sprintf("%v %#v", GroupSecret{1}, k)} {
		check.True(t, "the key is hidden", strings.Contains(shown, "hidden") && !strings.Contains(shown, "02"), shown)
	}
}

func TestPairBase(t *testing.T) {
	for _, p := range [][2]uint16{{1, 2}, {2, 1}, {300, 7}} {
		base, err := nodeKey(p[0]).pairBase(p[0], p[1], nodeKey(p[1]).Public())
		check.NoError(t, err)
		check.Equal(t, fmt.Sprint(p), hex.EncodeToString(base[:]), hex.EncodeToString(independentPair(t, p[0], p[1])))
	}
	// Frozen: keys on disk and on the air of a network in operation.
	base, _ := nodeKey(1).pairBase(1, 2, nodeKey(2).Public())
	check.Equal(t, "frozen pair", hex.EncodeToString(base[:]), frozenPair)
	group := GroupSecret{1, 2, 3}.groupBase(5, 2)
	check.Equal(t, "frozen group", hex.EncodeToString(group[:]), frozenGroup)
	secret := GroupSecret{1, 2, 3}
	check.Equal(t, "group", hex.EncodeToString(group[:]), hex.EncodeToString(blake(t, 32, secret[:], []byte("aldis group key 1\x00\x00\x00\x05\x00\x02"))))
	for name, bad := range map[string]PublicKey{"zero": {}, "order 2": {0: 0xec, 31: 0x7f}, "no point": {0: 2}} {
		if _, err := nodeKey(1).pairBase(1, 2, bad); !errors.Is(err, ErrWeakKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const (
	frozenPair  = "b4bf6f259b8e14ae388826e3a6af07e0537377c2239d6ae5599c02ddb8045db5"
	frozenGroup = "3d092af79401e865ca96f0d301e6f6b6d72203f6053a61a899712f4d25a30c0f"
)

// A datagram for one node, and one for all, against golang.org/x/crypto.
func TestRosterVectors(t *testing.T) {
	incarnation := Incarnation{0x656d0100, 0xbeef}
	id := uint64(2)<<48 | uint64(incarnation.Number)<<16 | uint64(incarnation.Salt)
	kdf := func(base []byte, context string) []byte { // crypto_kdf: BLAKE2b with salt and personalization, which x/crypto lacks
		sub := derive((*[keyLen]byte)(base), id, [8]byte([]byte(context)))
		return sub[:]
	}
	s := NewSealer(ringOf(t, 2, epochOf(4, 1, 2, 3)), 2, incarnation)
	got, err := s.Seal(nil, 1, true, []byte("hej"))
	check.NoError(t, err)
	want := independent(t, hex.EncodeToString(kdf(independentPair(t, 2, 1), "aldisdg1")), 2, 1, incarnation, 1, true, []byte("hej"))
	check.Equal(t, "for one", hex.EncodeToString(got), hex.EncodeToString(want))
	check.Equal(t, "overhead for one", len(got)-3, OverheadLong)

	got, err = s.Seal(nil, Group, false, []byte("all"))
	check.NoError(t, err)
	secret := GroupSecret{4, 7}
	groupKey := kdf(blake(t, 32, secret[:], []byte("aldis group key 1\x00\x00\x00\x04\x00\x02")), "aldisdg1")
	n := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}
	ad := []byte{0x22, 0, 2, 0, 2, 0, 0}
	text := append(append(append(binary.BigEndian.AppendUint64(nil, id), n...), byte(len(ad))), ad...)
	text = append(text, "all"...)
	body := []byte("all")
	for _, peer := range []uint16{1, 3} {
		body = append(body, blake(t, 16, kdf(independentPair(t, 2, peer), "aldispf1"), text)[:4]...)
	}
	aead, err := chacha20poly1305.New(groupKey)
	check.NoError(t, err)
	check.Equal(t, "for all", hex.EncodeToString(got), hex.EncodeToString(aead.Seal([]byte{0x22, 0, 2}, n, body, ad)))
	check.Equal(t, "overhead for all", len(got)-3, s.Overhead(Group, false))
}

// In a network with a roster every member opens datagrams for itself and for all, and no others.
func TestRosterOpens(t *testing.T) {
	for _, members := range [][]uint16{{1, 2, 3}, many(16), many(17), many(40)} {
		e := epochOf(9, members...)
		s := NewSealer(ringOf(t, 2, e), 2, Incarnation{100, 7})
		one, all := mustSeal(t, s, 1, true, "for one"), mustSeal(t, s, Group, false, "for all")
		check.Equal(t, "octets for one", len(one), OverheadLong+7)
		check.Equal(t, "octets for all", len(all), OverheadShort+7+min(4*(len(members)-1), 64))
		for _, id := range members {
			if id == 2 {
				continue
			}
			o := NewOpener(ringOf(t, id, e), id, Incarnation{50, 50}, map[uint16]PeerState{2: {}})
			_, body, _, err := o.Open(one)
			check.Equal(t, fmt.Sprint(id, " reads what is for one"), err == nil && string(body) == "for one", id == 1)
			if id == 1 {
				_, body, info, err := o.Open(all)
				check.True(t, "what is for all", err == nil && string(body) == "for all" && info.Group, err)
				_, _, _, err = o.Open(all)
				check.ErrorIs(t, err, ErrReplay)
			}
		}
		own := NewOpener(ringOf(t, 2, e), 2, Incarnation{100, 7}, map[uint16]PeerState{1: {}})
		_, _, _, err := own.Open(mustSeal(t, s, Group, true, "x"))
		check.ErrorIs(t, err, ErrReplay)
		twin := NewSealer(ringOf(t, 2, e), 2, Incarnation{101, 7})
		_, _, _, err = own.Open(mustSeal(t, twin, Group, true, "x"))
		check.ErrorIs(t, err, ErrOwnID)
		if _, err := s.Seal(nil, 999, true, nil); !errors.Is(err, ErrNoKey) {
			t.Errorf("for a stranger: %v", err)
		}
	}
}

func many(n int) (ids []uint16) {
	for i := range n {
		ids = append(ids, uint16(i+1))
	}
	return ids
}

// An insider has everything that a member has: its own keys, and the epoch's secret. A datagram that it makes in another's
// name, for one node or for all, opens nowhere, and does not change the state of that other.
func TestInsiderIsNobodyElse(t *testing.T) {
	for _, members := range [][]uint16{{1, 2, 3}, many(20)} {
		e := epochOf(9, members...)
		o := NewOpener(ringOf(t, 1, e), 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}, 3: {}})
		honest := NewSealer(ringOf(t, 2, e), 2, Incarnation{100, 7})
		_, _, _, err := o.Open(mustSeal(t, honest, 1, true, "hello"))
		check.NoError(t, err)
		before := o.State(2)

		ring := ringOf(t, 3, e)
		ep := ring.epochs[0]
		group := e.Secret.groupBase(9, 2)
		withOne := ep.pairs[1] // the only key that node 1 shares with the insider
		for name, forger := range map[string]func(long bool) []byte{
			"for one, by the insider's key with it": func(long bool) []byte {
				s := &Sealer{self: 2, incarnation: Incarnation{100, 7}, ring: ring, keys: startKeys(1, (*Key)(&withOne), 2, Incarnation{100, 7}), counter: 70}
				return mustSeal(t, s, 1, long, "forged")
			},
			"for one, by the group's key": func(long bool) []byte {
				s := &Sealer{self: 2, incarnation: Incarnation{100, 7}, ring: ring, keys: startKeys(1, (*Key)(&group), 2, Incarnation{100, 7}), counter: 70}
				return mustSeal(t, s, 1, long, "forged")
			},
			"for all, proven by the insider": func(long bool) []byte {
				s := &Sealer{self: 2, incarnation: Incarnation{100, 7}, ring: ring, keys: startKeys(Group, (*Key)(&group), 2, Incarnation{100, 7}), counter: 70}
				s.prover = ep.prover(2, Incarnation{100, 7})
				return mustSeal(t, s, Group, long, "forged")
			},
			"for all, a later start": func(long bool) []byte {
				s := &Sealer{self: 2, incarnation: Incarnation{200, 7}, ring: ring, keys: startKeys(Group, (*Key)(&group), 2, Incarnation{200, 7}), counter: 70}
				s.prover = ep.prover(2, Incarnation{200, 7})
				return mustSeal(t, s, Group, true, "forged")
			},
			"for all, without proof": func(long bool) []byte {
				s := &Sealer{self: 2, incarnation: Incarnation{100, 7}, ring: ring, keys: startKeys(Group, (*Key)(&group), 2, Incarnation{100, 7}), counter: 70}
				return mustSeal(t, s, Group, long, "x")
			},
		} {
			for _, long := range []bool{true, false} {
				from, body, _, err := o.Open(forger(long))
				if err == nil || body != nil {
					t.Errorf("%d members: %s, long %v: opened", len(members), name, long)
				}
				if strings.HasPrefix(name, "for all") && (!errors.Is(err, ErrForged) || from != 2) {
					t.Errorf("%d members: %s, long %v: %d, %v; want it named as forged", len(members), name, long, from, err)
				}
			}
		}
		check.True(t, "nothing is changed", o.State(2) == before)
		// In the name of the node that it is for: no alarm about a second node with its id.
		mine := e.Secret.groupBase(9, 1)
		s := &Sealer{self: 1, incarnation: Incarnation{60, 7}, ring: ring, keys: startKeys(Group, (*Key)(&mine), 1, Incarnation{60, 7})}
		s.prover = ep.prover(1, Incarnation{60, 7})
		_, _, _, err = o.Open(mustSeal(t, s, Group, true, "x"))
		check.ErrorIs(t, err, ErrForged)
		_, _, _, err = o.Open(mustSeal(t, honest, Group, false, "true"))
		check.NoError(t, err)
	}
}

// startKeys are the keys of a Sealer that was made by hand.
func startKeys(to uint16, base *Key, node uint16, incarnation Incarnation) map[uint16]*[keyLen]byte {
	key := subkey(base, node, incarnation)
	return map[uint16]*[keyLen]byte{to: &key}
}

// A man in the middle cannot have an insider accused: a datagram that he changes is not authentic at all.
func TestChangedProofIsNotForged(t *testing.T) {
	e := epochOf(9, 1, 2, 3)
	s := NewSealer(ringOf(t, 2, e), 2, Incarnation{100, 7})
	o := NewOpener(ringOf(t, 1, e), 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}})
	d := mustSeal(t, s, Group, true, "body")
	for bit := range len(d) * 8 {
		bad := bytes.Clone(d)
		bad[bit/8] ^= 1 << (bit % 8)
		if _, _, _, err := o.Open(bad); err == nil || errors.Is(err, ErrForged) {
			t.Errorf("bit %d: %v", bit, err)
		}
	}
	_, _, _, err := o.Open(d)
	check.NoError(t, err)
}

// Datagrams of two epochs are opened at once, whichever the sender uses; a node that the newest does not name is gone.
func TestEpochs(t *testing.T) {
	old, next := epochOf(1, 1, 2, 3), epochOf(2, 1, 2)
	both := ringOf(t, 1, next, old)
	o := NewOpener(ringOf(t, 1, old), 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}, 3: {}})
	two := NewSealer(ringOf(t, 2, old), 2, Incarnation{100, 7})
	three := NewSealer(ringOf(t, 3, old), 3, Incarnation{100, 7})
	open := func(d []byte) error { _, _, _, err := o.Open(d); return err }
	check.NoError(t, open(mustSeal(t, two, 1, true, "a")))
	check.NoError(t, open(mustSeal(t, three, Group, true, "a")))
	check.ErrorIs(t, open(mustSeal(t, NewSealer(ringOf(t, 2, next), 2, Incarnation{101, 7}), Group, true, "of an epoch that it has not")), ErrAuth)
	o.Rekey(both)
	check.NoError(t, open(mustSeal(t, two, 1, false, "for one")))
	check.NoError(t, open(mustSeal(t, two, Group, false, "for all, old epoch")))
	for _, d := range [][]byte{mustSeal(t, three, 1, false, "x"), mustSeal(t, three, Group, false, "x"), mustSeal(t, three, 1, true, "x")} {
		from, _, _, err := o.Open(d)
		check.ErrorIs(t, err, ErrGone)
		check.Equal(t, "who is gone", from, 3)
	}
	two.Rekey(ringOf(t, 2, next, old).Using(1))
	check.NoError(t, open(mustSeal(t, two, Group, false, "both known, old one used")))
	two.Rekey(ringOf(t, 2, next, old))
	check.NoError(t, open(mustSeal(t, two, Group, false, "new epoch")))
	check.NoError(t, open(mustSeal(t, two, 1, false, "for one")))
	o.Rekey(ringOf(t, 1, next))
	check.NoError(t, open(mustSeal(t, two, Group, false, "the old one is forgotten")))
	check.ErrorIs(t, open(mustSeal(t, three, 1, false, "x")), ErrAuth)
	if _, err := two.Seal(nil, 3, true, nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("for a node that is gone: %v", err)
	}
	// If the newest epoch has another key for a node, the old key does not count.
	changed := epochOf(2, 1, 2)
	changed.Members[1].Public = nodeKey(77).Public()
	o.Rekey(ringOf(t, 1, changed, old))
	check.ErrorIs(t, open(mustSeal(t, NewSealer(ringOf(t, 2, old), 2, Incarnation{100, 7}), 1, true, "x")), ErrGone)
}

func TestNewKeyringRefuses(t *testing.T) {
	weak := epochOf(1, 1, 2)
	weak.Members[1].Public = PublicKey{}
	for name, tt := range map[string]struct {
		epochs []Epoch
		want   error
	}{
		"none":        {nil, nil},
		"five":        {[]Epoch{epochOf(5, 1), epochOf(4, 1), epochOf(3, 1), epochOf(2, 1), epochOf(1, 1)}, nil},
		"not named":   {[]Epoch{epochOf(1, 2, 3)}, ErrNotMember},
		"another key": {[]Epoch{{Number: 1, Members: []Member{{1, nodeKey(9).Public()}}}}, ErrNotMember},
		"weak":        {[]Epoch{weak}, ErrWeakKey},
	} {
		if _, err := NewKeyring(1, nodeKey(1), tt.epochs...); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k, err := NewKeyring(2, nodeKey(2), epochOf(2, 1, 2), epochOf(1, 1, 3))
	check.NoError(t, err)
	check.Equal(t, "epochs of a node that is new", len(k.epochs), 1)
	check.Equal(t, "epoch", k.Epoch(), 2)
}

func TestWrap(t *testing.T) {
	s := GroupSecret{5, 6, 7}
	w := NewWrapper(3, [32]byte{9})
	wrapped, err := w.Wrap(Member{2, nodeKey(2).Public()}, s)
	check.NoError(t, err)
	got, err := nodeKey(2).Unwrap(2, 3, w.Public, wrapped)
	check.NoError(t, err)
	check.Equal(t, "unwrapped", [16]byte(got), [16]byte(s))
	for name, f := range map[string]func() (GroupSecret, error){
		"another node":  func() (GroupSecret, error) { return nodeKey(3).Unwrap(2, 3, w.Public, wrapped) },
		"another id":    func() (GroupSecret, error) { return nodeKey(2).Unwrap(1, 3, w.Public, wrapped) },
		"another epoch": func() (GroupSecret, error) { return nodeKey(2).Unwrap(2, 4, w.Public, wrapped) },
		"no wrapper":    func() (GroupSecret, error) { return nodeKey(2).Unwrap(2, 3, [32]byte{}, wrapped) },
	} {
		if got, err := f(); err == nil && got == s {
			t.Errorf("%s: unwrapped", name)
		}
	}
	if _, err := w.Wrap(Member{}, s); !errors.Is(err, ErrWeakKey) {
		t.Errorf("for no key: %v", err)
	}
}

func TestLock(t *testing.T) {
	k := nodeKey(5)
	locked, err := k.Lock([]byte("open sesame"), [RandomForLock]byte{1, 2, 3})
	check.NoError(check.Fatal(t), err)
	seed := k.Seed()
	check.True(t, "the seed is hidden", !bytes.Contains(locked, seed[:8]))
	again, err := Unlock(locked, []byte("open sesame"))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "seed", again.Seed(), seed)
	_, err = Unlock(locked, []byte("open sesame "))
	check.ErrorIs(t, err, ErrPassphrase)
	_, err = Unlock(locked[1:], []byte("open sesame"))
	check.ErrorIs(t, err, ErrPassphrase)
}

// No two datagrams of a network have the same key and nonce, over starts, stores that were put back, epochs and new keys.
func TestNoNonceTwice(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 13))
		type use struct {
			key     [keyLen]byte
			counter uint32
		}
		used := map[use]bool{}
		epochs := []Epoch{epochOf(1, 1, 2, 3, 4)}
		type node struct {
			id          uint16
			incarnation uint32
			s           *Sealer
		}
		nodes := make([]*node, 4)
		ring := func(n *node) *Keyring {
			k := ringOf(t, n.id, epochs...)
			if len(epochs) > 1 && rng.IntN(2) == 0 {
				k = k.Using(epochs[1].Number)
			}
			return k
		}
		for i := range nodes {
			nodes[i] = &node{id: uint16(i + 1), incarnation: 1000}
			nodes[i].s = NewSealer(ring(nodes[i]), nodes[i].id, Incarnation{1000, uint16(rng.Uint32())})
		}
		for range 3000 {
			n := nodes[rng.IntN(4)]
			switch rng.IntN(40) {
			case 0: // a new start
				n.incarnation++
				n.s = NewSealer(ring(n), n.id, Incarnation{n.incarnation, uint16(rng.Uint32())})
			case 1: // a store that was put back: the same number, another salt
				n.s = NewSealer(ring(n), n.id, Incarnation{n.incarnation, n.s.incarnation.Salt + 1 + uint16(rng.IntN(60000))})
			case 2: // a new epoch, of which each node hears at its own time
				epochs = []Epoch{epochOf(epochs[0].Number+1, 1, 2, 3, 4), epochs[0]}
			case 3:
				n.s.Rekey(ring(n))
			}
			to := uint16(rng.IntN(5))
			if to == n.id {
				continue
			}
			mustSeal(t, n.s, to, rng.IntN(2) == 0, "x")
			key, _ := n.s.key(to)
			u := use{*key, n.s.counter}
			if used[u] {
				t.Fatalf("seed %d: node %d has sealed twice with one key and nonce", seed, n.id)
			}
			used[u] = true
		}
	}
}

func BenchmarkRosterSealOpen(b *testing.B) {
	for _, to := range []uint16{1, Group} {
		b.Run(map[uint16]string{1: "one", Group: "all of 4"}[to], func(b *testing.B) {
			e := epochOf(1, 1, 2, 3, 4)
			s := NewSealer(ringOf(b, 2, e), 2, Incarnation{100, 7})
			o := NewOpener(ringOf(b, 1, e), 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}})
			body := make([]byte, 200)
			var d []byte
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				d, _ = s.Seal(d[:0], to, s.counter == 0, body)
				if _, _, _, err := o.Open(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzRosterOpen(f *testing.F) {
	e := epochOf(9, 1, 2, 3)
	s := NewSealer(ringOf(f, 2, e), 2, Incarnation{100, 7})
	for _, to := range []uint16{1, Group} {
		d, _ := s.Seal(nil, to, true, []byte("seed"))
		f.Add(d)
		f.Add(d[:len(d)-1])
	}
	ring := ringOf(f, 1, e)
	f.Fuzz(func(t *testing.T, d []byte) {
		o := NewOpener(ring, 1, Incarnation{50, 50}, map[uint16]PeerState{2: {}, 3: {}})
		from, body, info, err := o.Open(d)
		if err != nil {
			return
		}
		s := NewSealer(ringOf(t, from, e), from, info.Incarnation)
		s.counter = info.Counter - 1
		to := uint16(1)
		if info.Group {
			to = Group
		}
		if again, _ := s.Seal(nil, to, info.Long, body); !bytes.Equal(again, d) {
			t.Fatalf("opened %x, but sealed again it is %x", d, again)
		}
	})
}
