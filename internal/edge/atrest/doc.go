// Package atrest encrypts the files of a gateway with a key that is not on the same disk.
//
// A Secret is what the operator supplies: a passphrase, or the content of a key file. Argon2id (RFC 9106) derives a
// Key from the secret and a random salt, so that guessing a passphrase is slow and must start anew for each store.
// Records are encrypted with XChaCha20-Poly1305 under a random nonce of 24 octets, long enough that nonces do not
// repeat by chance. A keyed hash (BLAKE2b) replaces the name of a record: the gateway can look a name up, and nobody
// else can tell what it is.
//
// Sizes are octets. Several goroutines may use one Key. The package reads random numbers and files, so it is not pure.
// Read atrest.go first, then files.go (replacing and overwriting files).
package atrest
