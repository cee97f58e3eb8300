//go:build !long

package field

// kills is how many times TestKills kills something.
const kills = 20
