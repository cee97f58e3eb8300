// Package pair decides which of two machines of a site leads its link (docs/decisions/two-at-a-site.md). It is pure: the edge
// internal/edge/pairlink has the connection, the clock and the disk.
//
// Read words.go first (what is stored and what the machines tell each other), then pair.go (Step), lead.go (a leader, its
// follower and the lease), vote.go (claims and votes), then witness.go (the third voter).
//
// Times are durations on a clock that nobody sets and that goes on while the machine is suspended (CLOCK_BOOTTIME).
package pair
