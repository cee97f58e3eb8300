// Package elide compresses the headers of libnorm's packets (NORM, RFC 5740) inside the sealed datagrams of a star
// link. It omits every header field that both ends know, and restores the same packet at the far end. It also holds
// what a gateway must know of NORM to keep needless packets off the air: a packet's type and object, the FLUSH that a
// gateway builds itself, and the marker that synchronises a receiver. Method and measurements:
// docs/reference/norm-behind-the-seal.md; packet layouts: (norm 1).
//
// A Session is one link between two members. NORM node ids are the gateways' ids, 1..65535. Every frame is complete by
// itself: a lost frame desynchronises nothing.
//
// # Frame
//
// The first octet is below 0x20, so that a datagram format can use its upper three bits:
//
//	bits 0-2  kind: 0 raw, 1 one-segment DATA, 2 DATA, 3 FLUSH of a one-segment object, 4 FLUSH, 5 NACK
//	bit 3     a GRTT octet follows the generation, because it differs from the profile's (DATA and FLUSH only)
//	bit 4     zero
//
//	raw         0, the NORM packet as it is
//	one segment 1, generation, object, payload
//	DATA        2, generation, object, object size, position, payload
//	FLUSH       3, generation, object        4, generation, object, position
//	NACK        5, generation, requests
//
// Object, object size, position and block are unsigned varints (LEB128). A position is block x 32 + symbol. The
// generation is the NORM instance id of the sender, in a NACK that of the sender asked. A request of a NACK is one
// octet (bits 0-1 form, 2-5 flags, 6-7 number of items less one; 3 means that a varint with the number follows) and
// its items: object, block, one octet of symbol. There are no lengths: a frame ends where its container says.
//
// ACK, INFO and all commands except FLUSH stay raw. Without acknowledging nodes, NORM_INFO and probing, libnorm sends
// none of them, except an occasional SQUELCH.
//
// # Units
//
// The package is pure. Sizes are octets; symbols and blocks count from 0. Read session.go first, then packet.go,
// library.go and restore.go.
package elide
