// Package custody ensures that every message reaches its recipient exactly once. It has message numbers,
// acknowledgements and a window. The acknowledgement of a later message reveals a loss. On a dead link it sends a rare
// probe instead of repeats. The reasons: (design 3, 6). Figures and rules: (norm-seal 5, 7).
//
// A Sender and a Receiver serve one peer. They hold numbers, never messages. The gateway keeps the messages in its
// journal, and makes the decisions of Sender and Receiver durable before it acts on them.
//
// # Queues and order
//
// Each queue (queue) counts its messages from 1 and is delivered in order. Queues do not wait for each other, so a long
// message never delays a short one.
//
// # Time and units
//
// The package is pure: callers pass the time. Numbers have 64 bits in memory and their low 16 or 8 on the wire. At most
// MaxAhead messages are under way, or ByteAhead to a peer that takes no more, which determines the rest.
//
// Read sender.go, receiver.go, then putback.go (data restored from an older copy) and late.go (allowance for busy machines).
package custody
