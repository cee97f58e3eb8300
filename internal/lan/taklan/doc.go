// Package taklan is the LAN room of the face internal/tak: the streams of TAK devices over TCP,
// and the multicast groups of their mesh. It cuts what they say
// into events and hands those to the loop; what the face orders it writes, in the version that each device reads.
//
// Bounds: connections in all and of one address, octets and seconds of an event that has begun, octets that wait for a device
// that does not read, and events a second of one address; connections of one message each, and how long they last.
// A device that breaks one is cut off or read later, and counted.
//
// Methods are for any goroutine and never wait on a device. Sizes are octets.
//
// Files: taklan.go the room and its listeners; conn.go one stream; dial.go the stream to the LAN's own
// server; mesh.go the groups of the mesh; unicast.go its devices one by one; metrics.go counts.
package taklan
