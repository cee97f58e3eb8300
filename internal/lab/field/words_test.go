package field

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"slices"

	"aldis/internal/jxta"
)

// words are the elements of message n of a site's talker, as strangers' programs send them: a number, a time in 13 digits, a checksum in
// 8, the sender, and a body of 1 octet to 3 kB, binary, text, all the same octet or nearly the last body, in an order of its own.
func words(from string, n int, k kind) []jxta.Element {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(k)))
	body := text(n, k)
	if k != long {
		body = wordBody(n, rng)
	}
	list := []jxta.Element{
		{Namespace: "t", Name: "seq", Data: fmt.Appendf(nil, "%d;%d", n, k)},
		{Namespace: "t", Name: "ts", Data: fmt.Append(nil, 1764000000000+41*int64(n))},
		{Namespace: "t", Name: "crc", Data: fmt.Appendf(nil, "%08x", crc32.ChecksumIEEE(body))},
		{Name: "from", Data: []byte(from)},
		{Namespace: "t", Name: "body", Data: body},
	}
	if n%3 == 0 {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

func wordBody(n int, rng *rand.Rand) []byte {
	size := []int{1, 1 + rng.IntN(16), 1 + rng.IntN(200), shortOctets, 1 + rng.IntN(3000)}[n%5]
	switch rng.IntN(4) {
	case 0:
		return bytes.Repeat([]byte{byte(n)}, size)
	case 1:
		return bytes.Repeat(fmt.Appendf(nil, "track %d at %d,%d; ", n, n%90, n%180), size/16+1)[:size]
	case 2:
		return bytes.Repeat(fmt.Appendf(nil, "Позиция без изменений %d ", n/8), size/16+1)[:size]
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// numbered finds the number of a message among its elements, and its sender.
func numbered(list []jxta.Element) (from string, n int, k kind, ok bool) {
	for _, e := range list {
		switch e.Name {
		case "from":
			from = string(e.Data)
		case "seq":
			_, err := fmt.Sscanf(string(e.Data), "%d;%d", &n, &k)
			ok = err == nil && n >= 0
		}
	}
	return from, n, k, ok
}

// surelyShort octets of elements fit a datagram, whatever the coding does.
const surelyShort = 400

func octets(list []jxta.Element) (n int) {
	for _, e := range list {
		n += len(e.Data)
	}
	return n
}

func sameWords(a, b []jxta.Element) bool {
	return slices.EqualFunc(a, b, func(a, b jxta.Element) bool {
		return a.Namespace == b.Namespace && a.Name == b.Name && bytes.Equal(a.Data, b.Data)
	})
}

// tap notes which of the far talker's messages came to this machine, whether their listener hears them or not.
type tap struct {
	net.Conn
	from    *crew
	rest    []byte
	greeted bool
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.rest = append(t.rest, b[:n]...)
	if end := bytes.IndexByte(t.rest, '\n'); !t.greeted && end >= 0 {
		t.greeted, t.rest = true, t.rest[end+1:]
	}
	for t.greeted && t.next() {
	}
	return n, err
}

// next takes one message off the front.
func (t *tap) next() bool {
	h, size, err := jxta.ParsePackageHeader(t.rest)
	if err != nil || uint64(len(t.rest)-size) < h.Length {
		return false
	}
	body := t.rest[size : size+int(h.Length)]
	t.rest = t.rest[size+int(h.Length):]
	m, _, err := jxta.ParseMessage(body, jxta.DefaultLimits)
	from, n, _, ok := numbered(m.Elements)
	if err == nil && ok && from == t.from.site.name { // a rendezvous gives its own site's messages to all peers here
		t.from.mu.Lock()
		if n < len(t.from.said) {
			t.from.said[n].came = true
		}
		t.from.mu.Unlock()
	}
	return true
}
