// Package interop connects the protocol adapters of one gateway by the operator's rules. A track that JXTA peers report
// in an element of a pipe's messages appears as a unit on the maps of TAK devices, and the other way round; a pipe and
// a TAK chat room become one room. A room of XMPP is the same as a chat room, and a node of XMPP has the units as items.
//
// Track and Line (words.go) are the neutral forms. Each adapter has a side here that converts the reports and lines of its clients to
// these forms and back: jxtaSide, takSide, and xmpp.go, which needs no state. Keys in Rule name the objects of each adapter.
//
// The adapters do not know about these rules. For the JXTA adapter the Meeting is a far site that has the rules' pipes open;
// Hear takes out the messages that the adapter would send to it. For the TAK adapter the Meeting is a client (tak.Met).
//
// Nothing loops, and nothing appears twice (docs/decisions/adapters-meet.md):
//
//   - A message of a JXTA peer of this LAN becomes a TAK event here, at the site that holds the peer's lease, and crosses as
//     such.
//   - An event of a TAK device, of this LAN or of a far site, becomes a message for the JXTA peers of this LAN. It does not
//     cross.
//   - A message or event that a rule has made carries a mark, and no rule processes it again.
//   - The newest report of a unit wins, whoever sent it.
//
// Chat lines survive a restart until the JXTA adapter has handed them over. The package is pure: callers pass the
// time, which never goes back. It belongs to one goroutine.
//
// # Files
//
// Read words.go, rule.go and meeting.go, then one side.
//
//   - words.go: the neutral forms Track and Line
//   - rule.go: the operator's rules
//   - meeting.go: Meeting, units and chat lines
//   - element.go: values in a message element, and back
//   - jxta.go: the side of JXTA
//   - tak.go: the side of TAK
//   - xmpp.go: the side of XMPP: rooms and nodes
//   - memory.go: chat lines that survive a restart
//   - trouble.go: refusals, and counters
//   - explain.go: what `gateway check` says about an example
package interop
