package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
)

// nonces sees every datagram of some gateways, and proves that no key was used twice with one nonce. It needs no key: each start of a
// gateway derives keys of its own from its incarnation number and salt. A start has one counter for everything that it seals, or, if it
// seals nothing for all and each destination has a key of its own, one counter for each destination (package seal). So it is enough that
// no two starts of a node have the same number and salt, and that no two different datagrams under one counter of a start have the same
// number.
type nonces struct {
	mu     sync.Mutex
	nodes  []starts
	looked int
	faults []string
}

// starts of one gateway.
type starts struct {
	n    int                // of the present start
	own  string             // its incarnation number and salt, once a datagram has shown them
	seen map[counted]string // its datagrams
	all  map[string]int     // incarnation numbers and salts, and the starts that used them
}

// counted is a value of a counter: the destination, 0 for the counter of all, and the low half of the number.
type counted struct {
	to  int
	low uint16
}

func newNonces(n int) *nonces {
	c := &nonces{nodes: make([]starts, n)}
	for i := range c.nodes {
		c.nodes[i] = starts{seen: map[counted]string{}, all: map[string]int{}}
	}
	return c
}

// ended says that from now on a gateway's datagrams belong to its next start.
func (c *nonces) ended(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.nodes[node]
	s.n, s.own, s.seen = s.n+1, "", map[counted]string{}
}

// The layout of package seal.
const (
	longForm  = 1 << 4
	shortHead = 3
	longHead  = 11
	// mostOfAStart bounds the datagrams that a start may send here, so that the low half of its counters identifies each.
	mostOfAStart = 60_000
)

// seeAll records a datagram of a node that seals for all.
func (c *nonces) seeAll(node int, _ []int, data []byte) { c.see(node, []int{0}, data) }

// see records a datagram to one node.
func (c *nonces) see(node int, to []int, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked++
	s := &c.nodes[node]
	fault := func(format string, args ...any) {
		if len(c.faults) < 20 {
			c.faults = append(c.faults, fmt.Sprintf("node %d, start %d: ", node+1, s.n)+fmt.Sprintf(format, args...))
		}
	}
	if len(data) < shortHead || data[0]&longForm != 0 && len(data) < longHead {
		fault("a datagram of %d octets", len(data))
		return
	}
	counter := binary.BigEndian.Uint16(data[1:])
	if data[0]&longForm != 0 {
		incarnation := string(data[1:7])
		if s.own == "" {
			s.own = incarnation
		}
		if of, ok := s.all[incarnation]; s.own != incarnation || ok && of != s.n {
			fault("incarnation number and salt %x, which are those of start %d; its own are %x", incarnation, of, s.own)
		}
		s.all[incarnation] = s.n
		whole := binary.BigEndian.Uint32(data[7:])
		if whole > mostOfAStart {
			fault("counter %d: the start is too long to be judged", whole)
		}
		counter = uint16(whole)
	}
	at := counted{to[0], counter}
	if was, ok := s.seen[at]; ok && was != string(data) {
		fault("counter %d twice: %x and %x", counter, was[:min(len(was), 40)], data[:min(len(data), 40)])
	}
	if s.seen[at] = string(data); len(s.seen) > mostOfAStart {
		fault("%d datagrams: the start is too long to be judged", len(s.seen))
	}
}

func (c *nonces) judge(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults {
		t.Error(f)
	}
}

// The checker finds repeated nonces.
func TestNonceChecker(t *testing.T) {
	long := func(incarnation, counter byte, body string) []byte {
		return append([]byte{0x31, 0, 0, 0, incarnation, 0, 1, 0, 0, 0, counter}, body...)
	}
	one, two := []int{1}, []int{2}
	short := func(counter byte, body string) []byte { return append([]byte{0x21, 0, counter}, body...) }
	for name, tt := range map[string]struct {
		play   func(c *nonces)
		faults int
	}{
		"all is well": {func(c *nonces) {
			c.see(0, one, long(1, 1, "a"))
			c.see(0, one, short(2, "b"))
			c.see(0, one, short(2, "b"))
			c.see(1, one, short(2, "c"))
			c.ended(0)
			c.see(0, one, long(2, 1, "d"))
			c.see(0, one, short(2, "e"))
		}, 0},
		"a counter with other content": {func(c *nonces) {
			c.see(0, one, short(2, "b"))
			c.see(0, one, short(2, "x"))
		}, 1},
		"a counter of each destination": {func(c *nonces) {
			c.see(0, one, short(2, "b"))
			c.see(0, two, short(2, "x"))
		}, 0},
		"a counter of all": {func(c *nonces) {
			c.seeAll(0, one, short(2, "b"))
			c.seeAll(0, two, short(2, "x"))
		}, 1},
		"the same in both forms": {func(c *nonces) {
			c.see(0, one, long(1, 2, "b"))
			c.see(0, one, short(2, "b"))
		}, 1},
		"a start with the number of another": {func(c *nonces) {
			c.see(0, one, long(1, 1, "a"))
			c.ended(0)
			c.see(0, one, long(1, 2, "b"))
		}, 1},
		"two numbers in one start": {func(c *nonces) {
			c.see(0, one, long(1, 1, "a"))
			c.see(0, one, long(2, 2, "b"))
		}, 1},
		"too short": {func(c *nonces) { c.see(0, one, []byte{0x31, 1, 2, 3}) }, 1},
	} {
		c := newNonces(2)
		if tt.play(c); len(c.faults) != tt.faults {
			t.Errorf("%s: %q", name, c.faults)
		}
	}
}
