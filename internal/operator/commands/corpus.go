package operator

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"aldis/internal/operator/cli"
)

const corpusAbout = `usage: gateway corpus build -o FILE SAMPLES... [--mask] [--lines] [--json]
       gateway corpus show FILE [--text] [--json]
       gateway corpus send [FILE] --to SITE... [-c CONFIG] [--token FILE] [--json]
       gateway corpus list [-c CONFIG] [--json]
       gateway corpus save NAME -o FILE [-c CONFIG] [--token FILE]
       gateway corpus accept | forget NAME [-c CONFIG] [--token FILE]
       gateway corpus [--write DIR]

  build         make a network's own corpus of messages as the network sends them, and say what it gains. SAMPLES are files, each a
                message; directories of them; captures (pcap, pcapng) and traces, whose messages are taken. A few
                hundred of each kind are enough; at most 50,000 samples of 64 MB together are read, and at most 128 kB of
                them are in the corpus. Every fifth is held back until all is measured by it. The same samples, in any
                order, make the same file. The program gateway-lab does this; the package aldis-gateway-lab brings it. Bring it to every gateway of the network, or send it there, and name it as corpus in
                [compact]; gateways that do not have the same one code for each other without
  show          say what is in such a file; with --text its messages. Whoever has the file has them
  send          have the gateway that runs here send a corpus over the link: FILE, or that of its configuration. --to names
                a site, and may stand more than once; --to all means every one. It is deferred: all else goes first
  list          show what other sites have sent, which corpus is in use, and which from the next start on
  save          write one that another site has sent to a file, to look at it before it is accepted
  accept        have it used from the next start on, as long as the configuration names no other than now
  forget        throw it away

Without any of these the command makes the corpus that is built in, primes the model with it, and checks that the model built into
this gateway is the same; gateway-lab does this too. Gateways whose models differ in version or hash cannot read each other's modelled codes.
`

func corpusCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("corpus", flag.ContinueOnError)
	fs.String("write", "", "`directory` to write model.bin and testdata/vectors.txt to: internal/link/compact of the source")
	fs.Bool("mask", false, "put other words in the place of secrets and of personal names, with build")
	fs.Bool("lines", false, "each line of a file is a message, with build")
	text := fs.Bool("text", false, "print the messages, with show")
	var c corporaOrder
	fs.StringVar(&c.out, "o", "", "`file` to write, with build and save")
	fs.BoolVar(&c.asJSON, "json", false, "print JSON, with build, show, send and list")
	fs.StringVar(&c.config, "c", cli.DefaultConfig, "configuration `file`, with send, list, save, accept and forget")
	fs.StringVar(&c.token, "token", "", "order over http.listen with the token in `FILE`")
	fs.Func("to", "a `site`, by name or id, or all; with send; may be repeated", func(s string) error { c.to = append(c.to, s); return nil })
	rest, code, done := cli.Parse(fs, args, math.MaxInt, corpusAbout, stdout, stderr)
	if done {
		return code
	}
	if len(rest) == 0 || rest[0] == "build" { // without any of the words: the model that is built in
		return cli.RunLab("corpus", args, stderr)
	}
	err := c.usage(rest)
	if err != nil {
		fmt.Fprintf(stderr, "gateway corpus: %v\n\n%s", err, corpusAbout)
		return cli.ExitUsage
	}
	switch rest[0] {
	case "send":
		err = c.send(rest[1:], stdout)
	case "list":
		err = c.list(stdout)
	case "save":
		err = c.save(rest[1], stdout)
	case "accept", "forget":
		err = c.decide(rest[0], rest[1], stdout)
	case "show":
		err = showCorpus(rest[1], *text, c.asJSON, stdout)
	}
	if err != nil {
		return cli.Fail(stderr, "corpus", err)
	}
	return cli.ExitGood
}

// usage says what is wrong with the words of a command; nil: nothing is.
func (o *corporaOrder) usage(words []string) error {
	switch words[0] {
	case "send":
		switch {
		case len(o.to) == 0:
			return errors.New("name the sites: --to SITE, or --to all")
		case len(words) > 2:
			return errors.New("one corpus at a time")
		}
	case "list":
	case "save", "accept", "forget":
		switch {
		case len(words) != 2:
			return errors.New(words[0] + " needs the name of a corpus: gateway corpus list shows them")
		case words[0] == "save" && o.out == "":
			return errors.New("save needs -o FILE")
		}
	case "show":
		if len(words) != 2 {
			return errors.New("name the file")
		}
	default:
		return fmt.Errorf("%q is none of build, show, send, list, save, accept and forget", words[0])
	}
	return nil
}
