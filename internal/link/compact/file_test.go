package compact

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
)

// damaged is how many damaged files the test tries; with -tags long a hundred thousand.
var damaged = 2000

// A file comes back, and a damaged file gives a typed error, never another text.
func TestDamagedFiles(t *testing.T) {
	m, r := NewMaker(51, testWords), rand.New(rand.NewPCG(51, 1))
	var c Coder
	texts := [][]byte{bytes.Repeat([]byte("deflated, and much of the same. "), 40), m.Pipe(Compact, false), m.Track().XML(), []byte(strangeSecond.lines[3]), nil, m.Octets(60), Texts([]*Track{m.Track()}, 90)}
	var files [][]byte
	for _, text := range texts {
		file := c.AppendFile(nil, text)
		if len(file) > len(text)+24 {
			t.Errorf("%d octets for %d", len(file), len(text))
		}
		if back, err := c.ExpandFile(file, len(text)); err != nil || !bytes.Equal(back, text) {
			t.Errorf("comes back as %q, %v", back, err)
		}
		files = append(files, file)
	}
	behind := append(bytes.Clone(files[1]), 0)
	if _, err := c.ExpandFile(behind, len(texts[1])); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a zero behind a file: %v", err)
	}
	if _, err := c.ExpandFile(files[0], len(texts[0])-1); !errors.Is(err, ErrTooLong) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := c.ExpandFile([]byte("something else"), 1000); !errors.Is(err, ErrFile) {
		t.Errorf("no file: %v", err)
	}
	taken := 0
	for i := range damaged {
		k := i % len(files)
		file := bytes.Clone(files[k])
		switch r.IntN(3) {
		case 0:
			file[r.IntN(len(file))] ^= 1 << r.IntN(8)
		case 1:
			file = file[:r.IntN(len(file))]
		default:
			file = append(file, make([]byte, 1+r.IntN(6))...)
			file[len(files[k])] = byte(r.Uint32()) * byte(i&1) // a zero as well: codes leave out zeros at their end
		}
		text, err := c.ExpandFile(file, 1<<16)
		if len(file) > len(files[k]) && err == nil {
			t.Fatalf("%d octets behind the file of text %d are taken", len(file)-len(files[k]), k)
		}
		if err == nil && !bytes.Equal(text, texts[k]) {
			taken++
		}
		if err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrModel) && !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%v is no error of a file", err)
		}
	}
	if taken > 0 {
		t.Errorf("%d of %d damaged files gave another text", taken, damaged)
	}
}
