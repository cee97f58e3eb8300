package pmul

import (
	"fmt"
	"math/bits"

	"github.com/klauspost/reedsolomon"
)

// Erasure coding, in the compact coding only: parity shards over the fragments of a message (Reed-Solomon; any as many
// shards as there are fragments give the message back). Shards are as long as a full fragment; the last fragment counts as
// filled up with 0. A parity shard is never sent twice: the next ones serve all nodes equally well, whichever fragments
// each has missed. docs/decisions/pmul-parity.md says how much this saves.
//
// Up to 128 fragments the field is GF(2^8), above it GF(2^16), whose shards have an even number of octets.
const (
	smallMost  = 128 // fragments of a message in the small field
	smallField = 256 // fragments and parity shards of it
	codedMost  = 1 << 13
)

// shardsOf is how many parity shards a message of so many fragments has.
func shardsOf(fragments int) int {
	if fragments <= smallMost {
		return smallField - fragments
	}
	return 1 << bits.Len(uint(fragments-1)) // the library's code depends on their number, so all of them count
}

// codec codes so many fragments with so many parity shards. In the small field the rows of the first parity shards do not
// depend on their number.
func codec(fragments, parity int) reedsolomon.Encoder {
	enc, err := reedsolomon.New(fragments, parity, reedsolomon.WithMaxGoroutines(1), reedsolomon.WithLeopardGF16(fragments > smallMost))
	if err != nil {
		panic(fmt.Sprintf("pmul: Reed-Solomon of %d and %d: %v", fragments, parity, err)) // bounds are checked by callers
	}
	return enc
}

// The library lays out symbols of the large field in blocks of 64 octets: 32 first halves, then 32 second ones. A column of
// parity depends on the same column of the fragments only, so the columns beyond a fragment's end are 0 and are not sent.
const (
	block = 64
	half  = block / 2
)

// spread copies octets into whole blocks: the first half of them into first halves of symbols.
func spread(b []byte, size int) []byte {
	columns := size / 2
	out := make([]byte, (columns+half-1)/half*block)
	for i, v := range b {
		if i < columns {
			out[i/half*block+i%half] = v
		} else {
			out[(i-columns)/half*block+half+(i-columns)%half] = v
		}
	}
	return out
}

// gather is the inverse of spread.
func gather(blocks []byte, size int) []byte {
	columns := size / 2
	out := make([]byte, size)
	for i := range columns {
		out[i] = blocks[i/half*block+i%half]
		out[columns+i] = blocks[i/half*block+half+i%half]
	}
	return out
}

// shard is a parity shard of the message; they are made in batches.
func (c *content) shard(index uint16) []byte {
	k := len(c.fragments)
	for int(index) >= len(c.parity) {
		count := shardsOf(k)
		if k <= smallMost {
			count = min(len(c.parity)+16, count)
		}
		shards := make([][]byte, k+count)
		large := k > smallMost
		for i, f := range c.fragments {
			shards[i] = f
			if large {
				shards[i] = spread(f, c.size)
			}
		}
		if !large {
			shards[k-1] = make([]byte, c.size)
			copy(shards[k-1], c.fragments[k-1])
		}
		for i := k; i < len(shards); i++ {
			shards[i] = make([]byte, len(shards[0]))
		}
		if err := codec(k, count).Encode(shards); err != nil {
			panic("pmul: " + err.Error()) // sizes are this package's own
		}
		c.parity = shards[k:]
		if large {
			for i, s := range c.parity {
				c.parity[i] = gather(s, c.size)
			}
		}
	}
	return c.parity[index]
}

// takeParity queues so many parity shards that were never sent; false when fewer are left.
func (m *outgoing) takeParity(n int) bool {
	if int(m.parityNext)+n > shardsOf(len(m.fragments)) {
		return false
	}
	m.plan = true
	for range n {
		m.shards = append(m.shards, m.parityNext)
		m.parityNext++
	}
	return true
}

// orParity queues so many shards in the place of fragments, if the message is coded and enough shards are left. Otherwise
// the fragments have to be sent: all fragments of a planned message, because its receivers say how many they lack, not
// which.
func (m *outgoing) orParity(c *Config, numbers []uint16, shards int) []uint16 {
	switch {
	case len(numbers) == 0 || !c.codes(&m.content):
		return numbers
	case m.takeParity(shards):
		return nil
	case c.plansFor(m):
		return m.all()
	}
	return numbers
}

// recover makes the missing fragments from those held and the shards; false when these do not fit together.
func (m *incoming) recover() bool {
	k, size, most := int(m.total), 0, 0
	for i, s := range m.parity {
		size, most = len(s), max(most, int(i)+1)
	}
	large := k > smallMost
	if large {
		most = shardsOf(k)
	}
	if f := m.fragments[m.total]; f != nil && m.last == 0 {
		m.last = len(f)
	}
	if m.last == 0 || m.last > size || large && size%2 != 0 {
		return false
	}
	shards := make([][]byte, k+most)
	put := func(at int, b []byte) {
		shards[at] = b
		if large {
			shards[at] = spread(b, size)
		}
	}
	for i, s := range m.parity {
		if len(s) != size {
			return false
		}
		put(k+int(i), s)
	}
	for n, f := range m.fragments {
		if int(n) < k && len(f) != size || int(n) == k && len(f) != m.last {
			return false
		}
		put(int(n)-1, f)
	}
	if f := m.fragments[m.total]; f != nil && !large {
		shards[k-1] = make([]byte, size)
		copy(shards[k-1], f)
	}
	if err := codec(k, most).ReconstructData(shards); err != nil {
		return false
	}
	for n := 1; n <= k; n++ {
		if _, have := m.fragments[uint16(n)]; !have {
			f := shards[n-1]
			if large {
				f = gather(f, size)
			}
			if n == k {
				f = f[:m.last]
			}
			m.fragments[uint16(n)] = f
		}
	}
	return true
}
