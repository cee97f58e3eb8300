package files

import (
	"time"

	"aldis/internal/site"
)

// What the room of files (internal/edge/lan/fileroom) is told. A hash is the SHA-256 of a file in 64 lower-case hexadecimal digits, a size is octets.
type (
	// Fetch has a file be taken from where its device says that it is, unless it is here: from Host alone, whatever the URL
	// names.
	Fetch struct {
		Hash, URL, Host, Name, Creator string
		Size                           int64
	}
	// Load reads parts From to To-1 of a file; each has PartOctets, the last what is left.
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
	// Finish makes a file of all its parts if it has its hash; otherwise the parts are gone.
	Finish struct {
		Hash, Name, Creator, MIME string
		Size                      int64
	}
	// Reserve has a place be made for a file that a client here wants to give (XEP-0363).
	Reserve struct {
		Ask        uint64 // comes back
		Name, MIME string
		Size       int64
	}
	// Know says how it is with a file that was offered and is not here. State is for people.
	Know struct {
		Hash, Name, Creator, MIME string
		Size                      int64
		At                        time.Time // of the offer
		State                     string
		Public                    bool // it is offered to all
		Failed                    bool // it does not come
		Gone                      bool // it is offered no more
		Bring                     bool // it is Wanted without being asked for, unless it is here
	}
)

// What the room of files tells.
type (
	// Fetched: Fetch has ended. Err is empty when the file is here.
	Fetched struct{ Hash, Err string }
	// Loaded: what Load has read; no parts where the file is not here.
	Loaded struct {
		Ask   uint64
		Parts [][]byte
	}
	// Kept: what Keep has come to. Err is empty when the part is there after a crash, too.
	Kept struct {
		Token uint64
		Hash  string
		Part  int
		Err   string
	}
	// Finished: what Finish has come to. Err is empty when the file is here.
	Finished struct{ Hash, Err string }
	// Reserved: where a client gives its file, and where others get it then. Err says why there is no place.
	Reserved struct {
		Ask           uint64
		Put, Get, Err string
	}
	// Uploaded: a client has given its file. ID is what its addresses have behind that of the room.
	Uploaded struct {
		ID, Hash, Name, MIME string
		Size                 int64
	}
	// Published: a file of this site is for all.
	Published struct {
		Hash, Name, Creator string
		Size                int64
	}
	// Wanted: a device asks for a file that was offered and is not here; of one that comes by rule there is no Host.
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

// AdapterEvent marks it as an event of this adapter.
func (Published) AdapterEvent() {}

// AdapterEvent marks Reserved as an event of a protocol adapter.
func (Reserved) AdapterEvent() {}

// AdapterEvent marks Uploaded as an event of a protocol adapter.
func (Uploaded) AdapterEvent() {}

// Order is an order for the room of files.
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

// Octets is the part's.
func (o Keep) Octets() int { return len(o.Data) + len(o.Hash) }

// Octets of the texts.
func (o Finish) Octets() int { return len(o.Hash) + len(o.Name) + len(o.Creator) + len(o.MIME) }

// Octets of the texts.
func (o Know) Octets() int { return len(o.Hash) + len(o.Name) + len(o.Creator) + len(o.State) }

// PartOctets is how much of a file crosses in one message.
const PartOctets = 16 << 10

// partsOf is how many parts a file has.
func partsOf(size int64) int { return int((size + PartOctets - 1) / PartOctets) }
