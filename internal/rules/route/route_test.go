package route

import (
	"testing"
	"time"

	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// The first rule that fits decides: by precedence, size, lifetime and destination.
func TestTheFirstRuleThatFits(t *testing.T) {
	rules := []Rule{
		{Label: "flash", Precedence: []site.Precedence{site.Flash, site.Override}, Beyond: true},
		{Label: "bulk", Least: 2000, Links: []string{"harbour"}},
		{Label: "fresh", Longest: time.Minute, Sites: []uint16{2}, Within: 10 * time.Second},
	}
	at := time.Unix(1_800_000_000, 0)
	of := func(p site.Precedence, octets int, life time.Duration, to uint16) string {
		m := &site.Message{Parts: []site.Part{{Data: make([]byte, octets)}}}
		if m.Precedence = p; life > 0 {
			m.Expires = at.Add(life)
		}
		r := Judge(rules, Of(m, at, to))
		if r == nil {
			return ""
		}
		return r.Label
	}
	for _, c := range []struct {
		precedence site.Precedence
		octets     int
		life       time.Duration
		to         uint16
		want       string
	}{
		{site.Flash, 5000, 0, 1, "flash"}, {site.Routine, 2000, 0, 1, "bulk"}, {site.Routine, 1999, 0, 2, ""},
		{site.Routine, 10, time.Minute, 2, "fresh"}, {site.Routine, 10, time.Hour, 2, ""}, {site.Routine, 10, time.Minute, 3, ""},
	} {
		check.Equal(t, "rule", of(c.precedence, c.octets, c.life, c.to), c.want)
	}
	var none *Rule
	check.True(t, "no rule takes any bearer", none.Takes("hf") && rules[0].Takes("hf") && !rules[1].Takes("hf") && rules[1].Takes("harbour"))
}

// A rule behind one that takes all that it fits can never match.
func TestCovers(t *testing.T) {
	for i, c := range []struct {
		a, b Rule
		want bool
	}{
		{Rule{}, Rule{Least: 5, Sites: []uint16{1}}, true}, {Rule{Sites: []uint16{1, 2}}, Rule{Sites: []uint16{2}}, true},
		{Rule{Sites: []uint16{1}}, Rule{}, false}, {Rule{Longest: time.Hour}, Rule{Longest: time.Minute}, true},
		{Rule{Longest: time.Hour}, Rule{}, false}, {Rule{Most: 10}, Rule{Most: 11}, false},
	} {
		check.Equal(t, string(rune('0'+i)), c.a.Covers(&c.b), c.want)
	}
}
