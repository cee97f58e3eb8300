package atrest

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"aldis/internal/lab/check"
)

var secret = Secret("correct horse battery")

// A sealed text opens with the same secret, salt and about, and with no others.
func TestSealOpen(t *testing.T) {
	k := secret.NewKey()
	again, ok := secret.Key(k.Salt())
	check.True(t, "the salt is one", ok)
	other, _ := Secret("correct horse battery.").Key(k.Salt())
	salted := secret.NewKey()
	for _, plain := range []string{"", "x", strings.Repeat("text ", 1000)} {
		sealed := k.Seal([]byte(plain), []byte("about"))
		check.Equal(t, "octets", len(sealed), len(plain)+Overhead)
		got, ok := again.Open(sealed, []byte("about"))
		check.True(t, "it opens", ok)
		check.Equal(t, "what was sealed", string(got), plain)
		for name, try := range map[string]func() ([]byte, bool){
			"another secret":   func() ([]byte, bool) { return other.Open(sealed, []byte("about")) },
			"another salt":     func() ([]byte, bool) { return salted.Open(sealed, []byte("about")) },
			"about other":      func() ([]byte, bool) { return k.Open(sealed, []byte("abouT")) },
			"cut off":          func() ([]byte, bool) { return k.Open(sealed[:len(sealed)-1], []byte("about")) },
			"nothing":          func() ([]byte, bool) { return k.Open(nil, []byte("about")) },
			"another octet":    func() ([]byte, bool) { return k.Open(flipped(sealed, len(sealed)-1), []byte("about")) },
			"another in front": func() ([]byte, bool) { return k.Open(flipped(sealed, 0), []byte("about")) },
		} {
			_, ok := try()
			check.Equal(t, name+" opens it", ok, false)
		}
	}
	_, ok = secret.Key([]byte("short"))
	check.Equal(t, "a short salt is one", ok, false)
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// Sealing the same text twice gives results that show nothing in common. The same name has the same hash, but only in its own
// bucket and with its own key.
func TestNames(t *testing.T) {
	k, other := secret.NewKey(), secret.NewKey()
	check.Equal(t, "sealed alike", bytes.Equal(k.Seal([]byte("same"), nil), k.Seal([]byte("same"), nil)), false)
	name := string(k.Name("to", []byte("peer")))
	check.Equal(t, "octets", len(name), NameLen)
	check.Equal(t, "again", string(k.Name("to", []byte("peer"))), name)
	for what, other := range map[string][]byte{"another name": k.Name("to", []byte("pees")), "another bucket": k.Name("tp", []byte("peer")),
		"the border elsewhere": k.Name("top", []byte("eer")), "another key": other.Name("to", []byte("peer"))} {
		check.Equal(t, what+" is the same", string(other) == name, false)
	}
}

// Later versions can open a store of today: the key of a fixed secret and salt is checked by its hash of a name.
func TestKeyStays(t *testing.T) {
	k, _ := secret.Key([]byte("0123456789abcdef"))
	check.Equal(t, "the name", hex.EncodeToString(k.Name("to", []byte("peer"))), "f2474b88d96c4bf18f355aedc49b01ba")
	sealed, _ := hex.DecodeString("3186f9800393e81adceecf37209bfee5ec8f4b3e9c9ac0d946917e4b5ca984705bbe30b95992af27271bfa191178b8c1f771b67a14")
	got, _ := k.Open(sealed, []byte("about"))
	check.Equal(t, "the text", string(got), "text of today")
}
