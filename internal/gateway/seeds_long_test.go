//go:build long

package gateway_test

import "time"

// seeds is how many seeds a test plays that computes for seconds with each.
func seeds(all uint64) uint64 { return all }

// plays is how many seeds a test plays of which one shows too little.
func plays(_, all uint64) uint64 { return all }

// liarsFor is long beside the round of turns by which what was lost is repaired: what then is under way counts for nothing.
const liarsFor = 20 * time.Minute
