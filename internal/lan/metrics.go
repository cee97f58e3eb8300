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
			Name: "aldis_lan_connections", Help: "TCP connections of JXTA peers that are open now."}),
		Polls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aldis_lan_polls", Help: "Polls of JXTA peers over HTTP that are open now."}),
		Accepted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_lan_connections_total", Help: "TCP connections of JXTA peers accepted."}),
		Refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_refused_total", Help: "Connections, packages and requests of JXTA peers that were refused, by reason."}, []string{"reason"}),
		Octets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_bytes_total", Help: "Octets exchanged with JXTA peers, framing included."}, []string{"direction"}),
		Messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aldis_lan_messages_total", Help: "JXTA messages exchanged with peers."}, []string{"direction"}),
	}
	m.Dials = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "aldis_lan_dials_total", Help: "Calls to JXTA peers that had a lease and no connection, by result."}, []string{"result"})
	if reg != nil {
		reg.MustRegister(m.Dials, m.Connections, m.Polls, m.Accepted, m.Refused, m.Octets, m.Messages)
	}
	return m
}
