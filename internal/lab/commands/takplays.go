package commands

import (
	"context"
	"fmt"
	"io"
	"time"

	"aldis/internal/lab/field"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
)

// takBound is how far off, in metres, 95 of 100 reports may be shown in a rehearsal: the default of tak.bound.
const takBound = 50

// devices are the clients of a trace of TAK devices alone.
type devices struct {
	source string
	events []replay.TAKEvent
	stderr io.Writer
}

func (d devices) replay(ctx context.Context, o replay.Options) (*outcome, error) {
	res, err := replay.RunTAK(ctx, d.events, o)
	return d.page("in virtual time", res), err
}

func (d devices) replayLive(ctx context.Context, o replay.Options, link, keep string) (*outcome, error) {
	res, err := field.ReplayTAK(ctx, d.events, field.ReplayOptions{Profile: link, Terminal: o.Profile, Seed: o.Seed, Keep: keep, Progress: d.stderr})
	return d.page("in real time through gateways as processes", res), err
}

// page is the outcome of one play; nil if nothing was played.
func (d devices) page(how string, res *trace.CoTCost) *outcome {
	if res == nil {
		return nil
	}
	p := report.TAKReplay(d.source, how, res)
	return &outcome{html: p.HTML, text: p.Text, figures: res}
}

func (d devices) rehearse(ctx context.Context, o replay.Options, plays int, judged replay.Judging, _ bool) (string, *outcome, error) {
	results := make([]trace.CoTCost, plays)
	errs := make([]error, plays)
	onAllCores(plays, func(i int) {
		o := o
		o.Seed += uint64(i)
		var res *trace.CoTCost
		res, errs[i] = replay.RunTAK(ctx, d.events, o)
		if errs[i] == nil {
			results[i] = *res
		}
	})
	for _, err := range errs {
		if err != nil {
			return "", nil, err
		}
	}
	r := replay.JudgePicture(results, o.Profile, judged.Deadline, takBound)
	r.Source = d.source
	p := report.Picture(r)
	return r.Verdict, &outcome{html: p.HTML, text: p.Text, figures: r}, nil
}

// takEventOf is the event that a device sent in a capture.
func takEventOf(e trace.CoT) replay.TAKEvent {
	return replay.TAKEvent{At: time.Duration(e.At * float64(time.Second)), From: e.From, Event: e.Event}
}

// clientsOf are the clients that play a trace: JXTA peers, or TAK devices or XMPP users if the trace has these alone.
func clientsOf(f *trace.File, o replay.Options, stderr io.Writer) (clients, error) {
	events, err := replay.TAKEvents(f)
	if err != nil {
		return nil, fmt.Errorf("record it without --sizes and --anonymise: %w", err)
	}
	if len(events) > 0 {
		return devices{f.Header.Source, events, stderr}, nil
	}
	said, err := replay.XMPPEvents(f)
	if err != nil {
		return nil, fmt.Errorf("record it without --sizes and --anonymise: %w", err)
	}
	if len(said) > 0 {
		return chatters{f.Header.Source, said}, nil
	}
	script, err := replay.NewScript(f, o.Content, o.Seed)
	return peers{script, stderr}, err
}
