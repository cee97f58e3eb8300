package roster

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/seal"
)

// ways puts nodes on an HF channel, the first with an address of its own as well.
func ways(list []Node) []Node {
	for i := range list {
		list[i].Ways = []Way{{Bearer: "hf"}}
	}
	list[0].Ways = append(list[0].Ways, Way{"sat", netip.MustParseAddrPort("192.0.2.1:7142")})
	list[0].Relay = true
	return list
}

// A change gives back the whole roster to members with any roster from its base on, with the signature, and to no other node.
func TestChange2(t *testing.T) {
	old := issue(t, nil, nodes(16))
	first := issue(t, old, ways(nodes(16)))
	joined := issue(t, first, append(ways(nodes(16)), Node{ID: 17, Name: "ship16", Public: key(17).Public(), Ways: []Way{{Bearer: "hf"}}}))
	gone := issue(t, joined, slicesWithout(ways(nodes(17)), 3))
	for name, tt := range map[string]struct {
		r      *Roster
		from   uint32
		olds   []*Roster
		not    []*Roster
		octets int
	}{
		"one is new":         {joined, 2, []*Roster{first}, []*Roster{old, nil, joined, gone}, 1 + 4 + 1 + 32 + 3 + 17*16 + 8 + 1 + 1 + 32 + 7 + 1 + 1 + 4 + 64},
		"one is gone":        {gone, 3, []*Roster{joined}, []*Roster{first, old, nil, gone}, 0},
		"new and gone":       {gone, 2, []*Roster{joined, first}, []*Roster{old, nil, gone}, 0},
		"from the old form":  {joined, 1, []*Roster{old, first}, []*Roster{nil, joined}, 0},
		"the whole":          {gone, 0, []*Roster{nil, old, first, joined, gone}, nil, 0},
		"ways come to a net": {first, 1, []*Roster{old}, []*Roster{nil, first}, 0},
	} {
		in := check.In(t, name)
		b := tt.r.AppendChange(nil, tt.from)
		if tt.octets > 0 {
			check.Equal(in, "octets", len(b), tt.octets)
		}
		serial, base, err := SerialOf(b)
		check.True(in, "serials", serial == tt.r.Serial && base == tt.from && err == nil, serial, base, err)
		for _, have := range tt.olds {
			got, err := Apply(have, b)
			if tt.from == 0 {
				got, err = Parse(b)
			}
			check.NoError(in, err)
			check.True(in, "it is the whole roster", reflect.DeepEqual(got, tt.r))
			check.NoError(in, got.Verify(authority.Public()))
		}
		for _, have := range tt.not {
			_, err := Apply(have, b)
			check.ErrorIs(in, err, ErrFormat)
		}
		have := tt.olds[0]
		for n := range b {
			_, err = Apply(have, b[:n])
			check.ErrorIs(in, err, ErrFormat)
		}
		for bit := range 8 * len(b) {
			w := bytes.Clone(b)
			w[bit/8] ^= 1 << (bit % 8)
			got, err := Apply(have, w)
			if err == nil && tt.from == 0 {
				got, err = Parse(w)
			}
			if err == nil && got.Verify(authority.Public()) == nil {
				check.True(in, "a change of another base makes the same", reflect.DeepEqual(got, tt.r), bit)
			}
		}
		again, err := ParseText(tt.r.Text())
		check.NoError(in, err)
		check.True(in, "text", reflect.DeepEqual(again, tt.r))
	}
	check.Equal(t, "since", fmt.Sprint(gone.Nodes[0].Since, gone.Nodes[15].Since), "2 3")
	check.True(t, "relay and way", gone.Nodes[0].Relay && gone.Nodes[0].Ways[1].String() == "sat@192.0.2.1:7142")
}

func slicesWithout(list []Node, i int) []Node { return append(list[:i:i], list[i+1:]...) }

// Only members can read an introduction; others learn no names and addresses.
func TestIntroduction(t *testing.T) {
	old := issue(t, nil, ways(nodes(4)))
	r := issue(t, old, ways(nodes(5)))
	e, err := r.Epoch(5, key(5))
	check.NoError(check.Fatal(t), err)
	b := r.Introduction(1, e.Secret)
	check.True(t, "names are hidden", !bytes.Contains(b, []byte("ship4")) && !bytes.Contains(b, []byte("hf")))
	for id := byte(1); id < 5; id++ {
		change, err := Introduced(b, uint16(id), key(id), 1)
		check.NoError(t, err)
		got, err := Apply(old, change)
		check.NoError(t, err)
		check.True(t, "it is the roster", reflect.DeepEqual(got, r) && got.Verify(authority.Public()) == nil)
	}
	_, err = Introduced(b, 1, key(1), 2)
	check.ErrorIs(t, err, ErrOld)
	_, err = Introduced(b, 6, key(6), 1)
	check.ErrorIs(t, err, seal.ErrNotMember)
	_, err = Introduced(b, 1, key(7), 1)
	check.ErrorIs(t, err, seal.ErrAuth)
	for bit := range 8 * len(b) {
		w := bytes.Clone(b)
		w[bit/8] ^= 1 << (bit % 8)
		if got, err := Introduced(w, 1, key(1), 1); err == nil {
			t.Errorf("bit %d turned: %x", bit, got)
		}
	}
	for n := range b {
		if _, err := Introduced(b[:n], 1, key(1), 1); err == nil {
			t.Errorf("cut to %d", n)
		}
	}
}

