package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"aldis/internal/link/entropy"
	"aldis/internal/link/profile"
)

// Group is a group of gateways. The messages of its sites' JXTA peers, and the chat of their TAK devices, go to it as open messages.
type Group struct {
	Name     string   `toml:"name"`
	Sites    []string `toml:"sites"`    // none: all
	Lifetime Span     `toml:"lifetime"` // of its messages; 0: the gateway's own
}

// Has says whether a site is in the group.
func (g *Group) Has(site string) bool { return len(g.Sites) == 0 || slices.Contains(g.Sites, site) }

// GroupOf is the group for a site's open messages: the first group that has the site; nil: the site's messages go in custody.
func (s *Script) GroupOf(site string) *Group {
	if i := slices.IndexFunc(s.Groups, func(g Group) bool { return g.Has(site) }); i >= 0 {
		return &s.Groups[i]
	}
	return nil
}

// InGroups lets sites without a common bearer reach each other by open messages alone.
const InGroups = "groups"

// Far are the sites with which a site has no bearer in common.
func (s *Script) Far(site string) (names []string) {
	for i := range s.Sites {
		if x := &s.Sites[i]; x.Name != site && !s.meet(s.site(site), x) {
			names = append(names, x.Name)
		}
	}
	return names
}

// Churn has sites drop out and come back, time after time: of all sites except Except, a Share each time.
type Churn struct {
	What   string   `toml:"what"`  // Cut or Kill
	Share  float64  `toml:"share"` // of the sites, 0 to 1; at least one site
	Every  Span     `toml:"every"`
	For    Span     `toml:"for"` // for how long a site is gone
	At     Span     `toml:"at"`  // the first time
	Until  Span     `toml:"until"`
	Except []string `toml:"except"`
}

// plainView matches texts that may be a view; the gateway decides whether they are one.
var plainView = regexp.MustCompile(`^[a-z0-9()+, ]{0,64}$`)

// leastGone is the shortest time for which churn takes a site away.
const leastGone = time.Second

// checkGroups reports groups and churn that cannot be played.
func (s *Script) checkGroups(check func(ok bool, format string, args ...any)) {
	check(plainView.MatchString(s.View), "view %q: no gateway has one of that name", s.View)
	check(len(s.Groups) <= maxSites && len(s.Churn) <= maxSites, "more than %d [[group]] or [[churn]]", maxSites)
	check(s.Beyond == "" || s.Beyond == InGroups && len(s.Groups) > 0, "beyond %q: %s, where there are any", s.Beyond, InGroups)
	check(len(s.Groups) == 0 || s.Roster, "[[group]]: groups need roster = true")
	for _, g := range s.Groups {
		err := entropy.CheckName(g.Name)
		check(err == nil, "group %q: %v", g.Name, err)
		check(g.Lifetime.Duration == 0 || g.Lifetime.Duration >= time.Second && g.Lifetime.Duration <= 24*time.Hour, "group %q: lifetime %v is not from 1s to 24h", g.Name, g.Lifetime)
		for _, name := range g.Sites {
			check(s.site(name) != nil, "group %q: there is no site %q", g.Name, name)
		}
	}
	for i, c := range s.Churn {
		what := fmt.Sprintf("churn %d", i+1)
		check(c.What == Cut || c.What == Kill, "%s: what %q: %s or %s", what, c.What, Cut, Kill)
		check(c.Share > 0 && c.Share <= 1, "%s: share %v is not above 0 and at most 1", what, c.Share)
		check(c.For.Duration >= leastGone && c.For.Duration <= c.Every.Duration, "%s: for %v: from %v to every, %v", what, c.For, leastGone, c.Every)
		check(c.At.Duration < c.Until.Duration && c.Until.Duration < s.Duration.Duration, "%s: from %v to %v is no time within the play", what, c.At, c.Until)
		for _, name := range c.Except {
			check(s.site(name) != nil, "%s: there is no site %q", what, name)
		}
		left := slices.ContainsFunc(s.Sites, func(x Site) bool { return c.takes(&x) })
		check(left, "%s: it takes no site", what)
	}
}

// takes says whether churn may take a site: the site must be there from the start, and have one machine.
func (c *Churn) takes(x *Site) bool {
	return !x.Several() && x.Joins.Duration == 0 && !slices.Contains(c.Except, x.Name)
}

// Happens are the accidents of a play with this seed: those of the script, and those that churn draws, in any order. Churn takes all
// sites that it may before it takes one again, and no site that is destroyed by then.
func (s *Script) Happens(seed uint64) []Accident {
	list := slices.Clone(s.Accidents)
	gone := map[string]time.Duration{}
	for _, a := range s.Accidents {
		if a.What == Destroy {
			gone[a.Site] = a.At.Duration
		}
	}
	for n, c := range s.Churn {
		var sites []string
		for i := range s.Sites {
			if c.takes(&s.Sites[i]) {
				sites = append(sites, s.Sites[i].Name)
			}
		}
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		each := max(1, int(math.Round(c.Share*float64(len(s.Sites)))))
		var turn []string
		for at := c.At.Duration; at+c.For.Duration <= c.Until.Duration; at += c.Every.Duration {
			for range min(each, len(sites)) {
				if len(turn) == 0 {
					for _, k := range rng.Perm(len(sites)) {
						turn = append(turn, sites[k])
					}
				}
				name := turn[0]
				turn = turn[1:]
				if dies, is := gone[name]; !is || at+c.For.Duration < dies {
					list = append(list, Accident{At: Span{at}, What: c.What, Site: name, For: c.For})
				}
			}
		}
	}
	return list
}

// Ways are the relays by which a site reaches another one, the nearest to the recipient first. If the two have a bearer in common, these
// are all relays; otherwise those that the site can call and that are nearer to the recipient than the site.
func (s *Script) Ways(from, to string) (names []string) {
	far := s.distances(to)
	for i := range s.Sites {
		if r := &s.Sites[i]; r.Relay && r.Name != from && r.Name != to {
			if d, is := far[r.Name]; is && (far[from] <= 1 || d < far[from] && s.meet(s.site(from), r)) {
				names = append(names, r.Name)
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return far[a] - far[b] })
	return names
}

// meet says whether two sites have a bearer on which one can call the other.
func (s *Script) meet(a, b *Site) bool {
	return slices.ContainsFunc(s.Bearers, func(x Bearer) bool {
		return x.Has(a.Name) && x.Has(b.Name) && !(a.Behind() && b.Behind() && !shared(x.Profile))
	})
}

// shared says whether the bearers of a profile are one channel for all.
func shared(name string) bool {
	p, err := profile.Load(name, nil)
	return err == nil && p.Shared
}

// distances are the numbers of bearers between a site and each other site that can reach it by relays.
func (s *Script) distances(to string) map[string]int {
	far := map[string]int{to: 0}
	for next := []string{to}; len(next) > 0; next = next[1:] {
		at := s.site(next[0])
		if at.Name != to && !at.Relay {
			continue
		}
		for i := range s.Sites {
			x := &s.Sites[i]
			if _, known := far[x.Name]; !known && s.meet(at, x) {
				far[x.Name] = far[at.Name] + 1
				next = append(next, x.Name)
			}
		}
	}
	return far
}
