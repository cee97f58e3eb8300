//go:build long

package compact

func init() { damaged = 100_000 }
