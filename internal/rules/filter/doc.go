// Package filter decides by the operator's rules what may cross the link; the first rule that matches decides. It
// enforces the rates of the rules, and counts what each rule matched. Without any rule, package internal/jxtabridge
// keeps at home what nobody asks for.
//
// The package is pure: callers pass the time. Sizes are octets: of an advertisement those of its XML, of a message
// those of the data of its elements. Read rule.go, then filter.go; faults.go reports mistakes in rules.
package filter
