// Package trace reads captures: a pcap or pcapng file through an io.Reader becomes a timeline of the traffic of JXTA peers and gateways,
// and the figures of the 2004 experiment's report (tables 5.1 to 5.10). It also writes and reads trace files, which hold the
// application's part of a timeline, and makes such traces for the five published runs.
//
// The formats of the layers: (wire 2, 3; baseline 2, 7). The figures and their names: (published 1). docs/traces.md describes trace
// files. TCP segments are judged as tshark 4.0 judges them, so that "retransmission" means the same in both.
//
// # Time, units, bounds
//
// Times are nanoseconds since 1970 UTC (int64) as the capture has them; nothing here reads a clock. Sizes are octets.
// Memory does not grow with the file: connections, segments out of order, message bodies and names all have limits.
// Anything that exceeds a limit is counted and makes the report partial. Hostile files give errors or counters, never a panic.
//
// # Files
//
//   - analyse.go: Analyser: takes in packets
//   - capture.go: pcap and pcapng files
//   - clear.go: our link's datagrams in clear, for a dissector
//   - copies.go: datagrams that come again on idle air
//   - cot.go: events of TAK devices
//   - dialog.go: both directions of a connection as messages
//   - digest.go: identifiers of things to recognise later
//   - direction.go: the traffic from one node to another, in the order of its numbers
//   - ends.go: captures of both ends of one run; connections by their length
//   - event.go: actions of applications
//   - file.go: trace files
//   - found.go: kinds of packets without TCP
//   - fragments.go: IP packets from their fragments
//   - http.go: HTTP heads and bodies
//   - layers.go: octets of our link's datagrams by layer
//   - link.go: our link: octets by sender and kind
//   - lost.go: packets and octets missing from a capture
//   - message.go: JXTA messages by kind
//   - norm.go: NORM on our link
//   - openers.go: opens datagrams, and finds their sender and receiver
//   - packet.go: IP, TCP and UDP headers
//   - passage.go: packets that a capture at the other end recognises
//   - segment.go: long messages in segments on our link
//   - pmul.go: P_Mul on our link
//   - published.go: figures of the report of 2004
//   - record.go: Recorder: a capture's events as a trace
//   - report.go: Figures of one capture
//   - synth.go: traces of the five published runs
//   - tcp.go: TCP streams and retransmissions
//   - text.go: the report as JSON and text
//   - timeline.go: octets over time
//   - verdict.go: the fault of a link, in one sentence
//   - wrap.go: wrappings of IP packets
//   - xmpp.go: streams of XMPP
package trace
