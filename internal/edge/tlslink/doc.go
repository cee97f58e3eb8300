// Package tlslink is a bearer over TLS. It sends the datagrams that internal/edge/radio sends over UDP over one connection with each
// peer, for sites whose firewall lets nothing else out (docs/decisions/tls.md). It does not look into them. In the stream each datagram
// follows its length in two octets, the high one first. The end that accepts a connection confirms that with the length 0.
//
// Both ends show a certificate made from their node's key, or from the network's key if all share one, and accept only certificates that
// belong to the network. Sizes are octets of datagrams. Nothing here blocks the loop: a datagram without room is dropped and counted, as
// on any link.
//
// Read tlslink.go (the connections and their bounds), conn.go (one of them), dial.go (calls, also through a proxy), then identity.go
// (keys and certificates).
package tlslink
