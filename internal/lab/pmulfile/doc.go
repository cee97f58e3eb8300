// Package pmulfile transfers files by plain P_Mul (ACP 142) over UDP multicast, to and from other equipment and in
// tests. Package internal/pmul makes all protocol decisions. This package has the sockets, the files, the clock, and
// one loop for each end; it is not pure.
//
// # On the wire
//
// The ports are those of other implementations (p-mul 3): 2751 Request, Reject and Release, 2752 Announce, 2753
// Address, Data and Discard_Message, 2754 Ack. A Discard_Message on 2754 is accepted too. The group of all nodes is
// 239.1.1.1. An Ack goes to the address from which the PDUs of its Source_ID last arrived. Nothing is authenticated:
// use it only on a trusted network.
//
// # What survives a crash
//
// A receiver acknowledges a file once the file is on disk and the journal records that. A kill -9 at any point neither
// loses nor duplicates a file. A sender records the Message_IDs that it may have used, so that none is ever reused.
// The message itself ends with the process; the file remains where it was.
//
// Read end.go first (the part that both ends share), then send.go, receive.go and sockets.go.
package pmulfile
