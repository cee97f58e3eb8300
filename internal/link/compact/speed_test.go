package compact

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// busy is how long the processor has worked for this process.
func busy() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}

// onProcessor runs f as often as the benchmark demands. It also reports the processor's time, in which other processes do
// not count, and the shortest run.
func onProcessor(b *testing.B, f func(n int)) {
	before, n, least := busy(), 0, time.Hour
	for ; b.Loop(); n++ {
		begun := time.Now()
		f(n)
		least = min(least, time.Since(begun))
	}
	b.ReportMetric(float64(busy()-before)/1e3/float64(n), "cpu-us/op")
	b.ReportMetric(float64(least)/1e3, "least-us/op")
}

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
		c.made = made{} // a code made a moment ago is remembered
		c.Append(nil, text)
	}
}

func BenchmarkBulkXML(b *testing.B) {
	var c Coder
	text := NewMaker(3, testWords).Employees(1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.made = made{} // a code made a moment ago is remembered
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

// BenchmarkAfterTwelve codes a message of 200 octets in a flow.
func BenchmarkAfterTwelve(b *testing.B) {
	var c Coder
	h, text := historyOfTwelve()
	onProcessor(b, func(n int) { // each time another message: a code made a moment ago is remembered
		copy(text[len(text)-8:], fmt.Sprintf("%08d", n))
		c.AppendAfter(nil, text, h, 13)
	})
}

// BenchmarkExpandAfterTwelve expands such a message.
func BenchmarkExpandAfterTwelve(b *testing.B) {
	var c Coder
	h, text := historyOfTwelve()
	code, codec := c.AppendAfter(nil, text, h, 13)
	onProcessor(b, func(int) { c.ExpandAfter(codec, code, h, 13, len(text)) })
}

// BenchmarkFirst codes first messages of 200 octets.
func BenchmarkFirst(b *testing.B) {
	var c Coder
	text := benchmarkText(200)
	onProcessor(b, func(n int) {
		copy(text[len(text)-8:], fmt.Sprintf("%08d", n))
		c.Append(nil, text)
	})
}

// BenchmarkRandomAfterTwelve codes random octets in a flow of random octets.
func BenchmarkRandomAfterTwelve(b *testing.B) {
	var c Coder
	h, m := new(History), NewMaker(3, testWords)
	for i := range 12 {
		h.Add(uint64(i+1), m.Octets(200))
	}
	onProcessor(b, func(int) { c.AppendAfter(nil, m.Octets(200), h, 13) })
}

// BenchmarkAfterTwelveToMany codes the same message for 64 peers that hold the same messages.
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
		c.made = made{} // a code made a moment ago is remembered
		c.Append(nil, text)
	}
}

func BenchmarkDecodeModel(b *testing.B) {
	for b.Loop() {
		readImage(modelImage)
	}
}
