package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"aldis/internal/cli"
	"aldis/internal/lab/replay"
)

// play is one replay to be made.
type play struct {
	script  *replay.Script
	options replay.Options
}

// played is what came of one. A link that cannot carry the trace is no error here: the result says it.
type played struct {
	result *replay.Result
	err    error
}

// playAll makes replays on all cores and answers them in the order asked, so that the number of cores changes nothing but
// the time. done is told of each that is over; it may be nil.
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

// counted is a line on a terminal that tells how many plays are over.
type counted struct {
	w     io.Writer // nil: nobody looks
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
