// Package reliable is one end of a reliable connection that a gateway keeps in a far peer's place: numbered blocks which
// the near peer and the gateway acknowledge and repeat between themselves, while each block crosses the link once.
// BiDi pipes, sockets and secure pipes of JXTA use it; their formats and how they open and close are the caller's.
//
// Up is the direction from the near peer to the link, Down the direction from the link to the near peer.
//
//	near peer -> Up.Look, Up.Take -> link -> Up.Stored
//	link -> Down.Put -> Down.Pump -> near peer -> Down.Ack
//	                    Down.Repeat when Down.Due has come
//
// Callers pass now; nothing here reads a clock. Numbers of blocks begin with 1, sizes are octets.
//
// Files: up.go and down.go, one direction each.
package reliable
