package main

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

	"aldis/internal/link/compact"
)

const corpusAbout = `usage: gateway corpus build -o FILE SAMPLES... [--mask] [--lines] [--json]
       gateway corpus show FILE [--text] [--json]
       gateway corpus send [FILE] --to SITE... [-c CONFIG] [--token FILE] [--json]
       gateway corpus list [-c CONFIG] [--json]
       gateway corpus save NAME -o FILE [-c CONFIG] [--token FILE]
       gateway corpus accept | forget NAME [-c CONFIG] [--token FILE]
       gateway corpus [--write DIR]

  build         make a net's own corpus of messages as the net sends them, and say what it gains. SAMPLES are files, each a
                message; directories of them; captures (pcap, pcapng) and traces, whose messages are taken. A few
                hundred of each kind are enough; at most 50,000 samples of 64 MB together are read, and at most 128 kB of
                them are in the corpus. Every fifth is held back until all is measured by it. The same samples, in any
                order, make the same file. Bring it to every gateway of the net, or send it there, and name it as corpus in
                [compact]; gateways that do not have the same one code for each other without
  show          say what is in such a file; with --text its messages. Whoever has the file has them
  send          have the gateway that runs here send a corpus over the link: FILE, or that of its configuration. --to names
                a site, and may stand more than once; --to all means every one. It is deferred: all else goes first
  list          show what other sites have sent, which corpus is in use, and which from the next start on
  save          write one that another site has sent to a file, to look at it before it is accepted
  accept        have it used from the next start on, as long as the configuration names no other than now
  forget        throw it away

Without any of these the command makes the corpus that is built in, primes the model with it, and checks that the model built into
this gateway is the same. Gateways whose models differ in version or hash cannot read each other's modelled codes.
`

func corpusCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("corpus", flag.ContinueOnError)
	write := fs.String("write", "", "`directory` to write model.bin, testdata/corpus.txt and testdata/vectors.txt to: internal/link/compact of the source")
	var o corpusOrder
	fs.StringVar(&o.out, "o", "", "`file` to write, with build")
	fs.BoolVar(&o.mask, "mask", false, "put other words in the place of secrets and of personal names, with build")
	fs.BoolVar(&o.lines, "lines", false, "each line of a file is a message, with build")
	fs.BoolVar(&o.text, "text", false, "print the messages, with show")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON, with build and show")
	var c corporaOrder
	fs.StringVar(&c.config, "c", defaultConfig, "configuration `file`, with send, list, save, accept and forget")
	fs.StringVar(&c.token, "token", "", "order over http.listen with the token in `FILE`")
	fs.Func("to", "a `site`, by name or id, or all; with send; may be repeated", func(s string) error { c.to = append(c.to, s); return nil })
	rest, code, done := parse(fs, args, math.MaxInt, corpusAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) > 0 {
		c.asJSON, c.out = o.asJSON, o.out
		var err error
		switch rest[0] {
		case "send":
			err = c.send(rest[1:], stdout)
		case "list":
			err = c.list(stdout)
		case "save", "accept", "forget":
			switch {
			case len(rest) != 2:
				err = errors.New(rest[0] + " which one? gateway corpus list shows them")
			case rest[0] == "save":
				err = c.save(rest[1], stdout)
			default:
				err = c.decide(rest[0], rest[1], stdout)
			}
		case "build":
			err = o.build(rest[1:], stdout, stderr)
		case "show":
			err = o.show(rest[1:], stdout)
		default:
			fmt.Fprintf(stderr, "gateway corpus: %q is none of build, show, send, list, save, accept and forget\n\n%s", rest[0], corpusAbout)
			return exitUsage
		}
		if err != nil {
			return fail(stderr, "corpus", err)
		}
		return exitGood
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
