package roster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"aldis/internal/link/seal"
)

const (
	rosterHeader    = "aldis roster 1"
	secondHeader    = "aldis roster 2"
	nodeHeader      = "aldis node key 1"
	authorityHeader = "aldis authority key 1"

	nodePrefix      = "aldis-node:"
	authorityPrefix = "aldis-authority:"

	atOnce = "once"
)

var b64 = base64.StdEncoding.Strict()

func text(b []byte) string { return b64.EncodeToString(b) }

// Text is the form of the roster in a file: a line for each node, and the signature.
func (r *Roster) Text() string {
	var b strings.Builder
	at := atOnce
	if !r.At.IsZero() {
		at = r.At.Format(time.RFC3339)
	}
	made := r.Made
	if made.IsZero() {
		made = time.Unix(0, 0).UTC()
	}
	header := rosterHeader
	if r.Dated() {
		header = secondHeader
	}
	fmt.Fprintf(&b, "%s\nnet %s\nserial %d\nmade %s\nat %s\nwrapper %s\n", header, r.Network, r.Serial, made.Format(time.RFC3339), at, text(r.Wrapper[:]))
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "node %d %s %s %s%s\n", n.ID, text(n.Public[:]), text(n.Wrapped[:]), n.Name, n.dated())
	}
	fmt.Fprintf(&b, "signature %s\n", text(r.Signature[:]))
	return b.String()
}

// MaxText is the most octets that a roster's text takes.
const MaxText = 3*MaxOctets + 16*MaxNodes

