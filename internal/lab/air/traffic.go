package air

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// traffic is a load on whole gateways, and the figures that are taken from it.
type traffic struct {
	link    string
	sites   int
	change  func(*sim.Config) // of the link or the gateways; nil: none
	lasting time.Duration     // of the load
	// rest is how much longer messages may take. One that has not arrived by then counts as if it arrived at that moment. Zero: the play
	// ends with the load, and messages under way count as no loss.
	rest    time.Duration
	posts   func(rng *rand.Rand, p profile.Profile) []Post
	outages []outage
	silent  bool // the last site transmits nothing from before the load until the end of the rest
	live    bool // real gateways play it too
	figures []figure
}

// outage is an outage of all sites.
type outage struct{ at, lasting time.Duration }

// figure is a row and how to calculate it from an outcome.
type figure struct {
	Row
	of    func(*outcome) float64
	bound func(p profile.Profile) float64 // the limit of every sender with the datagrams of p; nil: none is computed
}

// outcome is the result of a play.
type outcome struct {
	link    profile.Profile // the profile of the emulated link
	lasting time.Duration
	posts   []Post
	took    [][]time.Duration // for each post, the time to each of its receivers
	back    time.Duration     // when the last outage ended, counted from the start of the load
	missing int               // deliveries that did not come in time
	spoke   int               // how many of the missing came once the silent site spoke again
	wrong   int               // deliveries that came again, or came to sites that are no receivers
	octets  int64             // IP octets that gateways gave to their radios, until no traffic was left
}

// offered makes the posts of a seed, in the order of their times, with incompressible octets.
func (t traffic) offered(seed uint64) (posts []Post, p profile.Profile, err error) {
	if p, err = profile.Load(t.link, nil); err != nil {
		return nil, p, err
	}
	if t.change != nil {
		c := sim.Config{Profile: p}
		t.change(&c)
		p = c.Profile
	}
	rng := rand.New(rand.NewPCG(seed, 7142))
	posts = t.posts(rng, p)
	slices.SortStableFunc(posts, func(a, b Post) int { return cmp.Compare(a.At, b.At) })
	for i := range posts {
		for k := 0; k < len(posts[i].Data); k += 8 {
			copy(posts[i].Data[k:], binary.BigEndian.AppendUint64(nil, rng.Uint64()))
		}
		if posts[i].To == nil {
			posts[i].To = others(posts[i].From, t.sites)
		}
	}
	return posts, p, nil
}

// others are all sites but one.
func others(from, sites int) (list []int) {
	for k := range sites {
		if k != from {
			list = append(list, k)
		}
	}
	return list
}

// play plays the traffic with a seed.
func (t traffic) play(ctx Context, seed uint64) (o *outcome, err error) {
	o = &outcome{lasting: t.lasting}
	if o.posts, o.link, err = t.offered(seed); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	change := func(c *sim.Config) {
		if t.change != nil {
			t.change(c)
		}
	}
	s, err := newStage(ctx, t.link, t.sites, seed, change)
	if err != nil {
		return nil, err
	}
	s.until(time.Hour, s.still(time.Minute))
	mute := s.Nodes[t.sites-1]
	if t.silent {
		s.Give(mute, api.Silence{On: true, Announce: true})
		s.until(time.Hour, s.still(time.Minute))
	}
	began, before := s.Now, s.handed()
	e := newEars(o.posts)
	for _, p := range o.posts {
		from, m := s.Nodes[p.From], message(uint16(10*p.From+p.Peer+1), Pipe, len(e.due), p.Data)
		m.Precedence = p.Precedence
		var to []uint16
		for _, k := range p.To {
			to = append(to, s.Nodes[k].ID)
		}
		s.At(p.At, func() { from.Site.Send(s.World, m, to...) })
	}
	for _, out := range t.outages {
		o.back = out.at + out.lasting
		s.At(out.at, func() {
			for _, n := range s.Nodes {
				s.World.Outage(n, out.lasting)
			}
		})
	}
	s.run(t.lasting)
	if t.rest == 0 {
		s.run(meanDelay(s.link.Up)) // time for posts sent within the load
	}
	s.until(t.rest, func() bool { return e.hear(s) == 0 })
	end := s.Now
	o.missing = e.hear(s)
	o.took = e.took(began, end)
	if t.silent {
		s.Give(mute, api.Silence{})
		s.until(t.rest, func() bool { return e.hear(s) == 0 })
		o.spoke = o.missing - e.hear(s)
	}
	if t.rest > 0 {
		s.until(t.rest, s.still(time.Minute))
		e.hear(s)
	} else {
		o.missing = 0
	}
	o.wrong, o.octets = e.wrong, s.handed()-before
	return o, s.err
}

