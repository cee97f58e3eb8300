// Package relay is the carrier of messages between this gateway and one that it reaches through others. It seals each message from end
// to end (a capsule), gives it a number, and hands it as a message to the custody on the way to the next hop: docs/decisions/relay.md.
//
// The gateway calls Arrived with each capsule for this node, and Ended with the fate of each on its way to the first hop. The carrier asks
// the gateway through Ways. The package is pure; the time is an argument and never goes back. Sizes are octets.
//
// # Files
//
//   - capsule.go: a capsule's octets
//   - relay.go: the carrier, and messages on their way
//   - sets.go: the recipients of a message as one, with numbers and a key of their own
//   - receive.go: capsules for this node, and receipts
//   - members.go: nodes that come, leave, or know nothing any more
//   - link.go: whether a node answers behind relays
//   - journal.go: records of the journal
package relay
