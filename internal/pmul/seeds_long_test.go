//go:build long

package pmul_test

// seeds is how many seeds a test plays that needs seconds for each.
func seeds(_, all uint64) uint64 { return all }
