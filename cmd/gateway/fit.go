package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aldis/internal/lab/trace"
	"aldis/internal/link/fit"
	"aldis/internal/link/profile"
)

// fitted is what gateway tune --fit was told.
type fitted struct {
	base     profile.Profile
	source   []byte // of base
	captures string
	out      string
	name     string
	json     bool
}

// fitCommand says from captures what a link does.
func fitCommand(f fitted, stdout, stderr io.Writer) int {
	files := strings.Split(f.captures, ",")
	if len(files) != 2 {
		return fail(stderr, "tune", fmt.Errorf("--fit %s: two captures, with a comma between: one end alone does not show when its packets arrive", f.captures))
	}
	var ends [2][]fit.Passage
	for i, file := range files {
		broken, err := readCapture(file, stderr, func(p trace.Packet) {
			if one, ok := trace.PassageOf(p); ok && len(ends[i]) < fit.MaxPackets {
				ends[i] = append(ends[i], one)
			}
		}, nil)
		if err != nil {
			return fail(stderr, "tune", fmt.Errorf("%s: %w", file, err))
		}
		if broken != nil {
			fmt.Fprintf(stderr, "gateway tune: %s: %v: what comes before it is used\n", file, broken)
		}
		if len(ends[i]) == fit.MaxPackets {
			fmt.Fprintf(stderr, "gateway tune: %s: the first %d packets are used\n", file, fit.MaxPackets)
		}
		slices.SortStableFunc(ends[i], func(x, y fit.Passage) int { return cmp.Compare(x.At, y.At) })
	}
	joined, err := fit.Join(ends[0], ends[1])
	var res fit.Result
	if err == nil {
		res, err = fit.Fit(joined, f.base)
	}
	if errors.Is(err, fit.ErrNothing) || errors.Is(err, fit.ErrFew) {
		fmt.Fprintf(stderr, "gateway tune: %v\n", err)
		return exitRefused
	}
	if err != nil {
		return fail(stderr, "tune", err)
	}
	f.name = cmp.Or(f.name, strings.TrimSuffix(f.base.Name, "-fitted")+"-fitted")
	if f.out != "" {
		head := []string{fmt.Sprintf("Fitted: gateway tune --profile %s --fit %s,%s", f.base.Name, filepath.Base(files[0]), filepath.Base(files[1]))}
		text, err := res.Write(f.source, f.base, f.name, head)
		if err == nil {
			err = writeTo(f.out, stdout, func(w io.Writer) error { _, err := w.Write(text); return err })
		}
		if err != nil {
			return fail(stderr, "tune", fmt.Errorf("--out: %w", err))
		}
	}
	switch {
	case f.out == "-":
	case f.json:
		err = printJSON(stdout, fitFigures(f.base.Name, res))
	default:
		err = printFitted(stdout, f, res)
	}
	if err != nil {
		return fail(stderr, "tune", err)
	}
	return exitGood
}

// fitFigures is what --json prints: times in seconds, rates in bits per second.
func fitFigures(base string, r fit.Result) any {
	type direction struct {
		Packets     int     `json:"packets"`
		Lost        int     `json:"lost"`
		LossPct     float64 `json:"loss_percent"`
		LossFrom    float64 `json:"loss_percent_from"`
		LossTo      float64 `json:"loss_percent_to"`
		Runs        int     `json:"loss_runs"`
		RateBps     int     `json:"rate_bps"`
		RateFrom    int     `json:"rate_bps_from"`
		RateTo      int     `json:"rate_bps_to"`
		RateKnown   bool    `json:"rate_known"`
		DelayS      float64 `json:"delay_s"`
		JitterS     float64 `json:"jitter_s"`
		Overtaken   int     `json:"overtaken"`
		Largest     int     `json:"largest_octets"`
		MostWaiting int     `json:"most_waiting_octets"`
	}
	of := func(e fit.Estimate) direction {
		return direction{e.Packets, e.Lost, e.LossPct, e.LossFrom, e.LossTo, e.Runs, e.RateBps, e.RateFrom, e.RateTo, e.RateKnown, e.Delay.Seconds(), e.Jitter.Seconds(),
			e.Overtaken, e.Largest, e.Waited}
	}
	return struct {
		Base        string    `json:"base"`
		Up          direction `json:"up"`
		Down        direction `json:"down"`
		TurnaroundS float64   `json:"turnaround_s,omitempty"`
		TurnsSeen   int       `json:"turns_seen,omitempty"`
		ClockS      float64   `json:"clock_offset_s"`
		DriftPPM    float64   `json:"clock_drift_ppm"`
		TerminateS  float64   `json:"termination_s"`
		Third       int       `json:"of_third_nodes"`
	}{base, of(r.Up), of(r.Down), r.Turnaround.Seconds(), r.TurnsSeen, r.Offset.Seconds(), r.DriftPPM, r.Termination.Seconds(), r.OfThirdNodes}
}

func printFitted(w io.Writer, f fitted, r fit.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %16s %16s\n", "", "up", "down")
	row := func(what string, value func(e fit.Estimate) string) {
		fmt.Fprintf(&b, "%-34s %16s %16s\n", what, value(r.Up), value(r.Down))
	}
	row("packets", func(e fit.Estimate) string { return fmt.Sprint(e.Packets) })
	row("rate, bit/s", func(e fit.Estimate) string {
		if !e.RateKnown {
			return "not told"
		}
		return fmt.Sprint(e.RateBps)
	})
	row("  between", func(e fit.Estimate) string { return fmt.Sprintf("%d and %d", e.RateFrom, e.RateTo) })
	row("delay, ms", func(e fit.Estimate) string { return fmt.Sprint(e.Delay.Milliseconds()) })
	row("jitter, ms", func(e fit.Estimate) string { return fmt.Sprint(e.Jitter.Milliseconds()) })
	row("lost", func(e fit.Estimate) string { return fmt.Sprintf("%d, %.1f %%", e.Lost, e.LossPct) })
	row("  95 of 100 times between", func(e fit.Estimate) string { return fmt.Sprintf("%.1f and %.1f %%", e.LossFrom, e.LossTo) })
	row("  in runs of", func(e fit.Estimate) string { return fmt.Sprintf("%.1f", e.MeanRun) })
	row("packets that overtook others", func(e fit.Estimate) string { return fmt.Sprint(e.Overtaken) })
	row("largest that arrived, octets", func(e fit.Estimate) string { return fmt.Sprint(e.Largest) })
	row("most that waited, octets", func(e fit.Estimate) string { return fmt.Sprint(e.Waited) })
	if r.Shared && r.TurnKnown {
		fmt.Fprintf(&b, "change of talker %d ms, from %d of them\n", r.Turnaround.Milliseconds(), r.TurnsSeen)
	}
	fmt.Fprintf(&b, "the second clock is %v ahead of the first and gains %.1f millionths; all was there after %.1f s\n",
		r.Offset.Round(time.Millisecond), r.DriftPPM, r.Termination.Seconds())
	if r.OfThirdNodes > 0 {
		fmt.Fprintf(&b, "%d packets are of third stations, or lost to their own capture, and were passed by\n", r.OfThirdNodes)
	}
	if f.out != "" {
		fmt.Fprintf(&b, "\nWritten to %s as %s: gateway check reads it, gateway lab and replay play it.\n", f.out, f.name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
