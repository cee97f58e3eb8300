// Package compact makes documents and messages small for the link, so that little more crosses than the far side cannot
// know already.
//
// # Codecs
//
// Every text, document or message element gets the codec that makes it smallest. One octet outside of the code names the
// codec (Codec). A code is never longer than the text.
//
//   - An XML document becomes tokens (tokens.go). Elements and attributes of the JXTA advertisements are numbers, ids and
//     base64 are octets, ids that occurred before in the document are counted, and indentation is relative to the depth.
//     Unknown elements are spelled once. Quotes, line ends and the like are said once for the document. Markup that cannot
//     be taken apart (comments, CDATA, declarations) stands as it is among the tokens, and a document that is escaped
//     within the document becomes tokens too. What tokens could not restore octet for octet is not made tokens.
//   - A model (model.go, scan.go) codes tokens and other texts. It predicts each bit from what came before: by the last
//     one to six octets, by word, by element, by what stood at the same place in earlier messages or in the same record
//     wherever that was (records.go), by the number that continues those, by the longest match, and by a checksum of the
//     text itself (sums.go). An arithmetic coder (arith.go) writes what the predictions leave open. Defaults and fixed
//     texts cost next to nothing: the model has learned them from a corpus (corpus.go) that our own generators make, of
//     JXTA's documents (generate.go) and of what else crosses such links (field.go). It keeps part of that corpus as it is
//     (lore.go), so that what matches nothing in the history may match there.
//   - Deflate with a dictionary codes texts that are too long for the model, and is used where the far model has another
//     version.
//
// The primed model (model.bin) is part of the protocol: its version is in the codec's octet, and tests pin its hash. It
// computes with integers alone, so that every CPU gives the same codes; testdata/vectors.txt has some.
//
// # Learning
//
// A History holds messages that both ends of a flow are known to have. A new message is coded after the last of these, so
// a track costs what changed in it. No octets are spent on teaching. A code carries a hash of the messages that it was
// made after and of the text itself. A History that differs therefore gives ErrHistory, never another text (history.go).
//
// # Bounds
//
// Sizes are octets. The caller's limit bounds expanding, as do MaxModelled for codes of the model and a growth of about
// thousandfold. Expanding takes a few microseconds for each resulting octet. The primed model is 5 MB of the
// binary and takes 1 MB of memory for all. A Coder takes 1 to 10 MB with its model, by the longest text that it has coded,
// twice that with Prepare, and 1 MB for codes of the last texts. A History takes at most 1 MB. Nothing else here keeps state between
// calls.
//
// The layouts of the documents: (wire 9). The sizes aimed at, and how they compare: (libraries 4) and docs/sizes.md.
//
// # Files
//
//   - arith.go: the arithmetic coder
//   - canonical.go: documents in the layout that JXTA peers treat as equal
//   - code.go: Codec, Coder: the smallest code of a text
//   - corpus.go: the corpus from which the model is primed
//   - counters.go: counters packed in the image, and those of a model
//   - detokens.go: tokens back to XML
//   - field.go: what others than JXTA peers send, for the corpus
//   - field_lines.go: the same, in lines, JSON and on maps
//   - field_text.go: the same, what people write
//   - file.go: codes in files, with a check
//   - generate.go: documents and messages made for the corpus and for tests
//   - history.go: earlier messages of a flow
//   - id.go: IDs in compact form
//   - logistic.go: probabilities in the logistic domain
//   - lore.go: the corpus as it is, for matches
//   - model.go: the model: counters, contexts, mixing
//   - policy.go: which codec an operator's rules try
//   - primed.go: the primed model and its hash
//   - records.go: values of records, predicted from those before
//   - scan.go: the place in the text: words, elements, columns
//   - slices.go: texts coded beforehand, in slices
//   - reading.go: texts expanded in slices
//   - sums.go: checksums of the text inside the text
//   - text.go: IDs in texts that are no XML
//   - tokens.go: XML to tokens
package compact
