// Package pmulfile transfers files by plain P_Mul, ACP 142, over UDP multicast: for use with other equipment, and for
// tests. internal/pmul decides everything; here are the sockets, the files, the clock, and one loop for each end.
//
// # On the wire
//
// The ports are those that were met elsewhere (p-mul 3):
// 2751 Request, Reject and Release, 2752 Announce, 2753 Address, Data and
// Discard_Message, 2754 Ack; a Discard_Message on 2754 is taken too. The group of all nodes is 239.1.1.1. Acks go to
// where the PDUs of their Source_ID came from last. Nothing is authenticated: use it where the network is trusted.
//
// # What survives
//
// A receiver acknowledges a file when it is on disk and its journal says so; kill -9 at any point neither loses nor
// doubles one. A sender keeps the Message_IDs that it may have used, so that none is ever used again; the message
// itself ends with the process, and the file is still where it was.
package pmulfile
