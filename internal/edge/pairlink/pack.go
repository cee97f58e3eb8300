package pairlink

import (
	"bufio"
	"compress/flate"
	"io"
)

// Machines that have greeted each other pack what follows, if both can (greeting.Packs). Records and messages of raft repeat themselves:
// of a message of 200 octets without repetitions, little more than its content remains.

// packLevel is the level of DEFLATE. The levels below do not compare short writes with earlier ones; those above are slower and gain 4 %.
const packLevel = 2

// writer is where frames go. The other end has them all after Flush.
type writer interface {
	io.Writer
	Flush() error
}

// packer packs what is written, over the frames, with a window of 32 KiB.
type packer struct {
	*flate.Writer
	to *bufio.Writer
}

// packs is a packer that writes to w. It takes 0.8 MB of memory.
func packs(w io.Writer) packer {
	to := bufio.NewWriterSize(w, 64<<10)
	f, _ := flate.NewWriter(to, packLevel) // the level is one that there is
	return packer{f, to}
}

func (p packer) Flush() error {
	if err := p.Writer.Flush(); err != nil {
		return err
	}
	return p.to.Flush()
}

// unpacks reads what a packer has written. Its memory is the window, whatever comes; readFrame bounds the frames.
func unpacks(r *bufio.Reader) *bufio.Reader { return bufio.NewReader(flate.NewReader(r)) }
