// Package edgepeer is a minimal JXTA edge peer. It takes a lease from a rendezvous, publishes, asks, listens on pipes
// and sends on them, as unmodified peers of JXSE 2.7 and JXTA 2.2 do towards a gateway or a rendezvous of their own.
// It plays the other side of internal/jxtabridge in tests, replays and benchmarks. No gateway runs it.
//
// The peer has one connection, to one rendezvous, and reaches all other peers through it. It has no address that others could dial.
// internal/lab/edgepeer/tcp gives it a TCP socket. In virtual time the caller hands Output.Send to jxtabridge.Received, and jxtabridge's
// Sends back as Received.
//
// It follows docs/reference/jxta-wire.md and docs/reference/jxta-ghosts.md. It does not speak HTTP polling, multicast,
// BiDi pipes and sockets, or TLS.
//
// # Time and units
//
// Callers pass now; nothing here reads a clock. Sizes are octets. Peers, groups and pipes are named by their unique
// values in normal form ("uuid-...04"); an empty group is the net peer group.
//
// # Files
//
//   - api.go: configuration, events, outputs, notices
//   - discovery.go: advertisements: publish, ask, answer
//   - hear.go: messages that come in
//   - peer.go: Peer, Step and the lease
//   - pipe.go: pipes: listen, resolve, send
//   - say.go: messages that go out
//   - template.go: documents of which only marked places change
package edgepeer
