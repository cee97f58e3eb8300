//go:build !long

package journal

// failingSeeds is how many stories TestFailingDisk tells.
const failingSeeds = 16
