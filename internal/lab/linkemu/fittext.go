package linkemu

import (
	"fmt"
	"strings"
	"time"
)

// Figures are the findings about a link that was compared with the profile called base, for JSON: times in seconds, rates in bits per
// second.
func (r Result) Figures(base string) any {
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
	of := func(e Estimate) direction {
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

// Text is the findings for people. out is the file to which the profile called name was written; "": no file was written.
func (r Result) Text(out, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-34s %16s %16s\n", "", "up", "down")
	row := func(what string, value func(e Estimate) string) {
		fmt.Fprintf(&b, "%-34s %16s %16s\n", what, value(r.Up), value(r.Down))
	}
	row("packets", func(e Estimate) string { return fmt.Sprint(e.Packets) })
	row("rate, bit/s", func(e Estimate) string {
		if !e.RateKnown {
			return "not told"
		}
		return fmt.Sprint(e.RateBps)
	})
	row("  between", func(e Estimate) string { return fmt.Sprintf("%d and %d", e.RateFrom, e.RateTo) })
	row("delay, ms", func(e Estimate) string { return fmt.Sprint(e.Delay.Milliseconds()) })
	row("jitter, ms", func(e Estimate) string { return fmt.Sprint(e.Jitter.Milliseconds()) })
	row("lost", func(e Estimate) string { return fmt.Sprintf("%d, %.1f %%", e.Lost, e.LossPct) })
	row("  95 of 100 times between", func(e Estimate) string { return fmt.Sprintf("%.1f and %.1f %%", e.LossFrom, e.LossTo) })
	row("  in runs of", func(e Estimate) string { return fmt.Sprintf("%.1f", e.MeanRun) })
	row("packets that overtook others", func(e Estimate) string { return fmt.Sprint(e.Overtaken) })
	row("largest that arrived, octets", func(e Estimate) string { return fmt.Sprint(e.Largest) })
	row("most that waited, octets", func(e Estimate) string { return fmt.Sprint(e.Waited) })
	if r.Shared && r.TurnKnown {
		fmt.Fprintf(&b, "change of talker %d ms, from %d of them\n", r.Turnaround.Milliseconds(), r.TurnsSeen)
	}
	fmt.Fprintf(&b, "the second clock is %v ahead of the first and gains %.1f millionths; all was there after %.1f s\n",
		r.Offset.Round(time.Millisecond), r.DriftPPM, r.Termination.Seconds())
	if r.OfThirdNodes > 0 {
		fmt.Fprintf(&b, "%d packets are of third stations, or lost to their own capture, and were passed by\n", r.OfThirdNodes)
	}
	if out != "" {
		fmt.Fprintf(&b, "\nWritten to %s as %s: gateway check reads it, gateway lab and replay play it.\n", out, name)
	}
	return b.String()
}
