// Package norm runs libnorm (NORM, RFC 5740) in a child process of the same binary. Commands and objects pass over the
// child's stdin and stdout, NORM packets over loopback aliases. libnorm never sees the link: its packets come out as
// gateway.NormPacket, and packets for it go in with gateway.NormInject. When a child dies or hangs, a Supervisor kills
// it and reports gateway.NormDown. That costs seconds, and the gateway's own process goes on.
//
// Why a child, why aliases, which settings: docs/reference/norm-behind-the-seal.md and docs/decisions/norm-child.md.
// cgo.go is the only file with C.
//
// The child lives in a cell (internal/norm/cell): a network and a user of its own, no capability, a short list of system
// calls. The loopback of that network has nobody on it but libnorm and the supervisor, whose sockets the child makes and
// hands over. Where the kernel gives less, the supervisor takes what there is and says what is missing.
//
// # Addresses
//
// Session k (1..MaxPeers) is the star leg to the k-th peer, N the first free of 77..99, so that several gateways can
// run on one machine that gives them no networks of their own:
//
//	127.N.k.1   port 7100 and 7101  libnorm receives and sends
//	127.N.k.2   port 7100           the supervisor: source of what is injected; ACK and NACK for the peer arrive here
//	127.N.k.254 port 7100           the supervisor: DATA and commands for the peer arrive here
//
// # Units
//
// Rates are bits per second, sizes octets.
//
// # Files
//
//   - cgo.go: libnorm
//   - child.go: the child's side: commands in, events out
//   - handover.go: how the supervisor gets sockets in the child's network
//   - pipe.go: the records between the two, and the addresses
//   - process.go: one child, as the gateway's side sees it: started, spoken with, ended
//   - sockets.go: the sockets of each leg
//   - supervisor.go: the gateway's side: a child for each run of NORM, and another when it dies
package norm
