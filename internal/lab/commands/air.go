package commands

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/field"
	"aldis/internal/lab/report"
	"aldis/internal/operator/cli"
)

// airAbout is completed with the names of the tables.
func airAbout() string {
	var b strings.Builder
	b.WriteString(`usage: gateway air [--only LIST] [--row TEXT] [--seeds 1-3] [--write PAGE] [--live [--at-once N] [--keep DIR]] [--html FILE] [--json]

Measures how full a link gets: whole gateways over emulated links in virtual time, with more to carry than a message every five
seconds, against what was asked and what no sender can beat (docs/air.md). Nothing else has to be installed. On two cores three
seeds take ten minutes. The tables:

`)
	names, about := air.Names()
	for i, n := range names {
		fmt.Fprintf(&b, "  %-10s %s\n", n, about[i])
	}
	b.WriteString(`
With --live real gateways play those rows that have to hold in real time too: bursts of 200 octets, 20 kB alone, outages, and the
bursts on a shared channel. They are processes with sockets and journals, in network namespaces joined by the link emulator, with
a peer at each site; no Java. Beside each figure stands that of the same seeds in virtual time. It needs root. Ctrl-C removes
everything. Three seeds take forty minutes; a play waits more than it computes, so that several go at the same time. A machine that is
busy makes the link later than it is: the report says by how much at worst.

Exit: 0 measured, whatever the figures are, 1 interrupted, or a message was lost, 2 wrong usage.
`)
	return b.String()
}

func airCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("air", flag.ContinueOnError)
	only := fs.String("only", "", "play only these tables, a `list` with commas")
	row := fs.String("row", "", "play only rows that have this `text`")
	seeds := fs.String("seeds", "1-3", "`numbers` of the plays: 7, 1-20")
	table := fs.String("write", "", "`page` whose table takes the figures: docs/air.md, docs/fleet.md, docs/groups.md")
	page := fs.String("html", "", "`file` for a page with plots, complete in itself; - prints it instead of the text")
	asJSON := fs.Bool("json", false, "print JSON")
	live := fs.Bool("live", false, "let real gateways play, in network namespaces and in real time")
	keep := fs.String("keep", "", "`directory` for logs, configurations and captures of the link, with --live")
	atOnce := fs.Int("at-once", 6, "`plays` at the same time, with --live")
	if _, code, done := cli.Parse(fs, args, 0, airAbout(), stdout, stderr); done {
		return code
	}
	usage := func(err error) int {
		fmt.Fprintf(stderr, "gateway air: %v\n", err)
		return cli.ExitUsage
	}
	list, err := seedList(*seeds)
	if err != nil {
		return usage(fmt.Errorf("--seeds: %w", err))
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	known := air.Scenarios
	if *live {
		known = air.LiveScenarios
	}
	scenarios, err := known(names...)
	if err == nil {
		scenarios, err = air.Having(scenarios, *row)
	}
	if err == nil && (*atOnce < 1 || *atOnce > mostAtOnce) {
		err = fmt.Errorf("--at-once: %d is not from 1 to %d", *atOnce, mostAtOnce)
	}
	if err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var played [][]air.Samples
	var late time.Duration
	if *live {
		played, late, err = playLive(ctx, scenarios, list, field.AirOptions{AtOnce: *atOnce, Keep: *keep, Progress: stderr})
	}
	var r air.Report
	if err == nil {
		r, err = measureAir(ctx, scenarios, list, stderr)
	}
	if *live && err == nil {
		r = besideLive(r, scenarios, played)
		r.LateS = late.Seconds()
	}
	switch {
	case ctx.Err() != nil:
		return cli.Fail(stderr, "air", errors.New("interrupted; nothing is left behind"))
	case err != nil:
		return cli.Fail(stderr, "air", err)
	}
	p := report.Air(r)
	if err := intoPage(*table, r); err != nil {
		return cli.Fail(stderr, "air", fmt.Errorf("--write: %w", err))
	}
	if err := show(*page, stdout, p.HTML, jsonOr(*asJSON, r, p.Text)); err != nil {
		return cli.Fail(stderr, "air", err)
	}
	return cli.ExitGood
}

