// Package gateway is the road: one Step joins the bridge, the replica, custody, envelope, frames and the seal into a
// node that talks to its sister gateways. It is pure: edges give it events and carry out its Output, in its order.
//
//	peer -> lan -> jxtabridge -> accept -> compose (custody, envelope, frame, seal) -> journal -> radio -> air
//	air -> radio -> open (seal) -> frame -> custody -> envelope -> jxtabridge -> journal -> lan -> peer
//
// One Step makes the way from lan or radio to journal. The loop (internal/daemon) commits and then sends.
//
// Files: gateway.go Step; accept.go what the bridge wants carried; compose.go what goes into the next datagram;
// receive.go what came in; bulk.go the NORM carrier; state.go replication; restore.go start from the journal;
// status.go what the operator is told.
//
// # Time and units
//
// Callers pass now, which never goes back. Sizes are octets; the ledger counts IP octets, 28 of IP and UDP included.
//
// # Order on the link
//
// A datagram goes out when the one before it has left the antenna at the profile's rate, so the modem's queue stays
// empty and what is urgent waits for one datagram at the most. Inside a datagram small frames come first.
package gateway
