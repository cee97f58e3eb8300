package roster

import (
	"slices"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/seal"
)

// For two rosters with one serial, the ring has the nodes that both name. They open each other's datagrams for all, in
// whichever order they know the two, and a node that is missing in one reads nothing.
func TestSeveralOfOneSerial(t *testing.T) {
	first := issue(t, nil, nodes(4))
	all, err := Issue("", first, nodes(4), made, time.Time{}, [RandomForIssue]byte{3, 40: 4}, authority)
	check.NoError(check.Fatal(t), err)
	fewer, err := Issue("", first, nodes(3), made, made.Add(time.Hour), [RandomForIssue]byte{5, 40: 6}, authority)
	check.NoError(check.Fatal(t), err)
	check.ErrorIs(t, fewer.Follows(all), ErrDiffers)
	check.ErrorIs(t, all.Follows(all), ErrOld)

	one, other := []*Roster{all, fewer}, []*Roster{fewer, all}
	check.True(t, "the mark is the same either way", Mark(one) == Mark(other) && Mark(one) != Mark(one[:1]) && Mark(one) != 0)
	check.Equal(t, "those of one serial", len(Newest([]*Roster{all, fewer, first})), 2)
	check.True(t, "what all name", slices.EqualFunc(Common(one).Nodes, fewer.Nodes, func(a, b Node) bool { return a.ID == b.ID && a.Public == b.Public }))
	check.True(t, "it is used as early as the first", Common(other).At.IsZero() && !fewer.At.IsZero())
	rekeyed := *fewer
	rekeyed.Nodes = slices.Clone(fewer.Nodes)
	rekeyed.Nodes[2].Public = key(77).Public()
	check.Equal(t, "a node with two keys is named by none", len(Common([]*Roster{all, &rekeyed}).Nodes), 2)

	incarnation := seal.Incarnation{Number: 1, Salt: 2}
	sealed := func(rosters ...*Roster) []byte {
		ring, err := Ring(1, key(1), rosters...)
		check.NoError(check.Fatal(t), err)
		b, err := seal.NewSealer(ring.Using(2), 1, incarnation).Seal(nil, seal.Group, true, []byte("for all"))
		check.NoError(check.Fatal(t), err)
		return b
	}
	opens := func(id uint16, b []byte, rosters ...*Roster) bool {
		ring, err := Ring(id, key(byte(id)), rosters...)
		check.NoError(check.Fatal(t), err)
		_, body, _, err := seal.NewOpener(ring, id, seal.Incarnation{}, map[uint16]seal.PeerState{1: {}}).Open(b)
		return err == nil && string(body) == "for all"
	}
	b := sealed(all, fewer, first)
	check.True(t, "who knows both the other way round", opens(2, b, fewer, all, first))
	check.True(t, "who knows one of them", !opens(3, b, fewer, first))
	check.True(t, "who is out", !opens(4, b, all, first))
	check.True(t, "who seals by one alone is heard by those who know both", opens(2, sealed(all, first), fewer, all, first))
	_, err = Ring(4, key(4), all, fewer)
	check.ErrorIs(t, err, seal.ErrNotMember)
}
