// Package teach makes a network's own corpus from samples: it sorts them by kind, chooses some of each, measures the
// gain on samples that it has held back, and reports secrets and personal names that it finds.
//
// The same samples in any order give the same file. A file holds at most compact.MaxCorpus octets of messages. Each kind gets FirstRoom
// of these, and twice that as long as it gains a fiftieth from it and the file has space. Only the beginning of a sample longer than
// compact.MaxCorpusMessage counts. Building takes about 5 us for each octet of the corpus and of the samples held back (at most MostHeld
// messages), and again whenever a kind gets more space or is left out.
//
// Files: build.go Build and its report, start here; private.go secrets and names.
package teach
