//go:build !long

package pmul_test

// seeds is how many seeds a test plays that needs seconds for each: few, and with -tags long all of them.
func seeds(few, _ uint64) uint64 { return few }
