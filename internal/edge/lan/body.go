package lan

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const firstChunk = 64 << 10 // octets of a body that every connection may hold; more is taken from MaxReading

// body reads size octets. The buffer grows with what has come, not with what was announced. Beyond the first chunk it
// takes room for it, which goes on the bill, and waits for that if need be. What has come is answered with an error too.
func (l *LAN) body(r io.Reader, deadline func(time.Time) error, gone <-chan struct{}, b *bill, size int) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, min(size, firstChunk)))
	for buf.Len() < size {
		chunk := min(size-buf.Len(), firstChunk)
		if buf.Available() < chunk {
			grow := min(max(buf.Cap(), chunk), size-buf.Cap())
			if err := l.room.reserve(b, grow, gone); err != nil {
				return buf.Bytes(), err
			}
			bigger := bytes.NewBuffer(make([]byte, 0, buf.Cap()+grow))
			bigger.Write(buf.Bytes())
			buf = bigger
		}
		if err := deadline(time.Now().Add(l.cfg.ReadStall)); err != nil {
			return buf.Bytes(), err
		}
		if !l.room.arrived(b, 0) {
			return buf.Bytes(), errMemory
		}
		part := buf.AvailableBuffer()[:min(chunk, buf.Available())]
		got, err := io.ReadFull(r, part)
		buf.Write(part[:got])
		if !l.room.arrived(b, got) {
			return buf.Bytes(), errMemory
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return buf.Bytes(), err
		}
	}
	return buf.Bytes(), nil
}
