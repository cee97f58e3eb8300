// Package report writes pages: figures as one self-contained HTML file with plots, or as text for a terminal. The caller
// passes the contents as data; nothing here reads a clock or a file. The HTML file has no script and loads nothing (its
// own Content-Security-Policy forbids both), so that it can be mailed, printed and read in ten years.
//
// Names in captures and traces come from strangers. Everything is escaped (html/template), control and direction
// characters are replaced, and long names and long tables are cut and marked as cut.
//
// # Units
//
// Times are seconds, sizes octets, rates bits per second; every axis and column names its unit.
//
// # Files
//
//   - air.go: how full links get
//   - airpage.go: the table of docs/air.md
//   - bench.go: the results of a benchmark, with curves
//   - analysis.go: the cost of JXTA in a capture
//   - faults.go: the faults of a play
//   - fleet.go: a trial of a fleet with several bearers
//   - game.go: a field trial, with gateways and without
//   - page.go: a page and its parts, as HTML
//   - picture.go: plays of the events of TAK devices
//   - plot.go: values over time, and distributions
//   - rehearsal.go: a verdict before a mission
//   - replay.go: a trace played again
//   - takgame.go: a field trial with TAK devices
//   - text.go: a page for a terminal
//   - xmppgame.go: a field trial with XMPP servers and clients
//   - xmppplays.go: plays of the stanzas of XMPP users
//   - xyplot.go: figures over a number
package report
