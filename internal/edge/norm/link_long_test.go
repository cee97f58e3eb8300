//go:build long

package norm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aldis/internal/link/elide"
)

// slowLink is a full-duplex link behind a gateway's queues: short messages first, then repairs, then the rest.
type slowLink struct {
	n        *net2
	rate     float64 // bits per second of IP octets
	delay    time.Duration
	overhead int // octets per datagram besides its frames
	legs     map[*end]*direction
}

type parcel struct {
	octets int
	do     func() // at the far end
}

type direction struct {
	busy             bool
	short, rep, rest []parcel
	octets           int
	deepest          int // most parcels that waited
}

func (l *slowLink) push(from *end, class int, p parcel) {
	d := l.legs[from]
	switch class {
	case 0:
		d.short = append(d.short, p)
	case 1:
		d.rep = append(d.rep, p)
	default:
		d.rest = append(d.rest, p)
	}
	d.deepest = max(d.deepest, len(d.rep)+len(d.rest))
	l.next(d)
}

func (l *slowLink) next(d *direction) {
	if d.busy {
		return
	}
	var p parcel
	switch {
	case len(d.short) > 0:
		p, d.short = d.short[0], d.short[1:]
	case len(d.rep) > 0:
		p, d.rep = d.rep[0], d.rep[1:]
	case len(d.rest) > 0:
		p, d.rest = d.rest[0], d.rest[1:]
	default:
		return
	}
	d.busy = true
	d.octets += p.octets
	air := time.Duration(float64(p.octets) * 8 / l.rate * 1e9)
	time.AfterFunc(air, func() { l.n.in <- input{do: func() { d.busy = false; l.next(d) }} })
	time.AfterFunc(air+l.delay, func() { l.n.in <- input{do: p.do} })
}

// TestLink measures 20,000 octets each way over a link of 4800 bit/s, alone and with 200 octets each way every 5 s. It fails if
// they take more than so many times octets x 8 / rate + delay.
func TestLink(t *testing.T) {
	const rate, size = 4800.0, 20_000
	const delay = 1450 * time.Millisecond
	const short = 251
	for _, c := range []struct {
		segment int
		factor  float64
		loss    float64
		short   bool
		eager   bool
		must    float64
	}{
		{448, 1, 0, false, true, 1.3},
		{448, 1, 0, true, true, 1.3},
		{960, 1, 0, false, true, 1.1},
		{960, 1, 0, true, true, 1.2},
		{960, 1, 0.01, true, true, 1.3},
	} {
		for _, seed := range []uint64{1, 2, 3} {
			if c.loss == 0 && seed > 1 {
				continue
			}
			t.Run(fmt.Sprintf("segment=%d,factor=%v,loss=%v,short=%v,eager=%v,seed=%d", c.segment, c.factor, c.loss, c.short,
				c.eager, seed), func(t *testing.T) {
				t.Parallel()
				const overhead = 28 + 20 + 1
				n := newNet(t, 0, seed, 4*time.Second, c.segment, c.factor*elide.TxRate(rate, c.segment, 7+overhead), 1, 2)
				n.run(20*time.Second, n.allUp)
				n.loss, n.eager = c.loss, c.eager
				l := &slowLink{n: n, rate: rate, delay: delay, overhead: overhead, legs: map[*end]*direction{}}
				a, b := n.ends[1], n.ends[2]
				l.legs[a], l.legs[b] = &direction{}, &direction{}
				n.carry = func(from, to *end, frames [][]byte, repair bool) {
					p := parcel{octets: overhead + len(frames) - 1, do: func() { n.arrive(from, to, frames, repair) }}
					for _, f := range frames {
						p.octets += len(f)
					}
					class := 2
					if repair {
						class = 1
					}
					l.push(from, class, p)
				}
				n.overdue = 4 * time.Second
				var latency []time.Duration
				begin := time.Now()
				a.send(2, 1, filled(n.rnd, size-8))
				b.send(1, 1, filled(n.rnd, size-8))
				nextShort := begin.Add(2500 * time.Millisecond)
				done := map[*end]time.Duration{}
				n.run(300*time.Second, func() bool {
					now := time.Now()
					if c.short && !now.Before(nextShort) {
						nextShort = nextShort.Add(5 * time.Second)
						for _, e := range []*end{a, b} {
							l.push(e, 0, parcel{octets: short, do: func() { latency = append(latency, time.Since(now)) }})
						}
					}
					for _, e := range []*end{a, b} {
						if len(e.got) > 0 && done[e] == 0 {
							done[e] = now.Sub(begin)
						}
					}
					return len(done) == 2
				})
				limit := size*8/rate + delay.Seconds()
				worst := max(done[a], done[b]).Seconds()
				line := fmt.Sprintf("to B %.1f s, to A %.1f s; %.3f and %.3f x the limit of %.1f s; %d+%d octets on the link; %d lost; "+
					"at most %d+%d waited; %v", done[b].Seconds(), done[a].Seconds(), done[b].Seconds()/limit, done[a].Seconds()/limit,
					limit, l.legs[a].octets, l.legs[b].octets, n.lost, l.legs[a].deepest, l.legs[b].deepest, n.packed)
				if len(latency) > 0 {
					slices.Sort(latency)
					own := short*8/rate + delay.Seconds()
					line += fmt.Sprintf("; short: median +%.2f s, worst +%.2f s", latency[len(latency)/2].Seconds()-own,
						latency[len(latency)-1].Seconds()-own)
				}
				t.Log(line)
				if c.must > 0 && worst > c.must*limit {
					t.Errorf("%.3f times the limit, must be %v", worst/limit, c.must)
				}
			})
		}
	}
}
