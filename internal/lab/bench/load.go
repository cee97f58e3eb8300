package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/edgepeer/tcp"
)

// seed makes runs alike.
const seed = 2004

var peers atomic.Uint64 // number of peers made: each needs an id of its own

func newRand() *rand.Rand { return rand.New(rand.NewPCG(seed, peers.Add(1))) }

// join connects a load peer of that name and waits for its lease. Its id is drawn, unless cfg has one.
func join(ctx context.Context, cfg tcp.Config, name string) (*tcp.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, serverReady)
	defer cancel()
	cfg.Edge.Name, cfg.Edge.Rand = name, newRand()
	p, err := tcp.Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := p.WaitLease(ctx, ""); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func closeAll(all []*tcp.Peer) {
	for _, p := range all {
		p.Close()
	}
}

// times are durations measured one by one.
type times []time.Duration

// at is the p-quantile, 0 to 1, in milliseconds; the slice becomes sorted.
func (t times) at(p float64) float64 {
	if len(t) == 0 {
		return 0
	}
	slices.Sort(t)
	return float64(t[min(len(t)-1, int(p*float64(len(t))))].Nanoseconds()) / 1e6
}

// body is an application element of that many octets, with the number of the message in front.
func body(number, size int) []jxta.Element {
	data := make([]byte, size)
	copy(data, fmt.Sprintf("%d;", number))
	return []jxta.Element{{Namespace: "trk", Name: "body", Data: data}}
}

// mean returns the mean of the durations and their standard deviation, milliseconds.
func (t times) mean() (mean, deviation float64) {
	for _, d := range t {
		mean += d.Seconds() * 1e3 / float64(len(t))
	}
	for _, d := range t {
		deviation += math.Pow(d.Seconds()*1e3-mean, 2) / float64(len(t))
	}
	return mean, math.Sqrt(deviation)
}
