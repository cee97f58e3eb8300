// Package rule holds the operator's decisions about CoT events: which events go to which site, how precisely units
// are reported, and which events go first. The first rule that matches an event decides. Where none does, Default and
// PrecedenceOf do. The package is pure.
//
// Distances are metres, speeds metres per second, positions degrees. Read rule.go first; area.go, want.go and bring.go
// hold areas, wishes of sites, and data packages that are fetched unasked.
package rule

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/adapters/tak/cot"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// Action says what is done with an event that a rule fits.
type Action uint8

// Actions.
const (
	Allow Action = iota // it crosses
	Local               // it stays on this LAN
)

// Rule is one rule of the operator. Empty conditions fit everything.
type Rule struct {
	Label string
	Line  int // of the configuration

	Type        string  // this type and the types below it: "a-f-G"
	UID         string  // patterns: "*" stands for anything
	Callsign    string  //
	Team        string  //
	Role        string  //
	How         string  // as Type
	Affiliation string  // letters of a-.: "fh" are friends and hostiles
	Site        uint16  // to which the event goes; 0: any
	Box         *Box    // where the event is
	Around      *Circle // likewise
	Polygon     Polygon // likewise; empty: anywhere
	Slowest     float64 // metres a second, of its speed
	Fastest     float64 // metres a second; 0: any
	Least, Most int     // octets as XML; 0: any

	Action     Action
	Bound      float64          // metres by which the far picture of a unit may be wrong; 0: the adapter's bound
	Every      time.Duration    // the shortest time between two reports of a unit
	Rate       int              // octets a minute of the events that the rule takes for one site, before the core codes them; 0: any
	Precedence *site.Precedence // nil: PrecedenceOf
	Expires    time.Duration    // an event that is not a unit's position is not sent when it is older; 0: until it is stale
}

// String names the rule for operators.
func (r *Rule) String() string {
	if r.Label != "" {
		return fmt.Sprintf("%q (line %d)", r.Label, r.Line)
	}
	return fmt.Sprintf("line %d", r.Line)
}

// Subject is an event as rules see it.
type Subject struct {
	Event  *cot.Event
	Octets int
	Site   uint16
	// Where finds a unit of this site; nil: there is none.
	Where func(uid string) (lat, lon float64, ok bool)
}

// Misses says which condition the subject does not meet, by its key in the configuration; "" when the rule fits.
func (r *Rule) Misses(s *Subject) string {
	e := s.Event
	lat, _ := e.Point.Lat.Float()
	lon, _ := e.Point.Lon.Float()
	speed := 0.0
	if t := e.Find("track"); t != nil {
		speed, _ = cot.Number(t.Get("speed")).Float()
	}
	team, role := "", ""
	if g := e.Find("__group"); g != nil {
		team, role = g.Get("name"), g.Get("role")
	}
	switch {
	case r.Type != "" && !e.Is(r.Type):
		return "type"
	case r.UID != "" && !filter.Match(r.UID, e.UID):
		return "uid"
	case r.Callsign != "" && !filter.Match(r.Callsign, e.Callsign()):
		return "callsign"
	case r.Team != "" && !filter.Match(r.Team, team):
		return "team"
	case r.Role != "" && !filter.Match(r.Role, role):
		return "role"
	case r.How != "" && !cot.Below(e.How, r.How):
		return "how"
	case r.Affiliation != "" && !(len(e.Type) > 2 && e.Is("a") && strings.IndexByte(r.Affiliation, e.Type[2]) >= 0):
		return "affiliation"
	case r.Site != 0 && r.Site != s.Site:
		return "site"
	case r.Box != nil && !r.Box.has(lat, lon):
		return "box"
	case r.Around != nil && !r.Around.has(lat, lon, s.Where):
		return "around"
	case len(r.Polygon) > 0 && !r.Polygon.has(lat, lon):
		return "polygon"
	case speed < r.Slowest:
		return "speed_min"
	case r.Fastest != 0 && speed > r.Fastest:
		return "speed_max"
	case s.Octets < r.Least:
		return "octets_min"
	case r.Most != 0 && s.Octets > r.Most:
		return "octets_max"
	}
	return ""
}

// Judge returns the first rule that fits; nil: none does.
func Judge(rules []Rule, s *Subject) *Rule {
	for i := range rules {
		if rules[i].Misses(s) == "" {
			return &rules[i]
		}
	}
	return nil
}

// BySite says whether a rule depends on the site to which an event goes, or counts the octets to each site.
func BySite(rules []Rule) bool {
	for i := range rules {
		if rules[i].Site != 0 || rules[i].Rate != 0 {
			return true
		}
	}
	return false
}

// PrecedenceOf is how urgent events of a type are, if no rule sets another precedence.
func PrecedenceOf(kind string) site.Precedence {
	switch {
	case cot.Below(kind, "b-a-o"), cot.Below(kind, "b-a-g"):
		return site.Flash
	case cot.Below(kind, "b-r-f-h-c"), strings.HasPrefix(kind, "t-"):
		return site.Immediate
	case cot.Below(kind, "b-f-t"):
		return site.Deferred
	case cot.Below(kind, "b-t-f"):
		return site.Priority
	case cot.Below(kind, "a-f"), strings.HasPrefix(kind, "b-"), strings.HasPrefix(kind, "u-"):
		return site.Routine
	case strings.HasPrefix(kind, "a-"):
		return site.Deferred
	}
	return site.Routine
}
