//go:build !long

package entropy

// liarSeeds is how many seeds TestLiarsGetNoMoreThanAShare plays.
const liarSeeds = 2
