// Package entropy carries the open messages of groups: all members of a group should get them, and any node that has a
// message can repair it (docs/decisions/groups.md). Each message goes once over each channel. Afterwards nodes compare
// digests of the messages that they hold, request messages that they lack, and repair them for each other, even when the
// origin is gone.
//
// A Port is a way to neighbours: a channel on which one transmission reaches all of them, or the link to one. The caller
// names the ports, sends the frames of Next whenever the air of a port is free, and passes received frames to Receive. It
// has authenticated their sender, the neighbour. Config.Verify authenticates the origin of a message.
//
// Memory is bounded: MostGroups, back numbers of each origin, Config.Most octets of messages, mostQueue entries of a port,
// a parity of each origin. The time spent is mostly that of a signature for each new message.
//
// The package is pure.
//
// # Files
//
//   - entropy.go: groups, ports, and what is heard; read it first
//   - name.go: names of groups
//   - store.go: messages held, and numbers received
//   - wire.go: how messages, digests and solicitations are written
//   - exchange.go: digests, solicitations and repair
//   - port.go: frames that wait for the air of a port
//   - parity.go: sums of messages on shared channels, from which nodes restore those that they lack
package entropy
