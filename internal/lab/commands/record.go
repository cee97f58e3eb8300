package commands

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"time"

	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

const recordAbout = `usage: gateway record CAPTURE -o TRACE [--anonymise | --sizes] [--edge ADDR] [--key FILE]

Makes a trace from a capture: what the applications published, asked for, opened and sent, or the events of TAK
devices, one line of JSON each (docs/traces.md). The trace has each message once, however often the capture has it. With --anonymise it keeps no name,
address, time of day or content, only who did what, when, and how large it was.
`

func recordCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("record", flag.ContinueOnError)
	out := fs.String("o", "", "`file` to write; - is standard output")
	anonymise := fs.Bool("anonymise", false, "leave out names, addresses, content and the time of day")
	sizes := fs.Bool("sizes", false, "leave out content, keep names")
	edge := fs.String("edge", "", "`address` of the peer whose messages go out (default: the address that set up the most connections)")
	keyFile := fs.String("key", "", "`file` with the network's key, for a capture of gateways' datagrams")
	var opt trace.Options
	fs.StringVar(&opt.Bearer, "link", "", bearerFlag)
	nodes := fs.String("nodes", "", "`ids` of the gateways, 1,300")
	rest, code, done := cli.Parse(fs, args, 1, recordAbout, stdout, stderr)
	if done {
		return code
	}
	err := linkOptions(&opt, *keyFile, "", *nodes)
	if err == nil && *edge != "" {
		if opt.Edge, err = netip.ParseAddr(*edge); err != nil {
			err = fmt.Errorf("--edge: %w", err)
		}
	}
	switch {
	case err == nil && (len(rest) == 0 || *out == ""):
		err = errors.New("it needs a capture and -o TRACE")
	case err == nil && rest[0] == "-":
		err = errors.New("a capture is read twice: it must be a file")
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway record: %v\n\n%s", err, recordAbout)
		return cli.ExitUsage
	}
	h := trace.Header{Source: captureName(rest[0]), Content: "data", Anonymised: *anonymise}
	if *sizes {
		h.Content = "size"
	}
	totals, jam, err := record(rest[0], *out, h, opt, stdout, stderr)
	if err != nil {
		return cli.Fail(stderr, "record", fmt.Errorf("%s: %w", rest[0], err))
	}
	fmt.Fprintf(stderr, "gateway record: %d events; %d messages of %d octets in, %d of %d out\n",
		totals.Events, totals.MessagesIn, totals.In, totals.MessagesOut, totals.Out)
	if jam != (trace.Jam{}) {
		fmt.Fprintf(stderr, "gateway record: %s: the link was jammed: %s. The trace has what got through, and when; the applications wanted more\n", rest[0], jam)
	}
	if totals.Partial {
		fmt.Fprintf(stderr, "gateway record: %s: the trace is partial: gateway analyse says why\n", rest[0])
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// record reads a capture twice: only after the first time it knows which address is the edge, and when the capture began. It also returns
// how the capture's link was jammed.
func record(capture, out string, h trace.Header, opt trace.Options, stdout, stderr io.Writer) (t trace.TotalsOf, jam trace.Jam, err error) {
	first, err := analyseFile(capture, opt, stderr)
	if err != nil {
		return t, jam, err
	}
	edge := first.Edge
	if first.Link != nil && first.Edge == "" {
		edge = first.Link.Edge()
	}
	h.Duration, h.Jam = first.Seconds(), first.Jam()
	h.Start = time.Unix(0, first.Start()).UTC().Format(time.RFC3339Nano)
	err = writeTo(out, stdout, func(w io.Writer) error {
		f := trace.NewFileWriter(w, h)
		recorder := trace.NewRecorder(f, edge, first.EdgePeer)
		opt.Sink, opt.CoT, opt.XMPP = recorder.Event, recorder.CoT, recorder.XMPP
		if _, err := analyseFile(capture, opt, stderr); err != nil {
			return err
		}
		if t, err = f.End(h.Duration, first.Partial); err == nil && t.Events == 0 {
			err = nothingRecorded(first)
		}
		return err
	})
	return t, h.Jam, err
}

// nothingRecorded says why a capture makes no trace.
func nothingRecorded(r *trace.Report) error {
	why := append(append([]string{}, r.Problems...), r.Remarks...)
	if len(why) == 0 {
		why = []string{"no application of JXTA published, asked for, opened or sent anything in it"}
	}
	return fmt.Errorf("no trace was written: %s", why[len(why)-1])
}
