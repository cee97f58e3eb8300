//go:build long

package field

import "time"

// kills is how many times TestKills kills something.
const kills = 1000

type diskCase struct {
	name string
	site int // whose disk
}

// diskCases are the cases of TestDisk.
var diskCases = []diskCase{{"full at the ship", 1}, {"full at hq", 0}}

// failingSeeds are the seeds of TestFailingDisk, outages how many failures each has.
var failingSeeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}

const outages = 4

// putBackBy is how much HQ forgets in TestPutBack, putBackEvery the time between two messages each way.
const (
	putBackBy    = 40 * time.Second
	putBackEvery = 3 * time.Second
)

// cutSeeds are the seeds of TestCutAmidALongMessage.
var cutSeeds = []uint64{1, 2, 3}

// cutProfiles are the profiles of its two bearers.
var cutProfiles = [2]string{"iridium-directip", "hf-2400"}
