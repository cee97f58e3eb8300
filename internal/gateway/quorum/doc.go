// Package quorum decides which of three and more machines of a site leads its link, and which records a majority has
// (docs/decisions/three-at-a-site.md). The raft library go.etcd.io/raft keeps terms, votes and the log; this package gives it clocks that
// nobody sets, the lease of a leader, and members that have lost their disk. It is pure: the edge internal/edge/pairlink has the
// connections, the clock and the disk.
//
// Read words.go first (what is stored, and what the machines tell each other), then machine.go (Step), work.go (what is made durable),
// whole.go (members that lack entries that they had), lease.go, taken.go (messages that no member sends).
//
// Times are as in package pair. The library's own election timer, which draws chance by itself, never runs out.
package quorum
