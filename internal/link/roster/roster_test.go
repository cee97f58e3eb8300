package roster

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/link/seal"
)

func key(n byte) *seal.SigningKey { return seal.NewSigningKey([32]byte(bytes.Repeat([]byte{n}, 32))) }

var (
	authority = key(99)
	made      = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

func nodes(n int) (list []Node) {
	for i := range n {
		name := "hq"
		if i > 0 {
			name = fmt.Sprintf("ship%d", i)
		}
		list = append(list, Node{ID: uint16(i + 1), Name: name, Public: key(byte(i + 1)).Public()})
	}
	return list
}

func issue(t testing.TB, old *Roster, list []Node) *Roster {
	t.Helper()
	r, err := Issue("blue", old, list, made, time.Time{}, [RandomForIssue]byte{1, 40: 2}, authority)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every member unwraps the same secret and opens what the others seal; nobody else gets the secret.
func TestIssue(t *testing.T) {
	r := issue(t, nil, nodes(3))
	check.NoError(t, r.Verify(authority.Public()))
	check.ErrorIs(t, r.Verify(key(98).Public()), ErrSignature)
	var first seal.GroupSecret
	for i := range 3 {
		e, err := r.Epoch(uint16(i+1), key(byte(i+1)))
		check.NoError(t, err)
		if i == 0 {
			first = e.Secret
		}
		check.True(t, "the same secret", e.Secret == first && e.Secret != seal.GroupSecret{})
		check.Equal(t, "members", len(e.Members), 3)
	}
	_, err := r.Epoch(1, key(2))
	check.ErrorIs(t, err, seal.ErrNotMember)
	_, err = r.Epoch(4, key(4))
	check.ErrorIs(t, err, seal.ErrNotMember)
	next := issue(t, r, nodes(2))
	check.Equal(t, "serial", next.Serial, 2)
	check.NoError(t, next.Follows(r))
	check.ErrorIs(t, r.Follows(next), ErrOld)
	check.ErrorIs(t, r.Follows(r), ErrOld)
	other := *next
	other.Network = "red"
	check.ErrorIs(t, other.Follows(r), ErrOther)
	ring, err := Ring(1, key(1), next, r, nil)
	check.NoError(t, err)
	check.Equal(t, "epoch", ring.Epoch(), 2)
	_, err = Ring(3, key(3), next, r)
	check.ErrorIs(t, err, seal.ErrNotMember)
}

func TestSizes(t *testing.T) {
	check.Equal(t, "octets for 16 nodes", len(issue(t, nil, nodes(16)).Append(nil)), 1015)
	big := nodes(MaxNodes)
	for i := range big {
		big[i].Name = fmt.Sprintf("%0*d", MaxName, i)
		big[i].Public = seal.NewSigningKey([32]byte{1, byte(i), byte(i >> 8)}).Public()
	}
	r, err := Issue(strings.Repeat("n", MaxName), nil, big, made, made, [RandomForIssue]byte{}, authority)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "octets of the greatest of the first form", len(r.Append(nil)), headLen+MaxName+MaxNodes*(nodeLen+MaxName)+sigLen)
	for i := range big {
		big[i].ID = uint16(2*i + 1)
		for n := range MaxWays {
			big[i].Ways = append(big[i].Ways, Way{fmt.Sprintf("%0*d", MaxName, n), netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, byte(i), byte(n)}), 7142)})
		}
	}
	r, err = Issue(strings.Repeat("n", MaxName), nil, big, made, made, [RandomForIssue]byte{}, authority)
	check.NoError(check.Fatal(t), err)
	n := len(r.Append(nil))
	check.True(t, "octets of the greatest", n <= MaxOctets && n > MaxOctets-4*MaxNodes, n, MaxOctets)
	again, err := ParseText(r.Text())
	check.NoError(t, err)
	check.NoError(t, again.Verify(authority.Public()))
}

func TestRoundTrips(t *testing.T) {
	for _, at := range []time.Time{{}, made.Add(time.Hour)} {
		r, err := Issue("blue", nil, nodes(3), made, at, [RandomForIssue]byte{1}, authority)
		check.NoError(check.Fatal(t), err)
		b, err := Parse(r.Append(nil))
		check.NoError(t, err)
		check.True(t, "octets", reflect.DeepEqual(r, b))
		s, err := ParseText(strings.ReplaceAll(r.Text(), "\n", " \r\n") + "\n\n")
		check.NoError(t, err)
		check.True(t, "text", reflect.DeepEqual(r, s))
		check.NoError(t, s.Verify(authority.Public()))
	}
}

// If any bit of a roster is flipped, it is no roster, or not signed.
func TestEveryBitIsSigned(t *testing.T) {
	whole := issue(t, nil, nodes(2)).Append(nil)
	for bit := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		if r, err := Parse(b); err == nil && r.Verify(authority.Public()) == nil {
			t.Fatalf("bit %d turned: still signed", bit)
		}
	}
	for n := range whole {
		if _, err := Parse(whole[:n]); !errors.Is(err, ErrFormat) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	_, err := Parse(append(whole, 0))
	check.ErrorIs(t, err, ErrFormat)
}

