package commands

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/bench"
	"aldis/internal/lab/field"
	"aldis/internal/lab/trace"
	"aldis/internal/operator/cli"
)

// benchAbout is completed with the names of the benchmarks and places.
func benchAbout() string {
	var b strings.Builder
	b.WriteString(`usage: gateway bench [--only LIST] [--where LIST] [--sizes LIST] [--seeds N] [--profile NAME] [--most TIME] [--quick] [--json | --csv] [--write DIR]
       gateway bench --advise TRACE [--write DIR]

Measures JXTA through this gateway, directly, and through JXSE 2.7, with the published figures of 2004, 2005 and 2007 beside.
Everything runs on loopback, in processes of its own, or in virtual time. It takes about two and a half hours, with --quick 20
minutes; --most bounds it. Other work on the machine affects the figures; nice -n -15 gateway bench keeps most of that out. What
cannot be measured is a row that says why. The benchmarks:

`)
	names, about := bench.Names()
	for i, n := range names {
		fmt.Fprintf(&b, "  %-12s %s\n", n, about[i])
	}
	b.WriteString("\nThe places:\n\n")
	for _, p := range bench.Places {
		fmt.Fprintf(&b, "  %-12s %s\n", p.Name, p.About)
	}
	b.WriteString(`
--write makes bench.md, bench.csv and bench.html in a directory, again after each benchmark; cells of benchmarks and places that
were not run now stay as bench.csv there has them. An interrupted run keeps the rows that it has made. A gateway built of a tree with changes makes no page. --advise says in five sentences what suits the
application of a trace, by the figures there.

Exit: 0 all measured, nothing lost, nothing slower than bench.csv says by more than the spreads; 1 otherwise; 2 wrong usage.
`)
	return b.String()
}