// ParseText reads the output of Text; blank space at the ends of lines does not matter. The result is not verified: use Verify.
func ParseText(s string) (*Roster, error) {
	if len(s) > MaxText {
		return nil, wrong("%d octets, at most %d are read", len(s), MaxText)
	}
	lines := strings.Split(strings.TrimSpace(s), "\n")
	header := strings.TrimSpace(lines[0])
	if header != rosterHeader && header != secondHeader {
		return nil, wrong("its first line is not %q", rosterHeader)
	}
	r := &Roster{}
	order := []string{"net", "serial", "made", "at", "wrapper"}
	for i, line := range lines[1:] {
		f := strings.Fields(line)
		want := "node"
		switch {
		case i < len(order):
			want = order[i]
		case i == len(lines)-2:
			want = "signature"
		}
		if len(f) == 0 || f[0] != want {
			return nil, wrong("line %d should begin with %q", i+2, want)
		}
		if err := r.field(f); err != nil {
			return nil, wrong("line %d: %v", i+2, err)
		}
	}
	if len(lines) < len(order)+3 {
		return nil, wrong("cut short")
	}
	if r.Dated() != (header == secondHeader) {
		return nil, wrong("it has another form than its first line says")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

var errField = errors.New("cannot be read")

// field takes the words of one line.
func (r *Roster) field(f []string) (err error) {
	if f[0] == "node" && len(f) < 5 || f[0] != "node" && len(f) != 2 {
		return errField
	}
	switch f[0] {
	case "net":
		r.Network = f[1]
	case "serial":
		var n uint64
		n, err = strconv.ParseUint(f[1], 10, 32)
		r.Serial = uint32(n)
	case "made":
		if r.Made, err = time.Parse(time.RFC3339, f[1]); r.Made.Unix() == 0 {
			r.Made = time.Time{}
		}
	case "at":
		if f[1] != atOnce {
			r.At, err = time.Parse(time.RFC3339, f[1])
		}
	case "wrapper":
		err = exactly(r.Wrapper[:], f[1])
	case "signature":
		err = exactly(r.Signature[:], f[1])
	case "node":
		var n Node
		var id uint64
		id, err = strconv.ParseUint(f[1], 10, 16)
		n.ID, n.Name = uint16(id), f[4]
		err = errors.Join(err, exactly(n.Public[:], f[2]), exactly(n.Wrapped[:], f[3]), n.read(f[5:]))
		r.Nodes = append(r.Nodes, n)
	}
	if err != nil {
		return errField
	}
	return nil
}

// exactly fills b with the octets that s has in base64.
func exactly(b []byte, s string) error {
	raw, err := b64.DecodeString(s)
	if err != nil || len(raw) != len(b) {
		return errField
	}
	copy(b, raw)
	return nil
}

// Errors of key texts.
var (
	ErrNodeKey         = errors.New("roster: not an aldis node key (expected the line \"" + nodeHeader + "\" and one line of base64)")
	ErrAuthorityKey    = errors.New("roster: not an aldis authority key (expected the line \"" + authorityHeader + "\")")
	ErrNodePublic      = errors.New("roster: not a node's public key (it begins with " + nodePrefix + ")")
	ErrAuthorityPublic = errors.New("roster: not an authority's public key (it begins with " + authorityPrefix + ")")
)

// NodePublic and AuthorityPublic are public keys as people pass them on.
func NodePublic(k seal.PublicKey) string { return nodePrefix + text(k[:]) }

// AuthorityPublic is the public half of an authority's key as text.
func AuthorityPublic(k seal.PublicKey) string { return authorityPrefix + text(k[:]) }

// ParseNodePublic reads the output of NodePublic.
func ParseNodePublic(s string) (seal.PublicKey, error) { return public(s, nodePrefix, ErrNodePublic) }

// ParseAuthorityPublic reads the output of AuthorityPublic.
func ParseAuthorityPublic(s string) (seal.PublicKey, error) {
	return public(s, authorityPrefix, ErrAuthorityPublic)
}

func public(s, prefix string, problem error) (k seal.PublicKey, err error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(s), prefix)
	if !ok || exactly(k[:], rest) != nil || k == (seal.PublicKey{}) {
		return seal.PublicKey{}, problem
	}
	return k, nil
}

// NodeKeyText is the content of a node's key file.
func NodeKeyText(k *seal.SigningKey) string {
	seed := k.Seed()
	return nodeHeader + "\n" + text(seed[:]) + "\n"
}

// ParseNodeKey reads the output of NodeKeyText.
func ParseNodeKey(s string) (*seal.SigningKey, error) {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	var seed [32]byte
	if len(lines) != 2 || strings.TrimSpace(lines[0]) != nodeHeader || exactly(seed[:], strings.TrimSpace(lines[1])) != nil || seed == [32]byte{} {
		return nil, ErrNodeKey
	}
	return seal.NewSigningKey(seed), nil
}

// Authority is the content of an authority's key file: the private half is locked with a passphrase.
type Authority struct {
	Public seal.PublicKey
	locked []byte
}

// NewAuthority locks a key with a passphrase.
func NewAuthority(k *seal.SigningKey, passphrase []byte, random [seal.RandomForLock]byte) (Authority, error) {
	locked, err := k.Lock(passphrase, random)
	return Authority{Public: k.Public(), locked: locked}, err
}

// Text is the authority's file.
func (a Authority) Text() string {
	return authorityHeader + "\n" + AuthorityPublic(a.Public) + "\n" + text(a.locked) + "\n"
}

// ParseAuthority reads the output of Text.
func ParseAuthority(s string) (a Authority, err error) {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	a.locked = make([]byte, seal.LockedLen)
	if len(lines) != 3 || strings.TrimSpace(lines[0]) != authorityHeader || exactly(a.locked, strings.TrimSpace(lines[2])) != nil {
		return Authority{}, ErrAuthorityKey
	}
	if a.Public, err = ParseAuthorityPublic(lines[1]); err != nil {
		return Authority{}, ErrAuthorityKey
	}
	return a, nil
}

// Unlock is the private half. It takes about a second and 256 MiB.
func (a Authority) Unlock(passphrase []byte) (*seal.SigningKey, error) {
	k, err := seal.Unlock(a.locked, passphrase)
	if err == nil && k.Public() != a.Public {
		err = seal.ErrPassphrase
	}
	return k, err
}
