package rule

import (
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/rules/filter"
)

// Bring is an operator's rule that fetches data packages of far sites although no device has requested them. An empty condition
// fits everything.
type Bring struct {
	Line     int    // of the configuration
	Site     uint16 // that offers the package; 0: any
	Callsign string // patterns for the sender of the offer: "*" stands for anything
	UID      string
	Name     string // pattern of the file's name
	Most     int64  // octets of the file; 0: any
}

// MostBrings bounds how many of these rules are read.
const MostBrings = 64

// Brings says whether one of the rules fits an offer of a file of so many octets.
func Brings(rules []Bring, offer *cot.Event, from uint16, size int64) bool {
	share := offer.Find("fileshare")
	if share == nil {
		return false
	}
	fits := func(pattern, text string) bool { return pattern == "" || filter.Match(pattern, text) }
	for _, r := range rules {
		if (r.Site == 0 || r.Site == from) && fits(r.Callsign, share.Get("senderCallsign")) && fits(r.UID, share.Get("senderUid")) &&
			(fits(r.Name, share.Get("name")) || fits(r.Name, share.Get("filename"))) && (r.Most == 0 || size <= r.Most) {
			return true
		}
	}
	return false
}
