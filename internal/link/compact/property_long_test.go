//go:build long

package compact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A million documents come back: of every kind and layout, cut, spliced and with octets changed, after held messages and
// alone, in whichever codec is the smallest.
func TestMillionDocuments(t *testing.T) {
	const documents, shards = 1_000_000, 4
	for shard := range uint64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			comeBack(t, 77+shard, documents/shards)
		})
	}
}

func comeBack(t *testing.T, seed uint64, documents int) {
	r := rand.New(rand.NewPCG(seed, 1))
	m := NewMaker(seed, testWords)
	var c Coder
	var h, none History
	var last []byte
	begun := time.Now()
	codecs := map[Codec]int{}
	for i := range documents {
		if i > 0 && i%10_000 == 0 {
			took := time.Since(begun)
			t.Logf("%d documents in %v, %v to go: %v", i, took.Round(time.Second), (took * time.Duration(documents-i) / time.Duration(i)).Round(time.Second), codecs)
		}
		text := randomDocument(m, r, last)
		last = text
		before := &h
		if i%8 != 0 { // learning takes most of the time, and documents alone find as many errors
			before = &none
		}
		coded, codec := c.AppendAfter(nil, text, before, uint64(i+1))
		codecs[codec]++
		if len(coded) > len(text) {
			t.Fatalf("document %d: %d octets for %d", i, len(coded), len(text))
		}
		back, err := c.ExpandAfter(codec, coded, before, uint64(i+1), len(text))
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
