// Package packed reads files that gzip, zstd or xz has packed, as a stream and with bounded memory, because captures are often kept
// packed.
package packed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"
)

// mostWindow is how many unpacked octets a reader keeps at the most: xz -9 needs 64 MiB, zstd --long 128 MiB.
const mostWindow = 128 << 20

// Reasons for which a packed file is not unpacked.
var (
	errWindow  = fmt.Errorf("unpacking it would take more than %d MiB of memory", mostWindow>>20)
	errPacked  = errors.New("what is packed in it is damaged")
	errFilters = errors.New("it is packed by xz with filters that are not read")
)

// Reader gives the octets of a file, unpacked if gzip, zstd or xz has packed it. It reads the file as a stream: however long the contents
// are, it takes no more memory than mostWindow and some buffers. Errors of reading are errWindow, errPacked, errFilters,
// io.ErrUnexpectedEOF if the file is cut off, those of compress/gzip, or those of in.
func Reader(in io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(in, 1<<16)
	head, err := b.Peek(6)
	switch {
	case len(head) < 2 || err != nil && !errors.Is(err, io.EOF):
		return b, nil
	case head[0] == 0x1f && head[1] == 0x8b:
		return gzip.NewReader(b)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		d, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, err
		}
		return zst{d}, nil
	case bytes.Equal(head, []byte(xzMagic)):
		return &xz{in: octetCount{r: b}}, nil
	}
	return b, nil
}

// zst gives errors of zstd the names in Reader's comment.
type zst struct{ d *zstd.Decoder }

func (z zst) Read(p []byte) (int, error) {
	n, err := z.d.Read(p)
	switch {
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return n, err
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return n, errWindow
	}
	return n, fmt.Errorf("%w: %w", errPacked, err)
}

const (
	xzMagic    = "\xfd7zXZ\x00"
	xzFilter   = 0x21 // LZMA2, the only one that is read
	mostBlocks = 1 << 24

	// A block needs a window of its own, however few octets it has. The windows of a file may take mostWindows octets in all, and
	// windowsEachOctet more for each octet unpacked.
	mostWindows      = 16 * mostWindow
	windowsEachOctet = 1024
)

// xz reads an .xz file, block by block. The module that reads LZMA2 also has a reader of such files, but that takes as much memory as a
// file asks for.
type xz struct {
	in     octetCount
	flags  [2]byte
	sum    hash.Hash // of the block's contents; nil: the stream has no checksums
	block  *lzma.Reader2
	began  int64 // start of the block's LZMA2 data
	blocks uint64
	asked  int64 // octets of windows
	out    int64 // octets that were unpacked
	open   bool  // a stream has begun
	err    error
}

// octetCount counts the octets read.
type octetCount struct {
	r *bufio.Reader
	n int64
}

