// Package mail is custody: it holds every message of this site once, whoever it is for and whichever way it goes, until
// it has ended for each recipient. A Message has an ID of the journal's life that belongs to no carrier; an Entry is the
// message on its way to one recipient: it waits, or is under way as a number in a lane of a carrier (Attempt).
//
// The Store alone accepts, bounds, expires, replaces and ends messages, counts what became of them, and writes the journal.
// An Audience has what those who read the same numbers of ours know: numbers of flows, messages to code later ones after,
// the newest of a key. A Reader has the same of a peer's messages, Early what arrived before its turn. Carriers differ
// from each other in values (Policy, lanes), not in types here.
//
// # Calls and units
//
// Carrier is what the gateway asks of a carrier, Road what a carrier asks of the gateway. All of it happens inside one Step
// of the gateway: nothing here is for concurrent use, and now never goes back. Sizes are octets; those of the ledger are
// IP octets.
//
// # Files
//
//   - carrier.go: the seam, Carrier and Road
//   - peer.go: what all parts know of a sister gateway
//   - paths.go: addresses of a sister gateway
//   - box.go: what is held for one peer
//   - backlog.go: what is held for one peer, by precedence
//   - queue.go: what waits in a lane
//   - rota.go: which source has the turn
//   - turns.go: in which order messages will go, about
//   - pace.go: how fast messages go
//   - giving.go: what a full queue gives up
//   - store.go: acceptance, fates, journal
//   - ordered.go: what the operator orders of a message, and its life
//   - audience.go: flows and learning towards peers
//   - longlearning.go: long messages that later ones are coded after
//   - reader.go: flows and learning from a peer
//   - early.go: messages that came before their turn
//   - turn.go: what one turn of the loop codes and reads
//   - air.go: a transmitter and its idle time
//   - gauge.go: what the traffic shows of the link
//   - ledger.go: octets by cause
package mail
