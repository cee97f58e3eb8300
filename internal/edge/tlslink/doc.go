// Package tlslink is a bearer over TLS: the datagrams that internal/edge/radio sends over UDP go over one connection with each peer, for
// sites whose firewall lets nothing else out (docs/decisions/tls.md). It does not look into them. In the stream each datagram has its
// length before it, in two octets, the high one first; the end that accepts a connection says so with the length 0.
//
// Both ends show a certificate that is made of their node's key, or of the network's where all share one, and each takes only those that
// belong to the network. Sizes are octets of datagrams. Nothing here blocks the loop: a datagram without room is dropped and counted, as
// on any link.
//
// Read tlslink.go (the connections and their bounds), conn.go (one of them), dial.go (calls, also through a proxy), then identity.go
// (keys and certificates).
package tlslink
