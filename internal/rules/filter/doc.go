// Package filter decides by the operator's rules what may cross the link; the first rule that matches decides. It enforces the
// rates of the rules, and counts what each rule matched. Without any rule, package internal/jxtabridge keeps items at home
// that nobody asks for.
//
// The package is pure: callers pass the time. Sizes are octets: of an advertisement's XML, or of the data of a message's
// elements. Read rule.go, then filter.go; faults.go reports mistakes in rules.
package filter
