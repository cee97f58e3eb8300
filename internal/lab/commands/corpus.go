package commands

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"aldis/internal/lab/primer"
	"aldis/internal/lab/trace"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
)

const labCorpusAbout = `usage: gateway corpus build -o FILE SAMPLES... [--mask] [--lines] [--json]
       gateway corpus [--write DIR]

What gateway corpus has done here: a network's own corpus of samples, and the model that is built in.
`

// labCorpusCommand is the part of corpus that makes a corpus of samples, and the part that makes the model.
func labCorpusCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("corpus", flag.ContinueOnError)
	write := fs.String("write", "", "`directory` to write the model and its vectors to: internal/link/compact of the source")
	var b corpusOrder
	b.flags(fs)
	rest, code, done := cli.Parse(fs, args, math.MaxInt, labCorpusAbout, stdout, stderr)
	switch {
	case done:
		return code
	case len(rest) > 0 && rest[0] != "build":
		fmt.Fprintf(stderr, "gateway corpus: %q is not build\n\n%s", rest[0], labCorpusAbout)
		return cli.ExitUsage
	}
	var err error
	if len(rest) > 0 {
		err = b.build(rest[1:], stdout, stderr)
	} else {
		err = model(*write, stdout)
	}
	if err != nil {
		return cli.Fail(stderr, "corpus", err)
	}
	return cli.ExitGood
}

// model makes the built-in model from its corpus, and writes it into a directory or compares it.
func model(dir string, stdout io.Writer) error {
	text := primer.Corpus()
	model, err := compact.BuildModel(text)
	if err != nil {
		return err
	}
	short := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:8])
	}
	fmt.Fprintf(stdout, "corpus   %7d octets, %4d messages, %s\n", len(text), bytes.Count(text, []byte("\n== "))+1, short(text))
	fmt.Fprintf(stdout, "model    %7d octets, version %d, %s\n", len(model), compact.ModelVersion, short(model))
	same := bytes.Equal(model, compact.ModelImage())
	switch {
	case dir != "":
		return writeModel(dir, model, same, stdout)
	case !same:
		hash := compact.ModelHash()
		return errors.New("the model built in is " + hex.EncodeToString(hash[:8]) + ": not what this corpus makes")
	}
	fmt.Fprintln(stdout, "the model built in is the same")
	return nil
}

// writeModel writes the model, and the known codes as the built-in model makes them.
func writeModel(dir string, model []byte, same bool, stdout io.Writer) error {
	file := filepath.Join(dir, "testdata", "vectors.txt")
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	vectors, err := compact.Vectors(old)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.bin"), model, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(file, vectors, 0o644); err != nil {
		return err
	}
	if !same {
		fmt.Fprintln(stdout, "the model has changed: build again and write once more, for the vectors; then raise ModelVersion if one was released")
	}
	return nil
}

// traffics reads the messages of captures and traces.
type traffics struct{ stderr io.Writer }

func (t traffics) read(path string, content []byte, add func([]byte) error) error {
	found := 0
	counted := func(text []byte) error {
		if len(text) > 0 {
			found++
		}
		return add(text)
	}
	if bytes.HasPrefix(content, []byte(traceMark)) {
		err := t.trace(path, content, counted)
		if err == nil && found == 0 {
			fmt.Fprintf(t.stderr, "gateway corpus: %s: this trace has sizes and no content\n", path)
		}
		return err
	}
	broken, err := t.capture(path, counted)
	switch {
	case err != nil:
		return err
	case broken != nil:
		fmt.Fprintf(t.stderr, "gateway corpus: %s: read as far as it goes: %v\n", path, broken)
	case found == 0:
		fmt.Fprintf(t.stderr, "gateway corpus: %s: no message of a JXTA application is in this capture; give other formats as files\n", path)
	}
	return nil
}

// capture reads the messages of applications in a capture of any size.
func (t traffics) capture(path string, add func([]byte) error) (broken, err error) {
	var full error
	a := trace.New(trace.Options{Sink: func(e trace.Event) {
		for _, part := range e.Elements {
			if full == nil && !e.Echo {
				full = add(part.Data)
			}
		}
	}})
	broken, err = readCapture(path, t.stderr, a.Add, a.Dropped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a.Finish()
	return broken, full
}

// trace reads the messages of a trace that has their content.
func (t traffics) trace(path string, b []byte, add func([]byte) error) error {
	f, err := trace.ReadFile(bytes.NewReader(b))
	if f == nil {
		return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	for _, l := range f.Lines {
		for _, p := range l.Parts {
			if err := add(p.Content()); err != nil {
				return err
			}
		}
	}
	return nil
}
