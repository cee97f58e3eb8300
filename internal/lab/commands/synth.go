package commands

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

const synthAbout = `usage: gateway synth blue-game --run 1..5 [--seed N] [--content xml|text|random] [-o TRACE]

Makes a trace of one of the five runs of the Blue Game of 2004. Application octets in and out and the duration are those
published (tables 5.1 and 5.10). When the peers found each other and when data began follow tables 5.8 and 5.9. The report
does not say how many messages there were and what they contained: the seed decides that (docs/traces.md).
`

func synthCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("synth", flag.ContinueOnError)
	run := fs.Int("run", 0, "`number` of the run, 1 to 5")
	seed := fs.Uint64("seed", 1, "decides what the report does not say")
	content := fs.String("content", trace.ContentXML, "of track messages: xml, text or random")
	out := fs.String("o", "-", "`file` to write; - is standard output")
	rest, code, done := cli.Parse(fs, args, 1, synthAbout, stdout, stderr)
	if done {
		return code
	}
	var err error
	switch {
	case len(rest) == 0 || rest[0] != "blue-game":
		err = errors.New("the only experiment is blue-game")
	case *run < 1 || *run > len(trace.BlueGame):
		err = fmt.Errorf("--run: %d is not from 1 to %d", *run, len(trace.BlueGame))
	case *content != trace.ContentXML && *content != trace.ContentText && *content != trace.ContentRandom:
		err = fmt.Errorf("--content: %q is none of xml, text, random", *content)
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway synth: %v\n\n%s", err, synthAbout)
		return cli.ExitUsage
	}
	var t trace.TotalsOf
	err = writeTo(*out, stdout, func(w io.Writer) (err error) {
		t, err = trace.Synth(w, *run, *seed, *content)
		return err
	})
	if err != nil {
		return cli.Fail(stderr, "synth", err)
	}
	if *out != "-" {
		fmt.Fprintf(stderr, "gateway synth: %s: %d messages of %d octets in, %d of %d out, %.0f s\n",
			*out, t.MessagesIn, t.In, t.MessagesOut, t.Out, trace.BlueGame[*run-1].TotalS)
	}
	return cli.ExitGood
}
