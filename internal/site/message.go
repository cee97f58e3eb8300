package site

import (
	"slices"
	"strings"
	"time"
)

// Message is a message of an application, without everything that a hop of its own protocol adds.
type Message struct {
	Adapter Adapter
	// Published: it is for every listener of Topic. To, Service and Param are empty.
	// Otherwise it is for the endpoint To; Service and Param say which part of it, in the adapter's words.
	Published bool
	Scope     string // in which its names are meant
	Topic     string // of a published message alone
	From      string // the endpoint that sent it
	To        string
	Service   string
	Param     string
	// ID names the message on a LAN. It does not cross the link: the far gateway makes one of its own, which is the same
	// whenever it delivers this message again.
	ID    string
	Parts []Part
	Mark
	// Token of a Carry asks for its Fate, one for each site. It does not cross the link; 0: not asked. It lasts as long as
	// the process, unless Lasting: then the journal has it, and a later run gets the Fate, too.
	Token   uint64
	Lasting bool
}

// Part is one part of a message: named data. Messages whose parts agree in all but Data belong to one flow, and cross in
// few octets. Whoever receives a part never changes Data.
type Part struct {
	Namespace string
	Name      string
	Type      string // MIME type; "" means application/octet-stream
	Encoding  string
	Data      []byte
	Signature *Part // over this part; nil: it has none
}

// Mark has the marks that the operator's rules gave a message (internal/rules/mark).
type Mark struct {
	Precedence Precedence
	// Key is not 0 for a message that a later one of the same key may replace: 24 bits of the hash of LastValue. Of the
	// two, Key alone crosses the link.
	Key       uint32
	LastValue string
	// Expires is when the message is not sent any more; zero: never. It does not cross the link.
	Expires time.Time
	// Fleeting marks a message that is worth nothing once another one says the same anew, soon: it is not repeated for a silent site.
	// Where messages go to several sites at once, it is handed on though others before it are missing.
	Fleeting bool
	// Twice has a message go a second time unasked where each site is sent one of its own, so that one loss does not delay it. It
	// does not cross the link.
	Twice bool
	// Open is the group to which a published message goes, whoever is in it, instead of into custody for some sites; "": none. It does
	// not cross the link.
	Open string
	// Links are the names of the bearers that it may take, with commas between; "": any. It does not cross the link.
	Links string
}

// Takes says whether a message may take a bearer.
func (m *Mark) Takes(link string) bool {
	return m.Links == "" || slices.Contains(strings.Split(m.Links, ","), link)
}

// KeyEnd stands in LastValue after each of the six texts that say whose the message is and where it goes. The text after them is
// the key that the operator's rule takes.
const KeyEnd = "\x00"

// About is the key as people know it, a track's name for example; "" where the message replaces nothing.
func (m Mark) About() string {
	texts := strings.SplitN(m.LastValue, KeyEnd, 7)
	return texts[len(texts)-1]
}

// Precedence is one of the military six, numbered as on the link: routine needs no octets there.
type Precedence uint8

// The six, by their numbers on the link; Rank orders them.
const (
	Routine Precedence = iota
	Priority
	Immediate
	Flash
	Override
	Deferred
)

// Precedences are their names, lowest first.
var Precedences = []string{"deferred", "routine", "priority", "immediate", "flash", "override"}

// Rank orders them: the greater goes first. Deferred is 0, override 5.
func (p Precedence) Rank() int {
	if p >= Deferred {
		return 0
	}
	return int(p) + 1
}

// String is the name of the precedence, as the configuration writes it.
func (p Precedence) String() string { return Precedences[p.Rank()] }

// ParsePrecedence reads a name.
func ParsePrecedence(name string) (Precedence, bool) {
	for i, n := range Precedences {
		if n == name {
			return Precedence((i + 5) % 6), true
		}
	}
	return Routine, false
}
