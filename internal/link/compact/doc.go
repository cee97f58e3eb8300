// Package compact shrinks what crosses the link: what the far side cannot know already, and little besides.
//
// # Codecs
//
// Every text, document or message element takes the codec that makes it smallest; one octet, outside of the code, says
// which (Codec). A code is never longer than the text.
//
//   - An XML document becomes tokens (tokens.go): elements and attributes of the JXTA advertisements are numbers, ids
//     and base64 are octets, ids seen before in the document are counted, indentation is relative to the depth. Unknown
//     elements are spelled once. What tokens cannot give back octet for octet is not made tokens.
//   - Tokens and other texts are coded by a model (model.go, scan.go) that predicts each bit from what came before: by
//     the last one to six octets, by word, by element, by what stood at the same place in the messages before or in the
//     same record wherever it was (records.go), by the number that goes on from those, by the longest match, and by a
//     checksum of the text itself (sums.go). An arithmetic coder (arith.go) writes what the
//     predictions leave open. What is always the same, defaults and fixed texts, costs next to nothing: the model has
//     learned it from a corpus (corpus.go) that our own generators make (generate.go).
//   - Deflate with a dictionary is for what is too long for the model, and where the model is of another version.
//
// The primed model (model.bin) is part of the protocol: its version is in the codec's octet, and tests pin its hash.
// The arithmetic is of integers alone, so that every CPU gives the same codes; testdata/vectors.txt has some.
//
// # Learning
//
// A History holds what both ends of a flow are known to have, and a message is coded after the last of these: a track
// costs what changed. No octets are spent on teaching. A code carries a hash of what it was made after and of the text
// itself, so that a history that differs gives ErrHistory, never another text (history.go).
//
// # Bounds
//
// Sizes are octets. Expanding is bounded by the caller's limit, by MaxModelled for what the model coded, and by about
// thousandfold growth; time by a few microseconds for each octet that comes out. A Coder takes 3 MB with its model, a
// History at most 1 MB. Nothing here keeps state between calls but what a Coder reuses and a History is told.
//
// The layouts of the documents: (wire 9). The sizes aimed at, and how they compare: (libraries 4) and docs/sizes.md.
//
// # Files
//
//   - arith.go: the arithmetic coder
//   - canonical.go: documents in the layout that JXTA peers treat as equal
//   - code.go: Codec, Coder: the smallest code of a text
//   - corpus.go: the corpus from which the model is primed
//   - detokens.go: tokens back to XML
//   - generate.go: documents and messages made for the corpus and for tests
//   - history.go: earlier messages of a flow
//   - id.go: IDs in compact form
//   - logistic.go: probabilities in the logistic domain
//   - model.go: the model: counters, contexts, mixing
//   - policy.go: which codec an operator's rules try
//   - primed.go: the primed model and its hash
//   - records.go: values of records, predicted from those before
//   - scan.go: the place in the text: words, elements, columns
//   - sums.go: checksums of the text inside the text
//   - text.go: IDs in texts that are no XML
//   - tokens.go: XML to tokens
package compact
