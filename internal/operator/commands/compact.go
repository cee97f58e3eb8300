package operator

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"aldis/internal/edge/infile"
	"aldis/internal/link/compact"
	"aldis/internal/operator/cli"
)

const compactAbout = `usage: gateway compact FILE... [--json] [--sequence] [--equivalent] [--corpus FILE]
       gateway compact --query CONDITION FILE... [--json]
       gateway compact FILE -o CODED
       gateway compact --expand CODED [-o FILE]

Shows what crosses the link for each file (- is standard input): the codec that makes the file smallest, the octets (one
of them names the codec), and what the other codecs would have made of it.

Each file is coded alone, as the first message of its flow. With --sequence the files are messages of one flow, in this
order, and each is coded after those before it, as if the far end held them.

With --query nothing is coded: it prints what the files, also ones that -o has written, have at the place of a condition, as
rules have it in content: xml:/event/@type, json:/track/id = 47*, text: *MAYDAY*. The exit code is 1 where no file fits.

With --corpus the files are coded as between gateways that have this corpus (gateway corpus build).

With -o the file's coding is written to CODED, with its length and 8 octets of its hash; --expand gives the file back, or says
that CODED is damaged or of another version of the model. On the link the seal says so, and no octet is spent on it.
`

// Compacted is the result for one file.
type Compacted struct {
	File        string         `json:"file"`
	Octets      int            `json:"octets"`
	Codec       string         `json:"codec"`
	CodedOctets int            `json:"coded_octets"` // with the octet that says which codec
	Stages      []compactStage `json:"stages"`
}

type compactStage struct {
	Codec       string `json:"codec"`
	CodedOctets int    `json:"coded_octets"`
}

func compactCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("compact", flag.ContinueOnError)
	asJSON := fs.Bool("json", false, "print JSON: a list with one object for each file")
	sequence := fs.Bool("sequence", false, "learn along the list, as a link would")
	equivalent := fs.Bool("equivalent", false, "JXTA documents may change their layout, as they may where no signature covers them")
	ask := fs.String("query", "", "`condition` to judge the files by")
	corpus := fs.String("corpus", "", "`file` with the network's corpus that both ends have")
	out := fs.String("o", "", "`file` to write, - for standard output: the coding of one file, or with --expand the file")
	expand := fs.Bool("expand", false, "expand a file that -o has written")
	files, code, done := cli.Parse(fs, args, math.MaxInt, compactAbout, stdout, stderr)
	if done {
		return code
	}
	if len(files) == 0 {
		fmt.Fprintf(stderr, "gateway compact: which files?\n\n%s", compactAbout)
		return cli.ExitUsage
	}
	if *ask != "" {
		if *out != "" || *expand || *sequence || *equivalent || *corpus != "" {
			fmt.Fprintf(stderr, "gateway compact: no other option than --json with --query\n\n%s", compactAbout)
			return cli.ExitUsage
		}
		return queryFiles(*ask, files, *asJSON, stdout, stderr)
	}
	if *out != "" || *expand {
		if len(files) != 1 || *asJSON || *sequence || *equivalent || *corpus != "" {
			fmt.Fprintf(stderr, "gateway compact: one file, and no other option, with -o and --expand\n\n%s", compactAbout)
			return cli.ExitUsage
		}
		if err := codeFile(files[0], *out, *expand, stdout); err != nil {
			return cli.Fail(stderr, "compact", fmt.Errorf("%s: %w", files[0], infile.Why(err)))
		}
		return cli.ExitGood
	}
	var coder compact.Coder
	var err error
	if coder.Network, err = cli.CorpusFlag(*corpus); err != nil {
		return cli.Fail(stderr, "compact", err)
	}
	var history *compact.History
	if *sequence {
		history = new(compact.History)
	}
	list := []Compacted{}
	for i, file := range files {
		text, err := cli.ReadFile(file)
		if err != nil {
			return cli.Fail(stderr, "compact", fmt.Errorf("%s: %w", file, infile.Why(err)))
		}
		octets := len(text)
		if *equivalent {
			if canonical, ok := compact.Canonical(text); ok {
				text = canonical
			}
		}
		c, err := compactText(&coder, text, history, uint64(i+1))
		if err != nil {
			return cli.Fail(stderr, "compact", fmt.Errorf("%s: %w", file, err))
		}
		c.File, c.Octets = file, octets
		list = append(list, c)
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(list); err != nil {
			return cli.Fail(stderr, "compact", err)
		}
		return cli.ExitGood
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "octets\tcoded\tpercent\tcodec\t  file and stages\n")
	for _, c := range list {
		fmt.Fprintf(w, "%d\t%d\t%.1f\t%s\t  %s:", c.Octets, c.CodedOctets, 100*float64(c.CodedOctets)/float64(max(c.Octets, 1)), c.Codec, c.File)
		for _, s := range c.Stages {
			fmt.Fprintf(w, " %s %d", s.Codec, s.CodedOctets)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return cli.ExitGood
}

// codeFile writes the coded form of a file, or with expand the file that a coded form stands for.
func codeFile(file, out string, expand bool, stdout io.Writer) error {
	b, err := cli.ReadFile(file)
	if err != nil {
		return err
	}
	var coder compact.Coder
	if !expand {
		b = coder.AppendFile(nil, b)
	} else if b, err = coder.ExpandFile(b, cli.MostFile); err != nil {
		switch {
		case errors.Is(err, compact.ErrFile):
			return errors.New("not written by gateway compact -o")
		case errors.Is(err, compact.ErrModel):
			return errors.New("coded with another version of the model: expand it with the gateway that wrote it")
		case errors.Is(err, compact.ErrTooLong):
			return errors.New("expands to more than 32 MiB, or is damaged")
		}
		return errors.New("damaged: its content cannot be restored")
	}
	if out == "" || out == "-" {
		_, err = stdout.Write(b)
		return err
	}
	return os.WriteFile(out, b, 0o644)
}

// compactText codes one text and makes sure that decoding returns it.
func compactText(coder *compact.Coder, text []byte, history *compact.History, number uint64) (c Compacted, err error) {
	for _, s := range coder.Stages(text) {
		if s.Octets >= 0 {
			c.Stages = append(c.Stages, compactStage{s.Codec.String(), 1 + s.Octets})
		}
	}
	var coded, back []byte
	var codec compact.Codec
	if history == nil {
		coded, codec = coder.Append(nil, text)
		back, err = coder.Expand(codec, coded, len(text))
	} else {
		coded, codec = coder.AppendAfter(nil, text, history, number)
		back, err = coder.ExpandAfter(codec, coded, history, number, len(text))
		history.Add(number, text)
		if codec == compact.Learned || codec == compact.LearnedXML || codec == compact.Repeated {
			c.Stages = append(c.Stages, compactStage{codec.String(), 1 + len(coded)})
		}
	}
	if err != nil || !bytes.Equal(back, text) {
		return c, fmt.Errorf("%s: decoding does not give the original: %v", codec, err)
	}
	c.Codec, c.CodedOctets = codec.String(), 1+len(coded)
	return c, nil
}
