// Package survey is the conversation of two gateways that measure the link between them. The near end has a plan within a
// budget and asks; the far end answers, and never sends more octets than it was sent.
//
// First the near end sends single datagrams, each of which the far end answers at once: what delay and jitter are. Then it
// sends a train of datagrams one after the other, and asks the far end for one: how far a train is drawn out is the rate, as
// long as it waits for the link. At the end the far end reports when each datagram came there and when each of its own went.
// It says nothing of what that means for the link: internal/link/fit does.
//
// # Units
//
// Sizes are IP octets of whole datagrams, times are the caller's. The far end reports times since its first one, in tenths
// of a millisecond. Nothing here reads a clock.
//
// # Files
//
//   - word.go: what is said, Append and Parse
//   - plan.go: what a budget buys
//   - asker.go: the near end
//   - answerer.go: the far end
package survey
