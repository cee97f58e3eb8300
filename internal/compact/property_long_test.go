//go:build long

package compact

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A million documents come back: of every kind and layout, cut, spliced and with octets changed. It takes half an hour.
func TestMillionDocuments(t *testing.T) {
	const documents = 1_000_000
	r := rand.New(rand.NewPCG(77, 1))
	m := NewMaker(77, testWords)
	var c Coder
	var h History
	var last []byte
	for i := range documents {
		text := randomDocument(m, r, last)
		last = text
		coded, codec := c.AppendAfter(nil, text, &h, uint64(i+1))
		if len(coded) > len(text) {
			t.Fatalf("document %d: %d octets for %d", i, len(coded), len(text))
		}
		back, err := c.ExpandAfter(codec, coded, &h, uint64(i+1), len(text))
		if err != nil || !bytes.Equal(back, text) {
			t.Fatalf("document %d, %v: %v\n%q", i, codec, err, text)
		}
		if r.IntN(8) == 0 {
			h.Add(uint64(i+1), text)
		}
		if r.IntN(1000) == 0 {
			h.Reset()
		}
	}
}
