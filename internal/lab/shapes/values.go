package shapes

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

// values draw the contents of an element of about so many octets in each message. Short ones are as frequent as all others together, so
// that a history of them ends at any octet.
var values = []func(rng *rand.Rand, octets int) func(*moment) []byte{
	func(*rand.Rand, int) func(*moment) []byte { return func(m *moment) []byte { return clock(m.now) } },
	func(*rand.Rand, int) func(*moment) []byte { return func(m *moment) []byte { return digits(m.number) } },
	func(*rand.Rand, int) func(*moment) []byte { return func(m *moment) []byte { return sum(m.before) } },
	func(rng *rand.Rand, _ int) func(*moment) []byte { return constant([]byte(word(rng))) },
	func(*rand.Rand, int) func(*moment) []byte { return func(m *moment) []byte { return stamp(m) } },
	func(rng *rand.Rand, octets int) func(*moment) []byte { return constant(noise(rng, octets)) },
	func(_ *rand.Rand, octets int) func(*moment) []byte {
		return func(m *moment) []byte { return noise(m.rng, 1+m.rng.IntN(octets)) }
	},
	func(rng *rand.Rand, octets int) func(*moment) []byte { return repeats(noise(rng, octets)) },
	func(rng *rand.Rand, octets int) func(*moment) []byte { return repeats(script(rng, octets)) },
	func(rng *rand.Rand, octets int) func(*moment) []byte { return report(rng, octets) },
	func(_ *rand.Rand, octets int) func(*moment) []byte {
		return func(m *moment) []byte { return script(m.rng, octets) }
	},
	func(rng *rand.Rand, octets int) func(*moment) []byte { return record(rng, octets) },
	func(_ *rand.Rand, octets int) func(*moment) []byte {
		return func(m *moment) []byte { return slices.Repeat([]byte{byte(m.rng.IntN(256))}, octets) }
	},
}

// bodies draws for each message one of several kinds of text, of exactly as many octets as room returns.
func bodies(rng *rand.Rand, room func(*moment) int) func(*moment) []byte {
	says := report(rng, 40)
	last := []byte(says(&moment{rng: rng}))
	return func(m *moment) []byte {
		var text []byte
		switch m.rng.IntN(8) {
		case 0:
			text = noise(m.rng, room(m))
		case 1:
			text = script(m.rng, room(m))
		case 2, 3:
			text = changed(m.rng, last)
		default:
			text = says(m)
		}
		for n := room(m); len(text) != n; {
			text = append(text, ' ')
			if len(text) > n {
				text = text[:n]
			} else {
				text = append(text, says(m)...)
			}
		}
		last = text
		return slices.Clone(text)
	}
}

func digits(n int) []byte        { return fmt.Append(nil, n) }
func clock(now time.Time) []byte { return fmt.Append(nil, now.UnixMilli()) }
func sum(data []byte) []byte     { return fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(data)) }
func constant(b []byte) func(*moment) []byte {
	return func(*moment) []byte { return slices.Clone(b) }
}

// stamp is a time and a count in binary.
func stamp(m *moment) []byte {
	return binary.LittleEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, uint64(m.now.UnixNano())), uint16(m.number))
}

func noise(rng *rand.Rand, octets int) []byte {
	b := make([]byte, octets)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// repeats is a text that changes a little from message to message.
func repeats(text []byte) func(*moment) []byte {
	return func(m *moment) []byte {
		text = changed(m.rng, text)
		return slices.Clone(text)
	}
}

// changed is a text with up to three places changed, removed or added; its length stays about the same.
func changed(rng *rand.Rand, text []byte) []byte {
	text = slices.Clone(text)
	for range rng.IntN(4) {
		at := rng.IntN(len(text))
		switch rng.IntN(3) {
		case 0:
			text[at] = byte(rng.Uint32())
		case 1:
			text = slices.Insert(text, at, noise(rng, 1+rng.IntN(3))...)
		default:
			if end := min(len(text), at+1+rng.IntN(3)); end-at < len(text) {
				text = slices.Delete(text, at, end)
			}
		}
	}
	return text[:min(len(text), MaxOctets)]
}

// word is an invented word.
func word(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(3) {
		b.WriteByte("bdfgklmnprstvz"[rng.IntN(14)])
		b.WriteByte("aeiou"[rng.IntN(5)])
	}
	return b.String()
}

// report is text with fixed names, and numbers that change in small steps.
func report(rng *rand.Rand, octets int) func(*moment) []byte {
	type value struct {
		name   string
		at, by float64
	}
	between := []string{"=%.2f;", ": %.4f, ", "=\"%.1f\" ", "|%07.3f|"}[rng.IntN(4)]
	var list []value
	for range max(1, min(100, octets/14)) {
		list = append(list, value{word(rng), rng.Float64() * 1000, rng.Float64() - 0.5})
	}
	return func(m *moment) (text []byte) {
		for i := range list {
			v := &list[i]
			v.at += v.by + (m.rng.Float64()-0.5)/10
			text = fmt.Appendf(append(text, v.name...), between, v.at)
		}
		return text
	}
}

// script is words of letters that are not Latin, in UTF-8, or now and then in UTF-16.
func script(rng *rand.Rand, octets int) []byte {
	alphabets := [][2]rune{{'α', 'ω'}, {'а', 'я'}, {'א', 'ת'}, {'ا', 'ي'}, {'क', 'ह'}, {'一', '龥'}, {'가', '힣'}, {'ア', 'ン'}, {'😀', '🙏'}}
	from := alphabets[rng.IntN(len(alphabets))]
	var letters []rune
	for range max(1, octets/3) {
		letters = append(letters, from[0]+rune(rng.IntN(int(from[1]-from[0])+1)))
		if rng.IntN(6) == 0 {
			letters = append(letters, ' ')
		}
	}
	if rng.IntN(4) > 0 {
		return []byte(string(letters))
	}
	var b []byte
	for _, u := range utf16.Encode(letters) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// record is a row of binary numbers that change in small steps.
func record(rng *rand.Rand, octets int) func(*moment) []byte {
	row := make([]float64, max(1, octets/4))
	for i := range row {
		row[i] = rng.Float64() * 1e6
	}
	return func(m *moment) (b []byte) {
		for i := range row {
			row[i] += m.rng.NormFloat64()
			if i%2 == 0 {
				b = binary.BigEndian.AppendUint32(b, uint32(row[i]))
			} else {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(row[i])))
			}
		}
		return b
	}
}
