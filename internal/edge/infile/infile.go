// Package infile opens files that an operator has named, and refuses anything that is not a regular file: a named pipe
// would block a command until somebody writes to it, and a device never ends.
package infile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file for reading. It never waits. The error is an fs.PathError.
func Open(path string) (*os.File, error) { return OpenAs(path, os.O_RDONLY, 0) }

// OpenAs is os.OpenFile of a file, and of nothing else. It never waits.
func OpenAs(path string, flags int, mode fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ENXIO) { // a named pipe that nobody reads, or a socket
		return nil, refused(path, fs.ModeNamedPipe)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refused(path, info.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func refused(path string, mode fs.FileMode) error {
	what := "is not a file but a device"
	switch {
	case mode.IsDir():
		what = "is a directory, which is not a file"
	case mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		what = "is not a file but a pipe or socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: errors.New(what)}
}

// Read is the whole of a file of at most so many octets. The error is an fs.PathError.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(max(info.Size(), 0), most)) + bytes.MinRead)
	n, err := b.ReadFrom(io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("has %d octets, at most %d are read", max(info.Size(), n), most)}
	}
	return b.Bytes(), err
}

// Why is an error about a file without the file's name, for callers that have named it already.
func Why(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
