// Package bench measures a running gateway and the known rendezvous and relay, JXSE 2.7, under the same load in the same run. It repeats
// the measurements of the performance model of 2004 (published 2: peer operations, pipes, rendezvous, relay) and of the layers of 2005
// (published 3), and measures the effects of a link. Where a figure is the server's, the load comes from edge peers of
// internal/lab/edgepeer/tcp. Where it is a peer's, the load comes from unmodified JXTA peers (field-tests/peers).
//
// A report is rows: what, where, at which size, of how many. A Row is one cell, with its spread, its number of measurements and how it
// was made. A benchmark (the table in bench.go) measures at one place after the other. A failure makes a row that says why, and the run
// goes on.
//
// Everything runs on loopback, with processes, sockets and files of its own, which are removed in every case. The benchmark "link" runs
// in virtual time (internal/lab/replay).
//
// Units: rates per second, times as the row says, MB are 10^6 octets.
//
// # Files
//
//   - advise.go: the decision path of the thesis
//   - bench.go: one run: benchmarks, places, sessions
//   - broker.go: the same messages through a present-day broker
//   - capture.go: octets on loopback
//   - headquarters.go: a site of several machines and its ships
//   - jxtac.go: peers of JXTA-C
//   - link.go: the effects of a link, in virtual time
//   - load.go: load peers: joining and times
//   - machine.go: the machine of a run
//   - octets.go: octets on the link between two gateways
//   - overload.go: more messages than the server can carry
//   - pair.go: messages between two small peers, and several
//   - pipes.go: unicast pipes between small peers
//   - plan.go: the measurements of a run, and their time
//   - proc.go: the server under test as a process: its counters and its cost
//   - propagate.go: one sender and several receivers of a propagate pipe
//   - published.go: figures of the studies
//   - query.go: peers that send questions
//   - real.go: unmodified peers
//   - rendezvous.go: discovery questions, and a rendezvous's start
//   - report.go: the report as text, Markdown and HTML
//   - row.go: rows, their CSV, and regressions
//   - several.go: several rendezvous and their deaths, gateways in a row, a day
//   - ships.go: gateways of ships in this process
//   - siteof.go: sites of several machines, compared with a site of one
//   - xmpp.go: lines in rooms of XMPP
package bench
