package seal

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// A datagram sealed on one bearer opens only there: with a network's key, with keys of single nodes, for one node and for all.
func TestABearerOpensNothingOfAnother(t *testing.T) {
	for name, keys := range map[string]func(node uint16) Keys{
		"network key": func(uint16) Keys { return Key{1, 2, 3} },
		"node keys":   func(node uint16) Keys { return ringOf(t, node, epochOf(1, 1, 2, 3)) },
	} {
		incarnation := Incarnation{Number: 7, Salt: 9}
		for _, to := range []uint16{2, Group} {
			for from, sealed := range map[uint64]uint64{0: 5, 5: 0, 6: 5} {
				s := NewSealer(keys(1).ring().On(sealed), 1, incarnation)
				data, err := s.Seal(nil, to, true, []byte("text"))
				if err != nil {
					t.Fatal(err)
				}
				o := NewOpener(keys(2).ring().On(from), 2, Incarnation{Number: 8}, map[uint16]PeerState{1: {}})
				if _, _, _, err := o.Open(data); !errors.Is(err, ErrAuth) {
					t.Errorf("%s, to %d: sealed on bearer %d, opened on bearer %d: %v", name, to, sealed, from, err)
				}
				o = NewOpener(keys(2).ring().On(sealed), 2, Incarnation{Number: 8}, map[uint16]PeerState{1: {}})
				if _, body, _, err := o.Open(data); err != nil || string(body) != "text" {
					t.Errorf("%s, to %d: on its own bearer %d: %q, %v", name, to, sealed, body, err)
				}
			}
		}
	}
}

// A member that knows the group's key on one bearer cannot use another member's proof from the other bearer there.
func TestAProofIsOfOneBearer(t *testing.T) {
	keys := func(node uint16) *Keyring { return ringOf(t, node, epochOf(1, 1, 2, 3)) }
	a := proofText(keys(1).ring().On(0))
	b := proofText(keys(1).ring().On(5))
	if string(a) == string(b) {
		t.Error("the proofs of a datagram are the same on two bearers")
	}
}

func proofText(k *Keyring) []byte {
	var n [nonceLen]byte
	return k.epochs[0].prover(1, Incarnation{Number: 7}).append(nil, 1, Incarnation{Number: 7}, &n, nil, []byte("text"))
}

// If a sender counts apart, a destination that gets little can use the short form, however much goes to others.
func TestCountersApart(t *testing.T) {
	keys := func(node uint16) *Keyring { return ringOf(t, node, epochOf(1, 1, 2, 3)) }
	s := NewSealer(keys(1), 1, Incarnation{Number: 7})
	s.Apart()
	o := NewOpener(keys(2), 2, Incarnation{Number: 8}, map[uint16]PeerState{1: {}})
	open := func(long bool) error {
		data, err := s.Seal(nil, 2, long, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = o.Open(data)
		return err
	}
	if err := open(true); err != nil {
		t.Fatal(err)
	}
	for range 40_000 {
		if _, err := s.Seal(nil, 3, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(false); err != nil || s.Far(2) {
		t.Errorf("after 40,000 datagrams to another: %v, far %v", err, s.Far(2))
	}
}

// With one counter for all, a sender knows when it may have run ahead of a destination.
func TestACounterForAllRunsAhead(t *testing.T) {
	s := NewSealer(Key{1}, 1, Incarnation{Number: 7})
	s.Apart() // a network's key is one key: nothing changes
	s.Heard(2)
	for n := range aheadMost {
		if s.Far(2) {
			t.Fatalf("far after %d datagrams", n)
		}
		s.Seal(nil, 3, false, nil)
	}
	if !s.Far(2) {
		t.Error("not far")
	}
	if s.Heard(2); s.Far(2) {
		t.Error("far though it was heard")
	}
}

// 256 ships get five datagrams a second each, which arrive up to 1.1 s late: with a counter for each, none is refused.
func TestManyDestinationsAndJitter(t *testing.T) {
	const ships, seconds = 256, 5
	ids := []uint16{1}
	for n := range uint16(ships) {
		ids = append(ids, n+2)
	}
	s := NewSealer(ringOf(t, 1, epochOf(1, ids...)), 1, Incarnation{Number: 7})
	s.Apart()
	rng := rand.New(rand.NewPCG(25, 256))
	type datagram struct {
		at   float64
		data []byte
	}
	for ship := range uint16(ships) {
		var list []datagram
		for i := range 5 * seconds {
			data, err := s.Seal(nil, ship+2, i == 0, []byte("text"))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, datagram{float64(i)/5 + 1.1*rng.Float64()*min(1, float64(i)), data})
		}
		slices.SortFunc(list, func(a, b datagram) int { return cmp.Compare(a.at, b.at) })
		if ship%16 != 0 { // the keys of a ring take time
			continue
		}
		o := NewOpener(ringOf(t, ship+2, epochOf(1, ids...)), ship+2, Incarnation{Number: 8}, map[uint16]PeerState{1: {}})
		for _, d := range list {
			if _, _, _, err := o.Open(d.data); err != nil {
				t.Errorf("ship %d: %v", ship, err)
			}
		}
	}
}
