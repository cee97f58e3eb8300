// Package norm runs libnorm (NORM, RFC 5740) in a child process of the same binary. Commands and objects pass through
// the child's stdin and stdout, NORM packets through loopback addresses. libnorm never sees the link: its packets
// leave as gateway.NormPacket, and packets for it arrive as gateway.NormInject. When a child dies or hangs, a
// Supervisor kills it and reports gateway.NormDown. That costs seconds, and the gateway's own process goes on.
//
// docs/reference/norm-behind-the-seal.md and docs/decisions/norm-child.md give the reasons for the child, the
// addresses and the settings. Only cgo.go contains C.
//
// The child is confined (internal/edge/norm/cell): a network and a user of its own, no capabilities, and a short list of
// system calls. Only libnorm and the supervisor use the loopback interface of that network; the child creates the
// supervisor's sockets and hands them over. Where the kernel offers less, the supervisor uses what there is and
// reports what is missing.
//
// # Addresses
//
// Session k (1..MaxPeers) is the star leg to the k-th peer. N is the first free number of 77..99, so that several
// gateways can run on one machine that offers no separate networks:
//
//	127.N.k.1   port 7100 and 7101  libnorm receives and sends
//	127.N.k.2   port 7100           the supervisor: source of injected packets; ACK and NACK for the peer arrive here
//	127.N.k.254 port 7100           the supervisor: DATA and commands for the peer arrive here
//
// # Units
//
// Rates are bits per second, sizes octets.
//
// # Files
//
// Read supervisor.go first, then process.go and child.go.
//
//   - supervisor.go: the gateway's side: a child for each run of NORM, and a new one when it dies
//   - process.go: one child as the gateway sees it: start, conversation, end
//   - child.go: the child's side: commands in, events out
//   - pipe.go: the records between the two, and the addresses
//   - sockets.go: the sockets of each session
//   - handover.go: how the supervisor gets sockets in the child's network
//   - cgo.go: calls to libnorm
package norm
