package commands

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/packed"
	"aldis/internal/lab/teach"
)

// Bounds of the samples that are read for a corpus.
const (
	mostSamples      = 50_000
	mostSampleOctets = 64 << 20
)

// samples reads messages from files and directories, and from captures and traces.
type samples struct {
	lines   bool // each line of a file that is neither a capture nor a trace is a message
	traffic traffics
	list    []teach.Sample
	octets  int
}

func (s *samples) add(text []byte, from string) error {
	if len(text) == 0 {
		return nil
	}
	s.octets += len(text)
	if s.octets > mostSampleOctets || len(s.list) >= mostSamples {
		return fmt.Errorf("more than %d samples, or than %d MB of them: name fewer, a few hundred of each kind are enough", mostSamples, mostSampleOctets>>20)
	}
	s.list = append(s.list, teach.Sample{Text: bytes.Clone(text), From: from})
	return nil
}

// path reads a file, or all files below a directory except those whose names begin with a dot.
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

// trafficMarks begin captures, and traceMark a trace.
var trafficMarks = []string{"\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x0a\x0d\x0d\x0a", traceMark}

// traceMark begins a trace.
const traceMark = `{"aldis_trace":`

func (s *samples) file(path string) error {
	f, err := infile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := packed.Reader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(in, mostSampleOctets+1))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case isTraffic(b):
		return s.traffic.read(path, b, func(message []byte) error { return s.add(message, path) })
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

func isTraffic(b []byte) bool {
	return slices.ContainsFunc(trafficMarks, func(mark string) bool { return bytes.HasPrefix(b, []byte(mark)) })
}
