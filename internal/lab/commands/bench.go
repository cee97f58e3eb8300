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
	"strings"
	"syscall"
	"time"

	"aldis/internal/edge/infile"
	"aldis/internal/lab/bench"
	"aldis/internal/lab/field"
	"aldis/internal/operator/cli"
)

// benchAbout is completed with the benchmarks there are.
func benchAbout() string {
	var b strings.Builder
	b.WriteString(`usage: gateway bench [--json] [--only LIST] [--quick] [--write FILE]

Compares this gateway as rendezvous and relay of JXTA peers with JXSE 2.7, under the same load in the same run, and with
the published figures of 2004 and 2005. Everything runs on loopback, in processes of its own. It takes about ten minutes,
with --quick two. Other work on the machine affects the figures; nice -n -15 gateway bench keeps most of that out. The
benchmarks:

`)
	names, about := bench.Names()
	for i, n := range names {
		fmt.Fprintf(&b, "  %-10s %s\n", n, about[i])
	}
	b.WriteString(`
Exit: 0 all measured and nothing lost, 1 the gateway lost something or a benchmark failed, 2 wrong usage.
`)
	return b.String()
}

func benchCommand(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	asJSON := flags.Bool("json", false, "print JSON")
	only := flags.String("only", "", "measure only these, a `list` with commas")
	quick := flags.Bool("quick", false, "a tenth of the load: to see that everything works, not to quote")
	write := flags.String("write", "", "write the figures into a page of Markdown too; `file` keeps its figures of benchmarks that were not run now")
	binary := flags.String("gateway", "", "`path` of the gateway under test (default: gateway beside gateway-lab)")
	jars := flags.String("peers-dir", "", "`directory` of the built JXTA peers (default field-tests/peers above here); none: the gateway alone")
	if _, code, done := cli.Parse(flags, args, 0, benchAbout(), stdout, stderr); done {
		return code
	}
	cfg := bench.Config{Gateway: *binary, Jars: *jars, Quick: *quick}
	if *only != "" {
		cfg.Only = strings.Split(*only, ",")
	}
	var err error
	if cfg.Gateway == "" {
		if cfg.Gateway, err = cli.Beside("gateway"); err != nil {
			return cli.Fail(stderr, "bench", err)
		}
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
	began := time.Now()
	cfg.Progress = func(text string) {
		fmt.Fprintf(stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), text)
	}
	report, err := bench.Run(ctx, cfg)
	var usage *bench.UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "gateway bench: %v\n", err)
		return cli.ExitUsage
	}
	if ctx.Err() != nil {
		return cli.Fail(stderr, "bench", errors.New("interrupted; nothing is left behind"))
	}
	if report == nil {
		return cli.Fail(stderr, "bench", err)
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(report))
	} else {
		err = errors.Join(err, report.WriteText(stdout))
	}
	if err == nil && *write != "" {
		var old []byte
		if old, err = infile.Read(*write, cli.MostFile); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err == nil {
			err = writeTo(*write, stdout, func(w io.Writer) error {
				_, err := io.WriteString(w, report.Page(string(old)))
				return err
			})
		}
	}
	if err != nil {
		return cli.Fail(stderr, "bench", err)
	}
	if n := report.Lost(); n > 0 {
		return cli.Fail(stderr, "bench", fmt.Errorf("%d messages or answers were lost by the gateway", n))
	}
	return cli.ExitGood
}
