// Package primer holds the corpus that primes the compression model: internal/link/compact makes model.bin from it. Gateways contain only
// the primed model.
//
// The corpus is a text, packed by xz. Whoever changes it unpacks the text, edits that and packs it again:
//
//	xz --check=crc32 --lzma2=preset=9e,dict=2MiB corpus.txt
//
// Another corpus makes another model, and so another version of it (docs/sizes.md).
package primer

import (
	"bytes"
	_ "embed"
	"io"

	"github.com/ulikunitz/xz"
)

//go:embed corpus.txt.xz
var packed []byte

// Corpus is the text of the corpus. Each message has a line before it, "== NAME first 123" or "== NAME next 123": the kind of
// message, whether it follows the one before on the same flow, and its octets.
func Corpus() []byte {
	r, err := xz.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // a file of our own
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return text
}
