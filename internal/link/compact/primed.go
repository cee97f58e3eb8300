package compact

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
)

// ModelVersion is the version of the model in model.bin; it is part of every codec number that needs the model. A
// change of the model, its corpus, its contexts or of how codes are made with it is a new version.
const ModelVersion = 5

//go:embed model.bin
var modelImage string

// image is what a model starts from: packed counters, tables, and the lore. Nothing changes it.
type image struct {
	lines  string
	tables *tables
	lore   *lore
}

// primed is model.bin, read once.
var primed = readImage(modelImage)

// readImage reads an image as a model makes it. What is none gives one that knows nothing: a test finds that model.bin is
// not of this version, and a gateway that makes it anew starts all the same.
func readImage(s string) *image {
	size := binary.Size(tables{})
	if len(s) < packedLine<<primedLines+size {
		return &image{tables: &newModel().tables, lore: newLore("")}
	}
	m := &image{lines: s[:packedLine<<primedLines], tables: new(tables)}
	s = s[len(m.lines):]
	if _, err := binary.Decode([]byte(s[:size]), binary.LittleEndian, m.tables); err != nil {
		panic("compact: model.bin: " + err.Error()) // built in
	}
	m.lore = newLore(s[size:])
	return m
}

// image is what has been learned, to start from.
func (m *model) image() []byte {
	b, err := binary.Append(m.counters.pack(), binary.LittleEndian, &m.tables)
	if err != nil {
		panic("compact: " + err.Error()) // only for a type of no fixed size
	}
	return append(b, m.lore.text...)
}

// ModelHash names the model: two gateways that answer alike expand each other's codes.
func ModelHash() [32]byte { return modelHash }

// modelHash is asked for with every HELLO: it is made once.
var modelHash = sha256.Sum256([]byte(modelImage))

// ModelImage is the model that is built in, as BuildModel makes it.
func ModelImage() []byte { return []byte(modelImage) }

// prime sets m to a primed model, whatever it was before.
func (m *model) prime(i *image) {
	if m.matchTable == nil {
		m.matchTable = make([]int32, 1<<matchBits)
	}
	m.counters.forget(i.lines)
	m.tables = *i.tables
	m.lore = i.lore
	m.steps, m.rate, m.most = stepsCoding, codingRate, contexts
	m.forget()
}
