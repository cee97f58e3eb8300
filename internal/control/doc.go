// Package control answers operators over HTTP: GET /status, /adverts and /messages (JSON), /metrics (Prometheus text) and /healthz.
// Every answer comes from one Status value of the gateway, taken between two turns of the loop (design 9), and from
// counters that rooms keep themselves. Nothing that may be read asks for a password: bind the listener to loopback or to
// a network of operators.
//
// A POST request is an order and changes the gateway. It comes over a unix socket, where the kernel says who gives it, or
// over TCP with a token. Each is logged with its giver. The function order makes the handler of one, so that a further
// order is a line in New and the function that obeys.
//
// Metrics are named aldis_…, in base units: seconds, octets (called bytes by Prometheus' convention). Octets of the
// airtime ledger are IP octets.
//
// # Files
//
//   - control.go: the listeners and pages
//   - live.go: who looks, and what they are told
//   - adverts.go: where advertisements are
//   - bill.go: the bill of each month
//   - crowd.go: how many connections there may be
//   - drain.go: the orders before a stop: a drain, and a copy of the journal
//   - messages.go: where messages are, and orders about one
//   - orders.go: who may give orders
//   - peers.go: orders about peers
//   - roster.go: the order to go by a newer roster
//   - reload.go: the order to read the configuration again
//   - corpora.go: orders about what the net has taught
//   - socket.go: the unix socket
//   - survey.go: the order to measure a link
//   - whatif.go: a rehearsal of traffic on another link
//   - metrics.go: the metrics
//   - linkmetrics.go: the metrics of the links
package control
