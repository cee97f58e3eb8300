package compact

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// randomDocument is a document of any kind, now and then damaged.
func randomDocument(m *Maker, r *rand.Rand, last []byte) []byte {
	layout := r.IntN(Layouts)
	var text []byte
	switch r.IntN(12) {
	case 0:
		text = m.Spec(layout)
	case 1:
		text = m.Peer(layout, 0, r.IntN(2) == 0)
	case 2:
		text = m.Route(layout)
	case 3:
		text = m.Rendezvous(layout)
	case 4:
		text = m.Group(layout)
	case 5, 6:
		text = m.Track().XML()
	case 7, 8:
		text = Texts([]*Track{m.Track(), m.Track()}, 1+r.IntN(250))
	case 9:
		text = m.Octets(r.IntN(100))
	case 10:
		text = bytes.Clone(last)
	default:
		text = m.Pipe(layout, r.IntN(2) == 0)
	}
	if len(text) == 0 {
		return text
	}
	switch r.IntN(8) {
	case 0:
		text = text[:r.IntN(len(text))]
	case 1:
		for range 1 + r.IntN(4) {
			text[r.IntN(len(text))] = byte(r.Uint32())
		}
	case 2:
		at := r.IntN(len(text))
		text = append(append(bytes.Clone(text[:at]), m.Octets(r.IntN(6))...), text[at:]...)
	case 3:
		if len(last) > 0 {
			text = append(bytes.Clone(text[:r.IntN(len(text))]), last[r.IntN(len(last)):]...)
		}
	}
	return text
}

func TestDocumentsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(78, 1))
	m := NewMaker(78, testWords)
	var c Coder
	var h History
	var last []byte
	for i := range 1500 {
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
		if r.IntN(200) == 0 {
			h.Reset()
		}
	}
}
