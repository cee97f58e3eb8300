// Package seal encrypts and authenticates the body of a link datagram, and opens what arrives.
//
// The construction is our own, modelled on RFC 8750 (implicit nonces), RFC 9000 A.3 (truncated counters) and RFC 4303
// (replay window). The cipher is ChaCha20-Poly1305 of RFC 8439, the key derivation crypto_kdf (BLAKE2b), both from
// libsodium. Only sodium.go calls C. Package internal/edge/config reads and writes key files, internal/edge/radio has the
// sockets, and internal/gateway knows what a body means.
//
// # Layout
//
//	octet 0    version (three high bits, 1), bit 4: long form, four low bits of the sender's node id: a hint, every
//	           peer that it fits is tried
//	short      counter, its low 16 bits                       (header of 3 octets)
//	long       incarnation number (4), salt (2), counter (4)         (header of 11 octets)
//	then       ciphertext, as long as the body, and a tag of 16 octets
//
// All integers are big endian. The key is crypto_kdf(network key, sender<<48 | incarnation<<16 | salt, "aldisdg1"). The nonce is
// four zero octets and the counter in 64 bits. The additional data is the header, the sender's id (2) and the
// destination's id (2; 0 is the whole network). A datagram for one node is therefore invalid at another. Neither two
// nodes with one id nor a node that lost its disk ever reuse a nonce, because incarnation number or salt differ.
//
// A datagram for all that another node transmits has version 3, and otherwise the octets of its sender (again.go). It was
// sealed as version 1.
//
// # Keys of single nodes
//
// A Keyring replaces the network's key. Nodes have Ed25519 keys. The base key of two nodes is
// BLAKE2b(X25519(a, B), "aldis pair key 1" | lower id | its public key | higher id | its public key). The base key for
// one node's datagrams to all is BLAKE2b(epoch's secret, "aldis group key 1" | epoch | sender). From a base key on,
// everything is as above.
//
// A datagram for all has proofs inside the ciphertext, after the body: four octets for each other member, by id. Each
// is BLAKE2b keyed with crypto_kdf(pair's base, sender<<48 | incarnation<<16 | salt, "aldispf1") over sender, incarnation and salt
// (8), nonce, the length of the additional data (1), the additional data and the body. For more than 15 members an
// Ed25519 signature of the same replaces them. So a member that can read datagrams for all cannot make one in another's
// name, and nobody without a key can have a member accused: docs/decisions/trust.md.
//
// A Forward has the keys of one start of this node and one start of a peer. Both draw an X25519 pair for each other,
// and HELLOs carry the public halves. The base is BLAKE2b(X25519(e, E), "aldis forward key 1" | pair's base | lower
// id's start | its half | higher id's start | its half), with starts encoded as above. Each hour has a base of its
// own: crypto_kdf(base, step, "aldisfwr"). Short datagrams to one node are sealed from it as above, once both ends
// have it: docs/decisions/forward-secrecy.md.
//
// # Units and state
//
// The package is deterministic: keys, incarnation numbers and salts are arguments; nothing here reads a clock or a random
// source. A Sealer and an Opener belong to one goroutine. An Opener changes its state only after a datagram has proved
// authentic. A strict Opener accepts nothing from an unknown peer before Confirm: docs/decisions/incarnations.md.
//
// Files: seal.go the Sealer and key files, start here; open.go the Opener; window.go protection against replays;
// stranger.go peers of which nothing is known yet; keyring.go keys of single nodes; forward.go keys of two starts;
// introduce.go datagrams of a node that is new; again.go datagrams that another node transmits; ends.go keys between nodes that others join; identity.go a node's key, encrypted secrets,
// keys under a passphrase; sodium.go calls to libsodium.
package seal
