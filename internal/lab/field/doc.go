// Package field plays field trials on one machine: sites in network namespaces, joined by the link emulator, with real gateways and
// unmodified JXTA peers, TAK devices, or XMPP servers and clients. Its figures are measured at the emulator and in the peers, never in a
// gateway.
//
// The package needs root, iproute2, nftables for walls, and for JXTA Java 17 and the built peers of field-tests/peers. Sizes are IP
// octets; times are seconds in the figures and time.Duration in Go. All namespaces and files of a run have the prefix aldis-<4 hex
// digits>- and are removed at the end; the next run removes those of a killed run.
//
// # Files
//
//   - air.go: how full a link gets, in real time
//   - bluegame.go: the Blue Game from the first namespace to the figures
//   - bluegameend.go: its end: figures, files, and namespaces removed
//   - bound.go: programs that must not outlive this one
//   - busy.go: load that keeps the machine busy
//   - cli.go: the command `gateway lab`
//   - debian.go, debian.sh: machines with a Debian of their own, on which the gateway is installed from its package
//   - figures.go: results of a run
//   - fleet.go: a fleet with several bearers, from the first namespace to the end of the script
//   - fleetcli.go: the command `gateway lab fleet`
//   - fleetdirect.go: direct sessions in a fleet, and what ends them
//   - fleetend.go: the fleet's messages and their ends
//   - fleetgroup.go: speakers and hearers in a fleet with groups, and the end of a site
//   - fleetplan.go: the events of a script
//   - gatewayproc.go: a gateway as a process in its namespace
//   - hub.go: the emulator between the namespaces
//   - netns.go: namespaces, and the removal of those of killed runs
//   - office.go: keys and rosters of a run
//   - options.go: options and their checks
//   - pair.go: sites of several machines, and accidents to them
//   - pcap.go: capture files
//   - picture.go: the results as a page
//   - progress.go: how far a trial is
//   - peer.go: unmodified JXTA peers as processes
//   - replay.go: a trace in real time
//   - scenario.go: outages, power cuts and rate limits
//   - scoreboard.go: the results compared with those of 2004
//   - silent.go: ships under EMCON
//   - site.go: addresses and parts of a site
//   - strangers.go: messages as other software would send them
//   - takdevice.go: TAK devices, and the view of their LANs
//   - takfederation.go: TAK servers with TCP between them, without gateways
//   - takfigures.go: results of a run with TAK devices
//   - takgame.go: the Blue Game with TAK devices
//   - takreplay.go: a trace of TAK devices in real time
//   - taky.go: taky, a TAK server of others, and how such servers start
//   - toml.go: rules in the form of a configuration
//   - xmppgame.go: the Blue Game with XMPP servers and clients
//   - xmppserver.go: their servers
package field