// handed is how many IP octets the gateways gave to their radios, sent or not.
func (s *stage) handed() (octets int64) {
	for _, n := range s.Link.Stats().Nodes {
		octets += n.Up.Offered.Octets
	}
	return octets
}

// ears record which posts arrive, and when.
type ears struct {
	posts []Post
	place map[string]int // the place of each post, by its data
	due   []map[int]bool // for each post, the receivers at which it is due
	at    [][]time.Time  // for each post, the arrivals at its receivers, in the order of To
	heard []int          // by site: how many of the messages it got are recorded
	left  int            // deliveries that are due
	wrong int            // deliveries that were not due
}

func newEars(posts []Post) *ears {
	e := &ears{posts: posts, place: map[string]int{}}
	for i, p := range posts {
		e.place[string(p.Data)] = i
		e.at = append(e.at, make([]time.Time, len(p.To)))
		e.left += len(p.To)
	}
	return e
}

// hear records the messages that have come to the sites, and says how many deliveries are still due.
func (e *ears) hear(s *stage) int {
	for k, n := range s.Nodes {
		if k == len(e.heard) {
			e.heard = append(e.heard, 0)
		}
		for _, g := range n.Site.Got[e.heard[k]:] {
			e.arrived(k, g.Payload.Parts[0].Data, g.At)
		}
		e.heard[k] = len(n.Site.Got)
	}
	return e.left
}

func (e *ears) arrived(site int, data []byte, at time.Time) {
	i, known := e.place[string(data)]
	if !known {
		e.wrong++
		return
	}
	k := slices.Index(e.posts[i].To, site)
	if k < 0 || !e.at[i][k].IsZero() {
		e.wrong++
		return
	}
	e.at[i][k] = at
	e.left--
}

// took returns how long each delivery took; one that has not come takes until the end.
func (e *ears) took(began, end time.Time) (took [][]time.Duration) {
	for i, p := range e.posts {
		var of []time.Duration
		for _, at := range e.at[i] {
			if at.IsZero() || at.After(end) {
				at = end
			}
			of = append(of, at.Sub(began.Add(p.At)))
		}
		took = append(took, of)
	}
	return took
}

// scenario is the traffic as a scenario.
func (t traffic) scenario() Scenario {
	s := Scenario{Link: t.link, counts: true}
	for _, f := range t.figures {
		s.Rows = append(s.Rows, f.Row)
	}
	s.play = func(ctx Context, seed uint64) ([][]float64, error) {
		o, err := t.play(ctx, seed)
		if err != nil {
			return nil, err
		}
		return t.samples(o), nil
	}
	s.bounds = func() []float64 { return t.bounds(false) }
	s.best = func() []float64 { return t.bounds(true) }
	if t.live {
		s.live = t.inRealTime
	}
	return s
}

// inRealTime is the play of the traffic by real gateways: for the octets given to radios there is no figure.
func (t traffic) inRealTime(seed uint64) (l Live, err error) {
	o := &outcome{lasting: t.lasting}
	if o.posts, o.link, err = t.offered(seed); err != nil {
		return l, err
	}
	l = Live{Profile: o.link, Ships: t.sites - 1, Posts: o.posts}
	l.Judge = func(s Seen) (Samples, error) {
		if _, err := l.Last(s, nil); err != nil {
			return nil, err
		}
		o.took = nil
		for i, p := range o.posts {
			var took []time.Duration
			for _, site := range p.To {
				took = append(took, s.Arrived[i][site].Sub(s.Sent[i]))
			}
			o.took = append(o.took, took)
		}
		return t.samples(o)[:len(t.figures)], nil
	}
	return l, nil
}

// samples are a figure for each row, then the counts of missing and wrong deliveries.
func (t traffic) samples(o *outcome) (samples [][]float64) {
	for _, f := range t.figures {
		samples = append(samples, []float64{f.of(o)})
	}
	return append(samples, []float64{float64(o.missing), float64(o.wrong)})
}

// bounds are those of the rows, with the profile's datagrams or with the size that suits best.
func (t traffic) bounds(best bool) (bounds []float64) {
	_, p, err := t.offered(1)
	if err != nil {
		return nil
	}
	for _, f := range t.figures {
		bound := 0.0
		if f.bound != nil {
			bound = f.bound(p)
		}
		const step = 32
		for p := p; f.bound != nil && best && p.DatagramOctets+profile.IPUDPOctets+step <= p.MTU; {
			p.DatagramOctets += step
			if now := f.bound(p); f.More && now > bound || !f.More && now < bound {
				bound = now
			}
		}
		bounds = append(bounds, bound)
	}
	return bounds
}
