package commands

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"aldis/internal/lab/replay"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
	"aldis/internal/operator/cli"
)

const tuneAbout = `usage: gateway tune --profile P --trace T [--trace T2] [--proof T3] [--out FILE] [--time-limit D] [--seed N] [--json]
       gateway tune --profile P --fit SHIP.pcap,HQ.pcap [--out FILE] [--name N] [--json]
       gateway tune --profile P --probe FILE [--out FILE] [--name N] [--json]

Searches a profile's [gateway] section for settings that serve your traces better: fewer octets on the link, or messages
that arrive sooner, neither at the cost of the other, and never a lost delivery. It replays the traces in virtual time on all
cores, with different losses and with peers that speak at somewhat different times. It reports the gain of each change. At
the end it judges the outcome on plays that no decision was made on, and takes back what fails there. It plays the traces
of --proof last, with the old settings and the new, and draws no conclusion from them.

--out writes the profile with the changed values marked: give that file as link.profile at both ends. The same traces,
profile and seed give the same settings on any number of cores. When the time limit is reached, tune finishes the present
round with the plays it has, and judges the settings found so far: it takes at most a tenth longer, and prints that the
search was cut.

With --fit it finds out what the link is: from captures at its two ends, made at the same time, it estimates rate, delay,
jitter and loss each way, and on a shared channel the change of talker. The first capture is the terminal's. The clocks of
the two machines need not agree. --profile is one of the same kind of link: its [gateway] section is kept, and what the
captures do not tell. Each number in the file that --out writes says where it comes from. --probe does the same with what
gateway probe --json printed at one end of the link.

Exit: 0 better settings were found; 1 none were; 2 wrong usage. With --fit and --probe: 0 the link was found; 1 the captures or
the datagrams do not tell.
`

// files is a flag that may be given several times.
type files []string

// String is the values that the flag has so far.
func (f *files) String() string { return strings.Join(*f, ",") }

// Set adds a value.
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

const maxTuneTraces = 8

func tuneCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("tune", flag.ContinueOnError)
	profileName := fs.String("profile", "", "link: `name` or file")
	var traces files
	fs.Var(&traces, "trace", "`file`; may be given several times")
	var proof files
	fs.Var(&proof, "proof", "`file` of a trace that decides nothing, played at the end; may be given several times")
	out := fs.String("out", "", "`file` for the tuned profile; - is standard output, instead of the text")
	name := fs.String("name", "", "`name` of the tuned profile (default: the profile's, with -tuned)")
	limit := fs.Duration("time-limit", 10*time.Minute, "end the search within a tenth of this time; 0: no limit")
	seed := fs.Uint64("seed", 1, "of losses and of the variants of the traces")
	content := fs.String("content", trace.ContentXML, "of messages that have only sizes: xml, text or random")
	captures := fs.String("fit", "", "two `files` with a comma between: captures at the terminal and at the other end of the link")
	probed := fs.String("probe", "", "`file` that gateway probe --json printed; - is standard input")
	asJSON := fs.Bool("json", false, "print JSON")
	_, code, done := cli.Parse(fs, args, 0, tuneAbout, stdout, stderr)
	if done {
		return code
	}
	var err error
	switch {
	case *profileName == "":
		err = errors.New("which link? --profile NAME; gateway profiles lists them")
	case *captures != "" && *probed != "", (*captures != "" || *probed != "") && len(traces)+len(proof) > 0:
		err = errors.New("--fit looks at captures of the link, --probe at datagrams, --trace at what applications say: one of them")
	case *captures != "" && strings.Count(*captures, ",") != 1:
		err = fmt.Errorf("--fit %s: two captures, with a comma between: one end alone does not show when its packets arrive", *captures)
	case *captures != "", *probed != "":
	case len(traces) == 0:
		err = errors.New("which trace? --trace FILE")
	case len(traces)+len(proof) > maxTuneTraces:
		err = fmt.Errorf("%d traces, at most %d", len(traces)+len(proof), maxTuneTraces)
	case *limit < 0:
		err = fmt.Errorf("--time-limit: %v", *limit)
	}
	if err != nil {
		fmt.Fprintf(stderr, "gateway tune: %v\n\n%s", err, tuneAbout)
		return cli.ExitUsage
	}
	p, source, err := cli.ProfileWithSource(*profileName)
	if err != nil {
		return cli.Mistakes(stderr, err)
	}
	if *captures != "" || *probed != "" {
		return fitCommand(fitted{p, source, *captures, *probed, *out, *name, *asJSON}, stdout, stderr)
	}
	t := tuner{seed: *seed, stderr: stderr, variants: map[variantKey]*replay.Script{}}
	if *limit > 0 {
		t.until, t.grace = time.Now().Add(*limit), *limit/20
	}
	if err := t.read(slices.Concat(traces, proof), *content); err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	res, err := t.search(ctx, p, len(proof))
	if err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	*name = cmp.Or(*name, strings.TrimSuffix(p.Name, "-tuned")+"-tuned")
	if *out != "" && len(res.Steps) > 0 {
		head := []string{
			"Tuned: gateway tune " + strings.Join(args, " "),
			fmt.Sprintf("on %s, seed %d. On plays that no decision was made on: octets %+.1f %%, 95 %% of latency %+.1f %%,", traces.String(), *seed, res.Unseen.OctetsPct, res.Unseen.P95Pct),
			fmt.Sprintf("mean latency %+.1f %%. Both ends of the link need this profile.", res.Unseen.MeanPct), "",
		}
		text, err := replay.WriteTuned(source, p, res.Profile, *name, head)
		if err := writeProfile(*out, stdout, text, err); err != nil {
			return cli.Fail(stderr, "tune", err)
		}
	}
	switch {
	case *out == "-":
	case *asJSON:
		err = cli.PrintJSON(stdout, tuned(p, res))
	default:
		err = printTuned(stdout, p, res, *out, proof)
	}
	if err != nil {
		return cli.Fail(stderr, "tune", err)
	}
	if len(res.Steps) == 0 {
		return cli.ExitRefused
	}
	return cli.ExitGood
}

