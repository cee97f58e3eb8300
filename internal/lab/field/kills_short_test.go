//go:build !long

package field

import "time"

// kills is how many times TestKills kills something.
const kills = 12

type diskCase struct {
	name string
	site int // whose disk
}

// diskCases are the cases of TestDisk.
var diskCases = []diskCase{{"full at the ship", 1}}

// failingSeeds are the seeds of TestFailingDisk, outages how many failures each has.
var failingSeeds = []uint64{12}

const outages = 2

// putBackBy is how much HQ forgets in TestPutBack, putBackEvery the time between two messages each way.
const (
	putBackBy    = 12 * time.Second
	putBackEvery = time.Second
)

// cutSeeds are the seeds of TestCutAmidALongMessage.
var cutSeeds = []uint64{1}

// cutProfiles are the profiles of its two bearers.
var cutProfiles = [2]string{"iridium-certus-100", "vhf-cnr-16k"}
