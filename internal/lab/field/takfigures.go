package field

import (
	"context"
	"time"
)

// TAKResult is what `gateway lab blue-game --peers tak --json` writes.
type TAKResult struct {
	Gateway   string             `json:"gateway,omitempty"` // what the gateway under test says that it is
	Profile   string             `json:"profile"`
	Seed      uint64             `json:"seed"`
	DurationS float64            `json:"duration_s"`
	RateS     float64            `json:"rate_s"`  // between two reports of a device
	Devices   int                `json:"devices"` // of each site
	Ships     int                `json:"ships"`
	Server    string             `json:"hq_server"` // "taky", or "gateway" where taky is not installed
	BoundM    float64            `json:"bound_m"`
	Runs      map[string]*TAKRun `json:"runs"` // "gateway", "unaided"
}

// TAKRun is one way of playing the game. Times in seconds count from the start of the ships' devices; null is never. Octets
// and packets are those on the air at the emulator, from the start of the run until the last alert and chat had come or was
// given up; with several ships their sum.
type TAKRun struct {
	MetS       *float64 `json:"gateways_met_s,omitempty"` // from the start of the last gateway until each knew the others; the devices come then
	FirstS     *float64 `json:"first_unit_s"`             // until each site has shown a far unit
	AllS       *float64 `json:"all_units_s"`              // until each site has shown all far units
	Reports    int      `json:"reports"`
	PerReport  float64  `json:"octets_per_report"` // all octets of the link, alerts and chats included
	Compared   int      `json:"compared"`          // reports with a far map that showed their unit, 5 s later
	Wrong      int      `json:"wrong"`             // of them, where the unit was shown farther off than the bound
	NotShown   int      `json:"not_shown"`         // reports whose unit the far map did not show 5 s later
	MedianM    *float64 `json:"median_m"`
	P95M       *float64 `json:"p95_m"`
	WorstM     *float64 `json:"worst_m"`
	Alerts     Crossed  `json:"alerts"`
	Chats      Crossed  `json:"chats"`
	Waiting    int      `json:"reports_waiting"` // not yet written to the link's connection at the end; unaided
	Bytes      UpDown   `json:"link_bytes"`
	Packets    UpDown   `json:"link_packets"`
	Dropped    UpDown   `json:"link_packets_dropped"` // by full queues
	Lost       UpDown   `json:"link_packets_lost"`    // by the medium or an outage
	LateMaxMS  float64  `json:"emulator_late_max_ms"`
	TroubledBy []string `json:"gateway_errors,omitempty"`
}

// Crossed is what became of events that each other site must be shown; each counts once for each of these.
type Crossed struct {
	Sent    int     `json:"sent"`
	Came    int     `json:"came"`
	Again   int     `json:"came_again"`
	Latency Latency `json:"latency_s"`
}

// crossed says what became of alerts or chats so far.
func (g *takGame) crossed(chat bool) (c Crossed) {
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
	c.Latency = Latency{share(times, 0.5), share(times, 0.95), share(times, 1)}
	return c
}

// finish waits for alerts and chats that are under way, and draws the figures.
func (g *takGame) finish(ctx context.Context) (*TAKRun, error) {
	drain := g.o.Drain
	switch {
	case drain > 0:
	case g.kind == "unaided":
		drain = unaidedDrain
	default:
		drain = time.Minute + 4*g.p.RoundTripMax(g.p.MTU)
	}
	run := &TAKRun{}
	for deadline := time.Now().Add(drain); ; {
		run.Alerts, run.Chats = g.crossed(false), g.crossed(true)
		if run.Alerts.Came+run.Chats.Came == run.Alerts.Sent+run.Chats.Sent || !time.Now().Before(deadline) {
			break
		}
		if !pause(ctx, drainTick) {
			return nil, ctx.Err()
		}
	}
	g.say("%d of %d alerts and %d of %d chats have come", run.Alerts.Came, run.Alerts.Sent, run.Chats.Came, run.Chats.Sent)
	up, down := g.traffic()
	run.Bytes, run.Packets = UpDown{up.Octets, down.Octets}, UpDown{up.Frames, down.Frames}
	run.Dropped, run.Lost = UpDown{up.Dropped, down.Dropped}, UpDown{up.Lost, down.Lost}
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

// shown says when every site had shown its first far unit, and when all; nil: never.
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
