package pmul

import (
	"fmt"

	"github.com/klauspost/reedsolomon"
)

// Erasure coding, in the compact coding only: parity shards over the fragments of a message (Reed-Solomon over GF(2^8);
// any as many shards as there are fragments give the message back). Shards are as long as a full fragment, the last
// fragment counts as filled up with 0. A parity shard that was sent is not sent again: the next ones are as good for
// everybody, whatever each has missed. docs/decisions/pmul-parity.md has what it saves.
const (
	parityFragments = 128 // of a message at most, and it has at least two
	shardsMost      = 256 // fragments and parity shards of a message, by the field
)

// codec codes so many fragments with so many parity shards. The rows of the first parity shards are the same however
// many there are.
func codec(fragments, parity int) reedsolomon.Encoder {
	enc, err := reedsolomon.New(fragments, parity, reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		panic(fmt.Sprintf("pmul: Reed-Solomon of %d and %d: %v", fragments, parity, err)) // bounds are checked by callers
	}
	return enc
}

// shard is a parity shard of the message; they are made in batches.
func (c *content) shard(index uint16) []byte {
	k := len(c.fragments)
	for int(index) >= len(c.parity) {
		count := min(len(c.parity)+16, shardsMost-k)
		shards := make([][]byte, k+count)
		copy(shards, c.fragments)
		last := make([]byte, c.size)
		copy(last, c.fragments[k-1])
		shards[k-1] = last
		for i := k; i < len(shards); i++ {
			shards[i] = make([]byte, c.size)
		}
		if err := codec(k, count).Encode(shards); err != nil {
			panic("pmul: " + err.Error()) // sizes are ours
		}
		c.parity = shards[k:]
	}
	return c.parity[index]
}

// takeParity queues so many parity shards that were never sent; false when there are not so many left.
func (m *outgoing) takeParity(n int) bool {
	if len(m.fragments)+int(m.parityNext)+n > shardsMost {
		return false
	}
	for range n {
		m.shards = append(m.shards, m.parityNext)
		m.parityNext++
	}
	return true
}

// orParity queues so many shards in the place of fragments, where the message has parity and enough of it is left; else
// the fragments are still to be sent.
func (m *outgoing) orParity(c *Config, numbers []uint16, shards int) []uint16 {
	k := len(m.fragments)
	if c.Coding == Compact && c.Parity && k >= 2 && k <= parityFragments && m.takeParity(shards) {
		return nil
	}
	return numbers
}

// recover makes the fragments that are missing of what is held; false when it does not fit together.
func (m *incoming) recover() bool {
	k, size, most := int(m.total), 0, 0
	for i, s := range m.parity {
		size, most = len(s), max(most, int(i)+1)
	}
	shards := make([][]byte, k+most)
	for i, s := range m.parity {
		if len(s) != size {
			return false
		}
		shards[k+int(i)] = s
	}
	for n, f := range m.fragments {
		if int(n) < k && len(f) != size || int(n) == k && len(f) != m.last {
			return false
		}
		shards[n-1] = f
	}
	if f := m.fragments[m.total]; f != nil {
		shards[k-1] = make([]byte, size)
		copy(shards[k-1], f)
	}
	if err := codec(k, most).ReconstructData(shards); err != nil {
		return false
	}
	for n := 1; n <= k; n++ {
		if _, have := m.fragments[uint16(n)]; !have {
			f := shards[n-1]
			if n == k {
				f = f[:m.last]
			}
			m.fragments[uint16(n)] = f
		}
	}
	return true
}
