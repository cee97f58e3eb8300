package linkemu

import (
	"compress/flate"
)

// compressor is the modems' compression of one direction: Deflate over the stream, as PPP has it (RFC 1979), so that each
// packet is coded after those before it.
type compressor struct {
	before []byte // what was sent, the newest last
	size   counter
}

// maxBefore is the window of Deflate.
const maxBefore = 32 << 10

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// octets is how many of a frame's octets are left. What the frame has before its data, headers, is taken for zeros. A
// packet that does not shrink goes as it is.
func (c *compressor) octets(f Frame) int {
	text := append(make([]byte, max(0, f.Octets-len(f.Data))), f.Data...)
	c.size = 0
	w, err := flate.NewWriterDict(&c.size, flate.DefaultCompression, c.before)
	if err != nil { // of an unknown level only
		panic(err)
	}
	_, _ = w.Write(text) // a counter fails never
	_ = w.Flush()
	const mark = 4 // of the flush, which PPP leaves out
	c.before = append(c.before, text...)
	if len(c.before) > 2*maxBefore {
		c.before = append(c.before[:0], c.before[len(c.before)-maxBefore:]...)
	}
	return min(int(c.size)-mark, f.Octets)
}
