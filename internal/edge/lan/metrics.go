package lan

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

var noCancel = context.Background()

// Metrics are the room's own.
type Metrics struct {
	Connections prometheus.Gauge
	Polls       prometheus.Gauge
	Accepted    prometheus.Counter
	Refused     *prometheus.CounterVec // by reason
	Octets      *prometheus.CounterVec // by direction, framing included
	Messages    *prometheus.CounterVec // by direction
	Dials       *prometheus.CounterVec // by result
}

func newMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		Connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aldis_lan_connections", Help: "Open TCP connections of JXTA peers."}),
		Polls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aldis_lan_polls", Help: "Open HTTP polls of JXTA peers."}),
		Accepted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_lan_connections_total", Help: "Accepted TCP connections of JXTA peers."}),
		Refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_refused_total", Help: "Refused connections, packages and requests of JXTA peers."}, []string{"reason"}),
		Octets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_bytes_total", Help: "Octets exchanged with JXTA peers, framing included."}, []string{"direction"}),
		Messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_messages_total", Help: "JXTA messages exchanged with peers."}, []string{"direction"}),
	}
	m.Dials = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aldis_lan_dials_total", Help: "Dials to leased JXTA peers without a connection."}, []string{"result"})
	if reg != nil {
		reg.MustRegister(m.Dials, m.Connections, m.Polls, m.Accepted, m.Refused, m.Octets, m.Messages)
	}
	return m
}
