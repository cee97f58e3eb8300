// Package roster holds the members of a network: ids, names, public keys, and the secret of the epoch, encrypted for each
// node. An authority, whose key stays ashore, signs a roster. Each roster has a serial greater than the one before. It
// begins an epoch with a secret of its own, so that removed members cannot read later datagrams.
//
// Parse and Append are inverse, as are ParseText and Text and, relative to an earlier roster, Apply and AppendDelta.
// Nothing in a roster is trusted before Verify. The package is pure: keys and random octets are arguments. Package
// internal/edge/config reads and writes the files.
//
// Read roster.go first, then ways.go (where members are reached), text.go (the form for operators), delta.go and change.go
// (differences), and several.go (rosters side by side).
package roster

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"aldis/internal/link/seal"
)

// Bounds of a roster.
const (
	MaxNodes = 256
	MaxName  = 32 // octets of a node's or the network's name
	// MaxOctets is the most octets of a roster as Append writes it.
	MaxOctets = headLen + MaxName + MaxNodes*(nodeLen+MaxName+MaxWays*wayLen+dateLen) + sigLen

	headLen = 1 + 1 + 4 + 4 + 4 + 32 + 2
	nodeLen = 2 + 32 + 16 + 1
	sigLen  = 64
	format  = 1
	purpose = "aldis roster 1"
)

// Node is a member of a network.
type Node struct {
	ID      uint16
	Name    string
	Public  seal.PublicKey
	Wrapped [16]byte // the epoch's secret
	// The remaining fields are only in rosters of the second form (ways.go).
	Since uint32 // serial of the first roster in which the node was as it is now; 0: the roster has the first form
	Relay bool   // it is willing to relay messages for others
	Ways  []Way  // the bearers on which it can be reached; none: the other nodes' configurations say how
}

// Roster is the members of a network from one epoch to the next. It is not changed once it is signed.
type Roster struct {
	Network   string
	Serial    uint32    // of the roster and of its epoch, from 1
	Made      time.Time // to the second
	At        time.Time // from then on the epoch is used for sealing; zero: as soon as all have it
	Wrapper   [32]byte  // with it, a node unwraps the secret
	Nodes     []Node    // by id
	Signature seal.Signature
}

// Why a roster is refused.
var (
	ErrFormat    = errors.New("roster: not an aldis roster")
	ErrSignature = errors.New("roster: not signed by this authority, or changed since")
	ErrOther     = errors.New("roster: of another network")
	ErrOld       = errors.New("roster: not newer than the one in use")
	ErrDiffers   = errors.New("roster: it has the serial of the one in use, and differs from it")
)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// RandomForIssue is how many random octets Issue needs.
const RandomForIssue = 32 + 16

