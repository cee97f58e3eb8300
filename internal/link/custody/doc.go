// Package custody keeps the promise that every message reaches its recipient once. It has numbers, receipts and a
// window. It detects a loss by a receipt for a later message, and sends a rare probe instead of repeats on a dead link.
// Why so: (design 3, 6). Figures and rules: (norm-seal 5, 7).
//
// A Sender and a Receiver serve one peer. They hold numbers, never messages. The gateway keeps the messages in its
// journal, and makes durable what Sender and Receiver decide before it acts on that.
//
// # Lanes and order
//
// Numbers count from 1 in each lane, and a lane is delivered in order. No lane waits for the other, so a long message
// never delays a short one.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Numbers are 64 bits in memory, their low 16 on the wire: at most
// MaxAhead messages are under way, so the rest follows.
package custody
