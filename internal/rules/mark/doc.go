// Package mark applies the operator's rules to an application's message: its precedence, when it expires, and which earlier
// message it replaces (design 5). The queue of waiting messages is in internal/gateway/mail, that of silent receivers in
// internal/pmul.
//
// The package is pure. Sizes are octets of all elements' data. Lifetimes are time.Duration; the caller knows when a
// message arrived.
package mark
