// Package relay is the carrier of messages between this gateway and one that it reaches through others. It seals each message from end
// to end (a capsule), gives it a number, and hands it as a message to the custody on the way to the next hop: docs/decisions/relay.md.
//
// The gateway calls Arrived with each capsule for this node, and Ended with the fate of each on its way to the first hop. The carrier asks
// the gateway through Ways. The package is pure; the time is an argument and never goes back. Sizes are octets.
package relay
