package interop

import (
	"time"

	"aldis/internal/adapters/tak/cot"
)

// Track is one report of a unit, in the words that all adapters share.
type Track struct {
	ID            string // the unit's name; if two adapters use one ID, it is one unit
	Callsign      string
	Type          string // as in CoT: "a-f-S"
	Lat, Lon      float64
	Moves         bool      // Course and Speed are known
	Course, Speed float64   // degrees from north; metres a second
	Time, Stale   time.Time // of the report
	At            time.Time // when the unit was at the place, or must have been there by its course; zero: Time
	// Event is the report as a TAK device sent it, or nil. A side that writes CoT takes it as it is.
	Event *cot.Event
}

// Line is a line in a chat room.
type Line struct {
	ID   string // of the line, the same in all adapters
	Room string
	From string // the name that people know
	Text string
	Time time.Time
	// Event is as in a Track.
	Event *cot.Event
}
