package seal

/*
#cgo pkg-config: libsodium
#include <sodium.h>
*/
import "C"

import (
	"errors"
	"slices"
	"unsafe"
)

const (
	nonceLen = C.crypto_aead_chacha20poly1305_IETF_NPUBBYTES
	tagLen   = C.crypto_aead_chacha20poly1305_IETF_ABYTES
	keyLen   = C.crypto_aead_chacha20poly1305_IETF_KEYBYTES
)

// start prepares libsodium; calling it again does nothing.
func start() {
	if C.sodium_init() < 0 {
		panic("seal: libsodium cannot start") // it lacks a random source: the system is broken
	}
}

func ptr(b []byte) *C.uchar { return (*C.uchar)(unsafePtr(b)) }

func unsafePtr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// encrypt appends body, sealed, to dst. dst must not overlap body. C keeps no pointer of ours.
func encrypt(dst, body, ad []byte, nonce *[nonceLen]byte, key *[keyLen]byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(body)+tagLen)[:n+len(body)+tagLen]
	C.crypto_aead_chacha20poly1305_ietf_encrypt(ptr(dst[n:]), nil, ptr(body), C.ulonglong(len(body)),
		ptr(ad), C.ulonglong(len(ad)), nil, ptr(nonce[:]), ptr(key[:]))
	return dst
}

// decrypt writes the body of sealed to dst, which must be len(sealed)-tagLen octets long, and tells whether it is
// authentic. If it is not, the octets in dst mean nothing.
func decrypt(dst, sealed, ad []byte, nonce *[nonceLen]byte, key *[keyLen]byte) bool {
	return C.crypto_aead_chacha20poly1305_ietf_decrypt(ptr(dst), nil, nil, ptr(sealed), C.ulonglong(len(sealed)),
		ptr(ad), C.ulonglong(len(ad)), ptr(nonce[:]), ptr(key[:])) == 0
}

// stream is body encrypted or decrypted with ChaCha20, without authentication.
func stream(body []byte, nonce *[nonceLen]byte, key *[keyLen]byte) []byte {
	out := make([]byte, len(body))
	C.crypto_stream_chacha20_ietf_xor(ptr(out), ptr(body), C.ulonglong(len(body)), ptr(nonce[:]), ptr(key[:]))
	return out
}

// derive is crypto_kdf_derive_from_key: BLAKE2b keyed with master, id as salt, context as personalization.
func derive(master *[keyLen]byte, id uint64, context [8]byte) (sub [keyLen]byte) {
	deriveInto(&sub, master, id, context)
	return sub
}

// deriveInto, agreeInto and hashInto leave no copy of the key that wipe could not reach.
func deriveInto(sub, master *[keyLen]byte, id uint64, context [8]byte) {
	C.crypto_kdf_derive_from_key(ptr(sub[:]), C.size_t(keyLen), C.uint64_t(id),
		(*C.char)(unsafe.Pointer(&context[0])), ptr(master[:]))
}

// wipe overwrites a key; the compiler cannot optimise it away.
func wipe(key *[keyLen]byte) { C.sodium_memzero(unsafe.Pointer(key), keyLen) }

// memory is the octets of the vaults.
func memory(vaults []vault) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(vaults))), uintptr(len(vaults))*unsafe.Sizeof(vault{}))
}

const (
	seedLen      = C.crypto_sign_SEEDBYTES
	publicLen    = C.crypto_sign_PUBLICKEYBYTES
	secretLen    = C.crypto_sign_SECRETKEYBYTES
	signatureLen = C.crypto_sign_BYTES

	saltLen   = C.crypto_pwhash_SALTBYTES
	boxExtra  = C.crypto_secretbox_NONCEBYTES + C.crypto_secretbox_MACBYTES
	boxNonce  = C.crypto_secretbox_NONCEBYTES
	kdfOps    = C.crypto_pwhash_argon2id_OPSLIMIT_MODERATE
	kdfOctets = C.crypto_pwhash_argon2id_MEMLIMIT_MODERATE
)

// signPair is the Ed25519 key pair of a seed. The secret half holds the public one too.
func signPair(seed *[seedLen]byte) (public [publicLen]byte, secret [secretLen]byte) {
	C.crypto_sign_seed_keypair(ptr(public[:]), ptr(secret[:]), ptr(seed[:]))
	return public, secret
}

