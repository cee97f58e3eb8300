package seal

/*
#cgo pkg-config: libsodium
#include <sodium.h>
*/
import "C"

import (
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

func ptr(b []byte) *C.uchar { return (*C.uchar)(unsafe.Pointer(unsafe.SliceData(b))) }

// encrypt appends body, sealed, to dst. dst must not overlap body. C keeps no pointer of ours.
func encrypt(dst, body, ad []byte, nonce *[nonceLen]byte, key *[keyLen]byte) []byte {
	n := len(dst)
	dst = slices.Grow(dst, len(body)+tagLen)[:n+len(body)+tagLen]
	C.crypto_aead_chacha20poly1305_ietf_encrypt(ptr(dst[n:]), nil, ptr(body), C.ulonglong(len(body)),
		ptr(ad), C.ulonglong(len(ad)), nil, ptr(nonce[:]), ptr(key[:]))
	return dst
}

// decrypt writes the body of sealed to dst, which must be len(sealed)-tagLen octets long, and tells whether it is
// authentic. What is in dst afterwards means nothing when it is not.
func decrypt(dst, sealed, ad []byte, nonce *[nonceLen]byte, key *[keyLen]byte) bool {
	return C.crypto_aead_chacha20poly1305_ietf_decrypt(ptr(dst), nil, nil, ptr(sealed), C.ulonglong(len(sealed)),
		ptr(ad), C.ulonglong(len(ad)), ptr(nonce[:]), ptr(key[:])) == 0
}

// derive is crypto_kdf_derive_from_key: BLAKE2b keyed with master, id as salt, context as personalization.
func derive(master *[keyLen]byte, id uint64, context [8]byte) (sub [keyLen]byte) {
	C.crypto_kdf_derive_from_key(ptr(sub[:]), C.size_t(keyLen), C.uint64_t(id),
		(*C.char)(unsafe.Pointer(&context[0])), ptr(master[:]))
	return sub
}
