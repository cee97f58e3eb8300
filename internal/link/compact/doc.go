// Package compact compresses documents and messages for the link, so that little more crosses than the far side cannot
// know already. It is pure.
//
// # Codecs
//
// Every text, document or message element gets the codec that makes it smallest. One octet outside the code names the
// codec (Codec). A code is never longer than its text.
//
//   - Tokens (tokens.go) replace an XML document. Elements and attributes of JXTA advertisements become numbers, ids
//     and base64 become octets, an id that occurred before in the document becomes a count, and indentation is
//     relative to the depth. Unknown elements are spelled out once. Quotes, line ends and the like are stated once for
//     the document. Markup that cannot be tokenised (comments, CDATA, declarations) stays as it is among the tokens; a
//     document escaped within a document becomes tokens too. A document that tokens could not restore octet for octet
//     is not tokenised.
//   - A model (model.go, scan.go) codes tokens and other texts. It predicts each bit from its context: the last one to
//     six octets, the word, the element, the value at the same place in earlier messages or records (records.go), the
//     number that continues a sequence, the longest match, and a checksum of the text itself (sums.go). An arithmetic
//     coder (arith.go) writes what the predictions leave open. Defaults and fixed texts cost next to nothing, because
//     the model has learned them from a corpus (internal/lab/primer): JXTA documents and other traffic of such links. In a binary message it uses the place of an octet in its record instead of words and elements (frame
//     in scan.go). It also keeps part of the corpus as text (lore.go), as a match source when the history has none.
//   - A text longer than MaxModelled goes block by block (cut.go, blocks.go). Tokenizer and model continue from one
//     block to the next, and keep only what a block needs, however long the text is.
//   - Deflate with a dictionary is used when the far gateway has another version of the model.
//
// The primed model (model.bin) is part of the protocol: the codec's octet carries its version, and tests pin its hash.
// It computes with integers only, so every processor produces the same codes; testdata/vectors.txt has examples. With
// AVX2 it computes eight contexts at once (simd_amd64.s), otherwise one after the other (plain.go). A test holds the
// two equal, bit for bit.
//
// # Learning
//
// A History holds messages that both ends of a flow are known to have. A new message is coded after the last of these,
// so a track costs what changed in it. A long message is coded after the beginning of the long message before it
// (long.go). The gateways spend no octets on exchanging histories. A code carries a hash of the messages that it
// depends on and of the text itself. So a differing History yields ErrHistory, never another text (history.go).
//
// # Bounds
//
// Sizes are octets. Expansion is bounded by the caller's limit, and by a growth of about a thousandfold for the first
// 256 KiB that a code of the model stands for, and sixty-fourfold beyond. The model keeps at most 1.5 MiB of a text's
// history. Expanding takes a few microseconds for each resulting octet. The primed model is 9 MB of the binary and
// takes 1 MB of memory, shared by all coders. A Coder takes 2 to 19 MB with its model, depending on the longest text
// that it has coded, twice that with Prepare, and 5 MB for the codes of the last texts. A History takes at most 1.3
// MB. Nothing else here keeps state between calls.
//
// The layouts of the documents: (wire 9). Target sizes and comparisons: (libraries 4) and docs/sizes.md.
//
// # Files
//
// Read code.go first, then tokens.go and model.go.
//
//   - code.go: Codec and Coder: the smallest code of a text
//   - codings.go: the codecs by number, and how each is expanded
//   - policy.go: which codec the operator's rules allow
//   - file.go: codes in files, with a checksum
//
// XML and ids as tokens:
//
//   - tokens.go: XML to tokens
//   - tokenvalues.go: ids and base64 in tokens
//   - detokens.go: tokens back to XML
//   - canonical.go: documents in a layout that JXTA peers treat as equal
//   - id.go: ids in compact form
//   - text.go: ids in texts other than XML
//
// The model:
//
//   - model.go: the model: counters, contexts, mixing
//   - arith.go: the arithmetic coder
//   - counters.go: packed counters of the primed model, and those of a running one
//   - logistic.go: probabilities in the logistic domain
//   - plain.go: counters and weights, one by one
//   - simd_amd64.go, simd_amd64.s: the same, eight at once with AVX2
//   - simd_other.go: processors without AVX2
//   - scan.go: the place in the text: words, elements, columns
//   - columns.go: values and their names in texts other than XML
//   - records.go: values of records, predicted from earlier records
//   - foretell.go: the number that continues a sequence
//   - match.go: what a match and earlier values predict
//   - sums.go: checksums of the text inside the text
//   - primed.go: the primed model and its hash
//
// Histories and long texts:
//
//   - history.go: earlier messages of a flow
//   - kin.go: the first message of a flow, coded after those of a similar flow
//   - long.go: long messages coded after earlier ones
//   - cut.go: a text cut into blocks, and joined again
//   - blocks.go: long texts, block by block
//   - slices.go: texts coded in advance, in slices
//   - known.go: what models have made, for the gateways of a virtual net
//   - reading.go: texts expanded in slices
//
// The corpus:
//
//   - priming.go: a model primed with a corpus
//   - lore.go: the corpus as text, as a match source
//   - netcorpus.go: the corpus that a network adds
//   - kind.go: kinds of messages, and how much of each a corpus has
package compact
