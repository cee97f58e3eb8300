package lan

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const firstChunk = 64 << 10 // octets of a body that every connection may hold; more is taken from MaxReading

// body reads size octets. The buffer grows with what has come, not with what was announced; held is what it took of
// the room's common allowance, to be given back. What has come is answered with an error too.
func (l *LAN) body(r io.Reader, deadline func(time.Time) error, size int) (body []byte, held int, err error) {
	buf := bytes.NewBuffer(make([]byte, 0, min(size, firstChunk)))
	for buf.Len() < size {
		if err := deadline(time.Now().Add(l.cfg.ReadStall)); err != nil {
			return buf.Bytes(), held, err
		}
		chunk := min(size-buf.Len(), firstChunk)
		if buf.Available() < chunk {
			grow := min(max(buf.Cap(), chunk), size-buf.Cap())
			if l.reading.Add(int64(grow)) > int64(l.cfg.MaxReading) {
				return buf.Bytes(), held + grow, errMemory
			}
			held += grow
			bigger := bytes.NewBuffer(make([]byte, 0, buf.Cap()+grow))
			bigger.Write(buf.Bytes())
			buf = bigger
		}
		part := buf.AvailableBuffer()[:min(chunk, buf.Available())]
		got, err := io.ReadFull(r, part)
		buf.Write(part[:got])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return buf.Bytes(), held, err
		}
	}
	return buf.Bytes(), held, nil
}
