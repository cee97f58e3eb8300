// Package custody keeps the promise that every message reaches its recipient once: numbers, receipts, a window, loss
// found by what was acknowledged behind it, and a rare probe instead of repeats on a link that is dead.
// Why so: (design 3, 6). Figures and rules: (norm-seal 5, 7).
//
// A Sender and a Receiver serve one peer. They hold numbers, never messages: the gateway keeps those in its journal and
// makes durable what Sender and Receiver say before it acts on it.
//
// # Lanes and order
//
// Numbers count from 1 in each lane, and a lane is delivered in order. Nothing waits for the other lane, so a long
// message never delays a short one.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Numbers are 64 bits in memory, their low 16 on the wire: at most
// MaxAhead messages are under way, so the rest follows.
package custody
