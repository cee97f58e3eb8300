// Package api has the data that the gateway and the edges around it exchange: the events that an edge gives to a Step, the Output that it
// carries out, the records of the journal, and the rows that an operator is shown. It is data alone: every room may import it, and it
// imports no room that decides anything.
//
// # Files
//
//   - api.go: events, commands to libnorm, the Output of a Step
//   - status.go: the state of a gateway and of its peers
//   - messages.go: messages and advertisements as an operator sees them
//   - bill.go: the octets of a month
//   - linkprobe.go: what became of a link probe
package api
