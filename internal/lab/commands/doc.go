// Package commands holds the commands of gateway-lab, which stay ashore. A user types their names after `gateway`.
//
// # Files
//
//   - air.go: `air`: how full a link gets
//   - analyse.go: `analyse`: figures of captures
//   - bench.go: `bench`: load on a running gateway
//   - clear.go: datagrams of a capture in clear
//   - commands.go: the table of commands
//   - corpus.go: `corpus`: messages of captures and traces, and the compression model
//   - fit.go: `tune --fit`
//   - plays.go: the clients that play a trace, and several plays at once
//   - pmul.go: `pmul`: files by plain ACP 142
//   - record.go: `record`: a trace from a capture
//   - rehearse.go: `rehearse`: a verdict before the mission
//   - replay.go: `replay`: a trace played again
//   - samples.go: the samples of a network's own corpus
//   - show.go: figures as JSON, text or a page
//   - synth.go: `synth`: traces of published runs
//   - takcosts.go: the cost of the events of TAK devices in a capture, for `analyse`
//   - takplays.go: TAK devices play a trace
//   - xmppplays.go: XMPP users play a trace
//   - teach.go: `corpus build`: a network's own corpus, of samples
//   - tested.go: gateway-lab inside a test program
//   - tune.go: `tune`: better values of a profile
package commands
