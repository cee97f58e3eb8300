package compact

import (
	"bytes"
	"errors"
	"testing"
)

// Octets after a code are an error with every codec, except zeros after a code of deflate.
func TestOctetsBehindACode(t *testing.T) {
	m := NewMaker(52, testWords)
	text := m.Spec(Pretty)
	var c Coder
	var plain Coder
	plain.NoModel = true
	ids, _ := plain.Append(nil, text)
	taken := bytes.Clone(c.Deflated(m.Employees(3)))
	const limit = 1 << 20
	// Blocks of a short text: Append makes them of a text of more than a mebioctet only (TestBlocksHaveNoStep).
	codes := map[Codec][]byte{Tokens: ids, Deflated: taken, Blocks: inBlocks(t, m.Employees(120), blockOctets, atOnce)}
	for _, text := range [][]byte{text, []byte("A line of text, and nothing else.\n"), bytes.Repeat([]byte("one line 1234\n"), 2000)} {
		code, codec := c.Append(nil, text)
		codes[codec] = bytes.Clone(code)
	}
	for codec, code := range codes {
		if _, err := c.Expand(codec, code, limit); err != nil {
			t.Errorf("%v: %v", codec, err)
		}
		for _, behind := range [][]byte{{0}, {255}, {0, 0, 0, 0, 0}, []byte("some more")} {
			if _, is := codings[codec].(deflated); is && behind[0] == 0 {
				continue
			}
			if _, err := c.Expand(codec, append(bytes.Clone(code), behind...), limit); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v with %x behind it: %v", codec, behind, err)
			}
		}
	}
	if len(codes) < 6 {
		t.Errorf("only %d codecs", len(codes))
	}
}
