package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"aldis/internal/cli"
	"aldis/internal/lab/field"
	"aldis/internal/lab/forecast"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
	"aldis/internal/lab/trace"
	"aldis/internal/link/profile"
)

// takBound is how far off, in metres, 95 of 100 reports may be shown in a rehearsal: the default of tak.bound.
const takBound = 50

// replayTAK plays the events of TAK devices of a trace once.
func replayTAK(ctx context.Context, source string, events []replay.TAKEvent, p profile.Profile, seed uint64, page string, asJSON bool, stdout io.Writer) error {
	res, err := replay.RunTAK(ctx, events, replay.Options{Profile: p, Seed: seed})
	if err != nil {
		return err
	}
	out := report.TAKReplay(source, "in virtual time", res)
	return cli.Show(page, stdout, out.HTML, cli.JSONOr(asJSON, res, out.Text))
}

// replayTAKLive plays them through sockets and real gateways. What was played before it ended is shown, too.
func replayTAKLive(ctx context.Context, source string, events []replay.TAKEvent, link, keep string, p profile.Profile, seed uint64, page string, asJSON bool, stdout, stderr io.Writer) error {
	res, err := field.ReplayTAK(ctx, events, field.ReplayOptions{Profile: link, Terminal: p, Seed: seed, Keep: keep, Progress: stderr})
	if res == nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted; the figures are of what was played until then")
	}
	out := report.TAKReplay(source, "in real time through gateways as processes", res)
	return errors.Join(cli.Show(page, stdout, out.HTML, cli.JSONOr(asJSON, res, out.Text)), err)
}

// rehearseTAK plays them several times, and says whether the picture is right and in time.
func rehearseTAK(ctx context.Context, source string, events []replay.TAKEvent, p profile.Profile, seed uint64, plays int, deadline time.Duration, page string, asJSON bool, stdout, stderr io.Writer) (int, error) {
	results := make([]trace.CoTCost, plays)
	errs := make([]error, plays)
	onAllCores(plays, func(i int) {
		var res *trace.CoTCost
		if res, errs[i] = replay.RunTAK(ctx, events, replay.Options{Profile: p, Seed: seed + uint64(i)}); errs[i] == nil {
			results[i] = *res
		}
	})
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	r := forecast.JudgePicture(results, p, deadline, takBound)
	r.Source = source
	out := report.Picture(r)
	if err := cli.Show(page, stdout, out.HTML, cli.JSONOr(asJSON, r, out.Text)); err != nil {
		return 0, err
	}
	if r.Verdict != forecast.Go {
		return cli.ExitRefused, nil
	}
	return cli.ExitGood, nil
}

// takEvents are those of a trace of TAK devices alone; none of any other.
func takEvents(f *trace.File) ([]replay.TAKEvent, error) {
	events, err := replay.TAKEvents(f)
	if err != nil {
		return nil, fmt.Errorf("record it without --sizes and --anonymise: %w", err)
	}
	return events, nil
}
