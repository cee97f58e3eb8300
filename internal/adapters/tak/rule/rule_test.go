package rule

import (
	"fmt"
	"testing"

	"aldis/internal/adapters/tak/cot"
)

func event(t *testing.T, uid, kind string, lat, lon, speed float64) *cot.Event {
	t.Helper()
	e, err := cot.ParseXML(fmt.Appendf(nil, `<event version="2.0" uid="%s" type="%s" time="2026-05-01T10:00:00Z" start="2026-05-01T10:00:00Z" stale="2026-05-01T10:05:00Z" how="m-g"><point lat="%v" lon="%v" hae="0" ce="1" le="1"/><detail><contact callsign="FALCON 6"/><__group name="Dark Blue" role="Medic"/><track course="1" speed="%v"/></detail></event>`,
		uid, kind, lat, lon, speed))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Each condition that is not met returns its key, and "" if it is met.
func TestConditions(t *testing.T) {
	s := &Subject{Event: event(t, "ANDROID-1", "a-f-G-U-C", 54.3, 179.9, 7), Octets: 600, Site: 3,
		Where: func(uid string) (float64, float64, bool) { return 54.3, -179.95, uid == "own" }}
	for i, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{}, ""},
		{Rule{Type: "a-f-G"}, ""}, {Rule{Type: "a-f-G-U-C"}, ""}, {Rule{Type: "a-f-G-U-C-I"}, "type"}, {Rule{Type: "a-f-"}, "type"}, {Rule{Type: "b"}, "type"},
		{Rule{UID: "ANDROID-*"}, ""}, {Rule{UID: "*-2"}, "uid"},
		{Rule{Callsign: "FAL*6"}, ""}, {Rule{Callsign: "FALCON"}, "callsign"},
		{Rule{Team: "Dark*"}, ""}, {Rule{Team: "Cyan"}, "team"}, {Rule{Role: "Medic"}, ""}, {Rule{Role: "HQ"}, "role"},
		{Rule{How: "m"}, ""}, {Rule{How: "h"}, "how"},
		{Rule{Affiliation: "nf"}, ""}, {Rule{Affiliation: "h"}, "affiliation"},
		{Rule{Site: 3}, ""}, {Rule{Site: 4}, "site"},
		{Rule{Box: &Box{54, 179, 55, -179}}, ""}, {Rule{Box: &Box{54, -179, 55, 179}}, "box"}, {Rule{Box: &Box{55, 179, 56, -179}}, "box"},
		{Rule{Around: &Circle{Lat: 54.3, Lon: -179.95, Radius: 10_000}}, ""}, {Rule{Around: &Circle{Lat: 54.3, Lon: -179.95, Radius: 9000}}, "around"},
		{Rule{Around: &Circle{Own: "own", Radius: 9000}}, "around"}, {Rule{Around: &Circle{Own: "unknown", Radius: 1}}, ""},
		{Rule{Slowest: 7}, ""}, {Rule{Slowest: 8}, "speed_min"}, {Rule{Fastest: 7}, ""}, {Rule{Fastest: 6}, "speed_max"},
		{Rule{Least: 600}, ""}, {Rule{Least: 601}, "octets_min"}, {Rule{Most: 599}, "octets_max"},
	} {
		if got := c.rule.Misses(s); got != c.want {
			t.Errorf("rule %d %+v misses %q, want %q", i, c.rule, got, c.want)
		}
	}
	rules := []Rule{{Line: 1, Type: "b"}, {Line: 2, Team: "Dark*"}, {Line: 3}}
	if r := Judge(rules, s); r == nil || r.Line != 2 {
		t.Errorf("the rule %v decides", r)
	}
}

// The precedence of types.
func TestPrecedence(t *testing.T) {
	for kind, want := range map[string]string{"b-a-o-tbl": "flash", "b-a-g": "flash", "b-r-f-h-c": "immediate", "t-s": "immediate", "b-t-f": "priority",
		"b-t-f-d": "priority", "b-m-p-w": "routine", "u-d-f": "routine", "a-f-G": "routine", "a-h-G": "deferred", "a-u-S": "deferred",
		"b-f-t-r": "deferred", "y-c-r": "routine"} {
		if got := PrecedenceOf(kind).String(); got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
}
