//go:build long

package pmul_test

// seeds is how many seeds a test plays that computes for seconds with each.
func seeds(_, all uint64) uint64 { return all }
