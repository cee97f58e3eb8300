// Package cot reads and writes Cursor-on-Target events: XML (version 0 of the TAK protocol) and Protocol Buffers (version
// 1), and splits streams of either. An Event keeps every attribute and element, also those that nothing here knows.
//
// Two events are the same when their elements, attributes and texts are: the order of attributes, white space between
// elements, comments and the way in which a number or a time is written say nothing.
//
// What is read is bounded: MaxEvent octets, MaxDepth levels, MaxNodes elements and texts. Document types and entities of
// their own are refused. A Fault says why something was not read, in a word for counters and a sentence for people.
//
// Files: event.go Event and its parts; number.go decimal numbers as text; xml.go version 0; proto.go version 1; wire.go the
// fields of Protocol Buffers; split.go streams and datagrams; fault.go errors.
package cot
