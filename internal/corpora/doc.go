// Package corpora is the face by which gateways of a net give each other what they have taught themselves: corpora, as
// gateway corpus build makes them (docs/decisions/corpus.md). Its local client is the operator.
//
// An operator has a corpus sent to sites: it crosses as any message in custody, deferred, so that all else goes first. The far
// face checks it and keeps it beside its own. Nothing comes of it until the operator there accepts it, or his configuration
// names the sender; then it is what the gateway codes by from its next start on.
//
// Bounds: a corpus has at most compact.MaxCorpusFile octets. One is kept of each site, and MostKept in all, the newest.
//
// Files: face.go the face; choice.go which corpus a start uses; words.go what it is told and tells.
package corpora