// intoPage puts figures into the table of a page; "": there is no page.
func intoPage(page string, r air.Report) error {
	if page == "" {
		return nil
	}
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text, err := report.AirTable(string(old), r)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

const mostSeeds = 1000

// seedList reads "7" and "1-20".
func seedList(text string) (list []uint64, err error) {
	from, to, many := strings.Cut(text, "-")
	if !many {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 32)
	last, err2 := strconv.ParseUint(to, 10, 32)
	if err1 != nil || err2 != nil || last < first || last-first >= mostSeeds {
		return nil, fmt.Errorf("%q is not a number or a range such as 1-20", text)
	}
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list, nil
}

// measureAir plays scenarios with all seeds, on all cores. The number of cores changes only the time.
func measureAir(ctx context.Context, scenarios []air.Scenario, seeds []uint64, stderr io.Writer) (r air.Report, err error) {
	began := time.Now()
	samples := make([][]air.Samples, len(scenarios))
	left := make([]int, len(scenarios))
	for i := range scenarios {
		samples[i], left[i] = make([]air.Samples, len(seeds)), len(seeds)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	onAllCores(len(scenarios)*len(seeds), func(n int) {
		i, k := n/len(seeds), n%len(seeds)
		if ctx.Err() != nil {
			return
		}
		s := scenarios[i]
		got, err := s.Play(ctx, seeds[k])
		if err != nil {
			stop(err)
			return
		}
		samples[i][k] = got
		mu.Lock()
		defer mu.Unlock()
		left[i]--
		if left[i] == 0 {
			for _, row := range s.Judge(samples[i]) {
				fmt.Fprintf(stderr, "%5.0f s  %s, %s: %s: %.4g (%.4g to %.4g)\n", time.Since(began).Seconds(), s.Name, s.Link, row.What, row.Value, row.Least, row.Most)
			}
		}
	})
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r = air.Report{Version: "gateway " + cli.VersionText(), Seeds: seeds, TookS: time.Since(began).Seconds()}
	for i, s := range scenarios {
		r.Results = append(r.Results, air.Result{Table: s.Name, Link: s.Link, Rows: s.Judge(samples[i])})
	}
	return r, nil
}

// mostAtOnce bounds the plays at the same time: each has two gateways or more, each with memory of its own.
const mostAtOnce = 32

// playLive lets real gateways play scenarios with all seeds.
func playLive(ctx context.Context, scenarios []air.Scenario, seeds []uint64, o field.AirOptions) (played [][]air.Samples, late time.Duration, err error) {
	var plays []field.AirPlay
	for _, s := range scenarios {
		for _, seed := range seeds {
			l, _, err := s.Live(seed)
			if err != nil {
				return nil, 0, err
			}
			plays = append(plays, field.AirPlay{What: s.Link + ", " + s.Rows[0].What, Live: l, Seed: seed})
		}
	}
	all, late, err := field.Air(ctx, plays, o)
	if err != nil {
		return nil, 0, err
	}
	return slices.Collect(slices.Chunk(all, len(seeds))), late, nil
}

// besideLive replaces the virtual figures by those of real gateways, and puts the virtual ones next to them.
func besideLive(virtual air.Report, scenarios []air.Scenario, played [][]air.Samples) air.Report {
	r := virtual
	r.Live = true
	for i, s := range scenarios {
		rows := slices.DeleteFunc(s.Judge(played[i]), func(row air.Row) bool { return row.N == 0 })
		for k := range rows {
			for _, v := range virtual.Results[i].Rows {
				if v.What == rows[k].What {
					rows[k].Virtual = v.Median
				}
			}
		}
		r.Results[i].Rows = rows
	}
	return r
}
