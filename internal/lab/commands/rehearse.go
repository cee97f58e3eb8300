package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const rehearseAbout = `usage: gateway rehearse --profile P --trace T [--deadline 60s] [--tariff PRICES] [--html FILE] [--json]

Judges before a mission what a trace (gateway record, gateway synth) would do on a link: whether everything arrives in
time, minutes on the air, octets, the carrier's units and their cost, which messages would be late and why, what would still
wait at the end, and what would help; of two [[link]] of --gateways also which link messages take by which [[route]] rule, in
how many seconds, with how many octets and for how much money. It plays the trace several times with different losses. The
verdict holds for the worst play; each play is shown, and how much of the outcome is luck. Of a trace of TAK devices it
judges the far map, of one of XMPP that every message and line comes.

PRICES are yours, any of minute=1.10,credit=0.05,megabyte=7,currency=EUR: a started minute of a call, an Iridium SBD credit
(50 octets), a million octets.

Exit: 0 everything arrives in time, 1 it does not, 2 wrong usage.
`

func rehearseCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("rehearse", flag.ContinueOnError)
	profileName := fs.String("profile", "", "link: `name` or file")
	traceFile := fs.String("trace", "", "`file`; - is standard input")
	deadline := fs.Duration("deadline", time.Minute, "a message that has not arrived by then is late")
	prices := fs.String("tariff", "", "`prices`: minute=,credit=,megabyte=,currency=")
	plays := fs.Int("plays", 5, "`number` of plays with different losses, 1 to 100")
	seed := fs.Uint64("seed", 1, "of the first play; the others follow")
	gateways := fs.String("gateways", "", "configuration `file`s of the gateways, as for replay")
	content := fs.String("content", trace.ContentXML, "of messages that have only sizes: xml, text or random")
	alone := fs.Bool("alone", false, "do not try other links if this one does not suffice")
	asJSON := fs.Bool("json", false, "print JSON")
	page := fs.String("html", "", "`file` for a page with plots, complete in itself; - prints it instead of the text")
	_, code, done := cli.Parse(fs, args, 0, rehearseAbout, stdout, stderr)
	if done {
		return code
	}
	tariff, err := replay.ParseTariff(*prices)
	switch {
	case err != nil:
		err = fmt.Errorf("--tariff: %w", err)
	case *traceFile == "":
		err = errors.New("which trace? --trace FILE")
	case *profileName == "" && *gateways == "":
		err = errors.New("which link? --profile NAME; gateway profiles lists them")
	case *deadline <= 0:
		err = errors.New("--deadline: must be longer than nothing")
	case *plays < 1 || *plays > 100:
		err = fmt.Errorf("--plays: %d is not from 1 to 100", *plays)
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway rehearse: %v\n\n%s", err, rehearseAbout)
		return cli.ExitUsage
	}
	o := replay.Options{Seed: *seed, Content: *content}
	if _, err := replaySettings(&o, *profileName, *gateways); err != nil {
		return cli.Mistakes(stderr, err)
	}
	f, err := readTrace(*traceFile)
	if err != nil {
		return cli.Fail(stderr, "rehearse", fmt.Errorf("%s: %w", *traceFile, err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := clientsOf(f, o, stderr)
	var verdict string
	var out *outcome
	if err == nil {
		verdict, out, err = c.rehearse(ctx, o, *plays, replay.Judging{Profile: o.Profile, Deadline: *deadline, Tariff: tariff}, *alone)
	}
	if err != nil {
		return cli.Fail(stderr, "rehearse", fmt.Errorf("%s: %w", *traceFile, err))
	}
	if err := out.show(*page, *asJSON, stdout); err != nil {
		return cli.Fail(stderr, "rehearse", err)
	}
	if verdict != replay.Go {
		return cli.ExitRefused
	}
	return cli.ExitGood
}

func (p peers) rehearse(ctx context.Context, o replay.Options, plays int, judged replay.Judging, alone bool) (string, *outcome, error) {
	o.Bin = min(time.Minute, max(time.Second, (p.script.Duration/240).Round(time.Second)))
	r, err := rehearsal(ctx, p.script, o, plays, judged, p.stderr)
	if err == nil && r.Verdict != replay.Go && !alone && o.Second == nil {
		err = otherLinks(ctx, r, p.script, o, judged.Deadline, p.stderr)
	}
	if err != nil {
		return "", nil, err
	}
	out := report.Rehearsal(r)
	return r.Verdict, &outcome{html: out.HTML, text: out.Text, figures: r}, nil
}

// rehearsal plays a script several times and judges the plays.
func rehearsal(ctx context.Context, script *replay.Script, o replay.Options, plays int, ro replay.Judging, stderr io.Writer) (*replay.Rehearsal, error) {
	var list []play
	for i := range plays {
		o.Seed++
		if i == 0 {
			o.Seed--
		}
		list = append(list, play{script, o})
	}
	c := newCounted(stderr, "plays", plays)
	out := playAll(ctx, list, c.one)
	c.clear()
	var results []*replay.Result
	for _, p := range out {
		if p.err != nil {
			return nil, p.err
		}
		results = append(results, p.result)
	}
	return replay.Judge(results, ro), nil
}

// otherLinks plays the script once on each other link with a known name.
func otherLinks(ctx context.Context, r *replay.Rehearsal, script *replay.Script, o replay.Options, deadline time.Duration, stderr io.Writer) error {
	var list []play
	own := o.Profile.Name
	for _, name := range profile.Names() {
		p, err := profile.Load(name, nil)
		if err != nil {
			return err
		}
		if name != own && name != "wire" {
			o.Profile = p
			list = append(list, play{script, o})
		}
	}
	c := newCounted(stderr, "other links", len(list))
	out := playAll(ctx, list, c.one)
	c.clear()
	var others []replay.Other
	for i, p := range out {
		if p.err != nil {
			return p.err
		}
		of := list[i].options.Profile
		j := replay.Judge([]*replay.Result{p.result}, replay.Judging{Profile: of, Deadline: deadline})
		others = append(others, replay.Other{Profile: of.Name, Summary: of.Summary, Verdict: j.Verdict, WorstS: j.MaxS.Worst,
			Octets: p.result.LinkBytes.Up + p.result.LinkBytes.Down})
	}
	r.Compare(others)
	return nil
}
