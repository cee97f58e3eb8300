// Package bench compares a running gateway with the known rendezvous and relay, JXSE 2.7, under the same load in the
// same run. It measures what the performance model of 2004 measured (published 2: peer operations, pipes, rendezvous,
// relay) and the message-and-acknowledgement pairs of 2005 (published 3). Where a figure is the server's, the load comes
// from edge peers of internal/lab/edgepeer/tcp. Where it is a peer's, the load comes from unmodified JXTA peers
// (field-tests/peers).
//
// Everything runs on loopback, with processes, sockets and files of its own, and is removed in every case.
//
// Units: rates per second, times as the row says, MB are 10^6 octets.
//
// # Files
//
//   - bench.go: one run and its rows
//   - load.go: load peers: joining and times
//   - octets.go: octets on the link between two gateways
//   - proc.go: the server under test as a process: its counters and its cost
//   - propagate.go: one sender and several listeners of a propagate pipe
//   - query.go: discovery queries
//   - real.go: unmodified peers: how long their operations take
//   - relay.go: messages over unicast pipes
//   - report.go: the machine and the report
//   - xmpp.go: lines in rooms of XMPP
package bench
