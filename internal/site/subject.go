package site

import "time"

// Direction is where something is going.
type Direction uint8

// Directions; a rule may mean both.
const (
	Both Direction = iota
	Out            // from this LAN to the link
	In             // from the link
)

// String is the direction's name in the configuration.
func (d Direction) String() string { return [...]string{"both", "out", "in"}[d] }

// Subject is one thing that wants to pass, as the operator's rules see it. Unknown fields are empty.
type Subject struct {
	Direction Direction // Out or In
	Site      uint16    // to which it goes, or from which it comes; 0: the LAN is served
	Type      string    // a word of the rules (package filter)
	Root      string    // tag of the document
	Scope     string
	Name      string
	Owner     string   // its publisher or sender
	Owners    []string // instead of Owner: an item of several goes where it may go for one of them
	Topic     string   // that it names, is, or goes to
	Octets    int      // of the document, or of all data of a message
	Parts     []Part   // of a message, where rules may look into it
	// Stream: a message that belongs to a stream, which the rules judged as a whole when it was opened.
	Stream bool
	// Ordered: a message that an operator sends himself. The rules serve the operator and do not bind it.
	Ordered bool
}

// EntryKey names an entry of an adapter's directory.
type EntryKey struct {
	Scope string
	Type  uint8 // the adapter's own
	ID    string
	Site  uint16 // 0: published at this site
}

// Entry is one document of an adapter's directory, for people.
type Entry struct {
	EntryKey
	Subject Subject // direction and site are not set
	Expires time.Time
	Signed  bool
	Item    Item // as far sites get it, when it is this site's
}
