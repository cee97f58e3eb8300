package compact

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
)

// ModelVersion is the version of the model in model.bin; it is part of every codec number that needs the model. A change of
// the model, its corpus, its contexts or the way codes are made with it needs a new version.
const ModelVersion = 5

//go:embed model.bin
var modelImage string

// image is the state from which a model starts: packed counters, tables, and the lore. Nothing changes it.
type image struct {
	lines  string
	tables *tables
	lore   *lore
}

// primed is model.bin, read once.
var primed = readImage(modelImage)

// readImage reads an image written by a model. Other octets give an image that knows nothing: a test finds that model.bin
// is not of this version, and the program that makes it anew can still start.
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

// image is the state of the model, to start from.
func (m *model) image() []byte {
	b, err := binary.Append(m.counters.pack(), binary.LittleEndian, &m.tables)
	if err != nil {
		panic("compact: " + err.Error()) // only for a type of no fixed size
	}
	return append(b, m.lore.text...)
}

// ModelHash names the model: two gateways with the same hash expand each other's codes.
func ModelHash() [sha256.Size]byte { return modelHash }

// modelHash is the SHA-256 of model.bin. A test compares the two: to hash 9 MB would take most of the start of each command.
var modelHash = [sha256.Size]byte{
	0x42, 0xa9, 0x35, 0x32, 0x36, 0x1f, 0x20, 0x3c, 0x40, 0x98, 0xc0, 0xb4, 0x38, 0x3a, 0x0a, 0xe2,
	0x4d, 0x74, 0xca, 0x5b, 0x2c, 0xa5, 0xe8, 0xaa, 0xa4, 0x34, 0xf4, 0xad, 0xa2, 0xa2, 0x1f, 0x99,
}

// ModelImage is the built-in model, as BuildModel makes it.
func ModelImage() []byte { return []byte(modelImage) }

// prime sets m to a primed model, whatever its state was.
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
