// Package seal turns the body of a link datagram into an authentic, encrypted UDP payload and back.
//
// The construction is ours, after RFC 8750 (implicit nonces), RFC 9000 A.3 (cut counters) and RFC 4303 (replay
// window); the cipher is ChaCha20-Poly1305 of RFC 8439 and the key derivation crypto_kdf (BLAKE2b), both of libsodium.
// Only sodium.go speaks C. Key files are read and written by internal/config, sockets live in internal/radio, what
// a body means in internal/gateway.
//
// # Layout
//
//	octet 0    version (three high bits, 1), bit 4: long form, four low bits of the sender's node id: a hint, every
//	           peer that it fits is tried
//	short      counter, its low 16 bits                       (header of 3 octets)
//	long       boot number (4), salt (2), counter (4)         (header of 11 octets)
//	then       ciphertext, as long as the body, and a tag of 16 octets
//
// All integers are big endian. The key is crypto_kdf(net key, sender<<48 | boot<<16 | salt, "aldisdg1"), the nonce
// four zero octets and the counter in 64 bits, the additional data the header, the sender's id (2) and the
// destination's id (2; 0 is the whole net). So a datagram for one node says nothing to another, and neither two nodes
// with one id nor a node that lost its disk ever spend a nonce twice: boot or salt differ.
//
// # Keys of single nodes
//
// A Keyring stands in the place of the net's key. Nodes have Ed25519 keys; the base key of two nodes is
// BLAKE2b(X25519(a, B), "aldis pair key 1" | lower id | its public key | higher id | its public key), that of what one node
// seals for all BLAKE2b(epoch's secret, "aldis group key 1" | epoch | sender). From a base on all is as above.
//
// A datagram for all has proofs inside the ciphertext, behind the body: four octets for each other member, by id, each BLAKE2b
// keyed with crypto_kdf(pair's base, sender<<48 | boot<<16 | salt, "aldispf1") over sender, boot and salt (8), nonce, the length
// of the additional data (1), these and the body; for more than 15 an Ed25519 signature of that. So who reads for all cannot
// speak for all, and who has no key at all cannot have a member accused: docs/decisions/trust.md.
//
// A Forward has keys of one start of this node and one of a peer: both draw an X25519 pair for each other, and HELLOs tell the
// public halves. The base is BLAKE2b(X25519(e, E), "aldis forward key 1" | pair's base | lower id's start | its half | higher id's
// start | its half), the start as above. Each step of an hour has a base of its own: crypto_kdf(base, step, "aldisfwr"). Short
// datagrams to one node are sealed from it as above, where both have it: docs/decisions/forward-secrecy.md.
//
// # Units and state
//
// Deterministic: keys, boot numbers and salts are arguments, nothing here reads a clock or a random source. A Sealer
// and an Opener belong to one goroutine. An Opener changes its state only after a datagram proved authentic. A strict
// one takes nothing from a peer without state before Confirm: docs/decisions/boots.md.
//
// Files: seal.go the Sealer and key files; open.go the Opener; stranger.go peers of which nothing is known; window.go
// replays; keyring.go keys of single nodes; forward.go keys of two starts; identity.go a node's key, wrapped secrets, keys
// under a passphrase; sodium.go what C does.
package seal
