// Package taklan is the edge towards TAK devices: their streams over TCP and TLS, and the multicast groups of their
// mesh. It cuts what arrives into events for package internal/adapters/tak, and writes what that package orders, in the
// protocol version that each device reads.
//
// Limits: connections altogether and of one address; octets and seconds of an unfinished event; octets that wait for a
// device that does not read; events a second of one address; and, for connections of one message each, their number
// and duration. A device that exceeds a limit is disconnected or read later, and counted.
//
// Any goroutine may call the methods; none waits for a device. Sizes are octets.
//
// Files: taklan.go the package's entry point and its listeners; conn.go one stream; taken.go which events a device's
// machine has; dial.go the stream to the LAN's own TAK server; mesh.go the groups of the mesh; unicast.go single devices
// of the mesh; metrics.go counters.
package taklan
