//go:build !long

package field

// kills is how many times TestKills kills something.
const kills = 20

type diskCase struct {
	name   string
	site   int // whose disk
	errors bool
}

// diskCases are what TestDisk does.
var diskCases = []diskCase{{"full at the ship", 1, false}, {"failing at hq", 0, true}}
