package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aldis/internal/link/compact"
)

const corpusAbout = `usage: gateway corpus [--write DIR]

Makes the corpus, primes the model with it, and checks that the model built into this gateway is the same. Gateways
whose models differ in version or hash cannot read each other's modelled codes.
`

func corpusCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("corpus", flag.ContinueOnError)
	write := fs.String("write", "", "`directory` to write model.bin, testdata/corpus.txt and testdata/vectors.txt to: internal/link/compact of the source")
	_, code, done := parse(fs, args, 0, corpusAbout, stdout, stderr)
	if done {
		return code
	}
	corpus, model := compact.Corpus(), compact.BuildModel()
	short := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:8])
	}
	fmt.Fprintf(stdout, "corpus   %7d octets, %4d messages, %s\n", len(corpus), bytes.Count(corpus, []byte("\n== "))+1, short(corpus))
	fmt.Fprintf(stdout, "model    %7d octets, version %d, %s\n", len(model), compact.ModelVersion, short(model))
	same := bytes.Equal(model, compact.ModelImage())
	if *write != "" {
		for name, b := range map[string][]byte{"model.bin": model, "testdata/corpus.txt": corpus, "testdata/vectors.txt": compact.Vectors()} {
			if err := os.WriteFile(filepath.Join(*write, name), b, 0o644); err != nil {
				return fail(stderr, "corpus", err)
			}
		}
		if !same {
			fmt.Fprintln(stdout, "the model has changed: build again and write once more, for the vectors; then raise ModelVersion if one was released")
		}
		return exitGood
	}
	hash := compact.ModelHash()
	if !same {
		return fail(stderr, "corpus", errors.New("the model built in is "+hex.EncodeToString(hash[:8])+": not what this corpus makes"))
	}
	fmt.Fprintln(stdout, "the model built in is the same")
	return exitGood
}
