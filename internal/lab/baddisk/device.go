package baddisk

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// childName is the name of the process that serves the device. It has to be a separate one: a program that waits in a page fault for an
// answer from itself would wait for ever.
const childName = "aldis-baddisk"

// The child's files.
const (
	childFuse   = 3
	childOrders = 4
	childTold   = 5
)

func init() {
	if os.Args[0] != childName {
		return
	}
	if err := child(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// order is a command to the child: a failure, or nil for a sound device. The child answers with the number of requests refused so far.
type order struct {
	Change  bool
	To      *Failure
	Forgets bool // the device loses power and keeps only the flushed pages
}

// child serves the device until its file is unmounted.
func child() error {
	d := &device{octets: make([]byte, Octets), fuse: childFuse}
	go func() {
		in, out := gob.NewDecoder(os.NewFile(childOrders, "orders")), gob.NewEncoder(os.NewFile(childTold, "told"))
		for {
			var o order
			if in.Decode(&o) != nil || out.Encode(d.apply(o)) != nil {
				os.Exit(0) // the test is over
			}
		}
	}()
	return d.serve()
}

// device is the store that the kernel takes for a device.
type device struct {
	fuse int

	mu      sync.Mutex
	octets  []byte
	flushed map[int64][]byte // pages as the last flush left them, for those written since; nil: there was no flush yet
	failure *Failure
	writes  int // writes to the failure's part since the failure was ordered
	refused int
}

func (d *device) apply(o order) (refused int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Change {
		d.failure, d.writes = o.To, 0
	}
	if o.Forgets {
		for at, page := range d.flushed {
			copy(d.octets[at:], page)
		}
		clear(d.flushed)
	}
	return d.refused
}

// refuse says whether a request fails.
func (d *device) refuse(at, n int64, writes bool) bool {
	f := d.failure
	if f == nil || at+n <= f.From {
		return false
	}
	if writes {
		d.writes++
	}
	if d.writes <= f.After || writes && !f.Writes || !writes && !f.Reads {
		return false
	}
	d.refused++
	return true
}

func (d *device) read(out []byte, at int64, n int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse(at, int64(n), false) {
		return out, unix.EIO
	}
	if at < 0 || at >= int64(len(d.octets)) {
		return out, nil
	}
	return append(out, d.octets[at:min(at+int64(n), int64(len(d.octets)))]...), nil
}

func (d *device) write(b []byte, at int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at < 0 || at+int64(len(b)) > int64(len(d.octets)) {
		return unix.ENOSPC
	}
	if d.refuse(at, int64(len(b)), true) {
		return unix.EIO
	}
	for page := at / pageOctets * pageOctets; d.flushed != nil && page < at+int64(len(b)); page += pageOctets {
		if _, kept := d.flushed[page]; !kept {
			d.flushed[page] = bytes.Clone(d.octets[page : page+pageOctets])
		}
	}
	copy(d.octets[at:], b)
	return nil
}

const pageOctets = 4096

// flush makes cached writes durable. A device that fails as a whole fails here too.
func (d *device) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.failure; f != nil && f.Slow > 0 {
		d.mu.Unlock()
		time.Sleep(f.Slow)
		d.mu.Lock()
	}
	if f := d.failure; f != nil && f.From == 0 && f.Writes && d.writes >= f.After {
		d.refused++
		return unix.EIO
	}
	d.flushed = map[int64][]byte{}
	return nil
}