func sign(secret *[secretLen]byte, message []byte) (s [signatureLen]byte) {
	C.crypto_sign_detached(ptr(s[:]), nil, ptr(message), C.ulonglong(len(message)), ptr(secret[:]))
	return s
}

// verify refuses public keys of small order too.
func verify(public *[publicLen]byte, message, signature []byte) bool {
	return len(signature) == signatureLen &&
		C.crypto_sign_verify_detached(ptr(signature), ptr(message), C.ulonglong(len(message)), ptr(public[:])) == 0
}

// agreeSecret and agreePublic are the X25519 halves of an Ed25519 pair. A public half that is no point of the right order
// has none.
func agreeSecret(secret *[secretLen]byte) (x [keyLen]byte) {
	C.crypto_sign_ed25519_sk_to_curve25519(ptr(x[:]), ptr(secret[:]))
	return x
}

func agreePublic(public *[publicLen]byte) (x [keyLen]byte, ok bool) {
	ok = C.crypto_sign_ed25519_pk_to_curve25519(ptr(x[:]), ptr(public[:])) == 0
	return x, ok
}

// agree is X25519; false where the point is of small order.
func agree(secret, public *[keyLen]byte) (shared [keyLen]byte, ok bool) {
	ok = agreeInto(&shared, secret, public)
	return shared, ok
}

func agreeInto(shared, secret, public *[keyLen]byte) bool {
	return C.crypto_scalarmult(ptr(shared[:]), ptr(secret[:]), ptr(public[:])) == 0
}

// agreeBase is the X25519 public half of a secret.
func agreeBase(secret *[keyLen]byte) (public [keyLen]byte) {
	C.crypto_scalarmult_base(ptr(public[:]), ptr(secret[:]))
	return public
}

// hash is BLAKE2b-256 of message; key may be empty, else it has 16 to 64 octets.
func hash(key, message []byte) (h [keyLen]byte) {
	hashInto(&h, key, message)
	return h
}

func hashInto(h *[keyLen]byte, key, message []byte) {
	C.crypto_generichash(ptr(h[:]), keyLen, ptr(message), C.ulonglong(len(message)), ptr(key), C.size_t(len(key)))
}

// mac is BLAKE2b-128, keyed.
func mac(key *[keyLen]byte, message []byte) (m [16]byte) {
	C.crypto_generichash(ptr(m[:]), 16, ptr(message), C.ulonglong(len(message)), ptr(key[:]), keyLen)
	return m
}

// same compares in constant time.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || C.sodium_memcmp(unsafePtr(a), unsafePtr(b), C.size_t(len(a))) == 0)
}

var errPassword = errors.New("seal: no memory to turn a passphrase into a key")

// stretch is Argon2id: 256 MiB, three turns, about a second.
func stretch(passphrase []byte, salt *[saltLen]byte) (key [keyLen]byte, err error) {
	if len(passphrase) == 0 {
		passphrase = []byte{0}[:0:1] // C wants a valid address
	}
	if C.crypto_pwhash(ptr(key[:]), keyLen, (*C.char)(unsafePtr(passphrase)), C.ulonglong(len(passphrase)), ptr(salt[:]),
		kdfOps, kdfOctets, C.crypto_pwhash_ALG_ARGON2ID13) != 0 {
		return key, errPassword
	}
	return key, nil
}

// box and unbox are XSalsa20-Poly1305; the nonce precedes the rest.
func box(key *[keyLen]byte, nonce *[boxNonce]byte, body []byte) []byte {
	b := make([]byte, boxExtra+len(body))
	copy(b, nonce[:])
	C.crypto_secretbox_easy(ptr(b[boxNonce:]), ptr(body), C.ulonglong(len(body)), ptr(nonce[:]), ptr(key[:]))
	return b
}

func unbox(key *[keyLen]byte, sealed []byte) (body []byte, ok bool) {
	if len(sealed) <= boxExtra {
		return nil, false
	}
	body = make([]byte, len(sealed)-boxExtra)
	ok = C.crypto_secretbox_open_easy(ptr(body), ptr(sealed[boxNonce:]), C.ulonglong(len(sealed)-boxNonce), ptr(sealed), ptr(key[:])) == 0
	return body, ok
}
