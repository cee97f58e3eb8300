//go:build long

package gateway_test

// seeds is how many seeds a test plays that computes for seconds with each.
func seeds(all uint64) uint64 { return all }

// plays is how many seeds a test plays of which one shows too little.
func plays(_, all uint64) uint64 { return all }
