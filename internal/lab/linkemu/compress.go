package linkemu

import (
	"compress/flate"
)

// compressor is the modems' compression of one direction: Deflate over the stream, as PPP has it (RFC 1979), so that each
// packet is coded after those before it.
type compressor struct {
	before []byte // the octets sent, the newest last
	size   counter
}

// maxBefore is the window of Deflate.
const maxBefore = 32 << 10

// counter counts the octets written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// octets is the length of a frame after compression. The octets before its data, which are headers, count as zeros. A packet that does
// not shrink goes unchanged.
func (c *compressor) octets(f Frame) int {
	text := append(make([]byte, max(0, f.Octets-len(f.Data))), f.Data...)
	c.size = 0
	w, err := flate.NewWriterDict(&c.size, flate.DefaultCompression, c.before)
	if err != nil { // for an unknown level only
		panic(err)
	}
	_, _ = w.Write(text) // a counter never fails
	_ = w.Flush()
	const mark = 4 // of the flush, which PPP leaves out
	c.before = append(c.before, text...)
	if len(c.before) > 2*maxBefore {
		c.before = append(c.before[:0], c.before[len(c.before)-maxBefore:]...)
	}
	return min(int(c.size)-mark, f.Octets)
}
