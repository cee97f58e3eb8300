package compact

import (
	"aldis/internal/lab/check"
	"aldis/internal/lab/primer"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// modelHashes pins the model.bin of each version. A different model is another version: gateways of the two cannot read
// each other's codes.
var modelHashes = map[int]string{
	1: "417950221eb84706",
	2: "8c346efc1088a872",
	3: "9d3ecea3fe1f39c4",
	4: "4474a759d91550fa",
	5: "42a93532361f203c",
}

const rebuild = "run: go run ./cmd/gateway-lab corpus --write internal/link/compact, write the hash into modelHash, and raise ModelVersion when one was released"

func TestModelIsItsVersion(t *testing.T) {
	hash := ModelHash()
	check.Equal(t, "the hash of model.bin; "+rebuild, hash, sha256.Sum256(ModelImage()))
	if got := hex.EncodeToString(hash[:8]); got != modelHashes[ModelVersion] {
		t.Errorf("model.bin is %s, version %d is %s; %s", got, ModelVersion, modelHashes[ModelVersion], rebuild)
	}
	image, err := BuildModel(primer.Corpus())
	if err != nil || !bytes.Equal(image, ModelImage()) {
		t.Errorf("model.bin is not what the corpus makes (%v); %s", err, rebuild)
	}
}

// corpusParts are the parts of the corpus with which the model was primed.
func corpusParts(t *testing.T) []part {
	t.Helper()
	parts, err := readParts(primer.Corpus())
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// A text that is no corpus makes no model, and the error says where.
func TestCorpusIsRead(t *testing.T) {
	parts, err := readParts([]byte("== a first 2\nxy\n== a next 3\nz\n1\n== b first 0\n\n"))
	check.True(t, "two parts", err == nil && len(parts) == 2 && len(parts[0].messages) == 2 && string(parts[0].messages[1]) == "z\n1", parts, err)
	for _, text := range []string{"a first 2\nxy\n", "== a next 2\nxy\n", "== a first 3\nxy\n", "== a first -1\nxy\n", "== a first 1\nxy\n", "== a first"} {
		_, err := BuildModel([]byte(text))
		check.ErrorIs(t, err, errText)
	}
}

// Known codes: the same on every CPU and in every later release of this model version.
func TestVectors(t *testing.T) {
	file, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(file)), "\n\n") {
		line := strings.Split(block, "\n")
		if len(line) != 4 {
			t.Fatalf("%d lines: %.40s", len(line), block)
		}
		codec, code, text := unhex(t, line[1]), unhex(t, line[2]), unhex(t, line[3])
		var c Coder
		got, k := c.Append(nil, text)
		if byte(k) != codec[0] || !bytes.Equal(got, code) {
			t.Errorf("%s: %v %x, want %x %x", line[0], k, got, codec, code)
		}
		back, err := Expand(Codec(codec[0]), code, len(text))
		if err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s: expands to %q, %v", line[0], back, err)
		}
		n++
	}
	check.Equal(t, "vectors", n, 10)
	again, err := Vectors(file)
	check.NoError(t, err)
	check.Equal(t, "written anew", string(again), string(file))
	_, err = Vectors([]byte("pipe\n14\n00\nno hex\n\n"))
	check.ErrorIs(t, err, errVectors)
}

// Codes of flows, by their hash.
func TestLearnedVectors(t *testing.T) {
	m := NewMaker(2, testWords)
	track, tracks := m.Track(), []*Track{m.Track(), m.Track()}
	var c Coder
	h := map[string]*History{"xml": {}, "text": {}, "plot": {}}
	sum := sha256.New()
	for i := range 24 {
		flow, text := "xml", track.XML()
		switch i % 4 {
		case 1:
			flow, text = "text", Texts(tracks, 200)
		case 2:
			flow, text = "plot", track.Plot(1.5e9+float64(i), 200)
		}
		coded, codec := c.AppendAfter(nil, text, h[flow], uint64(i+1))
		h[flow].Add(uint64(i+1), text)
		sum.Write(append([]byte{byte(codec), byte(len(coded))}, coded...))
	}
	if got, want := hex.EncodeToString(sum.Sum(nil)[:8]), "dc23826803b62402"; got != want {
		t.Errorf("codes are %s, want %s: a change of what is learned is another model version", got, want)
	}
}

func TestCorpusRoundTrip(t *testing.T) {
	var c Coder
	for i, p := range corpusParts(t) {
		for _, text := range p.messages {
			coded, codec := c.Append(nil, text)
			back, err := c.Expand(codec, coded, len(text))
			if err != nil || !bytes.Equal(back, text) {
				t.Fatalf("part %d %s, %v: %v", i, p.name, codec, err)
			}
		}
	}
}

// The texts that the sizes are measured with share nothing with the corpus: no name, no document.
func TestCorpusKnowsNoTestNames(t *testing.T) {
	corpus := string(primer.Corpus())
	for _, names := range [][]string{testWords.Services, testWords.Units, testWords.Places, testWords.First, testWords.Last, testWords.Titles} {
		for _, n := range names {
			if strings.Contains(corpus, n) {
				t.Errorf("the corpus has %q", n)
			}
		}
	}
	for _, d := range capturedDocs(t) {
		if strings.Contains(corpus, string(d.text)) {
			t.Errorf("the corpus has %s", d.name)
		}
	}
	sum := sha256.Sum256([]byte(corpus))
	t.Logf("corpus: %d octets, %s", len(corpus), fmt.Sprintf("%x", sum[:4]))
}

// The logistic tables agree: every probability goes there and back within a step.
func TestLogistic(t *testing.T) {
	if squash(0) != 32768 || squash(stretchMax) < 65530 || squash(-stretchMax) > 5 {
		t.Errorf("squash: %d %d %d", squash(-stretchMax), squash(0), squash(stretchMax))
	}
	for x := -stretchMax + 1; x <= stretchMax; x++ {
		if squash(x) < squash(x-1) {
			t.Fatalf("squash falls at %d", x)
		}
	}
	for p := 8; p < 65536-8; p++ {
		back := squash(stretch(p))
		if d, most := back-p, 16+min(p, 65536-p)/128; d > most || -d > most {
			t.Fatalf("%d comes back as %d", p, back)
		}
	}
}
