package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"aldis/internal/infile"
	"aldis/internal/lab/trace"
	"aldis/internal/link/compact/teach"
)

// Bounds of the samples that are read for a corpus.
const (
	mostSamples      = 50_000
	mostSampleOctets = 64 << 20
)

// samples reads messages from files, directories, captures and traces.
type samples struct {
	lines  bool // each line of a file that is neither capture nor trace is a message
	list   []teach.Sample
	octets int
	stderr io.Writer
}

func (s *samples) add(text []byte, from string) error {
	if len(text) == 0 {
		return nil
	}
	if s.octets += len(text); s.octets > mostSampleOctets || len(s.list) >= mostSamples {
		return fmt.Errorf("more than %d samples, or than %d MB of them: name fewer, a few hundred of each kind are enough", mostSamples, mostSampleOctets>>20)
	}
	s.list = append(s.list, teach.Sample{Text: bytes.Clone(text), From: from})
	return nil
}

// path reads a file, or all below a directory but what a dot hides.
func (s *samples) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return s.file(path)
	}
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		switch hidden := name != path && d != nil && d.Name()[0] == '.'; {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return filepath.SkipDir
		case !hidden && d.Type().IsRegular():
			return s.file(name)
		}
		return nil
	})
}

// captureMarks begin captures; traceMark a trace.
var captureMarks = []string{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x0a\x0d\x0d\x0a"}

const traceMark = `{"aldis_trace":`

func (s *samples) file(path string) error {
	f, err := infile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := unpacked(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(in, mostSampleOctets+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, mark := range captureMarks {
		if bytes.HasPrefix(b, []byte(mark)) {
			return s.capture(path)
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte(traceMark)):
		return s.trace(path, b)
	case !s.lines:
		return s.add(b, path)
	}
	for line := range bytes.Lines(b) {
		if err := s.add(bytes.TrimRight(line, "\r\n"), path); err != nil {
			return err
		}
	}
	return nil
}

// capture reads what applications said in a capture, of any size.
func (s *samples) capture(path string) error {
	var full error
	a := trace.New(trace.Options{Sink: func(e trace.Event) {
		for _, part := range e.Elements {
			if full == nil && !e.Echo {
				full = s.add(part.Data, path)
			}
		}
	}})
	before := len(s.list)
	broken, err := readCapture(path, s.stderr, a.Add, a.Dropped)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	a.Finish()
	switch {
	case full != nil:
		return full
	case broken != nil:
		fmt.Fprintf(s.stderr, "gateway corpus: %s: read as far as it goes: %v\n", path, broken)
	case len(s.list) == before:
		fmt.Fprintf(s.stderr, "gateway corpus: %s: no message of a JXTA application is in this capture; give other formats as files\n", path)
	}
	return nil
}

// trace reads the content of a trace that has it.
func (s *samples) trace(path string, b []byte) error {
	f, err := trace.ReadFile(bytes.NewReader(b))
	if f == nil {
		return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	before := len(s.list)
	for _, l := range f.Lines {
		for _, p := range l.Parts {
			if err := s.add(p.Content(), path); err != nil {
				return err
			}
		}
	}
	if len(s.list) == before {
		fmt.Fprintf(s.stderr, "gateway corpus: %s: this trace has sizes and no content\n", path)
	}
	return nil
}
