package glance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aldis/internal/gateway/pair"
	"aldis/internal/lab/check"
)

// TestMachines: for a site of several machines the page says which one leads since when, and what is wrong with each.
func TestMachines(t *testing.T) {
	now := start.Add(time.Hour)
	three := func(change func(s *pair.Status)) *pair.Status {
		s := &pair.Status{Role: "leading", Since: start, LedSince: start, Whole: true, Ready: true, Members: []pair.Member{
			{At: "a:1", Self: true, Leads: true, Connected: true}, {At: "b:1", Connected: true}, {At: "c:1", Connected: true}}}
		change(s)
		return s
	}
	for _, tt := range []struct {
		name, rows string
		alarms     []string
		is         *pair.Status
	}{
		{"one machine", "", nil, nil},
		{"all well", "a:1 leads (this machine) 3600; b:1 connected; c:1 connected; ", nil, three(func(*pair.Status) {})},
		{"behind for a moment", "a:1 leads (this machine) 3600; b:1 connected; c:1 connected; ", nil, three(func(s *pair.Status) {
			s.Members[1].BehindCommits, s.Members[1].BehindSince = 4, now.Add(-time.Second)
		})},
		{"behind", "a:1 leads (this machine) 3600; b:1 behind by 4 commits (900 octets) 30; c:1 connected; ",
			[]string{"The member b:1 of the site is behind by 4 commits (900 octets)"}, three(func(s *pair.Status) {
				s.Members[1].BehindCommits, s.Members[1].BehindOctets, s.Members[1].BehindSince = 4, 900, now.Add(-30*time.Second)
			})},
		{"one is away", "a:1 leads (this machine) 3600; b:1 connected; c:1 NOT CONNECTED 60; ", []string{"The member c:1 of the site is away", "If one machine of the site more is lost, nobody leads"},
			three(func(s *pair.Status) { s.Members[2].Connected, s.Members[2].Heard = false, now.Add(-time.Minute) })},
		{"one is refused, and its disk fails", "a:1 leads (this machine) 3600; b:1 connected; c:1 refused: its clock; ",
			[]string{"The disk of this machine of the site fails: no space", "The member c:1 of the site is not taken: its clock", "If one machine of the site more"},
			three(func(s *pair.Status) {
				s.Members[2].Connected, s.Members[2].Refused, s.Refused = false, "its clock", "no space"
			})},
		{"two machines", "this machine leads (this machine) 3600; b:1 NOT CONNECTED; ", []string{"This gateway is alone"},
			&pair.Status{Role: "leading", LedSince: start, Other: "b:1", Alone: true}},
	} {
		v := ViewOf(now, NewHistory(start), Seen{Started: start, Site: tt.is})
		rows := ""
		for _, m := range v.Machines {
			rows += m.At + " " + m.Text
			if !m.Since.IsZero() {
				rows += fmt.Sprintf(" %.0f", now.Sub(m.Since).Seconds())
			}
			rows += "; "
		}
		check.Equal(check.In(t, tt.name), "machines", rows, tt.rows)
		for _, want := range tt.alarms {
			check.True(check.In(t, tt.name), "an alarm says "+want, slices.ContainsFunc(v.Alarms, func(a Alarm) bool { return strings.Contains(a.Text, want) }), v.Alarms)
		}
		said := slices.DeleteFunc(slices.Clone(v.Alarms), func(a Alarm) bool { return !strings.Contains(a.Text, "site") && !strings.Contains(a.Text, "alone") })
		check.Equal(check.In(t, tt.name), "alarms of the site", len(said), len(tt.alarms))
	}
}
