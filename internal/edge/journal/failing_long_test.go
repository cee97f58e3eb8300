//go:build long

package journal

// failingSeeds is the number of random runs of TestFailingDisk.
const failingSeeds = 500
