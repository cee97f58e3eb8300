// Package reliable is one end of a reliable JXTA connection, which a gateway keeps in the place of a far peer. The
// blocks of the connection are numbered. The near peer and the gateway acknowledge and repeat them between themselves;
// each block crosses the link once. BiDi pipes, sockets and secure pipes use it. Formats, opening and closing are the
// caller's.
//
// Up is the direction from the near peer to the link, Down the direction from the link to the near peer.
//
//	near peer -> Up.Look, Up.Take -> link -> Up.Stored
//	link -> Down.Put -> Down.Pump -> near peer -> Down.Ack
//	                    Down.Repeat when Down.Due has come
//
// The package is pure: callers pass the time. Block numbers begin with 1; sizes are octets.
//
// # Files
//
//   - up.go: from the near peer to the link
//   - down.go: from the link to the near peer
package reliable
