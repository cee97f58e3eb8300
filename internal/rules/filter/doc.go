// Package filter decides what may cross the link: rules of the operator, the first that fits decides. It holds the
// rules' rates and counts what they took; what nobody asks for stays home without any rule (internal/jxtabridge).
//
// # Time and units
//
// Callers pass now. Sizes are octets: of an advertisement its XML, of a message the data of its elements.
package filter
