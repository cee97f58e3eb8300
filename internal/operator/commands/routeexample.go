package operator

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/link/profile"
	"aldis/internal/rules/route"
	"aldis/internal/site"
)

// routing says which link an example takes to a site while all links are up and idle.
type routing struct {
	Site   string `json:"site"`
	Label  string `json:"label,omitempty"`
	Line   int    `json:"line,omitempty"` // of the [[route]] rule; absent: none fits
	Takes  string `json:"takes"`          // the link; "": no link that the rules name reaches the site
	Why    string `json:"why"`
	Beyond bool   `json:"beyond_day,omitempty"`
	Ways   []way  `json:"ways"` // links that it may take, the cheapest first
}

// way is a link that an example may take.
type way struct {
	Link    string  `json:"link"`
	Via     string  `json:"via,omitempty"` // the gateway that passes messages on, for the link "relay"
	Price   float64 `json:"price"`         // of 1,000 octets
	Seconds float64 `json:"seconds"`       // on the idle link, without compression
	PerDay  int64   `json:"octets_per_day,omitempty"`
}

// routesOf says which link a message takes, to each site or only to s.Site. mark is the decision of the [[message]] rules.
func routesOf(cfg *config.Config, s site.Subject, links []string, mark site.Mark, life time.Duration) (list []routing) {
	if len(cfg.More) == 0 && !slices.ContainsFunc(cfg.Link.Peers, func(p config.Peer) bool { return p.Via != "" }) {
		return nil
	}
	for _, p := range cfg.Link.Peers {
		if s.Site != 0 && s.Site != p.ID {
			continue
		}
		r := routing{Site: p.Name, Ways: []way{}}
		rule := route.Judge(cfg.Routes, route.Subject{Precedence: mark.Precedence, Octets: s.Octets, Lifetime: life, Site: p.ID})
		if rule != nil {
			r.Label, r.Line, r.Beyond = rule.Label, rule.Line, rule.Beyond
		}
		for _, l := range cfg.Bearers() {
			reaches := slices.ContainsFunc(l.Peers, func(q config.Peer) bool {
				return q.ID == p.ID && (l.Name != cfg.Link.Name || q.Address.IsValid() || l.Shore)
			})
			if reaches && rule.Takes(l.Name) && (links == nil || slices.Contains(links, l.Name)) {
				r.Ways = append(r.Ways, way{Link: l.Name, Price: gateway.PriceOf(l.Price, &l.Profile), Seconds: takes(l.Profile, l.Shore, s.Octets).Seconds(), PerDay: l.Octets})
			}
		}
		if relay, is := relayOf(cfg, p, s.Octets); is && rule.Takes(relay.Link) && (links == nil || slices.Contains(links, relay.Link)) {
			r.Ways = append(r.Ways, relay)
		}
		slices.SortStableFunc(r.Ways, func(a, b way) int { return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Seconds, b.Seconds)) })
		within := life
		if rule != nil && rule.Within > 0 {
			within = rule.Within
		}
		r.choose(within, mark.Precedence.Rank() >= site.Flash.Rank() && (rule == nil || rule.Within == 0))
		list = append(list, r)
	}
	return list
}

// relayOf is the way to a peer over the first relay that passes on messages to it. The estimate is twice the time to that relay, because
// the links beyond it are not known here.
func relayOf(cfg *config.Config, p config.Peer, octets int) (w way, is bool) {
	hops := cfg.Link.Hops(p)
	if len(hops) == 0 {
		return w, false
	}
	w.Link = gateway.RelayName
	for _, l := range cfg.Bearers() {
		w.Price = max(w.Price, gateway.RelayPrice(l.Price))
		for _, q := range l.Peers {
			if took := 2 * takes(l.Profile, l.Shore, octets).Seconds(); q.ID == hops[0] && (q.Address.IsValid() || l.Shore) && (!is || took < w.Seconds) {
				w.Seconds, is = took, true
			}
		}
	}
	for _, q := range cfg.Link.Peers {
		if q.ID == hops[0] {
			w.Via = q.Name
		}
	}
	return w, is
}

// choose picks the cheapest way that is in time, otherwise the fastest.
func (r *routing) choose(within time.Duration, soonest bool) {
	if len(r.Ways) == 0 {
		r.Why = "no link that the rules name reaches the site: it takes any"
		return
	}
	fastest := slices.MinFunc(r.Ways, func(a, b way) int { return cmp.Compare(a.Seconds, b.Seconds) })
	i := slices.IndexFunc(r.Ways, func(w way) bool { return within == 0 || w.Seconds <= within.Seconds() })
	switch {
	case soonest:
		r.Takes, r.Why = fastest.Link, "it arrives first there"
	case i < 0:
		r.Takes, r.Why = fastest.Link, "none is in time, and it arrives first there"
	case within > 0:
		r.Takes, r.Why = r.Ways[i].Link, "the cheapest that is in time"
	default:
		r.Takes, r.Why = r.Ways[i].Link, "the cheapest"
	}
}

// takes is the time that octets take on an idle link.
func takes(p profile.Profile, shore bool, octets int) time.Duration {
	d := p.Sending(shore)
	datagrams := 1 + octets/max(1, p.Filled())
	return d.Delay + d.Jitter/2 + profile.Airtime(octets+datagrams*(profile.IPUDPOctets+p.FrameOverhead), d.RateBps)
}

func printRoutes(out io.Writer, list []routing) {
	for _, r := range list {
		by := "by default"
		if r.Line != 0 {
			by = "by " + ruleText(r.Label, r.Line)
		}
		var ways []string
		for _, w := range r.Ways {
			text := fmt.Sprintf("%s at %v in %.1f s", w.Link, w.Price, w.Seconds)
			if w.Via != "" {
				text = fmt.Sprintf("%s via %s at %v in about %.1f s", w.Link, w.Via, w.Price, w.Seconds)
			}
			if w.PerDay > 0 {
				text += fmt.Sprintf(" (%d octets a day)", w.PerDay)
			}
			ways = append(ways, text)
		}
		fmt.Fprintf(out, "link to %s: %s %s, %s; of %s\n", r.Site, cmp.Or(r.Takes, "any"), by, r.Why, cmp.Or(strings.Join(ways, ", "), "none"))
		if r.Beyond {
			fmt.Fprintln(out, "    also where the octets of the day are used up")
		}
	}
}
