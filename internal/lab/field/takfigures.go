package field

import (
	"context"
	"time"

	"aldis/internal/lab/report"
)

// crossed counts the alerts or chats that have come to other sites so far.
func (g *takGame) crossed(chat bool) (c report.Crossed) {
	var times []float64
	for _, s := range g.sent {
		if s.chat != chat {
			continue
		}
		for t := range g.served {
			if t == s.from {
				continue
			}
			c.Sent++
			if at, n := g.served[t].plot.came(s.uid); n > 0 {
				c.Came++
				times = append(times, at.Sub(s.at).Seconds())
				c.Again += n - 1
			}
		}
	}
	c.Latency = latencyOf(times)
	return c
}

// finish waits for alerts and chats that are under way, and computes the figures.
func (g *takGame) finish(ctx context.Context) (*report.TAKRun, error) {
	run := &report.TAKRun{}
	for deadline := time.Now().Add(g.patience()); ; {
		run.Alerts, run.Chats = g.crossed(false), g.crossed(true)
		if run.Alerts.Came+run.Chats.Came == run.Alerts.Sent+run.Chats.Sent || !time.Now().Before(deadline) {
			break
		}
		if !pause(ctx, drainTick) {
			return nil, ctx.Err()
		}
	}
	g.logf("%d of %d alerts and %d of %d chats have come", run.Alerts.Came, run.Alerts.Sent, run.Chats.Came, run.Chats.Sent)
	up, down := g.traffic()
	run.Bytes, run.Packets = UpDown{Up: up.Octets, Down: down.Octets}, UpDown{Up: up.Frames, Down: down.Frames}
	run.Dropped, run.Lost = UpDown{Up: up.Dropped, Down: down.Dropped}, UpDown{Up: up.Lost, Down: down.Lost}
	run.LateMaxMS = round(float64(g.hub.Stats().LateMax.Microseconds())/1000, 2)
	run.Reports, run.PerReport = g.reports, round(float64(up.Octets+down.Octets)/float64(max(1, g.reports)), 1)
	run.Compared, run.Wrong, run.NotShown = g.far.compared, g.far.beyond, g.far.missing
	run.MedianM, run.P95M, run.WorstM = share(g.far.offs, 0.5), share(g.far.offs, 0.95), share(g.far.offs, 1)
	run.MetS = g.met
	run.FirstS, run.AllS = g.shown()
	for _, s := range g.served {
		for _, p := range s.pipes {
			run.Waiting += len(p.waits)
		}
	}
	return run, nil
}

// shown returns when every site had shown its first far unit, and when all; nil: never.
func (g *takGame) shown() (first, all *float64) {
	var firstAt, allAt time.Time
	whole, some := true, true
	for t := range g.served {
		var mine time.Time
		for i := range g.served {
			for n := range g.devices {
				if i == t {
					continue
				}
				at, times := g.served[t].plot.came(newMover(i, n, g.o.Seed).uid)
				if times == 0 {
					whole = false
					continue
				}
				if mine.IsZero() || at.Before(mine) {
					mine = at
				}
				if at.After(allAt) {
					allAt = at
				}
			}
		}
		if mine.IsZero() {
			some = false
		} else if mine.After(firstAt) {
			firstAt = mine
		}
	}
	if some {
		first = seconds(max(0, firstAt.Sub(g.zero)))
	}
	if whole {
		all = seconds(max(0, allAt.Sub(g.zero)))
	}
	return first, all
}
