package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// SigningKey is the private half of a node's or an authority's key. It signs, and two nodes' keys also agree on a key that
// only the two know.
type SigningKey struct {
	seed   [seedLen]byte
	public PublicKey
	secret [secretLen]byte
}

// PublicKey is the public half of a SigningKey: Ed25519.
type PublicKey [publicLen]byte

// Signature is one of a SigningKey.
type Signature [signatureLen]byte

// NewSigningKey is the key of a seed, which the caller has drawn at random.
func NewSigningKey(seed [seedLen]byte) *SigningKey {
	start()
	k := &SigningKey{seed: seed}
	k.public, k.secret = signPair(&seed)
	return k
}

// Seed is the seed from which NewSigningKey makes the same key: the content of a key file.
func (k *SigningKey) Seed() [seedLen]byte { return k.seed }

// Public is the half that others may know.
func (k *SigningKey) Public() PublicKey { return k.public }

// String hides the key from logs.
func (k *SigningKey) String() string { return "signing key (hidden)" }

// GoString hides the key from %#v.
func (k *SigningKey) GoString() string { return k.String() }

// Sign signs message. purpose prevents signatures of one kind from passing for another.
func (k *SigningKey) Sign(purpose string, message []byte) Signature {
	return sign(&k.secret, signed(purpose, message))
}

// Verify says whether s is k's signature of message for this purpose.
func (k PublicKey) Verify(purpose string, message []byte, s Signature) bool {
	start()
	return verify((*[publicLen]byte)(&k), signed(purpose, message), s[:])
}

func signed(purpose string, message []byte) []byte {
	return append(append([]byte(purpose), 0), message...)
}

// Fingerprint lets two operators compare a public key aloud: five groups of four hexadecimal digits, the first 80 bits of
// BLAKE2b("aldis public key 1" and the key).
func (k PublicKey) Fingerprint() string {
	start()
	h := hash(nil, append([]byte("aldis public key 1"), k[:]...))
	return groups(h[:10])
}

// groups are ten octets as they are read aloud.
func groups(b []byte) string {
	return fmt.Sprintf("%x %x %x %x %x", b[0:2], b[2:4], b[4:6], b[6:8], b[8:10])
}

// ErrWeakKey says that a public key is invalid: no key can be agreed with it.
var ErrWeakKey = errors.New("seal: not a public key of a node")

// pairBase is the base of the keys between this node and another: BLAKE2b, keyed with the result of X25519, over both ids
// and public keys, the lower id first. Both ends have the same, and nobody else has it.
func (k *SigningKey) pairBase(self, peer uint16, public PublicKey) (b [keyLen]byte, err error) {
	x, ok := agreePublic((*[publicLen]byte)(&public))
	if !ok {
		return b, ErrWeakKey
	}
	mine := agreeSecret(&k.secret)
	shared, ok := agree(&mine, &x)
	if !ok {
		return b, ErrWeakKey
	}
	low, high := Member{self, k.public}, Member{peer, public}
	if low.ID > high.ID {
		low, high = high, low
	}
	text := []byte("aldis pair key 1")
	for _, m := range []Member{low, high} {
		text = append(binary.BigEndian.AppendUint16(text, m.ID), m.Public[:]...)
	}
	return hash(shared[:], text), nil
}

// GroupSecret is what all members of an epoch share: the keys of datagrams to all are made from it.
type GroupSecret [16]byte

// String hides the secret from logs.
func (GroupSecret) String() string { return "group secret (hidden)" }

// GoString hides the secret from %#v.
func (s GroupSecret) GoString() string { return s.String() }

// groupBase is the base of the keys with which one sender seals for all.
func (s GroupSecret) groupBase(epoch uint32, sender uint16) [keyLen]byte {
	text := binary.BigEndian.AppendUint32([]byte("aldis group key 1"), epoch)
	return hash(s[:], binary.BigEndian.AppendUint16(text, sender))
}