// Fields that the second form may not have are not issued.
func TestIssueRefusesWays(t *testing.T) {
	at := netip.MustParseAddrPort("192.0.2.9:7142")
	change := func(f func([]Node)) []Node { l := ways(nodes(3)); f(l); return l }
	for name, list := range map[string][]Node{
		"bearer twice":               change(func(l []Node) { l[1].Ways = []Way{{Bearer: "hf"}, {Bearer: "hf"}} }),
		"two bearers of one address": change(func(l []Node) { l[1].Ways = []Way{{"hf", at}, {"sat", at}} }),
		"the address of another":     change(func(l []Node) { l[1].Ways, l[2].Ways = []Way{{"hf", at}}, []Way{{"hf", at}} }),
		"too many":                   change(func(l []Node) { l[1].Ways = make([]Way, MaxWays+1) }),
		"a name with a blank":        change(func(l []Node) { l[1].Ways = []Way{{Bearer: "h f"}} }),
		"no port":                    change(func(l []Node) { l[1].Ways = []Way{{"hf", netip.AddrPortFrom(at.Addr(), 0)}} }),
	} {
		_, err := Issue("blue", nil, list, made, time.Time{}, [RandomForIssue]byte{}, authority)
		check.ErrorIs(check.In(t, name), err, ErrFormat)
	}
}

// Frozen: rosters of the second form of networks in operation.
func TestVectors2(t *testing.T) {
	r := issue(t, nil, ways(nodes(1)))
	e, err := r.Epoch(1, key(1))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "roster", hex.EncodeToString(r.Append(nil)), vectorRoster2)
	check.Equal(t, "introduction", hex.EncodeToString(r.Introduction(0, e.Secret)), vectorIntro2)
	text := r.Text()
	check.True(t, "line", strings.Contains(text, " hq since=1 relay on=hf on=sat@192.0.2.1:7142\n"), text)
	check.Equal(t, "the bearer without a name", Way{}.String(), "-")
	_, err = ParseText(strings.Replace(text, "roster 2", "roster 1", 1))
	check.ErrorIs(t, err, ErrFormat)
}

const (
	vectorRoster2 = "0300000001012fe57da347cd62431528daac5fbb290730fff684afc4cfc2ed90995f58cb3b74010101fbab58a29a12c961265702381d674cfb6b02d9400000000004626c756501008a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c0268710005026866000373617406c0000201e61b233717fdb8ff06d4a3258a08f53aad48f8fb85d3afc98f01a6e0bfa48bca8c02baae797bad81b9c2890dc5d1246758fa6b060dbcb2fdfbafd6c53b592821900e"
	vectorIntro2  = "0300000001012fe57da347cd62431528daac5fbb290730fff684afc4cfc2ed90995f58cb3b74010101fbab58a29a12c961265702381d674cfbb25b0cfad4949ed6c069a6402201e350a5542138525d8e8b1de58913a77c7c56641e498c9b1fa262ea618f04052f7c5793400598ba39b095800ccf0de7692353a697852905b50470ec2017e5591e6146b24b2c5de88948c2cc78b69ea86f488cd7a7f15c166d842af61b7661b0172ca69bedc759cac3d319b7694dc5ee396bf938b15cd6cd345ad8c9a5bda55d5394f49343bfae2018318b764c6bf72623dc"
)

func FuzzParseChange(f *testing.F) {
	old := issue(f, nil, ways(nodes(4)))
	r := issue(f, old, ways(nodes(5)))
	f.Add(r.AppendChange(nil, 1))
	f.Add(r.AppendChange(nil, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Apply(old, b)
		if err != nil || !got.Dated() {
			return
		}
		_, base, err := SerialOf(b)
		check.NoError(t, err)
		again, err := Apply(old, got.AppendChange(nil, base))
		check.NoError(t, err)
		check.True(t, "a roster of a change is the same by its own", reflect.DeepEqual(again, got))
	})
}
