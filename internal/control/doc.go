// Package control answers operators over HTTP: GET /status and /adverts (JSON), /metrics (Prometheus text) and /healthz.
// POST /silence and POST /peers/forget are the only requests that change the gateway; they are accepted from this machine alone. Every answer comes
// from one Status value of the gateway, taken between two turns of the loop (design 9), and from counters that rooms
// keep themselves. There is no password: bind the listener to loopback or to a network of operators.
//
// Metrics are named aldis_…, in base units: seconds, octets (called bytes by Prometheus' convention). Octets of the
// airtime ledger are IP octets.
package control
