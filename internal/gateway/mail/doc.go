// Package mail is custody: it holds every message of this site once, whoever receives it and whichever carrier moves
// it, until the message has ended for each recipient. A Message has an ID that is unique in the journal and belongs to
// no carrier. An Entry is the message on its way to one recipient. It waits, or is under way as a number in a queue of
// a carrier (TransmissionID).
//
// Only the Store accepts, limits, expires, replaces and ends messages, counts their outcomes and writes their records.
// A SharedHistory is the set of peers that share one outgoing number sequence, with what these peers know: numbers of
// flows, earlier messages that later ones are coded after, and the newest message of each key. A Reader holds the same
// for a peer's messages, and ReorderBuffer those that arrived before their turn. Here carriers differ in values (Policy,
// queues), not in types.
//
// # Calls and units
//
// Carrier has the gateway's calls to a carrier; Services has a carrier's calls to the gateway. Both are called inside
// one Step of the gateway. The package is pure, nothing in it is safe for concurrent use, and time never goes back.
// Sizes are octets; in the airtime ledger they are IP octets.
//
// # Files
//
// Read carrier.go, then store.go and peerqueue.go.
//
//   - carrier.go: the interfaces Carrier and Services
//   - store.go: accepting and ending messages, and their records
//   - peerqueue.go: messages held for one peer
//   - handover.go: a message changes its bearer
//   - backlog.go: messages that wait for one peer, by precedence
//   - queue.go: messages that wait in one queue of a carrier
//   - giving.go: which messages a full queue gives up
//   - turns.go: which source goes next, and the approximate order in which messages will go
//   - pace.go: how fast messages go
//   - peer.go: another gateway, as all parts know it
//   - paths.go: addresses of another gateway
//   - ordered.go: the operator's orders about a message, and its life
//   - sharedhistory.go: flows, and earlier messages as a coding history, towards peers
//   - longlearning.go: long messages as a coding history
//   - reader.go: flows and coding history of a peer's messages
//   - reorder.go: messages that arrived before their turn
//   - turn.go: how much one turn of the loop may code and decode
//   - air.go: a transmitter and its idle time
//   - gauge.go: rate, loss and delay of the link, as traffic shows them
//   - ledger.go: the airtime ledger: octets by cause
package mail
