package tak

import (
	"maps"

	"aldis/internal/site"
)

// Counts are the counters since the start of the process: events taken and given, refused by reason, batches, records.
func (f *Adapter) Counts() map[string]int {
	all := maps.Clone(f.trouble.Of)
	for _, a := range f.audiences {
		all["records"] += a.Records()
	}
	return all
}

// Metrics are the counts and the present sizes of the tables.
func (f *Adapter) Metrics() []site.Metric {
	far := 0
	for _, t := range f.far {
		far += t.Shown()
	}
	list := []site.Metric{
		site.Gauge("tak_devices", "TAK devices with a connection.", len(f.devices.clients)),
		site.Gauge("tak_far_units", "Units of far sites on the map.", far),
	}
	if f.known {
		list = append(list, site.Gauge("tak_near_units", "Units of this site.", len(f.near.All())))
	}
	list = append(list, site.Gauge("tak_waiting", "Events of far sites that wait for a device.", len(f.devices.waiting)))
	return append(list, site.Counters("tak_events_total", "TAK events by what happened to them.", "what", f.Counts())...)
}
