//go:build !long

package gateway_test

import "time"

// seeds is how many seeds a test plays that computes for seconds with each: one, and with -tags long all of them.
func seeds(uint64) uint64 { return 1 }

// plays is how many seeds a test plays of which one shows too little: few, and with -tags long all of them.
func plays(few, _ uint64) uint64 { return few }

// liarsFor is long beside the round of turns by which what was lost is repaired: what then is under way counts for nothing.
const liarsFor = 10 * time.Minute
