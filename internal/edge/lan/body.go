package lan

import (
	"errors"
	"io"
	"time"
)

const firstChunk = 64 << 10 // octets of a body that every connection may hold; more is taken from MaxReading

// body reads size octets. The buffer grows with what has come, not with what was announced. Beyond the first chunk it
// takes room for it, which goes on the bill, and waits for that if need be. What has come is answered with an error too.
func (l *LAN) body(r io.Reader, deadline func(time.Time) error, gone <-chan struct{}, b *bill, size int) ([]byte, error) {
	buf := make([]byte, 0, min(size, firstChunk))
	for len(buf) < size {
		chunk := min(size-len(buf), firstChunk)
		if cap(buf)-len(buf) < chunk {
			grow := min(max(cap(buf), chunk), size-cap(buf))
			if err := l.room.reserve(b, grow, gone); err != nil {
				return buf, err
			}
			bigger := make([]byte, cap(buf)+grow)
			buf = bigger[:copy(bigger, buf)]
		}
		if err := deadline(time.Now().Add(l.cfg.ReadStall)); err != nil {
			return buf, err
		}
		if !l.room.arrived(b, 0) {
			return buf, errMemory
		}
		got, err := io.ReadFull(r, buf[len(buf):len(buf)+min(chunk, cap(buf)-len(buf))])
		buf = buf[:len(buf)+got]
		if !l.room.arrived(b, got) {
			return buf, errMemory
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return buf, err
		}
	}
	return buf, nil
}
