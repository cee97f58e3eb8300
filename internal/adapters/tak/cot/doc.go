// Package cot reads and writes Cursor-on-Target events as XML (version 0 of the TAK protocol) and as Protocol Buffers
// (version 1), and splits streams of either. An Event keeps every attribute and element, also unknown ones. The
// package is pure.
//
// Two events are equal when their elements, attributes and texts are equal. The order of attributes, white space
// between elements, comments, and the notation of a number or a time do not matter.
//
// Input is limited: MaxEvent octets, MaxDepth levels, MaxNodes elements and texts. Document types and custom entities
// are refused. A Fault says why something was not read, as a word for counters and a sentence for people.
//
// Files: event.go Event and its parts, start here; number.go decimal numbers as text; xml.go version 0; proto.go
// version 1; wire.go the fields of Protocol Buffers; split.go streams and datagrams; fault.go errors.
package cot
