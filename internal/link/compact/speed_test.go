package compact

import (
	"fmt"
	"testing"
)

// benchmarkText is track records as a text of that many octets.
func benchmarkText(octets int) []byte {
	m := NewMaker(3, testWords)
	return Texts([]*Track{m.Track(), m.Track(), m.Track()}, octets)
}

func BenchmarkBulkText(b *testing.B) {
	var c Coder
	text := benchmarkText(200_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.made = made{} // what was coded a moment ago is remembered
		c.Append(nil, text)
	}
}

func BenchmarkBulkXML(b *testing.B) {
	var c Coder
	text := NewMaker(3, testWords).Employees(1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.made = made{} // what was coded a moment ago is remembered
		c.Append(nil, text)
	}
}

func BenchmarkExpandBulkText(b *testing.B) {
	var c Coder
	text := benchmarkText(200_000)
	code, _ := c.Append(nil, text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Expand(Bulk, code, len(text))
	}
}

// historyOfTwelve is a flow after twelve messages, and the next one.
func historyOfTwelve() (*History, []byte) {
	h := new(History)
	m := NewMaker(3, testWords)
	tracks := []*Track{m.Track(), m.Track(), m.Track()}
	for i := range 12 {
		h.Add(uint64(i+1), Texts(tracks, 200))
	}
	return h, Texts(tracks, 200)
}

func BenchmarkAfterTwelve(b *testing.B) {
	var c Coder
	h, text := historyOfTwelve()
	for n := 0; b.Loop(); n++ { // each another one: what was coded a moment ago is remembered
		copy(text[len(text)-8:], fmt.Sprintf("%08d", n))
		c.AppendAfter(nil, text, h, 13)
	}
}

// BenchmarkAfterTwelveToMany is the same message for 64 peers that hold the same.
func BenchmarkAfterTwelveToMany(b *testing.B) {
	var c Coder
	h, text := historyOfTwelve()
	for n := 0; b.Loop(); n++ {
		copy(text[len(text)-8:], fmt.Sprintf("%08d", n))
		for range 64 {
			c.AppendAfter(nil, text, h, 13)
		}
	}
}

func BenchmarkAppendRandom(b *testing.B) {
	var c Coder
	text := NewMaker(3, testWords).Octets(200_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.made = made{} // what was coded a moment ago is remembered
		c.Append(nil, text)
	}
}

func BenchmarkDecodeModel(b *testing.B) {
	for b.Loop() {
		readImage(modelImage)
	}
}
