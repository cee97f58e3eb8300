package seal

import (
	"testing"

	"aldis/internal/lab/check"
)

// A datagram to all that another node transmits counts as its sender's, and once.
func TestDatagramToAllGoesAgain(t *testing.T) {
	epoch := epochOf(1, 1, 2, 3)
	start := Incarnation{Number: 7, Salt: 1}
	sealer := NewSealer(ringOf(t, 1, epoch), 1, start)
	opener := NewOpener(ringOf(t, 3, epoch), 3, Incarnation{Number: 9}, map[uint16]PeerState{1: {}, 2: {}})
	send := func(to uint16, long bool) []byte {
		d, err := sealer.Seal(nil, to, long, []byte("what it says"))
		check.NoError(check.Fatal(t), err)
		return d
	}
	first := send(Group, true)
	if _, _, err := opener.OpenAgain(first); err == nil {
		t.Error("a datagram of a start that is not known was taken from another node")
	}
	_, _, _, err := opener.Open(first)
	check.NoError(t, err)

	for _, long := range []bool{true, false} {
		lost := send(Group, long)
		sealed, again := Original(Again(lost))
		check.True(t, "the original is told from others", again && string(sealed) == string(lost))
		if _, its := Original(lost); its {
			t.Error("a datagram of its sender is taken for one of another node")
		}
		_, _, _, err = opener.Open(Again(lost))
		check.ErrorIs(t, err, ErrVersion)
		from, body, err := opener.OpenAgain(sealed)
		check.NoError(t, err)
		check.Equal(t, "its sender", from, uint16(1))
		check.Equal(t, "what it says", string(body), "what it says")
		_, body, err = opener.OpenAgain(sealed)
		check.ErrorIs(t, err, ErrReplay)
		check.Equal(t, "what it says when it comes once more", string(body), "what it says")
		_, _, _, err = opener.Open(lost)
		check.ErrorIs(t, err, ErrReplay)
	}
	if _, _, err := opener.OpenAgain(send(3, false)); err == nil {
		t.Error("a datagram for one node was taken from another")
	}
	forged := send(Group, true)
	forged[len(forged)-1] ^= 1
	if _, _, err := opener.OpenAgain(forged); err == nil {
		t.Error("a forged datagram was taken")
	}
	old := send(Group, true)
	for range windowLen {
		_, _, _, err := opener.Open(send(Group, true))
		check.NoError(check.Fatal(t), err)
	}
	_, _, err = opener.OpenAgain(old)
	check.ErrorIs(t, err, ErrTooOld)
}
