// Package replay plays a trace again: what the applications of a capture did, through whole gateways, and what that
// costs on which link. Run plays it in virtual time (internal/lab/sim); a Script and a Record serve a live run as well
// (internal/lab/field).
//
// A Script says which peer does what when, a Record takes down what then happened, and a Result holds the figures of
// both beside those that the trace has of itself, by the names of `gateway analyse` (docs/traces.md).
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
//   - text.go: a result as text
//   - window.go: a part of a trace
package replay
