//go:build !long

package field

// kills is how many times TestKills kills something.
const kills = 20

type diskCase struct {
	name string
	site int // whose disk
}

// diskCases are what TestDisk does.
var diskCases = []diskCase{{"full at the ship", 1}}

// failingSeeds are the stories of TestFailingDisk, outages how many failures each has.
var failingSeeds = []uint64{12}

const outages = 2
