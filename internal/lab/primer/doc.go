// Package primer makes the corpus that primes the compression model, and documents like those in it for tests. Gateways have the
// primed model alone. internal/link/compact is the codec, and primes a model with what this package gives.
//
// # Files
//
//   - corpus.go: the corpus, part by part
//   - dialects.go: more dialects of what others send
//   - dialects_octets.go: the same, of formats that are no text
//   - field.go: what others than JXTA peers send
//   - field_lines.go: the same, in lines, JSON and on maps
//   - field_text.go: the same, what people write
//   - generate.go: documents of JXTA peers
//   - tracks.go: tracks and pictures
package primer
