package interop

import (
	"errors"
	"maps"
	"time"

	"aldis/internal/site"
)

const (
	// mostRate is how many messages a second of one peer a rule takes, and mostAtOnce how many together.
	mostRate   = 50
	mostAtOnce = 200
)

func (m *Meeting) note(level, text string, attrs ...any) {
	m.met.Notes = append(m.met.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// refuse counts a refusal, and logs it: each reason once a minute for a rule.
func (m *Meeting) refuse(now time.Time, rule *Rule, peer string, err error) {
	reason := "unfit"
	var f *Fault
	if errors.As(err, &f) {
		reason = f.Reason
	}
	m.trouble.Count("refused " + reason)
	if m.trouble.May(now, reason+" "+rule.String()) {
		m.note("warn", "a JXTA message cannot be translated to TAK", "rule", rule.String(), "reason", reason, "peer", peer, "error", err,
			"refused_so_far", m.trouble.Of["refused "+reason])
	}
}

// Counts are the counters since the start of the process.
func (m *Meeting) Counts() map[string]int { return maps.Clone(m.trouble.Of) }

// Metrics are the counts and the present sizes of the tables.
func (m *Meeting) Metrics() []site.Metric {
	return append([]site.Metric{
		site.Gauge("meet_units", "Units that cross between the protocol adapters of this gateway.", len(m.units)),
		site.Gauge("meet_listeners", "Unicast pipes of JXTA peers of this LAN, and propagate pipes that some of them hear, of [[meet]].", m.jxta.count),
		site.Gauge("meet_waiting", "Chat lines that wait for local JXTA peers.", len(m.jxta.waiting)),
	}, site.Counters("meet_total", "Events of [[meet]].", "what", m.trouble.Of)...)
}
