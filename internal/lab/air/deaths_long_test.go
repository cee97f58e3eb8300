//go:build long

package air

const (
	deathSeeds   = 20
	deathsOfSeed = 200
)
