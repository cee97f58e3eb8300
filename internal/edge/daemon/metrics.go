package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
)

type metrics struct {
	events         *prometheus.CounterVec
	turn, commit   prometheus.Histogram
	commitFailures prometheus.Counter
	held           prometheus.Gauge
	datagramsLost  prometheus.Counter
	clockJumps     prometheus.Counter
	clockAhead     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_loop_events_total", Help: "Events that the loop processed: lan, link, norm, order, timer."}, []string{"source"}),
		turn: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aldis_loop_turn_seconds", Help: "Seconds of one turn of the loop, without the commit.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 10, 7)}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "aldis_journal_commit_seconds", Help: "Seconds of one durable commit to the journal, failed ones included.",
			Buckets: prometheus.ExponentialBuckets(1e-4, 4, 8)}),
		commitFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_journal_failures_total", Help: "Commits to the journal that failed, retries included."}),
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aldis_journal_held_bytes", Help: "Octets kept in memory because the journal cannot write."}),
		datagramsLost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_link_datagrams_withheld_total", Help: "Datagrams not sent because the journal could not write, or because a silence began while they waited for it."}),
		clockJumps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_clock_jumps_total", Help: "Times that the wall clock was set by a second or more."}),
		clockAhead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aldis_clock_offset_seconds", Help: "Wall clock minus the gateway's own clock."}),
	}
	if reg != nil {
		reg.MustRegister(m.events, m.turn, m.commit, m.commitFailures, m.held, m.datagramsLost, m.clockJumps, m.clockAhead)
	}
	return m
}

func (m *metrics) count(ev api.Event) {
	source := "norm"
	switch ev.(type) {
	case nil, api.Clock:
		source = "timer"
	case api.Silence, api.Modem:
		source = "order"
	case api.LAN:
		source = "lan"
	case api.Datagram, api.Line:
		source = "link"
	}
	m.events.WithLabelValues(source).Inc()
}
