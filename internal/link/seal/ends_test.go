package seal_test

import (
	"bytes"
	"testing"

	"aldis/internal/link/seal"
)

// rings are the keyrings of three nodes under one roster.
func rings(t *testing.T) (list [3]*seal.Keyring) {
	t.Helper()
	var members []seal.Member
	own := func(i int) *seal.SigningKey { return seal.NewSigningKey([32]byte{byte(i), 9}) }
	for i := range 3 {
		members = append(members, seal.Member{ID: uint16(i + 1), Public: own(i).Public()})
	}
	for i := range list {
		ring, err := seal.NewKeyring(uint16(i+1), own(i), seal.Epoch{Number: 1, Members: members})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = ring
	}
	return list
}

// A message that one end seals opens only at the other, only for that direction, number and these streams, and only unchanged.
func TestEndsSealPastWhoIsBetween(t *testing.T) {
	ring := rings(t)
	streams, ad, body := []byte("streams"), []byte("ad"), []byte("200 octets of a report")
	mine, _ := ring[0].End(1, 3, streams)
	theirs, _ := ring[2].End(1, 3, streams)
	between, _ := ring[1].End(1, 2, streams)
	back, _ := ring[2].End(3, 1, streams)
	other, _ := ring[2].End(1, 3, []byte("other"))
	sealed := mine.Seal(nil, 4, 1<<40|7, ad, body)
	if again := mine.Seal(nil, 4, 1<<40|7, ad, body); !bytes.Equal(again, sealed) {
		t.Error("the same octets are sealed otherwise")
	}
	if got, ok := theirs.Open(sealed, 4, 1<<40|7, ad); !ok || !bytes.Equal(got, body) {
		t.Errorf("the other end opens %q, %v", got, ok)
	}
	for name, open := range map[string]func() ([]byte, bool){
		"who is between":    func() ([]byte, bool) { return between.Open(sealed, 4, 1<<40|7, ad) },
		"another direction": func() ([]byte, bool) { return back.Open(sealed, 4, 1<<40|7, ad) },
		"another stream":    func() ([]byte, bool) { return other.Open(sealed, 4, 1<<40|7, ad) },
		"another number":    func() ([]byte, bool) { return theirs.Open(sealed, 4, 1<<40|8, ad) },
		"another head":      func() ([]byte, bool) { return theirs.Open(sealed, 4, 1<<40|7, []byte("da")) },
		"nothing":           func() ([]byte, bool) { return theirs.Open(nil, 4, 1<<40|7, ad) },
	} {
		if got, ok := open(); ok {
			t.Errorf("%s opens it: %q", name, got)
		}
	}
	for i := range sealed {
		sealed[i] ^= 1
		if _, ok := theirs.Open(sealed, 4, 1<<40|7, ad); ok {
			t.Errorf("it opens with octet %d changed", i)
		}
		sealed[i] ^= 1
	}
	if _, ok := ring[0].End(1, 9, streams); ok {
		t.Error("a node that the roster does not name has a key")
	}
}
