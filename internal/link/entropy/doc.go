// Package entropy carries the open messages of groups: all members of a group should get them, and any node that has one repairs it
// (docs/decisions/groups.md). Each message goes once over each channel. Afterwards nodes compare digests of what they hold, ask for what
// they lack, and give it, though its origin may be gone.
//
// A Port is a way to neighbours: a channel on which one transmission reaches all of them, or the link to one. The caller names the
// ports, takes what is to be sent with Next whenever the air of a port is free, and gives what has come to Receive. What came from a
// neighbour has been authenticated as the neighbour's. Config.Verify says whose message it is.
//
// Memory is bounded: MostGroups, back numbers of each origin, Config.Most octets of messages, mostQueue entries of a port. Time is that of
// a signature for each message that is new.
//
// The package is pure. Read entropy.go first, then:
//
//   - name.go: names of groups
//   - store.go: what is held, and which numbers have been received
//   - wire.go: how messages, digests and solicitations are written
//   - exchange.go: digests, solicitations and repair
//   - port.go: what waits for the air of a port
package entropy
