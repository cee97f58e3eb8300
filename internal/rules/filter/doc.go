// Package filter decides by the operator's rules what may cross the link; the first rule that fits decides. It enforces
// the rates of the rules and counts what each rule took. Without any rule, internal/jxtabridge keeps at home what nobody
// asks for.
//
// # Time and units
//
// Callers pass now. Sizes are octets: of an advertisement its XML, of a message the data of its elements.
package filter