func TestIssueRefuses(t *testing.T) {
	change := func(f func([]Node)) []Node { l := nodes(3); f(l); return l }
	for name, list := range map[string][]Node{
		"none":       nil,
		"id 0":       change(func(l []Node) { l[0].ID = 0 }),
		"id twice":   change(func(l []Node) { l[1].ID = 1 }),
		"name twice": change(func(l []Node) { l[1].Name = "hq" }),
		"no name":    change(func(l []Node) { l[1].Name = "" }),
		"blank":      change(func(l []Node) { l[1].Name = "ship 1" }),
		"line":       change(func(l []Node) { l[1].Name = "a\nb" }),
		"long":       change(func(l []Node) { l[1].Name = strings.Repeat("x", MaxName+1) }),
		"key twice":  change(func(l []Node) { l[1].Public = l[0].Public }),
		"too many":   make([]Node, MaxNodes+1),
		"weak key":   change(func(l []Node) { l[1].Public = seal.PublicKey{} }),
	} {
		if _, err := Issue("blue", nil, list, made, time.Time{}, [RandomForIssue]byte{}, authority); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
	if _, err := Issue("", nil, nodes(1), made, time.Time{}, [RandomForIssue]byte{}, authority); err == nil {
		t.Error("a network without a name")
	}
}

func TestParseTextRefuses(t *testing.T) {
	good := issue(t, nil, nodes(2)).Text()
	for name, s := range map[string]string{
		"empty": "", "network key": "aldis net key 1\nAAAA\n", "no signature": good[:strings.Index(good, "signature")],
		"no nodes":    strings.Join(append(strings.Split(good, "\n")[:6:6], strings.Split(good, "\n")[8:]...), "\n"),
		"more":        good + "more\n",
		"id":          strings.Replace(good, "node 1 ", "node 70000 ", 1),
		"a word more": strings.Replace(good, " hq", " hq hq", 1),
		"time":        strings.Replace(good, "at once", "at noon", 1),
		"serial":      strings.Replace(good, "serial 1", "serial -1", 1),
		"huge":        good + strings.Repeat(" ", MaxText),
	} {
		if _, err := ParseText(s); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Frozen: rosters and keys of networks in operation.
func TestVectors(t *testing.T) {
	r := issue(t, nil, nodes(1))
	check.Equal(t, "roster", hex.EncodeToString(r.Append(nil)), "0104626c7565000000016b02d940000000002fe57da347cd62431528daac5fbb290730fff684afc4cfc2ed90995f58cb3b74000100018a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5cfbab58a29a12c961265702381d674cfb026871f9f08a06bcd6beec0a52849388942e806e0a2916c8ce54e1181cfc1de2f201d751ff2d68db7d16fbb62a2d07b8657755fd0d30051d2c69cfff3056fbd6e3c90c")
	check.Equal(t, "node key", NodeKeyText(key(1)), "aldis node key 1\nAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n")
	check.Equal(t, "public", NodePublic(key(1).Public()), "aldis-node:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=")
}

func TestKeyTexts(t *testing.T) {
	k, err := ParseNodeKey(NodeKeyText(key(4)))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "seed", k.Seed(), key(4).Seed())
	for _, s := range []string{"", "aldis net key 1\nAAAA", "aldis node key 1\nAAAA", "aldis node key 1\n" + strings.Repeat("A", 43) + "="} {
		_, err := ParseNodeKey(s)
		check.ErrorIs(t, err, ErrNodeKey)
	}
	p, err := ParseNodePublic(" " + NodePublic(k.Public()) + "\n")
	check.NoError(t, err)
	check.True(t, "public", p == k.Public())
	_, err = ParseNodePublic(AuthorityPublic(k.Public()))
	check.ErrorIs(t, err, ErrNodePublic)
	_, err = ParseAuthorityPublic(NodePublic(k.Public()))
	check.ErrorIs(t, err, ErrAuthorityPublic)

	a, err := NewAuthority(authority, []byte("a pass phrase"), [seal.RandomForLock]byte{1})
	check.NoError(check.Fatal(t), err)
	b, err := ParseAuthority(a.Text())
	check.NoError(check.Fatal(t), err)
	check.True(t, "public half in the clear", b.Public == authority.Public())
	k, err = b.Unlock([]byte("a pass phrase"))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "seed", k.Seed(), authority.Seed())
	b.Public = key(3).Public() // of another file
	_, err = b.Unlock([]byte("a pass phrase"))
	check.ErrorIs(t, err, seal.ErrPassphrase)
	_, err = ParseAuthority("aldis authority key 1\nx\n")
	check.ErrorIs(t, err, ErrAuthorityKey)
}

func TestChange(t *testing.T) {
	old, list := issue(t, nil, nodes(3)), nodes(4)
	list[1].Public = key(50).Public()
	c := issue(t, old, append(list[:2:2], list[3])).ChangeFrom(old)
	check.Equal(t, "change", fmt.Sprint(c), "{[4] [3] [2]}")
}

func FuzzParse(f *testing.F) {
	f.Add(issue(f, nil, nodes(2)).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("%x becomes %x", b, r.Append(nil))
		}
	})
}

func FuzzParseText(f *testing.F) {
	f.Add(issue(f, nil, nodes(2)).Text())
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseText(s)
		if err != nil {
			return
		}
		again, err := ParseText(r.Text())
		if err != nil || !bytes.Equal(again.Append(nil), r.Append(nil)) {
			t.Fatalf("%q is read as another: %v", s, err)
		}
	})
}
