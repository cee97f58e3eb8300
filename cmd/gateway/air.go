package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"aldis/internal/lab/air"
	"aldis/internal/lab/report"
)

// airAbout is completed with the tables there are.
func airAbout() string {
	var b strings.Builder
	b.WriteString(`usage: gateway air [--only LIST] [--seeds 1-3] [--html FILE] [--json]

Measures how full a link gets: whole gateways over emulated links in virtual time, with more to carry than a message every five
seconds, against what was asked and what no sender can beat (docs/air.md). Nothing else has to be installed. On two cores three
seeds take four minutes, seeds 1-20 half an hour. The tables:

`)
	names, about := air.Names()
	for i, n := range names {
		fmt.Fprintf(&b, "  %-10s %s\n", n, about[i])
	}
	b.WriteString(`
Exit: 0 measured, whatever the figures are, 1 interrupted, or a message was lost, 2 wrong usage.
`)
	return b.String()
}

func airCommand(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("air", flag.ContinueOnError)
	only := fs.String("only", "", "play only these tables, a `list` with commas")
	seeds := fs.String("seeds", "1-3", "`numbers` of the plays: 7, 1-20")
	page := fs.String("html", "", "`file` for a page with plots, complete in itself; - prints it instead of the text")
	asJSON := fs.Bool("json", false, "print JSON")
	if _, code, done := parse(fs, args, 0, airAbout(), stdout, stderr); done {
		return code
	}
	usage := func(err error) int {
		fmt.Fprintf(stderr, "gateway air: %v\n", err)
		return exitUsage
	}
	list, err := seedList(*seeds)
	if err != nil {
		return usage(fmt.Errorf("--seeds: %w", err))
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	scenarios, err := air.Scenarios(names...)
	if err != nil {
		return usage(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := measureAir(ctx, scenarios, list, stderr)
	switch {
	case ctx.Err() != nil:
		return fail(stderr, "air", errors.New("interrupted; nothing is left behind"))
	case err != nil:
		return fail(stderr, "air", err)
	}
	p := report.Air(r)
	if err := show(*page, stdout, p.HTML, jsonOr(*asJSON, r, p.Text)); err != nil {
		return fail(stderr, "air", err)
	}
	return exitGood
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

// measureAir plays scenarios with all seeds, on all cores. The number of cores changes nothing but the time.
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
		if left[i]--; left[i] == 0 {
			fmt.Fprintf(stderr, "%5.0f s  %s, %s: %s\n", time.Since(began).Seconds(), s.Name, s.Link, s.Rows[0].What)
		}
	})
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	r = air.Report{Version: "gateway " + versionText(), Seeds: seeds, TookS: time.Since(began).Seconds()}
	for i, s := range scenarios {
		r.Results = append(r.Results, air.Result{Table: s.Name, Link: s.Link, Rows: s.Judge(samples[i])})
	}
	return r, nil
}
