// Package envelope encodes the content of one message in custody: message elements of an application, or state of the
// sender's site. Only this package imports Protocol Buffers; others see Message. It is pure.
//
// # Rules for changing envelope.proto
//
// The number and type of a field never change, and a number is never reused. New fields are optional, and an old
// gateway that skips them must still behave correctly; otherwise the version of the frame changes. Fields that every
// track message carries keep numbers below 16. `go generate ./internal/link/envelope` makes the generated code, which
// is kept in the repository.
//
// A message of a known flow has a form of its own without Protocol Buffers (brief.go), which is five octets shorter.
//
// Ids are in the compact form of package compact. Documents have their codec in front. Sizes are octets.
//
// # Bounds
//
// MostExpanded bounds, by a message's octets on the link, all that it expands to: elements, documents and a deflated
// envelope together. The octets that the slow model expands are bounded in the same way. Repeated fields are counted
// before they are parsed (limit.go).
//
// # Files
//
//   - message.go: Message, Append and Parse; start here
//   - envelope.pb.go: generated from envelope.proto
//   - limit.go: limits on what is read
//   - peers.go: JXTA peers whose items need only a name
//   - short.go: the short form of items
//   - query.go: questions for peers and their answers, outside of messages
//   - brief.go: the short form of messages of a known flow
//   - open.go: open messages of groups, with their names or a hash of these
//   - known.go: flows that every network knows by number
//   - history.go: messages that later ones are coded after
//   - prepare.go: coding in slices
//   - renew.go: items whose lifetime is extended
//   - lost.go: messages that could not be handed over
//   - moved.go: messages that were sent on another bearer before
//   - accepted.go: when a message was accepted; only in the journal
package envelope

//go:generate protoc --go_out=../../.. --go_opt=module=aldis -I ../../.. internal/link/envelope/envelope.proto
