package compact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// codesFile has a line for each kind of text: how many there are, their octets, those of their codes, and a hash of the
// codes. It begins with the model's hash.
const codesFile = "testdata/codes.txt"

// flowOf makes messages of a flow.
type flowOf struct {
	kind  string
	flows int
	each  int // messages of a flow
	next  func(flow int) func() []byte
}

// codedKinds are the texts whose codes codesFile keeps: those that the sizes are measured with, long ones, and ones
// that were cut, spliced and changed.
func codedKinds() []flowOf {
	var kinds []flowOf
	for _, s := range strangerKinds {
		kinds = append(kinds, flowOf{s.kind, 12, 10, func(i int) func() []byte { return s.flow(rand.New(rand.NewPCG(uint64(i), 16))) }})
	}
	maker := func(kind string, flows, each int, next func(m *Maker) func() []byte) {
		kinds = append(kinds, flowOf{kind, flows, each, func(i int) func() []byte { return next(NewMaker(uint64(1600+i), testWords)) }})
	}
	maker("XML track", 6, 20, func(m *Maker) func() []byte { return m.Track().XML })
	maker("track text", 6, 20, func(m *Maker) func() []byte {
		tracks := []*Track{m.Track(), m.Track(), m.Track()}
		return func() []byte { return Texts(tracks, 200) }
	})
	maker("plot", 4, 20, func(m *Maker) func() []byte {
		track, at := m.Track(), 1.5e9
		return func() []byte { at += 5.25; return track.Plot(at, 200) }
	})
	maker("advertisements", 8, 12, func(m *Maker) func() []byte {
		n := 0
		return func() []byte {
			n++
			l := n % Layouts
			return [...]func() []byte{
				func() []byte { return m.Pipe(l, n%2 == 0) }, func() []byte { return m.Spec(l) }, func() []byte { return m.Peer(l, 0, true) },
				func() []byte { return m.Group(l) }, func() []byte { return m.Class(l) }, func() []byte { return m.Route(l) },
				func() []byte { return m.Rendezvous(l) }, func() []byte { return m.Implementation(l) }, func() []byte { return m.Peer(l, -1, false) },
			}[n%9]()
		}
	})
	maker("changed", 12, 60, func(m *Maker) func() []byte {
		var last []byte
		return func() []byte {
			last = randomDocument(m, m.Rand, last)
			return last
		}
	})
	maker("random", 2, 8, func(m *Maker) func() []byte { return func() []byte { return m.Octets(200) } })
	maker("employees", 3, 1, func(m *Maker) func() []byte { return func() []byte { return m.Employees(30) } })
	maker("long XML", 1, 1, func(m *Maker) func() []byte { return func() []byte { return m.Employees(400) } })
	maker("long text", 1, 1, func(m *Maker) func() []byte {
		return func() []byte { return Texts([]*Track{m.Track(), m.Track()}, 60_000) }
	})
	return append(kinds, flowOf{"dresses", 1, 15, func(int) func() []byte {
		n := -1
		return func() []byte { n++; return dresses()[n].text }
	}})
}

// Codes are octet for octet what they were when codesFile was written, as first messages and as later ones of a flow.
// A developer who makes the model faster finds here what has changed.
func TestCodesAreUnchanged(t *testing.T) {
	hash := ModelHash()
	var b bytes.Buffer
	fmt.Fprintf(&b, "model %x\n", hash[:8])
	for _, k := range codedKinds() {
		var c Coder
		sum, texts, octets, coded := sha256.New(), 0, 0, 0
		for i := range k.flows {
			h, next := new(History), k.next(i)
			for n := range uint64(k.each) {
				text := next()
				code, codec := c.AppendAfter(nil, text, h, n+1)
				if back, err := c.ExpandAfter(codec, code, h, n+1, len(text)); err != nil || !bytes.Equal(back, text) {
					t.Fatalf("%s: message %d of flow %d does not come back: %v", k.kind, n, i, err)
				}
				h.Add(n+1, text)
				fmt.Fprintf(sum, "%d %x\n", codec, code)
				texts, octets, coded = texts+1, octets+len(text), coded+len(code)
			}
		}
		fmt.Fprintf(&b, "%s: %d of %d octets, %d coded, %s\n", k.kind, texts, octets, coded, hex.EncodeToString(sum.Sum(nil)[:8]))
	}
	if *writeSizes {
		if err := os.WriteFile(codesFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	file, err := os.ReadFile(codesFile)
	if err != nil {
		t.Fatal(err)
	}
	want, got := bytes.Split(file, []byte("\n")), bytes.Split(b.Bytes(), []byte("\n"))
	for i := range got {
		if i >= len(want) || !bytes.Equal(got[i], want[i]) {
			t.Errorf("%s\nis not what testdata/codes.txt has; where the model is another version: go test ./internal/link/compact -run TestCodesAreUnchanged -args -write", got[i])
		}
	}
}
