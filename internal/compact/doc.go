// Package compact shrinks what crosses the link: JXTA identifiers become octets, and what is left is deflated with a
// dictionary of the texts that JXTA documents are made of, when that is smaller than leaving it alone.
//
// Everything expands to the octets that went in. Sizes are octets; nothing here keeps state between calls.
// Decoding is bounded by a limit that the caller gives.
//
// The layouts of the documents behind the dictionary are in reference jxta-wire.md, section 9; the sizes to expect
// in library-choices.md, section 4.
package compact
