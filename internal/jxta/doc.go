// Package jxta encodes and decodes the formats of JXTA peers on a LAN: ids, endpoint addresses, the welcome line, package
// framing, binary messages of wire versions 0 and 1 with the CBJX trailer of JXSE 2.7, and the XML documents inside
// them. Package internal/jxtabridge holds the conversation, internal/edge/lan the sockets.
//
// It follows docs/reference/jxta-wire.md, corrected by docs/reference/jxta-baseline.md and
// docs/reference/jxta-ghosts.md. Each format has an Append and a Parse function. Parse returns a value or an error and
// never panics. Arguments, or constants next to it, limit its memory and time. The package is pure.
//
// # Units
//
// Sizes are octets. Lifetimes in documents are milliseconds on the wire and time.Duration in Go. Ids in structs are
// unique values in normal form ("uuid-...03"): the text after "urn:jxta:" (see Normalize).
//
// # Files
//
// Read api.go, then message.go and frame.go for the outside of a message, then adv.go and resolver.go for the
// documents.
//
//   - api.go: messages, elements and the welcome line as values
//   - errors.go: ParseError
//   - id.go: ids in normal form and as URN
//   - address.go: endpoint addresses
//   - welcome.go: the welcome line
//   - frame.go: package headers
//   - datagram.go: multicast datagrams
//   - message.go: binary messages, versions 0 and 1
//   - trailer.go: the CBJX trailer of JXSE 2.7
//   - router.go: endpoint router messages and route queries
//   - adv.go: advertisements, routes and access points
//   - resolver.go: resolver, discovery, SRDI and rendezvous documents
//   - xml.go: XML documents as a tree of Nodes
//   - xmlfast.go: a faster parser for the documents that peers usually write
//   - write.go: all documents, written without a tree
package jxta
