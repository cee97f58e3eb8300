// Package pairlink joins the two gateways of a site (docs/decisions/two-at-a-site.md): a TLS connection over which one machine's
// journal follows the other's, commit by commit, and over which internal/gateway/pair settles who leads. It also asks the witness, and
// is one. Of three machines and more each is a member of a Cluster, in which internal/gateway/quorum has a majority acknowledge each commit
// (docs/decisions/three-at-a-site.md).
//
// # Files
//
//   - link.go: the machine, its clock, and what it stores; read it first
//   - stream.go: commits, snapshots, and what a follower writes
//   - conn.go: connections and their bounds
//   - wire.go: frames
//   - facts.go: what both machines must agree in
//   - pass.go: connections of local peers that a follower passes on
//   - passed.go: how much of those the peers have
//   - witness.go: the third voter, asked and being asked
//   - cluster.go: a member of three and more, its connections and orders
//   - clusterlog.go: the log of its journal, commits and copies
//   - status.go: status and metrics
package pairlink
