// Package mark says what the operator's rules make of an application's message: how urgent it is, when it is not worth
// sending any more, and which earlier one it replaces (design 5). The waiting queue itself is internal/gateway's,
// that of silent receivers internal/pmul's.
//
// Sizes are octets of all elements' data. Lifetimes are time.Duration; callers know when a message came.
package mark