func benchCommand(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print JSON")
	asCSV := flags.Bool("csv", false, "print CSV, one cell to a line")
	only := flags.String("only", "", "measure only these benchmarks, a `list` with commas")
	where := flags.String("where", "", "measure only at these places, a `list` with commas")
	sizes := flags.String("sizes", "", "`octets` of messages, a list with commas, in place of those of the studies")
	seeds := flags.Int("seeds", 0, "series of each cell, in virtual time seeds; default 5, quick 2")
	link := flags.String("profile", "", "`name` of the profile between two gateways; default iridium-dialup")
	quick := flags.Bool("quick", false, "a tenth of the load: to see that everything works, not to quote")
	write := flags.String("write", "", "write bench.md, bench.csv and bench.html into this `directory`")
	most := flags.Duration("most", 0, "`time` that the run may take, such as 2h: measurements become shorter if it would take longer; 0: as long as it takes")
	advise := flags.String("advise", "", "measure nothing: what suits the application of this `trace`")
	binary := flags.String("gateway", "", "`path` of the gateway under test (default: gateway beside gateway-lab)")
	jars := flags.String("peers-dir", "", "`directory` of the built JXTA peers (default field-tests/peers above here); none: no JXTA library")
	if _, code, done := cli.Parse(flags, args, 0, benchAbout(), stdout, stderr); done {
		return code
	}
	if *advise != "" {
		return benchAdvise(*advise, *write, stdout, stderr)
	}
	cfg := bench.Config{Gateway: *binary, Jars: *jars, Series: *seeds, Profile: *link, Quick: *quick}
	for _, list := range []struct {
		text string
		to   *[]string
	}{{*only, &cfg.Only}, {*where, &cfg.Where}} {
		if list.text != "" {
			*list.to = strings.Split(list.text, ",")
		}
	}
	usage := func(format string, args ...any) int {
		fmt.Fprintf(stderr, "gateway bench: "+format+"\n", args...)
		return cli.ExitUsage
	}
	for _, text := range strings.FieldsFunc(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 64e6 {
			return usage("--sizes: %q is no number of octets from 1 to 64,000,000", text)
		}
		cfg.Sizes = append(cfg.Sizes, n)
	}
	if *seeds < 0 || *seeds > 1000 {
		return usage("--seeds: 1 to 1,000")
	}
	var err error
	if cfg.Gateway == "" {
		if cfg.Gateway, err = cli.Beside("gateway"); err != nil {
			return cli.Fail(stderr, "bench", err)
		}
	}
	if cfg.Gateway, err = filepath.Abs(cfg.Gateway); err != nil { // it runs in another directory
		return cli.Fail(stderr, "bench", err)
	}
	switch cfg.Jars {
	case "none":
		cfg.Jars = ""
	case "":
		if cfg.Jars, err = field.FindPeers(field.KindJXSE27); err != nil {
			return cli.Fail(stderr, "bench", fmt.Errorf("%w; --peers-dir none measures the gateway alone", err))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *write != "" {
		if why := bench.Dirty(ctx, cfg); why != "" {
			return cli.Fail(stderr, "bench", fmt.Errorf("no page is written: %s", why))
		}
	}
	began := time.Now()
	cfg.Progress = func(text string) {
		fmt.Fprintf(stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), text)
	}
	var pages benchPages
	if *write != "" {
		if pages, err = newBenchPages(*write); err != nil {
			return cli.Fail(stderr, "bench", err)
		}
		cfg.Done = func(r *bench.Report) { // so that a run that is killed leaves its results so far
			if err := pages.write(r); err != nil {
				fmt.Fprintf(stderr, "gateway bench: %v\n", err)
			}
		}
	}
	cfg.Most = *most
	report, err := bench.Run(ctx, cfg)
	var wrong *bench.UsageError
	switch {
	case errors.As(err, &wrong):
		return usage("%v", err)
	case report == nil:
		return cli.Fail(stderr, "bench", err)
	}
	var worse []string
	if *write != "" { // the results, also of an incomplete run
		err = errors.Join(err, pages.write(report))
		worse = bench.Regressions(pages.old, report.Rows)
	}
	if ctx.Err() != nil {
		text := "interrupted; no process is left behind"
		if *write != "" {
			text += fmt.Sprintf(", and the %d rows made so far are in %s", len(report.Rows), *write)
		}
		err = errors.New(text)
	}
	switch {
	case *asJSON:
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(report))
	case *asCSV:
		err = errors.Join(err, bench.WriteCSV(stdout, report.Rows))
	default:
		err = errors.Join(err, report.WriteText(stdout))
		fmt.Fprintln(stdout)
		for _, s := range bench.Advise(report.Rows, bench.PlainUse) {
			fmt.Fprintln(stdout, s)
		}
	}
	for _, text := range worse {
		err = errors.Join(err, fmt.Errorf("worse than before: %s", text))
	}
	if n := report.Lost(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages or answers were lost by the gateway", n))
	}
	for _, text := range report.Failed() {
		fmt.Fprintf(stderr, "gateway bench: no figure: %s\n", text)
	}
	if err != nil {
		return cli.Fail(stderr, "bench", err)
	}
	return cli.ExitGood
}

// benchRows are the rows of the CSV in a directory; none if there is no CSV.
func benchRows(dir string) ([]bench.Row, error) {
	b, err := infile.Read(filepath.Join(dir, "bench.csv"), cli.MostFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return bench.ReadCSV(strings.NewReader(string(b)))
}

// benchPages are the three files of a directory, and their rows before the run.
type benchPages struct {
	dir string
	old []bench.Row
}

func newBenchPages(dir string) (benchPages, error) {
	old, err := benchRows(dir)
	return benchPages{dir, old}, err
}

// write writes the three files.
func (p benchPages) write(r *bench.Report) error {
	rows := r.Merge(p.old)
	for _, f := range []struct {
		name string
		fill func(io.Writer, []bench.Row) error
	}{{"bench.csv", bench.WriteCSV}, {"bench.md", bench.Markdown}, {"bench.html", bench.HTML}} {
		if err := writeTo(filepath.Join(p.dir, f.name), nil, func(w io.Writer) error { return f.fill(w, rows) }); err != nil {
			return err
		}
	}
	return nil
}

// benchAdvise prints the five sentences for a trace.
func benchAdvise(file, dir string, stdout, stderr io.Writer) int {
	if dir == "" {
		dir = "docs"
	}
	rows, err := benchRows(dir)
	var f *trace.File
	if err == nil {
		f, err = readTrace(file)
	}
	if err != nil {
		return cli.Fail(stderr, "bench", err)
	}
	for _, s := range bench.Advise(rows, bench.UseOf(f)) {
		fmt.Fprintln(stdout, s)
	}
	return cli.ExitGood
}
