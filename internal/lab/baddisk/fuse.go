package baddisk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Operations of FUSE (linux/fuse.h) on a single file of fixed size. All others get ENOSYS.
const (
	opLookup      = 1
	opForget      = 2
	opGetattr     = 3
	opSetattr     = 4
	opOpen        = 14
	opRead        = 15
	opWrite       = 16
	opStatfs      = 17
	opRelease     = 18
	opFsync       = 20
	opFlush       = 25
	opInit        = 26
	opInterrupt   = 36
	opDestroy     = 38
	opBatchForget = 42

	inHead, outHead = 40, 16
	writeHead       = 40
	rootNode, node  = 1, 2
	directIO        = 1 // for an open file: the kernel caches none of it
	maxWrite        = 128 << 10
	imageName       = "image"
	forever         = 1 << 30 // seconds
)

// serve answers the kernel until the file is unmounted.
func (d *device) serve() error {
	in, out := make([]byte, maxWrite+4096), make([]byte, 0, maxWrite+4096)
	for {
		n, err := unix.Read(d.fuse, in)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOENT):
			continue
		case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ECONNABORTED): // the latter when a request was under way
			return nil
		case err != nil:
			return fmt.Errorf("baddisk: %w", err)
		case n < inHead:
			return fmt.Errorf("baddisk: the kernel asks with %d octets", n)
		}
		le := binary.LittleEndian
		op, id, on := le.Uint32(in[4:]), le.Uint64(in[8:]), le.Uint64(in[16:])
		if op == opForget || op == opBatchForget || op == opInterrupt {
			continue // needs no answer
		}
		out = out[:outHead]
		clear(out)
		out, err = d.answer(out, op, on, in[inHead:n])
		var number unix.Errno
		if errors.As(err, &number) {
			out = out[:outHead]
			le.PutUint32(out[4:], uint32(-int32(number)))
		}
		le.PutUint32(out, uint32(len(out)))
		le.PutUint64(out[8:], id)
		if _, err := unix.Write(d.fuse, out); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ECONNABORTED) {
			return fmt.Errorf("baddisk: answer to operation %d: %w", op, err)
		}
	}
}

// answer appends the answer to one operation.
func (d *device) answer(out []byte, op uint32, on uint64, in []byte) ([]byte, error) {
	le := binary.LittleEndian
	zero := func(n int) { out = append(out, make([]byte, n)...) }
	switch op {
	case opInit:
		for _, n := range []uint32{7, 31, le.Uint32(in[8:]), 0, 0, maxWrite, 1} { // version, read ahead, flags, background, octets of a write, granularity of times
			out = le.AppendUint32(out, n)
		}
		zero(36)
	case opLookup:
		if on != rootNode || string(in[:len(in)-1]) != imageName {
			return out, unix.ENOENT
		}
		for _, n := range []uint64{node, 1, forever, forever, 0} { // node, generation, valid for so long
			out = le.AppendUint64(out, n)
		}
		out = d.attributes(out, node)
	case opGetattr, opSetattr:
		out = le.AppendUint64(le.AppendUint64(out, forever), 0)
		out = d.attributes(out, on)
	case opOpen:
		out = le.AppendUint64(le.AppendUint64(out, 1), directIO)
	case opRead:
		return d.read(out, int64(le.Uint64(in[8:])), int(le.Uint32(in[16:])))
	case opWrite:
		n := int(le.Uint32(in[16:]))
		if err := d.write(in[writeHead:writeHead+n], int64(le.Uint64(in[8:]))); err != nil {
			return out, err
		}
		out = le.AppendUint64(out, uint64(n))
	case opFsync, opFlush:
		return out, d.flush()
	case opStatfs:
		zero(80)
	case opRelease, opDestroy:
	default:
		return out, unix.ENOSYS
	}
	return out, nil
}

func (d *device) attributes(out []byte, of uint64) []byte {
	le := binary.LittleEndian
	mode, size := uint32(unix.S_IFDIR|0o700), uint64(0)
	if of == node {
		mode, size = unix.S_IFREG|0o600, uint64(len(d.octets))
	}
	for _, n := range []uint64{of, size, size / 512, 0, 0, 0} { // number, size, blocks, times
		out = le.AppendUint64(out, n)
	}
	for _, n := range []uint32{0, 0, 0, mode, 1, 0, 0, 0, 4096, 0} { // times, mode, links, owner, device, block, flags
		out = le.AppendUint32(out, n)
	}
	return out
}
