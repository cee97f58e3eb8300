// Package unicast is the carrier for datagrams between this gateway and one peer at a time: HELLOs, probes,
// acknowledgements, the direct queue (messages that fit one datagram) and the bulk queue (longer ones, in segments or
// over NORM). Every bearer has one. Where another carrier takes the messages, this one still holds the conversation
// with each peer, and finishes the messages that were under way.
//
// A datagram leaves when the one before has left the antenna at the profile's rate. So the modem's queue stays empty,
// and an urgent message waits for one datagram at most. Inside a datagram small frames come first.
//
// The package is pure and has no goroutine. Callers pass the time.
//
// # Files
//
// Read unicast.go, then datagram.go and receive.go: a datagram that leaves, and one that arrives.
//
//   - unicast.go: the carrier, which peer is served next, and what is due
//   - datagram.go: what goes into the next datagram
//   - receive.go: what arrived
//   - link.go: what the gateway and other carriers ask of the link to a peer
//   - queue.go: queues and message numbers
//   - window.go: how much may be unacknowledged
//   - large.go: how large a datagram is
//   - sizing.go: which queue a message takes
//   - segments.go: long messages in segments
//   - norm.go: long messages over libnorm
//   - ahead.go: messages that are decoded before their turn
//   - overtaken.go: short message numbers in datagrams that arrive late
//   - news.go: how much air the site's state may take
//   - greeting.go: HELLOs to all members of a shared channel
//   - introduce.go: what goes before a HELLO of a node that is new
//   - star.go: which peers a terminal of a star greets
//   - path.go: which address of a peer is probed
//   - gauge.go: what the traffic shows of the link
//   - handover.go: messages that change their bearer
//   - putback.go: message numbers that went back after data was restored
//   - journal.go: records in the journal
package unicast
