//go:build !long

package air

const (
	deathSeeds   = 1
	deathsOfSeed = 20
)