// Issue makes the roster after old (nil: the first of the network) with these nodes, whose secrets are drawn anew, and signs it.
func Issue(network string, old *Roster, nodes []Node, made, at time.Time, random [RandomForIssue]byte, authority *seal.SigningKey) (*Roster, error) {
	r := &Roster{Network: network, Serial: 1, Made: made.UTC().Truncate(time.Second), Nodes: slices.Clone(nodes)}
	if !at.IsZero() {
		r.At = at.UTC().Truncate(time.Second)
	}
	if old != nil {
		if old.Serial == math.MaxUint32 {
			return nil, errors.New("roster: serials are used up: make a new network")
		}
		r.Network, r.Serial = old.Network, old.Serial+1
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	w := seal.NewWrapper(r.Serial, [32]byte(random[:32]))
	r.Wrapper = w.Public
	for i := range r.Nodes {
		n := &r.Nodes[i]
		var err error
		if n.Wrapped, err = w.Wrap(seal.Member{ID: n.ID, Public: n.Public}, seal.GroupSecret(random[32:])); err != nil {
			return nil, fmt.Errorf("node %d: %w", n.ID, err)
		}
	}
	r.date(old)
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Signature = authority.Sign(r.purpose(), r.content())
	return r, nil
}

// check returns the mistake in a roster, if it has one.
func (r *Roster) check() error {
	switch {
	case !proper(r.Network):
		return wrong("the network's name must have 1 to %d octets, without blanks", MaxName)
	case r.Serial == 0:
		return wrong("serial 0")
	case len(r.Nodes) == 0 || len(r.Nodes) > MaxNodes:
		return wrong("%d nodes, 1 to %d are possible", len(r.Nodes), MaxNodes)
	}
	for _, at := range []time.Time{r.Made, r.At} {
		if !at.IsZero() && (at.Unix() <= 0 || at.Unix() > math.MaxUint32) {
			return wrong("a time before 1970 or after 2106")
		}
	}
	names, keys := map[string]bool{}, map[seal.PublicKey]bool{}
	for i, n := range r.Nodes {
		switch {
		case n.ID == 0:
			return wrong("a node with id 0")
		case i > 0 && n.ID <= r.Nodes[i-1].ID:
			return wrong("node %d is there twice, or not in order", n.ID)
		case !proper(n.Name):
			return wrong("the name of node %d must have 1 to %d octets, without blanks", n.ID, MaxName)
		case names[n.Name]:
			return wrong("two nodes with the name %s", n.Name)
		case keys[n.Public]:
			return wrong("node %d has the key of another", n.ID)
		}
		names[n.Name], keys[n.Public] = true, true
	}
	return r.checkWays()
}

// proper says that a name can be a word of a line.
func proper(name string) bool {
	if name == "" || len(name) > MaxName || !utf8.ValidString(name) {
		return false
	}
	for _, c := range name {
		if !unicode.IsGraphic(c) || unicode.IsSpace(c) {
			return false
		}
	}
	return true
}

// Verify says whether the authority has signed exactly this roster.
func (r *Roster) Verify(authority seal.PublicKey) error {
	if !authority.Verify(r.purpose(), r.content(), r.Signature) {
		return ErrSignature
	}
	return nil
}

// Follows says whether r may replace old (nil: there was none).
func (r *Roster) Follows(old *Roster) error {
	switch {
	case old == nil:
		return nil
	case r.Network != old.Network:
		return fmt.Errorf("%w: %s, not %s", ErrOther, r.Network, old.Network)
	case r.Serial == old.Serial && r.Digest() != old.Digest():
		return fmt.Errorf("%w: serial %d, %s and not %s; the authority has to make one with a higher serial of the right one (gateway keys roster roll)",
			ErrDiffers, r.Serial, r.Fingerprint(), old.Fingerprint())
	case r.Serial <= old.Serial:
		return fmt.Errorf("%w: serial %d, in use is %d", ErrOld, r.Serial, old.Serial)
	}
	return nil
}

// Node is the member with this id.
func (r *Roster) Node(id uint16) (Node, bool) {
	i, ok := slices.BinarySearchFunc(r.Nodes, id, func(n Node, id uint16) int { return cmp.Compare(n.ID, id) })
	if !ok {
		return Node{}, false
	}
	return r.Nodes[i], true
}

// Epoch is the epoch from which the node self, with this key, makes its keys.
func (r *Roster) Epoch(self uint16, own *seal.SigningKey) (e seal.Epoch, err error) {
	n, ok := r.Node(self)
	if !ok || n.Public != own.Public() {
		return e, seal.ErrNotMember
	}
	e.Number = r.Serial
	if e.Secret, err = own.Unwrap(self, r.Serial, r.Wrapper, n.Wrapped); err != nil {
		return e, err
	}
	e.Members = r.members()
	return e, nil
}

func (r *Roster) members() (list []seal.Member) {
	for _, n := range r.Nodes {
		list = append(list, seal.Member{ID: n.ID, Public: n.Public})
	}
	return list
}

// Ring is the keys of node self from its rosters, the newest first; nil ones are left out. Older rosters need not name the
// node. Several rosters of the newest serial count as one epoch, of the nodes that all of them name; nodes that know only
// one of them are heard too.
func Ring(self uint16, own *seal.SigningKey, rosters ...*Roster) (*seal.Keyring, error) {
	var epochs []seal.Epoch
	rosters = slices.DeleteFunc(slices.Clone(rosters), func(r *Roster) bool { return r == nil })
	if newest := Newest(rosters); len(newest) > 1 {
		e, err := commonEpoch(self, own, newest)
		if err != nil {
			return nil, err
		}
		epochs = append(epochs, e)
	}
	for _, r := range rosters {
		e, err := r.Epoch(self, own)
		if err != nil && len(epochs) == 0 {
			return nil, err
		}
		if err == nil {
			epochs = append(epochs, e)
		}
	}
	return seal.NewKeyring(self, own, epochs[:min(len(epochs), seal.MaxEpochs)]...)
}

// content is the part that is signed.
func (r *Roster) content() []byte {
	if r.Dated() {
		return r.appendUnsigned(nil, 0)
	}
	b := append([]byte{format, byte(len(r.Network))}, r.Network...)
	b = binary.BigEndian.AppendUint32(b, r.Serial)
	b = appendTime(appendTime(b, r.Made), r.At)
	b = binary.BigEndian.AppendUint16(append(b, r.Wrapper[:]...), uint16(len(r.Nodes)))
	for _, n := range r.Nodes {
		b = append(binary.BigEndian.AppendUint16(b, n.ID), n.Public[:]...)
		b = append(append(b, n.Wrapped[:]...), byte(len(n.Name)))
		b = append(b, n.Name...)
	}
	return b
}

func appendTime(b []byte, at time.Time) []byte {
	if at.IsZero() {
		return append(b, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(b, uint32(at.Unix()))
}

// Append appends the roster as it goes over a link and into a journal.
func (r *Roster) Append(b []byte) []byte {
	return append(append(b, r.content()...), r.Signature[:]...)
}

// Parse reads the octets of Append. The result is not verified: use Verify.
func Parse(b []byte) (*Roster, error) {
	if len(b) > MaxOctets {
		return nil, wrong("%d octets, at most %d are read", len(b), MaxOctets)
	}
	if len(b) > 0 && b[0] == changeFormat {
		return parseChange(nil, b)
	}
	p := parser{b: b}
	if p.octets(1)[0] != format {
		return nil, wrong("of another version")
	}
	r := &Roster{Network: p.name(), Serial: p.number(), Made: p.time(), At: p.time()}
	copy(r.Wrapper[:], p.octets(32))
	count := int(binary.BigEndian.Uint16(p.octets(2)))
	for i := 0; i < count && !p.short; i++ {
		n := Node{ID: binary.BigEndian.Uint16(p.octets(2))}
		copy(n.Public[:], p.octets(32))
		copy(n.Wrapped[:], p.octets(16))
		n.Name = p.name()
		r.Nodes = append(r.Nodes, n)
	}
	copy(r.Signature[:], p.octets(sigLen))
	if p.short || len(p.b) > 0 {
		return nil, wrong("cut short, or more than a roster")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// parser takes fields off its octets; it returns zeros when there are too few.
type parser struct {
	b     []byte
	short bool
}

func (p *parser) octets(n int) []byte {
	if len(p.b) < n {
		p.short, p.b = true, nil
		return make([]byte, n)
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) number() uint32 { return binary.BigEndian.Uint32(p.octets(4)) }

func (p *parser) name() string { return string(p.octets(int(p.octets(1)[0]))) }

func (p *parser) time() (at time.Time) {
	if unix := p.number(); unix != 0 {
		at = time.Unix(int64(unix), 0).UTC()
	}
	return at
}

// Change lists the nodes that a roster changes, by id.
type Change struct{ Added, Gone, Rekeyed []uint16 }

// ChangeFrom compares r with old (nil: none).
func (r *Roster) ChangeFrom(old *Roster) (c Change) {
	if old == nil {
		old = &Roster{}
	}
	for _, n := range r.Nodes {
		switch was, ok := old.Node(n.ID); {
		case !ok:
			c.Added = append(c.Added, n.ID)
		case was.Public != n.Public:
			c.Rekeyed = append(c.Rekeyed, n.ID)
		}
	}
	for _, n := range old.Nodes {
		if _, ok := r.Node(n.ID); !ok {
			c.Gone = append(c.Gone, n.ID)
		}
	}
	return c
}
