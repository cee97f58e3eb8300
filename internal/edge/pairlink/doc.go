// Package pairlink joins the two gateways of a site (docs/decisions/two-at-a-site.md). Over a TLS connection one machine's journal follows
// the other's, commit by commit, and internal/gateway/pair settles who leads. The package also asks the witness, and is the witness. At a
// site of three machines or more each is a member of a Cluster, in which internal/gateway/quorum makes a majority acknowledge each commit
// (docs/decisions/three-at-a-site.md).
//
// # Files
//
//   - link.go: the machine, its clock, and its stored state; read it first
//   - stream.go: commits, snapshots, and how a follower writes them
//   - conn.go: connections and their bounds
//   - wire.go: frames
//   - pack.go: how frames are packed
//   - facts.go: what both machines must agree in
//   - pass.go: connections of local peers that a follower passes on
//   - passed.go: how many octets of those connections the peers have
//   - witness.go: the third voter: asking it, and being it
//   - cluster.go: a member of three and more, its connections and orders
//   - clusterlog.go: the log of its journal, commits and copies
//   - status.go: status and metrics
package pairlink
