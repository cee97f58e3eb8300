package tak

import (
	"maps"
	"time"

	"aldis/internal/site"
)

func (f *Face) note(level, text string, attrs ...any) {
	f.out.Notes = append(f.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// refuse counts an event that was not taken, and tells of it: each reason once a minute for a host.
func (f *Face) refuse(now time.Time, reason string, c *client, uid string, err error) {
	f.trouble.Count("refused " + reason)
	if !f.trouble.May(now, "refused "+reason+" "+c.host) {
		return
	}
	attrs := []any{"reason", reason, "remote", c.host, "refused_so_far", f.trouble.Of["refused "+reason]}
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
	all := maps.Clone(f.trouble.Of)
	for _, a := range f.audiences {
		all["records"] += a.Records()
	}
	return all
}

// Metrics are the counts and what is there now.
func (f *Face) Metrics() []site.Metric {
	far := 0
	for _, t := range f.far {
		far += t.Shown()
	}
	list := []site.Metric{
		site.Gauge("tak_devices", "TAK devices with a connection.", len(f.streams.clients)),
		site.Gauge("tak_far_units", "Units of far sites on the map.", far),
	}
	if f.near != nil {
		list = append(list, site.Gauge("tak_near_units", "Units of this site.", len(f.near.All())))
	}
	list = append(list, site.Gauge("tak_waiting", "Events of far sites that wait for a device.", len(f.waiting)))
	return append(list, site.Counters("tak_events_total", "TAK events by what happened to them.", "what", f.Counts())...)
}
