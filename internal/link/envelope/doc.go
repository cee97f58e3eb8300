// Package envelope says what one message under custody contains: an application's message elements, or state of the
// sender's site. It alone imports Protocol Buffers; other rooms see Message.
//
// # Rules for changing envelope.proto
//
// A field's number and type never change and a number is never used again. New fields are optional and an old
// gateway that skips them still does something right; otherwise the frame's version changes. Fields that every
// track message carries keep numbers below 16. Generated code is made by `go generate ./internal/link/envelope` and kept in the tree.
//
// A message of a known flow crosses in a form of its own without Protocol Buffers (brief.go): five octets fewer.
//
// Ids are the compact form of package compact; documents carry their codec in front. Sizes are octets. Parse is
// bounded by MaxElements, MaxItems and MaxDoc.
package envelope

//go:generate protoc --go_out=../../.. --go_opt=module=aldis -I ../../.. internal/link/envelope/envelope.proto
