package site

import "time"

// Event is what happens to an adapter: one of the types below, or one from its own LAN room. A nil Event means that
// only time passed.
type Event interface{ AdapterEvent() }

// Events that the core gives an adapter.
type (
	// FarItem: a sister gateway's site has this item, or no longer has it.
	FarItem struct {
		Site uint16
		Item Item
	}
	// FarMessage: somebody at another site sent this message; it is to be re-created for its recipients here. Token comes back
	// in Output.Done when all of them have it, or in Output.Undelivered when one of them will not get it; until then
	// the gateway keeps the message in its journal and hands it in again after a restart. Until is how long it waits for
	// recipients that are away; zero: as the adapter thinks best.
	FarMessage struct {
		Site    uint16
		Token   uint64
		Message Message
		Until   time.Time
	}
	// SiteLost: all that is known of this site is void (the node left the network's configuration, or lost its store).
	SiteLost struct{ Site uint16 }
	// Joined: this site belongs to the network by the roster, though the configuration does not name it. It comes at the start, and
	// while the gateway runs.
	Joined struct{ Site uint16 }
	// Reach: the link to this site is Down, and what is known of it is as old as Since; or it is up again. Before the first
	// Reach a link is up.
	Reach struct {
		Site  uint16
		Down  bool
		Since time.Time
	}
	// Near: the sites by distance, the nearest first. Before the first Near the order is unknown.
	Near struct{ Sites []uint16 }
	// Way: messages to this site take this bearer from now on. Fast: neither the bearer nor a silence is a reason to send little.
	Way struct {
		Site   uint16
		Bearer string // "": it is the only one
		Fast   bool
	}
	// Fate: how the message with this Token ended for its site.
	Fate struct {
		Token uint64
		Ending
	}
)

// Ending is how a message of this site ended for another one. All but Stored mean that the site will never get it.
type Ending uint8

// Endings.
const (
	Stored    Ending = iota // the far gateway has it
	Expired                 // its life was over first
	Refused                 // a queue without room, or a gateway that drains, did not take it
	Forbidden               // a rule did not let it go
	Cancelled               // it was given up for a more urgent one, or by an order
	Replaced                // a later message has taken its place
)

// Failed says whether the site will never get the message.
func (e Ending) Failed() bool { return e != Stored }

// AdapterEvent marks FarItem as an event of a protocol adapter.
func (FarItem) AdapterEvent() {}

// AdapterEvent marks FarMessage as an event of a protocol adapter.
func (FarMessage) AdapterEvent() {}

// AdapterEvent marks SiteLost as an event of a protocol adapter.
func (SiteLost) AdapterEvent() {}

// AdapterEvent marks Joined as an event of a protocol adapter.
func (Joined) AdapterEvent() {}

// AdapterEvent marks Reach as an event of a protocol adapter.
func (Reach) AdapterEvent() {}

// AdapterEvent marks Near as an event of a protocol adapter.
func (Near) AdapterEvent() {}

// AdapterEvent marks Way as an event of a protocol adapter.
func (Way) AdapterEvent() {}

// AdapterEvent marks Fate as an event of a protocol adapter.
func (Fate) AdapterEvent() {}

// ConnID names one connection of a LAN for the life of the process; never reused, never 0.
type ConnID uint64

// Order is something that an adapter wants its LAN room to do. Those two alone know what it is.
type Order interface {
	// Concerns is the connection that the order is for: orders for one connection stay in order; 0: for none. An order
	// that confirms lets the other end forget something, so that it must not go before the records of earlier Steps are
	// durable.
	Concerns() (conn ConnID, confirms bool)
	// Octets is about how much memory the order takes while it waits.
	Octets() int
}

// Early is an Order of an adapter whose peers do not mind that its other orders wait some milliseconds more, so that the journal takes many
// Steps in one commit.
type Early interface {
	Order
	// Early: the order promises nothing, so that it may go before the records of its own Step are durable. Whoever gets it does not
	// conclude that the gateway has taken anything.
	Early() bool
	// Lane is the recipient behind the connection that the order is for. An early order waits for orders in its own lane, and in "".
	// An order in "" waits for all orders of the connection.
	Lane() string
}

// Why says why somebody here did not get a far message.
type Why uint8

// The reasons, by their numbers on the link.
const (
	LifeOver Why = iota // its recipient stayed away until its life ended
	NoRoom              // it was given up for the octets that may wait
	Nobody              // no recipient for it is known here
	Unfit               // the local software has no form for it
	Broken              // the connection that it belongs to has ended, and both ends know
	Unread              // the gateway of the receiver could not read it, and nobody can send it again
)

// String is the reason's name for operators.
func (w Why) String() string {
	names := [...]string{"its life is over", "no room", "nobody listens", "it cannot be written", "its stream has ended", "it could not be read"}
	if int(w) < len(names) {
		return names[w]
	}
	return "another reason"
}

// Undelivered ends a FarMessage that somebody here should have had and did not get.
type Undelivered struct {
	Token uint64
	Why   Why
	For   string // the endpoint that did not get it; "": none is known
}

// Carry asks the gateway to take a message into custody for the named sites.
type Carry struct {
	Sites   []uint16
	Message Message
	Again   bool // it was given to other sites before
}

// Memory is one record that an adapter wants to find again after a restart.
type Memory struct {
	Key   string
	Value []byte
}

// Note is something that the operator's log should say; pure rooms log nothing themselves.
type Note struct {
	Level string // "debug", "info", "warn", "error"
	Text  string
	Attrs []any // slog style: key, value, key, value
}

// Notes are the lines of one part of a pure room for the log.
type Notes []Note

// Note adds a line.
func (n *Notes) Note(level, text string, attrs ...any) {
	*n = append(*n, Note{Level: level, Text: text, Attrs: attrs})
}

// Output is what one Step of an adapter wants done. Order within each slice matters; the gateway commits what it must before
// it acts.
type Output struct {
	Orders []Order
	Items  []Item   // the local site's state changed
	Carry  []Carry  // to other sites
	Done   []uint64 // Tokens of FarMessages that all their recipients here have
	// Undelivered are FarMessages that ended otherwise.
	Undelivered []Undelivered
	// Remember asks the gateway to keep Value under Key in the journal across restarts; an empty Value forgets it.
	Remember []Memory
	Notes    []Note
	Deadline time.Time // zero: nothing to wait for
}

// Told is an event from a meeting of adapters for one of them.
type Told struct {
	Adapter Adapter
	Event   Event
}

// Met is what one Step of a meeting of adapters wants done, in the order of each slice. Remember, Notes and Deadline are as
// those of an Output.
type Met struct {
	Tell     []Told
	Remember []Memory
	Notes    []Note
	Deadline time.Time
}
