package seal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Keys are the keys that a node seals and opens with: a Key that the whole network shares, or a Keyring of keys of single nodes.
type Keys interface{ ring() *Keyring }

// Member is a node and the public half of its key.
type Member struct {
	ID     uint16
	Public PublicKey
}

// Epoch is one roster's members and their secret.
type Epoch struct {
	Number  uint32
	Secret  GroupSecret
	Members []Member // by id
}

// MaxEpochs is how many epochs a Keyring understands at once.
const MaxEpochs = 4

// Keyring is the base keys of a node. Only the node and a peer can read or make datagrams for that peer. Every member can
// read the node's datagrams for all, and a proof for each member prevents others from making them in its name. It is not
// changed once it is made.
type Keyring struct {
	self   uint16
	shared *Key // the network's key; nil: the fields below
	epochs []*epoch
	use    int // index of the epoch with which datagrams for all are sealed
}

type epoch struct {
	Epoch
	own    *SigningKey
	pairs  map[uint16][keyLen]byte // base with each other member
	bearer uint64                  // the bearer of these keys; 0: the one without a name
}

func (k *Keyring) ring() *Keyring { return k }

// ring is a Keyring with the network's key alone.
func (k Key) ring() *Keyring { return &Keyring{shared: &k} }

// ErrNotMember says that an epoch does not name this node with its key.
var ErrNotMember = errors.New("seal: this node is not in the roster with its key")

