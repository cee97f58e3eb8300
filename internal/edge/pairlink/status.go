package pairlink

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/pair"
)

// Status is this machine's state, for operators.
func (l *Link) Status() pair.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	is := l.m.Stored()
	s := pair.Status{Role: l.m.Role().String(), Epoch: is.Epoch, Since: l.since, Other: l.cfg.Other.String(), Connected: l.conn != nil, Refused: l.refused,
		Whole: is.Whole, Alone: l.m.Alone(), Stuck: l.m.Stuck(), Ready: l.m.Ready(), Passing: len(l.passages.passing), Silent: l.run != 0 && !l.MayTransmit(l.run)}
	if l.cfg.Witness.IsValid() {
		s.Witness, s.WitnessHeard = l.cfg.Witness.String(), l.heard
		s.WitnessLost = time.Since(l.heard) > 2*probeEvery
	}
	if role := l.m.Role(); role != pair.Waiting {
		s.LedSince = s.Since
	}
	if s.Alone {
		s.AloneSince, s.OneDiskCommits, s.OneDiskOctets = l.alone.since, l.alone.commits, l.alone.octets
	}
	if c := l.conn; c != nil && c.attached {
		s.BehindCommits = l.pos.seq - c.acked
		if frames, ok := l.recent.after(c.acked, l.pos.seq); ok {
			for _, f := range frames {
				s.BehindOctets += uint64(len(f))
			}
		}
		if s.BehindCommits > 0 {
			s.BehindSince = c.behind
		}
	}
	return s
}

// metrics are the counters of the connection between the machines.
type metrics struct {
	refused *prometheus.CounterVec
	written prometheus.Counter
}

func newMetrics() *metrics {
	return &metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_site_refused_total", Help: "Refused or failed connections between the two gateways of a site."}, []string{"reason"}),
		written: prometheus.NewCounter(prometheus.CounterOpts{Name: "aldis_site_followed_commits_total", Help: "Commits of the leader written by this machine while it followed."}),
	}
}

var (
	descLeads     = prometheus.NewDesc("aldis_site_leads", "1 while this machine leads the site's link.", nil, nil)
	descAlone     = prometheus.NewDesc("aldis_site_alone", "1 while this machine leads and what it accepts is on one disk alone.", nil, nil)
	descConnected = prometheus.NewDesc("aldis_site_connected", "1 while the other machine of the site is connected.", nil, nil)
	descEpoch     = prometheus.NewDesc("aldis_site_epoch", "Epoch of this machine's journal.", nil, nil)
	descBehind    = prometheus.NewDesc("aldis_site_behind_commits", "Commits of the leader that the follower has not acknowledged.", nil, nil)
	descOneDisk   = prometheus.NewDesc("aldis_site_one_disk_octets", "Octets of commits on the leader's disk alone since it is alone.", nil, nil)
	descMember    = prometheus.NewDesc("aldis_site_member_connected", "1 while a machine of the site is connected, or is this one.", []string{"member"}, nil)
	descLeader    = prometheus.NewDesc("aldis_site_member_leads", "1 for the machine of the site that leads, as this one knows it.", []string{"member"}, nil)
	descLacks     = prometheus.NewDesc("aldis_site_member_behind_commits", "Of a leader: commits that a machine has not acknowledged.", []string{"member"}, nil)
	descLackOct   = prometheus.NewDesc("aldis_site_member_behind_octets", "Of a leader: octets of these commits.", []string{"member"}, nil)
	descLackTime  = prometheus.NewDesc("aldis_site_member_behind_seconds", "Of a leader: for how long a machine has lacked some commit.", []string{"member"}, nil)
	descWitness   = prometheus.NewDesc("aldis_site_witness_lost", "1 while the witness does not answer.", nil, nil)
)

// Describe names the metrics.
func (l *base) Describe(ch chan<- *prometheus.Desc) {
	l.metrics.refused.Describe(ch)
	l.metrics.written.Describe(ch)
	for _, d := range []*prometheus.Desc{descLeads, descAlone, descConnected, descEpoch, descBehind, descOneDisk, descWitness, descMember, descLeader, descLacks, descLackOct, descLackTime} {
		ch <- d
	}
}

// Collect gives the metrics' values.
func (l *Link) Collect(ch chan<- prometheus.Metric) { l.collect(ch, l.Status()) }

// Collect gives the metrics' values.
func (c *Cluster) Collect(ch chan<- prometheus.Metric) { c.collect(ch, c.Status()) }

func (l *base) collect(ch chan<- prometheus.Metric, s pair.Status) {
	l.metrics.refused.Collect(ch)
	l.metrics.written.Collect(ch)
	gauge := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	gauge(descLeads, float64(flag(s.Role == pair.Leading.String())))
	gauge(descAlone, float64(flag(s.Alone)))
	gauge(descConnected, float64(flag(s.Connected)))
	gauge(descEpoch, float64(s.Epoch))
	gauge(descBehind, float64(s.BehindCommits))
	gauge(descOneDisk, float64(s.OneDiskOctets))
	gauge(descWitness, float64(flag(s.WitnessLost)))
	for _, m := range s.All() {
		if m.Self && len(s.Members) == 0 {
			continue // aldis_site_leads says it
		}
		of := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, m.At)
		}
		of(descMember, float64(flag(m.Connected)))
		of(descLeader, float64(flag(m.Leads)))
		if s.Role == pair.Leading.String() && !m.Self {
			of(descLacks, float64(m.BehindCommits))
			of(descLackOct, float64(m.BehindOctets))
			took := 0.0
			if !m.BehindSince.IsZero() {
				took = time.Since(m.BehindSince).Seconds()
			}
			of(descLackTime, took)
		}
	}
}
