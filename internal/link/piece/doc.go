// Package piece cuts long messages into pieces that fill datagrams, whichever messages they are of, and puts them together again.
// A Cutter is the sending half of one peer, a Joiner the receiving half. Each piece has a number of the direct lane and is under
// custody there; the message, here an object, has one of the bulk lane, by which it is delivered exactly once. Why so:
// docs/decisions/pieces.md.
//
// Both are deterministic and bounded: a Joiner holds at most MostOpen objects and MostHeld octets of a peer, whatever it sends.
// Sizes are octets.
package piece
