package lan

import (
	"errors"
	"io"
	"sync"
	"time"
)

const firstChunk = 64 << 10 // octets of a body that every connection may hold; more is taken from MaxReading

// chunks are the buffers of bodies that are being read, kept for reuse: otherwise a large body would leave as much garbage
// behind.
var chunks = sync.Pool{New: func() any { return new([firstChunk]byte) }}

// reading is a body that is being read.
type reading struct {
	lan      *LAN
	r        io.Reader
	deadline func(time.Time) error
	bill     *bill
}

// body reads size octets. Its memory grows with the octets that have come, not with the announced size: it reads the first half
// in chunks, and then allocates room for the whole body. Beyond the first chunk it reserves room, which is charged to b, and
// waits for room if it must. With an error it returns the octets that have come.
func (l *LAN) body(r io.Reader, deadline func(time.Time) error, gone <-chan struct{}, b *bill, size int) ([]byte, error) {
	in := reading{l, r, deadline, b}
	if size <= firstChunk {
		buf := make([]byte, size)
		n, err := in.fill(buf)
		return buf[:n], err
	}
	var held []*[firstChunk]byte
	defer func() {
		for _, c := range held {
			chunks.Put(c)
		}
	}()
	came := 0
	var err error
	for came < (size+1)/2 && err == nil {
		if came > 0 {
			err = l.room.reserve(b, firstChunk, gone)
		}
		if err == nil {
			c := chunks.Get().(*[firstChunk]byte)
			held = append(held, c)
			var n int
			n, err = in.fill(c[:min(firstChunk, size-came)])
			came += n
		}
	}
	rest := size
	if err == nil {
		err = l.room.reserve(b, max(0, size-firstChunk*len(held)), gone)
	}
	if err != nil {
		rest = came
	}
	buf := make([]byte, 0, rest)
	for _, c := range held {
		buf = append(buf, c[:min(firstChunk, came-len(buf))]...)
	}
	for len(buf) < rest && err == nil {
		var n int
		n, err = in.fill(buf[len(buf):min(len(buf)+firstChunk, rest)])
		buf = buf[:len(buf)+n]
	}
	return buf, err
}

// fill reads octets until buf is full.
func (in reading) fill(buf []byte) (n int, err error) {
	if err := in.deadline(time.Now().Add(in.lan.cfg.ReadStall)); err != nil {
		return 0, err
	}
	if !in.lan.room.arrived(in.bill, 0) {
		return 0, errMemory
	}
	n, err = io.ReadFull(in.r, buf)
	if !in.lan.room.arrived(in.bill, n) {
		return n, errMemory
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
