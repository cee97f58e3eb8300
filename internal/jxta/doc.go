// Package jxta reads and writes what JXTA peers say on a LAN: IDs, endpoint addresses, the welcome line, package
// framing, binary messages of wire version 0 and 1 with the CBJX trailer of JXSE 2.7, and the XML documents inside.
// The conversation itself is in internal/jxtabridge, the sockets are in internal/lan.
//
// It follows docs/reference/jxta-wire.md, corrected by docs/reference/jxta-baseline.md and docs/reference/jxta-ghosts.md.
// Everything is an Append and Parse pair. Parse answers a value or an error, never panics, and
// bounds memory and time by limits that are arguments or constants beside it.
//
// # Units
//
// Sizes are octets. Lifetimes in documents are milliseconds on the wire and time.Duration in Go. IDs in structs are
// unique values in normal form ("uuid-...03"): what follows "urn:jxta:" (see Normalize).
//
// # Files
//
//   - address.go: endpoint addresses
//   - adv.go: advertisements, routes and access points
//   - api.go: messages, elements and the welcome as values
//   - datagram.go: multicast datagrams
//   - errors.go: ParseError
//   - frame.go: package headers
//   - id.go: IDs in normal form and as URN
//   - message.go: binary messages, versions 0 and 1
//   - resolver.go: resolver, discovery, SRDI and rendezvous documents
//   - router.go: endpoint router messages and route queries
//   - trailer.go: the CBJX trailer of JXSE 2.7
//   - welcome.go: the welcome line
//   - write.go: documents of every message, written without a tree
//   - xml.go: XML documents as a tree of Nodes
//   - xmlfast.go: a faster parser for the documents that peers write
package jxta
