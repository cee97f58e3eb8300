package roster

import (
	"bytes"
	"reflect"
	"testing"

	"aldis/internal/lab/check"
)

// deltaOf is a change and the rosters before and after: from ten nodes to the result of change.
func deltaOf(t testing.TB, change func([]Node) []Node) (old, r *Roster, delta []byte) {
	old = issue(t, nil, nodes(10))
	r = issue(t, issue(t, old, nodes(10)), change(nodes(10)))
	return old, r, r.AppendDelta(nil, old)
}

// A change of a roster gives back the whole of it, with the signature, and only to a node that has the roster that it changes.
func TestDelta(t *testing.T) {
	for name, tt := range map[string]struct {
		change func([]Node) []Node
		octets int
	}{
		"a new secret":   {func(l []Node) []Node { return l }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 1 + 10*16 + 64},
		"two are gone":   {func(l []Node) []Node { return append(l[:3:3], l[5:]...) }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 4 + 1 + 8*16 + 64},
		"one is new":     {func(l []Node) []Node { return append(l, Node{ID: 300, Name: "new", Public: key(50).Public()}) }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 1 + 2 + 32 + 4 + 11*16 + 64},
		"another key":    {func(l []Node) []Node { l[4].Public = key(60).Public(); return l }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 1 + 2 + 32 + 6 + 10*16 + 64},
		"another name":   {func(l []Node) []Node { l[4].Name = "x"; return l }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 1 + 2 + 32 + 2 + 10*16 + 64},
		"names swapped":  {func(l []Node) []Node { l[4].Name, l[5].Name = l[5].Name, l[4].Name; return l }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 1 + 2*(2+32+6) + 10*16 + 64},
		"all are others": {func([]Node) []Node { return []Node{{ID: 77, Name: "y", Public: key(70).Public()}} }, 1 + 4 + 1 + 4 + 4 + 32 + 1 + 20 + 1 + 36 + 16 + 64},
	} {
		in := check.In(t, name)
		old, r, delta := deltaOf(t, tt.change)
		check.Equal(in, "octets", len(delta), tt.octets)
		got, err := Apply(old, delta)
		check.NoError(in, err)
		check.True(in, "it is the whole roster", reflect.DeepEqual(got, r))
		check.NoError(in, got.Verify(authority.Public()))
		serial, base, err := SerialOf(delta)
		check.True(in, "serials", serial == 3 && base == 1 && err == nil)
		serial, base, err = SerialOf(r.Append(nil))
		check.True(in, "serials of the whole", serial == 3 && base == 0 && err == nil)
		for _, other := range []*Roster{nil, r, issue(t, old, nodes(10))} {
			_, err = Apply(other, delta)
			check.ErrorIs(in, err, ErrFormat)
		}
		for n := range delta {
			_, err = Apply(old, delta[:n])
			check.ErrorIs(in, err, ErrFormat)
		}
		_, err = Apply(old, append(bytes.Clone(delta), 0))
		check.ErrorIs(in, err, ErrFormat)
		for i := range delta { // an octet changed on the way is not signed
			wrong := bytes.Clone(delta)
			wrong[i] ^= 1
			if got, err := Apply(old, wrong); err == nil {
				check.ErrorIs(in, got.Verify(authority.Public()), ErrSignature)
			}
		}
	}
}

func FuzzApply(f *testing.F) {
	old, _, delta := deltaOf(f, func(l []Node) []Node { l[4].Public = key(60).Public(); return l[:9] })
	f.Add(delta)
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Apply(old, b)
		if err != nil {
			return
		}
		again, err := Apply(old, r.AppendDelta(nil, old))
		check.NoError(t, err)
		check.True(t, "a roster of a change is the same by its own", reflect.DeepEqual(again, r))
	})
}
