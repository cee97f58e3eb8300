package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"aldis/internal/lab/field"
	"aldis/internal/lab/replay"
	"aldis/internal/lab/report"
	"aldis/internal/operator/cli"
)

// clients play a trace: JXTA peers or TAK devices.
type clients interface {
	// replay plays the trace once in virtual time, replayLive in real time through gateways as processes: link is how their
	// configurations name the profile, keep a directory for their files. An outcome with an error is shown too; nil: nothing was played.
	replay(ctx context.Context, o replay.Options) (*outcome, error)
	replayLive(ctx context.Context, o replay.Options, link, keep string) (*outcome, error)
	// rehearse plays the trace several times and judges the plays; alone: on no other links, whatever the verdict.
	rehearse(ctx context.Context, o replay.Options, plays int, judged replay.Judging, alone bool) (verdict string, out *outcome, err error)
}

// outcome is figures in each form in which they can be printed.
type outcome struct {
	html, text func(io.Writer) error
	figures    any            // for JSON
	result     *replay.Result // the replay of these figures; nil: they are of another kind
}

// show prints the figures. page is a file for the page; "": none.
func (o *outcome) show(page string, asJSON bool, stdout io.Writer) error {
	return show(page, stdout, o.html, jsonOr(asJSON, o.figures, o.text))
}

// peers are the clients of a trace of JXTA peers.
type peers struct {
	script *replay.Script
	stderr io.Writer
}

func (p peers) replay(ctx context.Context, o replay.Options) (*outcome, error) {
	progress := newClockProgress(p.stderr)
	o.Progress = progress.show
	res, err := replay.RunScript(ctx, p.script, o)
	progress.clear()
	return p.page(res), err
}

func (p peers) replayLive(ctx context.Context, o replay.Options, link, keep string) (*outcome, error) {
	res, err := field.Replay(ctx, p.script, field.ReplayOptions{
		Profile: link, Terminal: o.Profile, Ship: o.Ship, Shore: o.Shore, Seed: o.Seed, Keep: keep, Progress: p.stderr,
	})
	return p.page(res), err
}

// page is the outcome of one play; nil if nothing was played.
func (p peers) page(res *replay.Result) *outcome {
	if res == nil {
		return nil
	}
	return &outcome{html: func(w io.Writer) error { return report.Replay(res).HTML(w) }, text: res.WriteText, figures: res, result: res}
}

// play is one replay to be made.
type play struct {
	script  *replay.Script
	options replay.Options
}

// played is the result of a play. A link that cannot carry the trace is no error here: the result says so.
type played struct {
	result *replay.Result
	err    error
}

// playAll plays on all cores and returns the results in the order of plays, so that the number of cores changes only the time. done is
// called after each play; it may be nil.
func playAll(ctx context.Context, plays []play, done func()) []played {
	out := make([]played, len(plays))
	var mu sync.Mutex
	onAllCores(len(plays), func(i int) {
		res, err := replay.RunScript(ctx, plays[i].script, plays[i].options)
		var overload *replay.OverloadError
		if errors.As(err, &overload) {
			err = nil
		}
		out[i] = played{res, err}
		if done != nil {
			mu.Lock()
			defer mu.Unlock()
			done()
		}
	})
	return out
}

// onAllCores does n pieces of work in the order of their numbers, as many at once as there are cores.
func onAllCores(n int, work func(i int)) {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	workers.Wait()
}

// counted is a line on a terminal that shows how many plays are over.
type counted struct {
	w     io.Writer // nil: nothing is shown
	what  string
	n, of int
	start time.Time
	shown bool
}

func newCounted(w io.Writer, what string, of int) *counted {
	c := &counted{what: what, of: of, start: time.Now()}
	if cli.IsTerminal(w) {
		c.w = w
	}
	return c
}

func (c *counted) one() {
	c.n++
	if c.w != nil && time.Since(c.start) > time.Second {
		c.shown = true
		fmt.Fprintf(c.w, "\r%-70s", fmt.Sprintf("%s: %d of %d", c.what, c.n, c.of))
	}
}

func (c *counted) clear() {
	if c.shown {
		fmt.Fprintf(c.w, "\r%-70s\r", "")
	}
}