// NewKeyring makes the keys of node self with the key own: epochs are at most MaxEpochs, the newest first. Datagrams of all
// of them are opened, but a node that the newest does not name, or names with another key, is gone.
func NewKeyring(self uint16, own *SigningKey, epochs ...Epoch) (*Keyring, error) {
	start()
	if len(epochs) == 0 || len(epochs) > MaxEpochs {
		return nil, fmt.Errorf("seal: %d epochs", len(epochs))
	}
	k := &Keyring{self: self}
	for i, e := range epochs {
		ep := &epoch{Epoch: e, own: own, pairs: map[uint16][keyLen]byte{}}
		ep.Members = slices.Clone(e.Members)
		slices.SortFunc(ep.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
		if m, ok := ep.member(self); !ok || m.Public != own.public {
			if i > 0 { // an older epoch, before this node was named or had this key
				continue
			}
			return nil, ErrNotMember
		}
		for _, m := range ep.Members {
			if m.ID == self {
				continue
			}
			base, err := own.pairBase(self, m.ID, m.Public)
			if err != nil {
				return nil, fmt.Errorf("node %d: %w", m.ID, err)
			}
			ep.pairs[m.ID] = base
		}
		k.epochs = append(k.epochs, ep)
	}
	return k, nil
}

// Using is the Keyring that seals for all with the given epoch; with the newest if it lacks that one.
func (k *Keyring) Using(number uint32) *Keyring {
	with := *k
	with.use = max(0, slices.IndexFunc(k.epochs, func(e *epoch) bool { return e.Number == number }))
	return &with
}

// BearerNumber is the number from which the keys of a bearer with this name are made; "" has 0.
func BearerNumber(name string) uint64 {
	if name == "" {
		return 0
	}
	h := sha256.Sum256([]byte("aldis bearer " + name))
	return binary.BigEndian.Uint64(h[:])
}

// BearerMark is the short name of a bearer in marks on the link; "" has 0. The bearers of one network must have different marks.
func BearerMark(name string) uint8 {
	if name == "" {
		return 0
	}
	return uint8(BearerNumber(name)%255) + 1
}

// bearerContext separates keys of bearers from others of the same base.
var bearerContext = [8]byte([]byte("aldisbr1"))

// On is the keys of one bearer, as Keyring.On.
func (k Key) On(bearer uint64) *Keyring { return k.ring().On(bearer) }

// On is the Keyring of one bearer, by the number that both ends make from its name; 0: k itself. Bearers share no key, so
// each counts its datagrams by itself without reusing a nonce, and a datagram recorded on one bearer cannot be opened on
// another.
func (k *Keyring) On(bearer uint64) *Keyring {
	if bearer == 0 {
		return k
	}
	with := *k
	if k.shared != nil {
		key := Key(derive((*[keyLen]byte)(k.shared), bearer, bearerContext))
		with.shared = &key
	}
	with.epochs = nil
	for _, e := range k.epochs {
		on := *e
		on.bearer, on.pairs = bearer, make(map[uint16][keyLen]byte, len(e.pairs))
		for id, base := range e.pairs {
			on.pairs[id] = derive(&base, bearer, bearerContext)
		}
		with.epochs = append(with.epochs, &on)
	}
	return &with
}

// groupBase is the base key with which a member seals for all.
func (e *epoch) groupBase(from uint16) [keyLen]byte {
	base := e.Secret.groupBase(e.Number, from)
	if e.bearer != 0 {
		base = derive(&base, e.bearer, bearerContext)
	}
	return base
}

// Between opens this node's datagrams as another member does, with the keys that this node shares with it. It serves
// readers of captures.
func (k *Keyring) Between(member uint16) *Keyring {
	with := &Keyring{self: member, use: k.use}
	for _, e := range k.epochs {
		base, ok := e.pairs[member]
		if ok {
			with.epochs = append(with.epochs, &epoch{Epoch: e.Epoch, own: e.own, bearer: e.bearer, pairs: map[uint16][keyLen]byte{k.self: base}})
		}
	}
	return with
}

// Epoch is the number of the epoch used to seal for all; 0 with a key that the network shares.
func (k *Keyring) Epoch() uint32 {
	if k.shared != nil {
		return 0
	}
	return k.epochs[k.use].Number
}

// Public is the public key of a member of the newest epoch; this node is one.
func (k *Keyring) Public(id uint16) (PublicKey, bool) {
	if k.shared != nil {
		return PublicKey{}, false
	}
	m, ok := k.epochs[0].member(id)
	return m.Public, ok
}

func (e *epoch) member(id uint16) (Member, bool) {
	i, ok := slices.BinarySearchFunc(e.Members, id, func(m Member, id uint16) int { return cmp.Compare(m.ID, id) })
	if !ok {
		return Member{}, false
	}
	return e.Members[i], true
}

const (
	proofLen  = 4  // octets of a proof for one member
	proofMost = 15 // members with a proof each; for more, a signature takes no more octets
)

// ProofsMost is the most octets that proofs take in a datagram for all.
const ProofsMost = signatureLen

// proofOctets is how many octets follow the body of a member's datagrams for all.
func (e *epoch) proofOctets() int {
	if others := len(e.Members) - 1; others <= proofMost {
		return others * proofLen
	}
	return signatureLen
}

// Proofs is how many octets follow the body of a datagram for all.
func (k *Keyring) Proofs() int {
	if k.shared != nil {
		return 0
	}
	return k.epochs[k.use].proofOctets()
}

// proofKey is the key with which one sender's one start proves its datagrams to one member.
func proofKey(base *[keyLen]byte, sender uint16, incarnation Incarnation) [keyLen]byte {
	return derive(base, startID(sender, incarnation), [8]byte([]byte("aldispf1")))
}

// proven appends the octets that a proof covers: the bearer, if it has a name, sender and start, nonce, additional data, body.
func proven(b []byte, bearer uint64, sender uint16, incarnation Incarnation, n *[nonceLen]byte, ad, body []byte) []byte {
	if bearer != 0 {
		b = binary.BigEndian.AppendUint64(b, bearer)
	}
	b = binary.BigEndian.AppendUint64(b, startID(sender, incarnation))
	b = append(append(b, n[:]...), byte(len(ad)))
	return append(append(b, ad...), body...)
}

const proofPurpose = "aldis group datagram 1"

// base is the base key with which node from, this one, seals for a destination.
func (k *Keyring) base(from, to uint16) (b [keyLen]byte, ok bool) {
	switch {
	case k.shared != nil:
		return *k.shared, true
	case to == Group:
		e := k.epochs[k.use]
		return e.groupBase(from), true
	}
	b, ok = k.epochs[0].pairs[to]
	return b, ok
}

// prover proves to all members of an epoch that this node's one start has sealed a datagram.
type prover struct {
	keys   [][keyLen]byte // of the members, by id; nil: a signature is used
	own    *SigningKey
	bearer uint64
	text   []byte // scratch
}

func (e *epoch) prover(self uint16, incarnation Incarnation) *prover {
	p := &prover{own: e.own, bearer: e.bearer}
	if len(e.Members)-1 > proofMost {
		return p
	}
	for _, m := range e.Members {
		if base, ok := e.pairs[m.ID]; ok {
			p.keys = append(p.keys, proofKey(&base, self, incarnation))
		}
	}
	return p
}

func (p *prover) append(b []byte, sender uint16, incarnation Incarnation, n *[nonceLen]byte, ad, body []byte) []byte {
	p.text = proven(p.text[:0], p.bearer, sender, incarnation, n, ad, body)
	if p.keys == nil {
		s := p.own.Sign(proofPurpose, p.text)
		return append(b, s[:]...)
	}
	for i := range p.keys {
		m := mac(&p.keys[i], p.text)
		b = append(b, m[:proofLen]...)
	}
	return b
}

// opening is one way in which a datagram of one start of a node may be sealed.
type opening struct {
	to    uint16 // this node, or Group
	key   [keyLen]byte
	epoch uint32 // for Group: number of the epoch
	gone  bool   // the sender is not a member any more
	// For Group, with proofs:
	tail   int // octets of the proofs
	at     int // where the proof for this node begins in these
	proof  [keyLen]byte
	public *PublicKey // instead of proof: the key of the signer
	bearer uint64
	own    *prover // instead: this node's own prover, which has no proof for itself
}

// openings are all ways in which a start of node from may have sealed for this node: at most two for each epoch.
func (k *Keyring) openings(self, from uint16, incarnation Incarnation) (list []opening) {
	if k.shared != nil {
		key := subkey(k.shared, from, incarnation)
		return []opening{{to: self, key: key}, {to: Group, key: key}}
	}
	now, named := k.epochs[0].member(from)
	var pairs [][keyLen]byte
	for _, e := range k.epochs {
		m, _ := e.member(from)
		if base, ok := e.pairs[from]; ok && !slices.Contains(pairs, base) {
			pairs = append(pairs, base)
			list = append(list, opening{to: self, key: subkey((*Key)(&base), from, incarnation), gone: !named || m != now})
		}
	}
	for _, e := range k.epochs {
		if m, ok := e.member(from); ok {
			o := e.forAll(self, m, incarnation)
			o.gone = !named || m != now
			list = append(list, o)
		}
	}
	return list
}

// forAll is the way in which a start of a member seals for all.
func (e *epoch) forAll(self uint16, from Member, incarnation Incarnation) opening {
	base := e.groupBase(from.ID)
	o := opening{to: Group, bearer: e.bearer, epoch: e.Number, key: subkey((*Key)(&base), from.ID, incarnation), tail: e.proofOctets()}
	pair := e.pairs[from.ID]
	switch {
	case from.ID == self:
		o.own = e.prover(self, incarnation)
	case o.tail == signatureLen:
		o.public = &from.Public
	default:
		o.proof = proofKey(&pair, from.ID, incarnation)
		for _, m := range e.Members {
			if m.ID == self {
				break
			}
			if m.ID != from.ID {
				o.at += proofLen
			}
		}
	}
	return o
}

// proves takes the proofs off the opened octets, and says whether they are the sender's.
func (o *opening) proves(sender uint16, incarnation Incarnation, n *[nonceLen]byte, ad, opened []byte) (body []byte, ok bool) {
	if o.tail == 0 {
		return opened, true
	}
	if len(opened) < o.tail {
		return nil, false
	}
	body, tail := opened[:len(opened)-o.tail], opened[len(opened)-o.tail:]
	if o.own != nil {
		return body, same(tail, o.own.append(nil, sender, incarnation, n, ad, body))
	}
	text := proven(nil, o.bearer, sender, incarnation, n, ad, body)
	if o.public != nil {
		return body, o.public.Verify(proofPurpose, text, Signature(tail))
	}
	m := mac(&o.proof, text)
	return body, same(tail[o.at:o.at+proofLen], m[:proofLen])
}
