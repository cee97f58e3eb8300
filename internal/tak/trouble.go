package tak

import (
	"maps"
	"slices"
	"time"

	"aldis/internal/site"
)

// trouble counts what happened, and says of what was refused once in a while.
type trouble struct {
	counts map[string]int
	said   map[string]time.Time
}

const (
	sayAgain = time.Minute
	mostSaid = 256
)

func newTrouble() trouble { return trouble{counts: map[string]int{}, said: map[string]time.Time{}} }

func (t *trouble) count(what string) { t.counts[what]++ }

// first says whether something was not said for a while.
func (t *trouble) first(now time.Time, what string) bool {
	if at, has := t.said[what]; has && now.Sub(at) < sayAgain {
		return false
	}
	if len(t.said) >= mostSaid {
		for k, at := range t.said {
			if now.Sub(at) >= sayAgain {
				delete(t.said, k)
			}
		}
		if len(t.said) >= mostSaid {
			return false
		}
	}
	t.said[what] = now
	return true
}

func (f *Face) note(level, text string, attrs ...any) {
	f.out.Notes = append(f.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// refuse counts an event that was not taken, and tells of it: each reason once a minute for a host.
func (f *Face) refuse(now time.Time, reason string, c *client, uid string, err error) {
	f.trouble.count("refused " + reason)
	if !f.trouble.first(now, "refused "+reason+" "+c.host) {
		return
	}
	attrs := []any{"reason", reason, "remote", c.host, "refused_so_far", f.trouble.counts["refused "+reason]}
	if uid != "" {
		attrs = append(attrs, "uid", uid)
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	f.note("warn", "a TAK event was not taken", attrs...)
}

// Counts are what has happened since the start of the process: events taken and given, refused by reason, batches, records.
func (f *Face) Counts() map[string]int {
	all := maps.Clone(f.trouble.counts)
	for _, a := range f.audiences {
		all["records"] += a.Records()
	}
	return all
}

// Metrics are the counts and what is there now.
func (f *Face) Metrics() (list []site.Metric) {
	gauge := func(name, help string, v int) {
		list = append(list, site.Metric{Name: name, Help: help, Gauge: true, Value: float64(v)})
	}
	gauge("aldis_tak_devices", "TAK devices with a connection.", len(f.streams.clients))
	far := 0
	for _, t := range f.far {
		far += len(t.Units())
	}
	gauge("aldis_tak_far_units", "Units of far sites on the map.", far)
	if f.near != nil {
		gauge("aldis_tak_near_units", "Units of this site.", len(f.near.All()))
	}
	gauge("aldis_tak_waiting", "Events of far sites that wait for a device.", len(f.waiting))
	counts := f.Counts()
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, site.Metric{Name: "aldis_tak_events_total", Help: "What has happened to TAK events.",
			Labels: []site.Label{{Name: "what", Value: what}}, Value: float64(counts[what])})
	}
	return list
}
