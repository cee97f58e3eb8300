// Package probe is the conversation in which two running gateways probe the link between them. The near end has a
// plan within a budget, and asks. The far end answers, and never sends more octets than it has received.
//
// First the near end sends single datagrams, each of which the far end answers at once: this measures delay and
// jitter. Then it sends a train of datagrams back to back, and asks the far end for one. How far a train is stretched
// gives the rate, as long as the train queues for the link. At the end the far end reports when each datagram arrived
// and when each of its own left. Package internal/lab/linkemu turns these times into properties of the link.
//
// # Units
//
// The package is pure: callers pass the time. Sizes are IP octets of whole datagrams. The far end reports times since
// its first one, in tenths of a millisecond.
//
// # Files
//
// Read word.go first.
//
//   - word.go: the protocol's messages, Append and Parse
//   - plan.go: the datagrams that a budget pays for
//   - asker.go: the near end
//   - answerer.go: the far end
package probe