// tuner makes the plays that a search wants.
type tuner struct {
	scripts  []*replay.Script
	variants map[variantKey]*replay.Script
	seed     uint64
	until    time.Time     // zero: no limit
	grace    time.Duration // extra time for the judgement
	each     time.Duration // wall-clock time of a play, with others on the other cores
	stderr   io.Writer
}

type variantKey struct {
	trace   int
	variant replay.Number
}

// read reads the traces. content is for messages that have only sizes.
func (t *tuner) read(traces []string, content string) error {
	for _, file := range traces {
		f, err := readTrace(file)
		var script *replay.Script
		if err == nil {
			script, err = replay.NewScript(f, content, t.seed)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		t.scripts = append(t.scripts, script)
	}
	return nil
}

func (t *tuner) search(ctx context.Context, p profile.Profile, proof int) (replay.Tuning, error) {
	s := replay.NewSearch(replay.SearchConfig{Profile: p, Traces: len(t.scripts) - proof, Proof: proof, Seed: t.seed})
	for {
		trials := s.Next()
		if len(trials) == 0 {
			return s.Result(), nil
		}
		var plays []play
		for _, trial := range trials {
			k := variantKey{trial.Trace, trial.Variant}
			if t.variants[k] == nil {
				t.variants[k] = replay.Variant(t.scripts[k.trace], k.variant, t.seed)
			}
			// Messages still under way an hour after the trace's end are lost either way; no bins are needed.
			plays = append(plays, play{t.variants[k], replay.Options{Profile: trial.Profile, Seed: trial.Seed, Bin: time.Minute}})
		}
		c := newCounted(t.stderr, s.Phase(), len(plays))
		limited, cancel := t.limited(ctx, s)
		begun := time.Now()
		out := playAll(limited, plays, c.one)
		t.each = max(t.each, time.Since(begun)/time.Duration(len(plays)))
		cancel()
		c.clear()
		var figures []replay.Figures
		for _, o := range out {
			if err := ctx.Err(); err != nil {
				return replay.Tuning{}, errors.New("interrupted; nothing was written")
			}
			f := replay.Figures{Cut: errors.Is(o.err, context.DeadlineExceeded)}
			if o.result != nil && !f.Cut {
				f = replay.FiguresOf(o.result)
			}
			if o.err != nil && !f.Cut {
				f.Err = o.err.Error()
			}
			figures = append(figures, f)
		}
		if !t.until.IsZero() && !time.Now().Before(t.exploreUntil(s)) {
			s.Stop()
		}
		s.Tell(figures)
	}
}

// exploreUntil is when the search has to stop so that its judgement finishes in time.
func (t *tuner) exploreUntil(s *replay.Search) time.Time {
	return t.until.Add(-time.Duration(s.Reserve()) * t.each)
}

// limited ends the plays of a phase when its share of the time is over.
func (t *tuner) limited(ctx context.Context, s *replay.Search) (context.Context, context.CancelFunc) {
	if t.until.IsZero() {
		return ctx, func() {}
	}
	if s.Reserve() == 0 {
		return context.WithDeadline(ctx, t.until.Add(t.grace))
	}
	now := time.Now()
	left := t.exploreUntil(s).Sub(now)
	return context.WithDeadline(ctx, now.Add(time.Duration(s.Share()*float64(left))))
}

// tuned is the output of --json.
func tuned(p profile.Profile, res replay.Tuning) any {
	return struct {
		Profile string `json:"profile"`
		replay.Tuning
	}{p.Name, res}
}

func printTuned(w io.Writer, p profile.Profile, res replay.Tuning, out string, proof []string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d plays in %d rounds on %d cores", p.Name, res.Plays, res.Rounds, runtime.GOMAXPROCS(0))
	if res.Cut {
		b.WriteString("; the time limit ended the search before it was through")
	}
	b.WriteString("\n")
	if res.Problem != "" {
		fmt.Fprintf(&b, "The profile as it is cannot be played: %s\n", res.Problem)
	}
	steps := func(title string, list []replay.Step) {
		if len(list) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%-30s %10s %10s %12s %12s\n", title, "was", "now", "octets", "latency 95 %")
		for _, s := range list {
			for _, c := range s.Changes {
				fmt.Fprintf(&b, "%-30s %10d %10d %+10.1f %% %+10.1f %%\n", c.Key, c.Was, c.Now, c.OctetsPct, c.P95Pct)
			}
			if len(s.Changes) > 1 {
				fmt.Fprintf(&b, "%-30s %10s %10s %+10.1f %% %+10.1f %%\n", "  together", "", "", s.OctetsPct, s.P95Pct)
			}
		}
	}
	steps("Changed", res.Steps)
	steps("Taken back: did not hold", res.Taken)
	if len(res.Steps) == 0 && res.Problem == "" {
		b.WriteString("\nNothing better was found: the profile fits these traces as it is.\n")
	}
	judged := func(title string, j replay.Judgement) {
		if j.Plays > 0 {
			fmt.Fprintf(&b, "%-24s %5d %9d %9.0f %+7.1f %% %8.2f %+7.1f %% %8.2f %+7.1f %% %8.2f %+7.1f %% %5d\n",
				title, j.Plays, j.Messages, j.Octets, j.OctetsPct, j.MedianS, j.MedianPct, j.P95S, j.P95Pct, j.MeanS, j.MeanPct, j.Lost)
		}
	}
	if len(res.Steps) > 0 {
		fmt.Fprintf(&b, "\n%-24s %5s %9s %19s %18s %18s %18s %5s\n", "Before, and what changed", "plays", "messages", "octets", "median, s", "95 %, s", "mean, s", "lost")
		judged("Where it decided", res.Seen)
		judged("Where it had not looked", res.Unseen)
		for i, j := range res.Proof {
			judged("On "+filepath.Base(proof[i]), j)
		}
		if len(res.Proof) > 1 {
			judged("On all of these", *res.Proven)
		}
	}
	if len(res.Idle) > 0 {
		fmt.Fprintf(&b, "\nWithout any effect on these traces: %s\n", strings.Join(res.Idle, ", "))
	}
	if out != "" && len(res.Steps) > 0 {
		fmt.Fprintf(&b, "\nWritten to %s: name it as link.profile at both ends; gateway check reads it.\n", out)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
