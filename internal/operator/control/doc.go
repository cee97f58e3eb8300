// Package control serves operators over HTTP: GET /status, /adverts and /messages (JSON), /metrics (Prometheus text)
// and /healthz. Each answer comes from one Status of the gateway, taken between two turns of the daemon's loop (design
// 9), and from counters that other packages keep. Reading needs no password, so bind the listener to loopback or to a
// network of operators.
//
// A POST request is an order and changes the gateway. It arrives over a unix socket, where the kernel identifies the
// caller, or over TCP with a token. The log and the audit record name the caller of each order. The function order
// builds the handler of one order: a new order needs one line in New and the function that carries it out.
//
// Metrics are named aldis_… and use base units: seconds, and octets (called bytes, by Prometheus' convention). The
// airtime ledger counts IP octets.
//
// The package opens listeners and runs goroutines; it is not pure.
//
// # Files
//
// Read control.go first, then orders.go. The others hold one kind of answer or order each.
//
//   - control.go: listeners and read-only answers
//   - orders.go: who may give orders, and how an order is handled
//   - socket.go: the unix socket
//   - crowd.go: the limit on open connections
//   - live.go: the event stream for browsers and terminals that watch
//   - adverts.go: where advertisements are
//   - messages.go: where messages are, and orders about one message
//   - distance.go: how far the sites are
//   - bill.go: the bill of each month
//   - metrics.go: metrics of the process and the LAN
//   - linkmetrics.go: metrics of the links
//   - peers.go: orders about far gateways
//   - roster.go: the order to use a newer roster
//   - reload.go: the order to read the configuration again
//   - drain.go: the orders before a stop: drain, and a copy of the journal
//   - corpora.go: orders about corpora of the network
//   - group.go: the order to join or leave a group
//   - linkprobe.go: the order to probe a link
//   - site.go: which of two machines leads, and orders about that
//   - whatif.go: a rehearsal of recent traffic on another link
//   - view.go: the order to switch a view, and views for the page
package control
