// Package segment cuts long messages into segments that fill datagrams, also with segments of other messages, and joins
// them again. A Cutter is the sending half for one peer, a Joiner the receiving half. Each segment has a number of the
// direct queue and is in custody there. The message, here called an object, has a number of the bulk queue, by which
// it is delivered exactly once. The reasons: docs/decisions/segments.md.
//
// Both halves are pure and bounded: a Joiner holds at most MostOpen objects and MostHeld octets of a peer, whatever
// that peer sends. Sizes are octets. Read cutter.go, then joiner.go.
package segment
