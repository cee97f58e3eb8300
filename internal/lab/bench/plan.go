package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// minutes are the times of a benchmark at a place on two idle cores, in full and quick: approximate, for the plan alone.
var minutes = map[string][2]float64{
	"ops": {2, 1}, "start": {5, 0.2}, "layers": {9, 1.2}, "jxta-c": {1, 0.5}, "pipe": {6, 0.4}, "propagate": {2.5, 0.3}, "query": {8, 0.8},
	"deaths": {2, 0.8}, "relay": {4, 0.6}, "octets": {3, 1}, "link": {4, 0.5}, "day": {0.5, 0.1}, "broker": {3, 0.5}, "xmpp": {1, 0.3}, "site": {5, 1.5},
}

// leastPace is the smallest share to which a measurement may be shortened.
const leastPace = 0.2

// planned is a benchmark at a place.
type planned struct {
	*benchmark
	where string
}

// planOf is the measurements to run, in order.
func planOf(r *run) (list []planned) {
	for i := range benchmarks {
		b := &benchmarks[i]
		if len(r.Only) > 0 && !slices.Contains(r.Only, b.name) {
			continue
		}
		for _, where := range b.places {
			if (len(r.Where) == 0 || slices.Contains(r.Where, where)) && (r.Jars != "" || !b.peers(where)) {
				list = append(list, planned{b, where})
			}
		}
	}
	return list
}

// takes is the approximate time of several.
func takes(quick bool, list []planned) (d time.Duration) {
	kind := 0
	if quick {
		kind = 1
	}
	for _, p := range list {
		d += time.Duration(minutes[p.name][kind] * float64(time.Minute))
	}
	return d
}

// schedule reports, before the i-th of a plan, the remaining measurements and their time at the speed of the run so far. If that is
// longer than the time left, it shortens them.
func schedule(r *run, plan []planned, i int) {
	left := takes(r.Quick, plan[i:])
	went := time.Since(r.report.Began)
	if done := takes(r.Quick, plan[:i]); done > 2*time.Minute { // a shorter time says little
		left = time.Duration(float64(left) * went.Seconds() / done.Seconds())
	}
	if i == 0 {
		var parts []string
		for _, b := range benchmarks {
			if n := len(slices.DeleteFunc(slices.Clone(plan), func(p planned) bool { return p.name != b.name })); n > 0 {
				parts = append(parts, fmt.Sprintf("%s at %d", b.name, n))
			}
		}
		r.progressf("plan: %s places; about %v", strings.Join(parts, ", "), left.Round(time.Minute))
	}
	if r.Most > 0 {
		// The part so far went at the paces of then, so this is cautious once the pace is below 1.
		r.pace = min(1, max(leastPace, r.pace*min(2, (r.Most-went).Seconds()/max(1, left.Seconds()))))
	}
	text := fmt.Sprintf("%d of %d: %s, %s; about %v to go", i+1, len(plan), plan[i].name, plan[i].where, max(left, time.Minute).Round(time.Minute))
	if r.pace < 1 {
		text += fmt.Sprintf("; each measurement takes %.0f %% of its time, so that all end within %v", 100*r.pace, r.Most)
	}
	r.progressf("%s", text)
}
