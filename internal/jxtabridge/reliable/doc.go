// Package reliable is one end of a reliable connection that a gateway keeps in a far peer's place. Its blocks are
// numbered. The near peer and the gateway acknowledge and repeat them between themselves, and each block crosses the
// link once. BiDi pipes, sockets and secure pipes of JXTA use it; formats, opening and closing are the caller's.
//
// Up is the direction from the near peer to the link, Down the direction from the link to the near peer.
//
//	near peer -> Up.Look, Up.Take -> link -> Up.Stored
//	link -> Down.Put -> Down.Pump -> near peer -> Down.Ack
//	                    Down.Repeat when Down.Due has come
//
// Callers pass now; nothing here reads a clock. Numbers of blocks begin with 1, sizes are octets.
//
// # Files
//
//   - up.go: from the near peer to the link
//   - down.go: from the link to the near peer
package reliable
