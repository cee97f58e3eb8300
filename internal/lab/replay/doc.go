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
package replay
