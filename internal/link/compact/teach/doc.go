// Package teach makes a net's own corpus of samples: it sorts them by kind, takes so many of each, measures on others of them what is
// gained, and says where there are secrets and personal names.
//
// The same samples in any order make the same file. A file has at most compact.MaxCorpus octets of messages. A kind has FirstRoom of
// them, and twice that as long as it gains a fiftieth by it and the file has room. Of a sample beyond compact.MaxCorpusMessage the
// beginning counts. Building takes about 5 us for each octet of the corpus and of the samples that are held back, which are at most
// MostHeld messages; it is done again where a kind gets more room, or gains nothing and is left out.
//
// Files: build.go Build and its report; kind.go kinds; private.go secrets and names.
package teach
