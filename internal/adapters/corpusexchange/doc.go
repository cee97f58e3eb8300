// Package corpusexchange is the protocol adapter by which the gateways of a network exchange corpora: texts from which they
// learn to compress their own formats, as `gateway corpus build` makes them (docs/decisions/corpus.md). Its local
// client is the operator.
//
// An operator orders a corpus sent to some sites. It crosses as a message in custody with the lowest precedence. The
// adapter of the far site checks the corpus and stores it beside its own. The far gateway uses it from its next start
// on, after its operator has accepted it or if its configuration names the sender.
//
// The package is pure. A corpus has at most compact.MaxCorpusFile octets. The adapter keeps one corpus of each site,
// and at most MostKept altogether, the newest.
//
// Files: adapter.go the adapter, start here; words.go its events and orders; choice.go which corpus a start uses.
package corpusexchange
