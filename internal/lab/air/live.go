package air

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Live is the part of a scenario, with one seed, that real gateways play in real time.
type Live struct {
	Link    string          // the profile that the gateways have
	Profile profile.Profile // what the link does
	Ships   int             // the number of ships, not counting the shore
	Posts   []Post          // in the order of their times
	// OutageAt is when all ships go off the air, for OutageFor; zero: they never do.
	OutageAt, OutageFor time.Duration
	// Judge makes the samples from the observations. Rows that are played in virtual time alone have no samples.
	Judge func(Seen) (Samples, error)
}

// Post is a message that the peer of a site sends on Pipe, to the peers of all other sites. No two have the same Data.
type Post struct {
	At   time.Duration
	From int // 0: the shore, then the ships
	Data []byte
	// The rest is for virtual time alone.
	To         []int // sites; nil: all others
	Peer       int   // the number of the sending peer at its site
	Precedence site.Precedence
	Class      string // the class that figures select by
}

// Seen is the observations of a Live.
type Seen struct {
	Sent    []time.Time   // each Post
	Arrived [][]time.Time // each Post at each site; zero: it did not
	Back    time.Time     // when the link was back after its outage
}

// Last is the latest arrival of the posts for which meant is true, or of all if meant is nil. It is an error if any post did not arrive, or,
// on a link that is not shared, arrived before an earlier one.
func (l Live) Last(s Seen, meant func(post int) bool) (last time.Time, err error) {
	for to := range l.Ships + 1 {
		missing := 0
		before := make([]time.Time, l.Ships+1) // of each sender
		for i, p := range l.Posts {
			at := s.Arrived[i][to]
			switch {
			case p.From == to:
				continue
			case at.IsZero():
				missing++
				continue
			case at.Before(before[p.From]) && !l.Profile.Shared:
				return last, fmt.Errorf("message %d arrived at site %d before an earlier one", i, to)
			}
			before[p.From] = at
			if at.After(last) && (meant == nil || meant(i)) {
				last = at
			}
		}
		if missing > 0 {
			return last, fmt.Errorf("%d messages did not arrive at site %d", missing, to)
		}
	}
	return last, nil
}

// Live returns the play of the scenario with a seed for real gateways; false: it is played in virtual time alone.
func (s Scenario) Live(seed uint64) (l Live, ok bool, err error) {
	if s.live == nil {
		return l, false, nil
	}
	l, err = s.live(seed)
	l.Link = s.Link
	return l, true, err
}

// LiveScenarios returns those of Scenarios that real gateways can play too. An error names a name without any.
func LiveScenarios(only ...string) (list []Scenario, err error) {
	all, err := Scenarios(only...)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(all, func(s Scenario) bool { return s.live == nil })
	for _, name := range only {
		if !slices.ContainsFunc(list, func(s Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("nothing of table %q is played live", name)
		}
	}
	return list, nil
}

// data is the body of a message for virtual gateways.
func data(m site.Message) []byte { return m.Parts[0].Data }

// liveAtOnce sends n messages of so many octets at once, from the shore or from the first ship. Its figure is the time until the last of them
// was at its last receiver, over the time that the octets need.
func liveAtOnce(link string, from, ships, n, octets int, change func(*profile.Profile)) (l Live, err error) {
	if l.Profile, err = profile.Load(link, nil); err != nil {
		return l, err
	}
	if change != nil {
		change(&l.Profile)
	}
	l.Ships = ships
	for i := range n {
		l.Posts = append(l.Posts, Post{From: from, Data: data(Track(2, Pipe, i, octets))})
	}
	p := l.Profile.Sending(from == 0)
	limit := profile.Airtime(n*octets, p.RateBps) + p.Delay + p.Jitter/2
	l.Judge = func(s Seen) (Samples, error) {
		last, err := l.Last(s, nil)
		return one(last.Sub(s.Sent[0]).Seconds() / limit.Seconds()), err
	}
	return l, nil
}

// liveOutage is Outage with readable reports.
func liveOutage(link string, seed uint64, lasting time.Duration) (l Live, err error) {
	if l.Profile, err = profile.Load(link, nil); err != nil {
		return l, err
	}
	l.Ships, l.OutageAt, l.OutageFor = 1, outageBefore, lasting
	for i := range outagePosts(lasting) {
		for from, id := range []uint16{1, 2} {
			l.Posts = append(l.Posts, Post{At: time.Duration(i)*outageEvery + outageShift(id, seed), From: from, Data: data(Line(id, Pipe, i))})
		}
	}
	slices.SortStableFunc(l.Posts, func(a, b Post) int { return int(a.At - b.At) })
	l.Judge = func(s Seen) (Samples, error) {
		last, err := l.Last(s, func(post int) bool { return !s.Sent[post].After(s.Back) })
		if err == nil && s.Back.IsZero() {
			err = errors.New("there was no outage")
		}
		took := last.Sub(s.Back).Seconds()
		return Samples{{took}, {took}, nil}, err
	}
	return l, nil
}
