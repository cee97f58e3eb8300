// Package lan is the edge towards JXTA peers: TCP listeners, the welcome line and package framing (wire 2.1, 2.2), the
// classic HTTP polling transport (wire 3.1; ghosts 8), UDP multicast (wire 2.7), deadlines and bounds. It turns octets
// into events for internal/jxtabridge, and orders of internal/jxtabridge into octets. It decides nothing that is said.
//
// Each connection has one goroutine that reads and one that writes. Events go to a callback that may block. While it
// blocks, lan reads nothing more from that peer; this is the back-pressure. Sizes are octets.
//
// # Files
//
//   - account.go: the loop's time, by address
//   - body.go: message bodies
//   - conn.go: one TCP connection: welcome, read, write
//   - dial.go: calls to peers
//   - head.go: HTTP heads, before net/http sees them
//   - http.go: the HTTP listener and its requests
//   - lan.go: LAN: listeners, events and outputs
//   - metrics.go: counters
//   - multicast.go: multicast datagrams
//   - outbox.go: what waits to be written to a connection
//   - room.go: memory for bodies under way, by address
//   - session.go: HTTP sessions: polls and their deadlines
//   - taken.go: what of a TCP connection the peer has acknowledged
package lan
