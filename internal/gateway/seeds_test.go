//go:build !long

package gateway_test

// seeds is how many seeds a test plays that computes for seconds with each: one, and with -tags long all of them.
func seeds(uint64) uint64 { return 1 }

// plays is how many seeds a test plays of which one shows too little: few, and with -tags long all of them.
func plays(few, _ uint64) uint64 { return few }