func (c *octetCount) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// take reads n octets.
func (c *octetCount) take(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

func (c *octetCount) ReadByte() (byte, error) {
	b, err := c.take(1)
	return b[0], err
}

// pad reads zeros up to a multiple of four octets, after n octets.
func (c *octetCount) pad(n int64) error {
	b, err := c.take(int(-n & 3))
	if err == nil && len(bytes.Trim(b, "\x00")) > 0 {
		err = errPacked
	}
	return err
}

func (x *xz) Read(p []byte) (n int, err error) {
	for n == 0 && x.err == nil && len(p) > 0 {
		switch {
		case !x.open:
			x.err = x.stream()
		case x.block == nil:
			x.err = x.next()
		default:
			n, err = x.block.Read(p)
			x.out += int64(n)
			if x.sum != nil {
				x.sum.Write(p[:n])
			}
			switch {
			case errors.Is(err, io.EOF):
				x.err = x.close()
			case errors.Is(err, io.ErrUnexpectedEOF):
				x.err = err
			case err != nil:
				x.err = fmt.Errorf("%w: %w", errPacked, err)
			}
		}
	}
	if n > 0 {
		return n, nil
	}
	return 0, x.err
}

// sealed says that sum is the CRC-32 of b.
func sealed(b, sum []byte) bool { return crc32.ChecksumIEEE(b) == binary.LittleEndian.Uint32(sum) }

// stream begins the next stream of the file, after any zeros, or says that there is none.
func (x *xz) stream() error {
	for {
		head, err := x.in.r.Peek(4)
		switch {
		case errors.Is(err, io.EOF) && len(head) == 0:
			return io.EOF
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if !bytes.Equal(head, make([]byte, 4)) {
			break
		}
		x.in.r.Discard(4)
	}
	h, err := x.in.take(12)
	switch {
	case err != nil:
		return err
	case string(h[:6]) != xzMagic || !sealed(h[6:8], h[8:]):
		return errPacked
	}
	x.open, x.blocks, x.flags = true, 0, [2]byte(h[6:8])
	switch x.flags {
	case [2]byte{0, 0}:
		x.sum = nil
	case [2]byte{0, 1}:
		x.sum = crc32.NewIEEE()
	case [2]byte{0, 4}:
		x.sum = crc64.New(crc64.MakeTable(crc64.ECMA))
	case [2]byte{0, 10}:
		x.sum = sha256.New()
	default:
		return errFilters
	}
	return nil
}

// next begins the next block, or ends the stream.
func (x *xz) next() error {
	size, err := x.in.ReadByte()
	switch {
	case err != nil:
		return err
	case size == 0:
		return x.end()
	}
	rest, err := x.in.take(4*int(size) + 3)
	if err != nil {
		return err
	}
	h := append([]byte{size}, rest...)
	h, sum := h[:len(h)-4], h[len(h)-4:]
	if !sealed(h, sum) {
		return errPacked
	}
	flags, h := h[1], h[2:]
	for _, known := range []byte{0x40, 0x80} { // the lengths of the block, which its end shows too
		if flags&known != 0 {
			_, n := binary.Uvarint(h)
			if n <= 0 {
				return errPacked
			}
			h = h[n:]
		}
	}
	switch {
	case flags&0x3f != 0 || len(h) < 3 || h[0] != xzFilter || h[1] != 1:
		return errFilters
	case h[2] > 40:
		return errPacked
	}
	window, err := lzma.DecodeDictCap(h[2])
	if err != nil {
		return errPacked
	}
	if window > mostWindow {
		return errWindow
	}
	x.asked += window
	if x.asked > mostWindows+windowsEachOctet*x.out {
		return errWindow
	}
	x.began = x.in.n
	if x.sum != nil {
		x.sum.Reset()
	}
	x.blocks++
	if x.blocks > mostBlocks {
		return errPacked
	}
	x.block, err = lzma.Reader2Config{DictCap: int(max(window, lzma.MinDictCap))}.NewReader2(&x.in)
	return err
}

// close checks the padding and the checksum after a block.
func (x *xz) close() error {
	x.block = nil
	if err := x.in.pad(x.in.n - x.began); err != nil || x.sum == nil {
		return err
	}
	sum, err := x.in.take(x.sum.Size())
	if err != nil {
		return err
	}
	want := x.sum.Sum(nil)
	if x.sum.Size() < sha256.Size { // CRCs have their low octet first
		for i := range len(want) / 2 {
			want[i], want[len(want)-1-i] = want[len(want)-1-i], want[i]
		}
	}
	if !bytes.Equal(sum, want) {
		return errPacked
	}
	return nil
}

// end reads the list of blocks and the end of the stream.
func (x *xz) end() error {
	began := x.in.n - 1
	for i := uint64(0); i < 1+2*x.blocks; i++ {
		n, err := binary.ReadUvarint(&x.in)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return errPacked
		case i == 0 && n != x.blocks:
			return errPacked
		}
	}
	if err := x.in.pad(x.in.n - began); err != nil {
		return err
	}
	foot, err := x.in.take(4 + 12)
	switch {
	case err != nil:
		return err
	case !sealed(foot[8:14], foot[4:]) || [2]byte(foot[12:14]) != x.flags || string(foot[14:]) != "YZ":
		return errPacked
	}
	x.open = false
	return nil
}
