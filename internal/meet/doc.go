// Package meet is where the faces of a gateway meet by the operator's rules: a unit of which JXTA peers tell in an element of a
// pipe's messages is shown to TAK devices, and the other way round; a pipe and a room of TAK's chats are one room.
//
// All is told in the words of this package, Track and Line (words.go). A face has a side here, which turns what its clients say into
// these words and back: jxtaSide, takSide. A third face is a third side, and keys of Rule that say where its things are.
//
// Neither face knows. To JXTA's the Meeting is a far site that has the rules' pipes open: Hear takes out what the face would carry
// there. To TAK's it is a client (tak.Met).
//
// Nothing goes round, and nothing is there twice (docs/decisions/faces-meet.md):
//
//   - What JXTA peers of this LAN say becomes an event of TAK here, where they have their lease, and crosses as such.
//   - What TAK devices of this LAN and of far sites say becomes a message for the JXTA peers of this LAN. It does not cross.
//   - What a rule has made carries a mark, and no rule takes it again.
//   - Of one unit the newest report counts, whoever tells it.
//
// Lines of a chat outlive a restart until JXTA's face has handed them over. Callers pass now, which never goes back. All is for
// one goroutine.
//
// # Files
//
//   - words.go: the words
//   - rule.go: what the operator says
//   - element.go: values in an element, and back
//   - meeting.go: Meeting, units and lines
//   - jxta.go: JXTA's side
//   - tak.go: TAK's side
//   - memory.go: what outlives a restart
//   - trouble.go: what was refused, and numbers
//   - explain.go: what check says of an example
package meet
