package atrest

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/chacha20poly1305"
)

// Sizes.
const (
	SaltLen  = 16
	NameLen  = 16                                                      // octets of the hash that replaces a name
	Overhead = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead // octets that Seal adds
)

// The cost of one guess at a passphrase: half a second of a small processor, and memory that a guesser has to have as well (RFC
// 9106, 4: the second recommended choice).
const (
	passes  = 3
	memory  = 64 << 10 // KiB
	threads = 4
)

// LeastSecret is the fewest octets of a Secret.
const LeastSecret = 12

// Secret is a passphrase, or the content of a key file.
type Secret []byte

// ErrSecret says that a secret is too short.
var ErrSecret = errors.New("it must have at least 12 characters")

// Key seals and opens the records of one store.
type Key struct {
	salt  [SaltLen]byte
	aead  cipher.AEAD
	names [32]byte
}

// NewKey is a key with a salt of its own.
func (s Secret) NewKey() *Key {
	salt := make([]byte, SaltLen)
	rand.Read(salt)
	k, _ := s.Key(salt)
	return k
}

// Key is the key of a store with this salt; false: the salt has the wrong length.
func (s Secret) Key(salt []byte) (*Key, bool) {
	if len(salt) != SaltLen {
		return nil, false
	}
	b := argon2.IDKey(s, salt, passes, memory, threads, chacha20poly1305.KeySize+32)
	defer clear(b)
	aead, err := chacha20poly1305.NewX(b[:chacha20poly1305.KeySize])
	if err != nil {
		panic("atrest: " + err.Error()) // the size is right
	}
	k := &Key{aead: aead}
	copy(k.salt[:], salt)
	copy(k.names[:], b[chacha20poly1305.KeySize:])
	return k, true
}

// Salt is the salt of the key: secret and salt give the key again. The salt is not secret.
func (k *Key) Salt() []byte { return k.salt[:] }

// Name is the keyed hash that replaces a record's name in a bucket.
func (k *Key) Name(bucket string, name []byte) []byte {
	h, err := blake2b.New(NameLen, k.names[:])
	if err != nil {
		panic("atrest: " + err.Error()) // the sizes are right
	}
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(bucket))))
	h.Write([]byte(bucket))
	h.Write(name)
	return h.Sum(nil)
}

// Seal returns plain sealed. Open needs the same about.
func (k *Key) Seal(plain, about []byte) []byte {
	b := make([]byte, chacha20poly1305.NonceSizeX, Overhead+len(plain))
	rand.Read(b)
	return k.aead.Seal(b, b, plain, about)
}

// Open undoes Seal; false: sealed was made with another key or another about, or was changed.
func (k *Key) Open(sealed, about []byte) ([]byte, bool) {
	if len(sealed) < Overhead {
		return nil, false
	}
	nonce := sealed[:chacha20poly1305.NonceSizeX]
	plain, err := k.aead.Open(nil, nonce, sealed[chacha20poly1305.NonceSizeX:], about)
	return plain, err == nil
}
