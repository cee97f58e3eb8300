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
//     texts cost next to nothing: the model has learned them from a corpus that our own generators (internal/lab/primer) make, of
//     JXTA's documents and of what else crosses such links. In a message that is no text
//     (frame of scan.go) it looks at where in its record an octet stands instead of at words and elements. It keeps part of that corpus as it is
//     (lore.go), so that what matches nothing in the history may match there.
//   - A text beyond MaxModelled goes block by block (cut.go, blocks.go): tokenizer and model go on from one block to the next,
//     and keep what a block needs, however long the text is.
//   - Deflate with a dictionary is used where the far model has another version.
//
// The primed model (model.bin) is part of the protocol: its version is in the codec's octet, and tests pin its hash. It
// computes with integers alone, so that every CPU gives the same codes; testdata/vectors.txt has some. Where the processor
// has AVX2 it computes for eight contexts at once (simd_amd64.s), elsewhere for one after the other (plain.go): a test holds
// one against the other, bit for bit.
//
// # Learning
//
// A History holds messages that both ends of a flow are known to have. A new message is coded after the last of these, so
// a track costs what changed in it. A long message is coded after what the long one before it begins with (long.go). No
// octets are spent on teaching. A code carries a hash of the messages that it was
// made after and of the text itself. A History that differs therefore gives ErrHistory, never another text (history.go).
//
// # Bounds
//
// Sizes are octets. The caller's limit bounds expanding, as does a growth of about thousandfold for the first 256 KiB that a
// code of the model stands for, and of sixty-fourfold beyond. The model keeps at most 1.5 MiB of a text's history. Expanding
// takes a few microseconds for each resulting octet. The primed model is 9 MB of the binary and takes 1 MB of memory for all.
// A Coder takes 2 to 19 MB with its model, by the longest text that it has coded, twice that with Prepare, and 5 MB for codes
// of the last texts. A History takes at most 1.3 MB. Nothing else here keeps state between calls.
//
// The layouts of the documents: (wire 9). The sizes aimed at, and how they compare: (libraries 4) and docs/sizes.md.
//
// # Files
//
//   - arith.go: the arithmetic coder
//   - blocks.go: long texts, block by block
//   - canonical.go: documents in the layout that JXTA peers treat as equal
//   - code.go: Codec, Coder: the smallest code of a text
//   - codings.go: the codecs by number, and how each is expanded
//   - columns.go: values of texts that are no XML, and their names
//   - counters.go: counters packed in the image, and those of a model
//   - cut.go: a text cut in blocks, and joined again
//   - detokens.go: tokens back to XML
//   - file.go: codes in files, with a check
//   - foretell.go: the number that goes on from those before
//   - history.go: earlier messages of a flow
//   - id.go: IDs in compact form
//   - kin.go: the first message of a flow, after those of another one
//   - logistic.go: probabilities in the logistic domain
//   - long.go: long messages after those before
//   - lore.go: the corpus as it is, for matches
//   - match.go: what a match and values before say of the octet
//   - model.go: the model: counters, contexts, mixing
//   - netcorpus.go: what a net teaches its gateways
//   - plain.go: counters and weights, one by one
//   - policy.go: which codec an operator's rules try
//   - priming.go: a model primed with a corpus
//   - primed.go: the primed model and its hash
//   - records.go: values of records, predicted from those before
//   - scan.go: the place in the text: words, elements, columns
//   - simd_amd64.go, simd_amd64.s: the same, eight at once
//   - simd_other.go: processors that have no such
//   - slices.go: texts coded beforehand, in slices
//   - reading.go: texts expanded in slices
//   - sums.go: checksums of the text inside the text
//   - text.go: IDs in texts that are no XML
//   - tokens.go: XML to tokens
//   - tokenvalues.go: ids and base64 in tokens
package compact
