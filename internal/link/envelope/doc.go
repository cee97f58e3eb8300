// Package envelope says what one message under custody contains: an application's message elements, or state of the
// sender's site. It alone imports Protocol Buffers; other rooms see Message.
//
// # Rules for changing envelope.proto
//
// The number and type of a field never change, and a number is never used again. New fields are optional, and an old
// gateway that skips them must still behave correctly; otherwise the version of the frame changes. Fields that every
// track message carries keep numbers below 16. `go generate ./internal/link/envelope` makes the generated code, which is
// kept in the tree.
//
// A message of a known flow crosses in a form of its own without Protocol Buffers (brief.go), five octets shorter.
//
// Ids are in the compact form of package compact; documents carry their codec in front. Sizes are octets.
//
// # Bounds
//
// All that one message expands to, elements, documents and a deflated envelope, is bounded together, by its octets on the
// link (MostExpanded). So are the octets that the slow model expands. What repeats is counted before it is parsed
// (limit.go).
//
// # Files
//
//   - accepted.go: when a message was accepted, in the journal alone
//   - brief.go: the short form of messages of a known flow
//   - envelope.pb.go: generated from envelope.proto
//   - history.go: messages that later ones are coded after
//   - known.go: flows that each net has, by number
//   - limit.go: bounds of what is read
//   - lost.go: messages that could not be handed over
//   - message.go: Message, Append and Parse
//   - prepare.go: coding in slices
//   - renew.go: items that live longer
package envelope

//go:generate protoc --go_out=../../.. --go_opt=module=aldis -I ../../.. internal/link/envelope/envelope.proto
