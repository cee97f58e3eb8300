package files

import (
	"time"

	"aldis/internal/site"
)

// Orders to the file room (internal/edge/lan/fileroom). A hash is the SHA-256 of a file in 64 lower-case hexadecimal digits, a
// size is in octets.
type (
	// Fetch takes a file from the address that its device has named, unless the file is here: only from Host, whatever the URL
	// names.
	Fetch struct {
		Hash, URL, Host, Name, Creator string
		Size                           int64
	}
	// Load reads parts From to To-1 of a file; each has PartOctets, the last one the rest.
	Load struct {
		Ask      uint64 // comes back
		Hash     string
		From, To int
	}
	// Keep writes a part of a file that is on its way.
	Keep struct {
		Token uint64 // comes back
		Hash  string
		Part  int
		Data  []byte
	}
	// Finish makes a file of all its parts if it has the hash; otherwise the parts are deleted.
	Finish struct {
		Hash, Name, Creator, MIME string
		Size                      int64
	}
	// Reserve makes an address to which a client here uploads a file (XEP-0363).
	Reserve struct {
		Ask        uint64 // comes back
		Name, MIME string
		Size       int64
	}
	// Know is the state of a file that was offered and is not here. State is for people.
	Know struct {
		Hash, Name, Creator, MIME string
		Size                      int64
		At                        time.Time // of the offer
		State                     string
		Public                    bool // it is offered to all
		Failed                    bool // it will not arrive
		Gone                      bool // it is no longer offered
		Bring                     bool // the file room answers Wanted at once, although nobody has asked for it, unless it is here
	}
)

// Events from the file room.
type (
	// Fetched: the outcome of a Fetch. Err is empty if the file is here.
	Fetched struct{ Hash, Err string }
	// Loaded: the parts that Load has read; none if the file is not here.
	Loaded struct {
		Ask   uint64
		Parts [][]byte
	}
	// Kept: the outcome of a Keep. Err is empty if the part would survive a crash.
	Kept struct {
		Token uint64
		Hash  string
		Part  int
		Err   string
	}
	// Finished: the outcome of a Finish. Err is empty if the file is here.
	Finished struct{ Hash, Err string }
	// Reserved: the URLs to which a client uploads its file, and from which others then get it. Err says why there are none.
	Reserved struct {
		Ask           uint64
		Put, Get, Err string
	}
	// Uploaded: a client has uploaded its file. ID is the part of its URLs behind the URL of the file room.
	Uploaded struct {
		ID, Hash, Name, MIME string
		Size                 int64
	}
	// Published: a device has offered a file of this site to all.
	Published struct {
		Hash, Name, Creator string
		Size                int64
	}
	// Wanted: a device asks for a file that was offered and is not here. Host is empty if an operator's rule asks for it.
	Wanted struct{ Hash, Host string }
)

// AdapterEvent marks Fetched as an event of a protocol adapter.
func (Fetched) AdapterEvent() {}

// AdapterEvent marks Loaded as an event of a protocol adapter.
func (Loaded) AdapterEvent() {}

// AdapterEvent marks Kept as an event of a protocol adapter.
func (Kept) AdapterEvent() {}

// AdapterEvent marks Finished as an event of a protocol adapter.
func (Finished) AdapterEvent() {}

// AdapterEvent marks Wanted as an event of a protocol adapter.
func (Wanted) AdapterEvent() {}

// AdapterEvent marks Published as an event of a protocol adapter.
func (Published) AdapterEvent() {}

// AdapterEvent marks Reserved as an event of a protocol adapter.
func (Reserved) AdapterEvent() {}

// AdapterEvent marks Uploaded as an event of a protocol adapter.
func (Uploaded) AdapterEvent() {}

// Order is an order for the file room.
type Order interface {
	site.Order
	file()
}

func (Fetch) file()   {}
func (Load) file()    {}
func (Keep) file()    {}
func (Finish) file()  {}
func (Know) file()    {}
func (Reserve) file() {}

// Concerns names no device.
func (Fetch) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns names no device.
func (Load) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns names no device.
func (Keep) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns names no device.
func (Finish) Concerns() (site.ConnID, bool) { return 0, false }

// Concerns names no client.
func (Reserve) Concerns() (site.ConnID, bool) { return 0, false }

// Octets of the texts.
func (o Reserve) Octets() int { return len(o.Name) + len(o.MIME) }

// Concerns names no device.
func (Know) Concerns() (site.ConnID, bool) { return 0, false }

// Octets of the texts.
func (o Fetch) Octets() int {
	return len(o.Hash) + len(o.URL) + len(o.Host) + len(o.Name) + len(o.Creator)
}

// Octets is the size of the fields.
func (Load) Octets() int { return 96 }

// Octets is the size of the part and its hash.
func (o Keep) Octets() int { return len(o.Data) + len(o.Hash) }

// Octets of the texts.
func (o Finish) Octets() int { return len(o.Hash) + len(o.Name) + len(o.Creator) + len(o.MIME) }

// Octets of the texts.
func (o Know) Octets() int { return len(o.Hash) + len(o.Name) + len(o.Creator) + len(o.State) }

// PartOctets is how much of a file crosses in one message.
const PartOctets = 16 << 10

// partsOf is how many parts a file has.
func partsOf(size int64) int { return int((size + PartOctets - 1) / PartOctets) }
