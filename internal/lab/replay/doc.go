// Package replay plays a trace again: peers do what the applications of a capture did, through whole gateways, and the
// package measures what that costs on a link. Run plays in virtual time (internal/lab/sim). A Script and a Record serve
// a live run as well (internal/lab/field).
//
// A Script says which peer does what when. A Record notes what then happened. A Result holds the figures of both beside
// those of the trace, under the names of `gateway analyse` (docs/traces.md).
//
// RunTAK plays the events of TAK devices the same way: all devices are on the ship's LAN, where the events were captured, and one
// more ashore watches. Times of events are moved to the world's. It says what the events cost, how long they take, and how far
// units are shown from where they are.
//
// # Time and units
//
// Times in a Result are seconds from the first event of the trace, sizes octets; octets on the link are IP octets.
// Nothing here reads a clock: the same trace and Options give the same Result.
//
// # Files
//
//   - cast.go: moves edge peers by a Script
//   - lan.go: the LANs of both sites in virtual time
//   - meter.go: figures of gateways and emulator
//   - record.go: what the peers did and when messages arrived
//   - result.go: the figures beside those of the trace
//   - run.go: Run: a whole play in virtual time
//   - script.go: the trace as actions of peers
//   - sizes.go: sizes of datagrams, for carriers that bill each message
//   - tak.go: RunTAK: a whole play of TAK devices in virtual time
//   - takevents.go: their events of a trace
//   - takwatch.go: what a far device sees
//   - text.go: a result as text
//   - window.go: a part of a trace
package replay
