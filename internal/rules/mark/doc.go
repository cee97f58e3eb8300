// Package mark applies the operator's rules to an application's message: how urgent it is, when it is not worth
// sending any more, and which earlier one it replaces (design 5). The queue of waiting messages is in
// internal/gateway, that of silent receivers in internal/pmul.
//
// Sizes are octets of all elements' data. Lifetimes are time.Duration; callers know when a message came.
package mark
