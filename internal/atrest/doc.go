// Package atrest seals what a gateway keeps on its disk, with a key that is not there.
//
// A Secret is what the operator gives: a passphrase, or the octets of a key file. Argon2id (RFC 9106) makes a Key of it and a
// random salt, so that a passphrase must be guessed slowly and for each store anew. Records are sealed with
// XChaCha20-Poly1305: its nonces have 24 octets, drawn for each record, and do not repeat by chance. A record's name is
// replaced by a keyed hash (BLAKE2b), so that the same name is found again and nobody else can tell which it is.
//
// Sizes are octets. A Key may be used by several goroutines.
package atrest
