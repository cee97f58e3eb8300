// Package pmulfile transfers files by plain P_Mul, ACP 142, over UDP multicast, for use with other equipment and for
// tests. internal/pmul makes all decisions. This package has the sockets, the files, the clock, and one loop for each end.
//
// # On the wire
//
// The ports are those of other implementations (p-mul 3): 2751 Request, Reject and Release, 2752 Announce, 2753 Address,
// Data and Discard_Message, 2754 Ack. A Discard_Message on 2754 is accepted too. The group of all nodes is 239.1.1.1. An
// Ack goes to the address from which the PDUs of its Source_ID last came. Nothing is authenticated: use it where the
// network is trusted.
//
// # What survives
//
// A receiver acknowledges a file when the file is on disk and the journal records that; kill -9 at any point neither
// loses nor doubles a file. A sender keeps the Message_IDs that it may have used, so that none is ever used again. The
// message itself ends with the process, and the file is still where it was.
package pmulfile
