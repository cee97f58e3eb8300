// Package control answers operators over HTTP, read only: /status (JSON), /metrics (Prometheus text) and /healthz.
// Everything comes from one Status value of the gateway, taken between two turns of the loop (design.md, decision 9),
// and from counters that rooms keep themselves. It knows no password: bind it to loopback or to a network of operators.
//
// Metrics are named aldis_…, in base units: seconds, octets (called bytes by Prometheus' convention). Octets of the
// airtime ledger are IP octets.
package control
