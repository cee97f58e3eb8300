// Package unicast is the carrier of the datagrams between this gateway and each of its peers: HELLOs, probes, receipts, the
// direct lane (what fits one datagram) and the bulk lane (NORM). Every bearer has one; where another carrier takes the
// messages, it still keeps the conversation with each peer and finishes what it had under way.
//
// A datagram goes out when the one before it has left the antenna at the profile's rate, so the modem's queue stays empty
// and what is urgent waits for one datagram at the most. Inside a datagram small frames come first.
//
// # Files
//
//   - unicast.go: the carrier, which peer's turn it is, what is due
//   - letter.go: what goes into the next datagram
//   - lane.go: lanes and numbers of messages
//   - window.go: how much may be under way
//   - gauge.go: what the link shows of itself
//   - ahead.go: messages that are read before their turn
//   - sizing.go: which lane a message takes
//   - news.go: what the site's state may take of the air
//   - receive.go: what came in
//   - overtaken.go: short numbers of datagrams that come late
//   - greeting.go: HELLOs to all who share a channel
//   - path.go: which address of a peer is probed
//   - pieces.go: long messages in pieces
//   - norm.go: long messages over libnorm
//   - putback.go: numbers that went back
//   - api.go: orders to libnorm
//   - journal.go: records in the journal
package unicast