// CommonSecret is a secret that only a node that knows all secrets of list can make, in whichever order they are given.
func CommonSecret(list []GroupSecret) (common GroupSecret) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b GroupSecret) int { return bytes.Compare(a[:], b[:]) })
	text := []byte("aldis common secret 1")
	for _, s := range list {
		text = append(text, s[:]...)
	}
	h := hash(nil, text)
	return GroupSecret(h[:len(common)])
}

// Wrapper wraps an epoch's secret for each member, with a key pair that is thrown away afterwards.
type Wrapper struct {
	epoch  uint32
	secret [keyLen]byte
	Public [keyLen]byte // a member needs it to unwrap
}

// NewWrapper makes a Wrapper from an X25519 secret that was drawn at random for this epoch alone.
func NewWrapper(epoch uint32, secret [keyLen]byte) *Wrapper {
	start()
	return &Wrapper{epoch: epoch, secret: secret, Public: agreeBase(&secret)}
}

// Wrap makes s readable for one member alone. It hides s but does not authenticate it: the roster's signature does.
func (w *Wrapper) Wrap(to Member, s GroupSecret) (wrapped [16]byte, err error) {
	x, ok := agreePublic((*[publicLen]byte)(&to.Public))
	if !ok {
		return wrapped, ErrWeakKey
	}
	shared, ok := agree(&w.secret, &x)
	if !ok {
		return wrapped, ErrWeakKey
	}
	return xor(s, wrapPad(shared, w.Public, w.epoch, to)), nil
}

// Unwrap is the secret that Wrap made readable for this member.
func (k *SigningKey) Unwrap(self uint16, epoch uint32, wrapper [keyLen]byte, wrapped [16]byte) (GroupSecret, error) {
	mine := agreeSecret(&k.secret)
	shared, ok := agree(&mine, &wrapper)
	if !ok {
		return GroupSecret{}, ErrWeakKey
	}
	return xor(wrapped, wrapPad(shared, wrapper, epoch, Member{self, k.public})), nil
}

// wrapPad is used once: wrapper is new in each epoch.
func wrapPad(shared, wrapper [keyLen]byte, epoch uint32, to Member) (pad [16]byte) {
	text := binary.BigEndian.AppendUint32([]byte("aldis group secret 1"), epoch)
	text = slices.Concat(binary.BigEndian.AppendUint16(text, to.ID), to.Public[:], wrapper[:])
	h := hash(shared[:], text)
	return [16]byte(h[:16])
}

func xor(a, b [16]byte) (c [16]byte) {
	for i := range c {
		c[i] = a[i] ^ b[i]
	}
	return c
}

// LockedLen is the octets of a locked key.
const LockedLen = saltLen + boxExtra + seedLen

// ErrPassphrase says that a passphrase does not open a key.
var ErrPassphrase = errors.New("seal: the passphrase is wrong, or the key file was changed")

// RandomForLock is how many random octets Lock needs.
const RandomForLock = saltLen + boxNonce

// Lock encrypts a signing key with a passphrase: Argon2id with 256 MiB, and XSalsa20-Poly1305.
func (k *SigningKey) Lock(passphrase []byte, random [RandomForLock]byte) ([]byte, error) {
	salt := [saltLen]byte(random[:saltLen])
	key, err := stretch(passphrase, &salt)
	if err != nil {
		return nil, err
	}
	return append(salt[:], box(&key, (*[boxNonce]byte)(random[saltLen:]), k.seed[:])...), nil
}

// Unlock is the key that Lock has encrypted.
func Unlock(locked, passphrase []byte) (*SigningKey, error) {
	start()
	if len(locked) != LockedLen {
		return nil, ErrPassphrase
	}
	salt := [saltLen]byte(locked[:saltLen])
	key, err := stretch(passphrase, &salt)
	if err != nil {
		return nil, err
	}
	seed, ok := unbox(&key, locked[saltLen:])
	if !ok {
		return nil, ErrPassphrase
	}
	return NewSigningKey([seedLen]byte(seed)), nil
}
