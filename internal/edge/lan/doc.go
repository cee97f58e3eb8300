// Package lan is the edge towards JXTA peers: TCP listeners, the welcome line and package framing (wire 2.1, 2.2), the
// HTTP polling transport of 2004 (wire 3.1; ghosts 8), UDP multicast (wire 2.7), deadlines and limits. It turns octets
// into events for internal/jxtabridge, and that package's orders into octets. It makes no protocol decision.
//
// Each connection has one goroutine that reads and one that writes. Events go to a callback, which may block. While it
// blocks, lan reads nothing more from that peer: this is the back-pressure. Sizes are octets.
//
// # Files
//
// Read lan.go, then conn.go for TCP, or http.go and session.go for HTTP.
//
//   - lan.go: listeners, events and orders
//   - conn.go: one TCP connection: welcome, read, write
//   - dial.go: outgoing connections to peers
//   - outbox.go: messages that wait to be written to a connection
//   - taken.go: which octets of a TCP connection the peer has acknowledged
//   - body.go: message bodies
//   - room.go: memory for bodies that are being read, by address
//   - account.go: the loop's time that each address has used
//   - head.go: HTTP heads, checked before net/http sees them
//   - http.go: the HTTP listener and its requests
//   - session.go: HTTP sessions: polls and their deadlines
//   - multicast.go: multicast datagrams
//   - metrics.go: counters
package lan
