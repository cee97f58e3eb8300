// Package reliable is one end of a reliable JXTA connection, which a gateway keeps in the place of a far peer. The
// blocks of the connection are numbered. The near peer and the gateway acknowledge and repeat them between themselves;
// each block crosses the link once. BiDi pipes, sockets and secure pipes use it. Formats, opening and the reasons to end
// are up to the caller.
//
//	near peer -> Classify, Accept -> link -> Stored
//	link -> Put, Pump -> near peer -> Ack
//	                     Tick when Deadline has come
//
// The package is pure: callers pass the time, and do what an Output says. Block numbers begin with 1; sizes are octets.
//
// # Files
//
//   - conversation.go: the state of a conversation, and its questions and answers
//   - up.go: from the near peer to the link, and the window that the near peer sees
//   - down.go: from the link to the near peer
package reliable
