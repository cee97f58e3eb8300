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
	long := bytes.Repeat(m.Employees(40), 200)
	codes := map[Codec][]byte{Tokens: ids, Deflated: taken}
	for _, text := range [][]byte{text, []byte("A line of text, and nothing else.\n"), bytes.Repeat([]byte("one line 1234\n"), 2000), long[:MaxModelled+1]} {
		code, codec := c.Append(nil, text)
		codes[codec] = bytes.Clone(code)
	}
	for codec, code := range codes {
		if _, err := c.Expand(codec, code, len(long)); err != nil {
			t.Errorf("%v: %v", codec, err)
		}
		for _, behind := range [][]byte{{0}, {255}, {0, 0, 0, 0, 0}, []byte("some more")} {
			if _, is := codings[codec].(deflated); is && behind[0] == 0 {
				continue
			}
			if _, err := c.Expand(codec, append(bytes.Clone(code), behind...), 2*len(long)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v with %x behind it: %v", codec, behind, err)
			}
		}
	}
	if len(codes) < 6 {
		t.Errorf("only %d codecs", len(codes))
	}
}
