package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"aldis/internal/lab/trace"
)

// clearCapture is the file of gateway analyse --decrypt. Only its owner may read it, because it shows the data that the key protects.
type clearCapture struct {
	f              *os.File
	w              *bufio.Writer
	opened, sealed int
	err            error
}

// newClearCapture begins the file; it must not be the capture itself.
func newClearCapture(path, capture string) (*clearCapture, error) {
	if a, err := os.Stat(path); err == nil {
		if b, err := os.Stat(capture); err == nil && os.SameFile(a, b) {
			return nil, errors.New("that is the capture that is read: name another file")
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	c := &clearCapture{f: f, w: bufio.NewWriter(f)}
	c.err = errors.Join(f.Chmod(0o600), trace.WriteClearHead(c.w))
	return c, nil
}

func (c *clearCapture) add(d trace.Clear) {
	if d.Opened {
		c.opened++
	} else {
		c.sealed++
	}
	if c.err == nil {
		c.err = d.Write(c.w)
	}
}

// close closes the file and, if the capture was read, prints what the file holds.
func (c *clearCapture) close(stderr io.Writer, read bool) error {
	err := errors.Join(c.err, c.w.Flush(), c.f.Close())
	if err == nil && read {
		fmt.Fprintf(stderr, "%s: %d datagrams in clear, %d as they were. Whoever reads it reads every message: remove it when it is not needed.\n", c.f.Name(), c.opened, c.sealed)
	}
	return err
}
