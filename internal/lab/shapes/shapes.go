// Package shapes draws the messages of applications of strangers, and their times, from a seed: messages of elements with names, an order
// and sizes that nobody here has chosen, and patterns of arrival. Words are invented: syllables, and letters of other scripts.
//
//   - shapes.go: an application, its kinds of message and their elements
//   - values.go: the contents of elements
//   - arrivals.go: when messages come
package shapes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MaxOctets is the length of the longest element.
const MaxOctets = 64 << 10

// Element is one part of a message.
type Element struct {
	Name, Type string // Type "" means that the sender gives no type
	Data       []byte
}

// Message is elements in their order.
type Message []Element

// Octets is the sum of its elements' data.
func (m Message) Octets() (n int) {
	for _, e := range m {
		n += len(e.Data)
	}
	return n
}

// Stranger is an application: it has some kinds of message, each with fixed elements, and sends one message after another.
type Stranger struct {
	rng   *rand.Rand
	kinds [][]field
	count int
}

// field is an element of a kind of message.
type field struct {
	name, mime string
	next       func(s *moment) []byte
}

// moment is the data from which an element may be made.
type moment struct {
	rng    *rand.Rand
	now    time.Time
	number int    // of the message, from 1
	before []byte // the data of the message's elements so far
}

// New draws an application whose messages have at most so many octets.
func New(seed uint64, most int) *Stranger {
	rng := rand.New(rand.NewPCG(seed, 0x5354524e))
	s := &Stranger{rng: rng}
	for range 1 + rng.IntN(3) {
		s.kinds = append(s.kinds, kind(rng, most))
	}
	return s
}

// kind draws a kind of message: up to eight elements that share the octets.
func kind(rng *rand.Rand, most int) (fields []field) {
	n := 1 + rng.IntN(8)
	for i := range n {
		octets := size(rng, min(MaxOctets, max(1, most/n)))
		fields = append(fields, field{fmt.Sprintf("%s%d", word(rng), i), mimes[rng.IntN(len(mimes))], values[rng.IntN(len(values))](rng, octets)})
	}
	return fields
}

var mimes = []string{"", "", "text/plain", "text/xml", "application/octet-stream", "application/x-own", "image/png"}

// size is between 1 and 2 octets as often as between 1,024 and 2,048.
func size(rng *rand.Rand, most int) int {
	return int(math.Exp(rng.Float64() * math.Log(float64(most)+0.99)))
}

// Report is an application with one kind of message of five elements, from, seq, ts, crc and body: its name, a count, a time in 13
// digits, the body's checksum in 8, and text of several kinds. Together they have so many octets, or as few as possible if that is more.
func Report(seed uint64, from string, octets int) *Stranger {
	rng := rand.New(rand.NewPCG(seed, 0x52505254))
	s := &Stranger{rng: rng}
	const clockAndSum = 13 + 8
	room := func(m *moment) int { return max(1, octets-clockAndSum-len(from)-len(digits(m.number))) }
	next := bodies(rng, room)
	var last []byte
	s.kinds = [][]field{{
		{"from", "", func(*moment) []byte { return []byte(from) }},
		{"seq", "", func(m *moment) []byte { return digits(m.number) }},
		{"ts", "", func(m *moment) []byte { return clock(m.now) }},
		{"crc", "", func(m *moment) []byte { last = next(m); return sum(last) }},
		{"body", "", func(*moment) []byte { return last }},
	}}
	return s
}

// Next is the application's next message, sent now.
func (s *Stranger) Next(now time.Time) (m Message) {
	s.count++
	at := &moment{rng: s.rng, now: now, number: s.count}
	for _, f := range s.kinds[s.rng.IntN(len(s.kinds))] {
		data := f.next(at)
		at.before = append(at.before, data...)
		m = append(m, Element{f.name, f.mime, data})
	}
	return m
}
