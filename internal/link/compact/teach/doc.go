// Package teach makes a net's own corpus of samples: it sorts them by kind, takes so many of each, measures on others of them what is
// gained, and says where there are secrets and personal names.
//
// The same samples in any order make the same file. A file has at most compact.MaxCorpus octets of messages, of one kind at most
// MostOfKind. Building takes about 5 us for each octet of the corpus and of the samples that are held back, which are at most
// MostHeld messages; where a kind gains nothing it is left out, and the rest is built once more.
//
// Files: build.go Build and its report; kind.go kinds; private.go secrets and names.
package teach
