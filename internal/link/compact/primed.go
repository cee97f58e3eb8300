package compact

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"slices"
)

// ModelVersion is the version of the model in model.bin; it is part of every codec number that needs the model. A
// change of the model, its corpus or its contexts is a new version.
const ModelVersion = 2

//go:embed model.bin
var modelImage string

// primed is model.bin decoded once; nothing changes it.
var primed = decodeModel()

type image struct {
	counters counters
	tables   tables
}

func decodeModel() *image {
	m := new(image)
	b := []byte(modelImage)
	if len(b) != binary.Size(m.counters)+binary.Size(m.tables) {
		return m // a test finds that model.bin is not of this version
	}
	for i := range m.counters {
		m.counters[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if _, err := binary.Decode(b[4*len(m.counters):], binary.LittleEndian, &m.tables); err != nil {
		panic("compact: model.bin: " + err.Error()) // built in
	}
	return m
}

// ModelHash names the model: two gateways that answer alike expand each other's codes.
func ModelHash() [32]byte { return modelHash }

// modelHash is asked for with every HELLO: it is made once.
var modelHash = sha256.Sum256([]byte(modelImage))

// ModelImage is the model that is built in, as BuildModel makes it.
func ModelImage() []byte { return []byte(modelImage) }

// prime sets m to the primed model, whatever it was before.
func (m *model) prime() {
	if m.counters == nil {
		m.counters = new(counters)
		m.matchTable = make([]int32, 1<<matchBits)
	}
	if m.touched == nil || len(m.touched) > len(m.dirty)/2 {
		*m.counters = primed.counters
		clear(m.dirty[:])
	} else {
		for _, line := range m.touched {
			at := line * lineSlots
			*(*[lineSlots]uint32)(m.counters[at:]) = [lineSlots]uint32(primed.counters[at:])
			m.dirty[line] = false
		}
	}
	m.touched = slices.Grow(m.touched[:0], 1)
	m.tables = primed.tables
	m.limit, m.rate, m.used = 30, 14, contexts
	m.forget()
}
