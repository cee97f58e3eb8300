package taklan

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	connections prometheus.Gauge
	events      prometheus.Counter
	held        prometheus.Counter
	octets      *prometheus.CounterVec
	refused     *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "aldis_tak_connections", Help: "Streams of TAK devices."}),
		events:      prometheus.NewCounter(prometheus.CounterOpts{Name: "aldis_tak_lan_events_total", Help: "Events received from TAK devices."}),
		held:        prometheus.NewCounter(prometheus.CounterOpts{Name: "aldis_tak_lan_held_total", Help: "Times that a TAK device's events waited because of its address's rate limit."}),
		octets:      prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_tak_lan_octets_total", Help: "Octets of TAK streams."}, []string{"direction"}),
		refused:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aldis_tak_lan_refused_total", Help: "Refused actions of TAK devices beyond a bound."}, []string{"reason"}),
	}
	if reg != nil {
		reg.MustRegister(m.connections, m.events, m.held, m.octets, m.refused)
	}
	return m
}
