package quorum

import (
	"time"

	"aldis/internal/gateway/pair"
)

// Stored is the state that a machine has on its disk besides the log. It is durable before the machine says anything that follows from it.
type Stored struct {
	Machine uint64 // drawn once for each data directory
	Term    uint64 // the newest that this machine has heard of; 0: the site was not founded with it
	Vote    uint64 // the member that it voted for in Term: a number of Config.Self + 1, or 0
	Commit  uint64 // how far it knows that a majority has the log; the majority may have more by now
	Whole   bool   // it has all that it has ever acknowledged, so that it may vote. With Term 0: a gateway has written its journal
}

// At is a place in the log. At{} is before all.
type At struct{ Index, Term uint64 }

// before says whether a log that ends at a is older than one that ends at b.
func (a At) before(b At) bool { return a.Term < b.Term || a.Term == b.Term && a.Index < b.Index }

// Entry is an entry of the log. One without Data is the library's own.
type Entry struct {
	At
	Data []byte
}

// Hello is the state that each machine sends first on a connection.
type Hello struct {
	Machine, Term uint64
	Last          At // with which its log ends
	Whole         bool
}

// Kind is a kind of Message.
type Kind byte

// Kinds of messages.
const (
	KindBeat   Kind = 1 + iota // a leader of Term; N counts
	KindAnswer                 // to the beat N of Term: this machine votes for nobody until its promise ends
	KindRaft                   // a message of the library
	KindForgot                 // the other machine has acknowledged more than it has
	KindRetire                 // the other machine asks a leader to hand over to it
)

// Message goes between two machines, in order.
type Message struct {
	Kind    Kind
	Term, N uint64
	Acked   []At // of a beat: the last entry that each member has acknowledged, by number
	Raft    []byte
}

// Event is what a machine hears: one of the types below. Nil: only time has passed.
type Event interface{ quorumEvent() }

type (
	// Met is a connection with a member, which has said who it is.
	Met struct {
		From int
		Hello
	}
	// Parted is the end of that connection.
	Parted struct{ From int }
	// Heard is a message of a member.
	Heard struct {
		From int
		Message
	}
	// Retire is the order that another member leads: To, or -1 for the member that could soonest.
	Retire struct{ To int }
	// Lead is the order that this member leads.
	Lead struct{}
)

func (Met) quorumEvent()    {}
func (Parted) quorumEvent() {}
func (Heard) quorumEvent()  {}
func (Retire) quorumEvent() {}
func (Lead) quorumEvent()   {}

// Sent is a message to a member.
type Sent struct {
	To int
	Message
}

// Output is what a Step wants done at once. Work says what must be durable before more is sent.
type Output struct {
	Send     []Sent
	Copy     []int  // members that shall be given a copy of the journal
	Strange  string // why a message was not taken: no member sends such a message; "": there was none
	Deadline time.Duration
}

// Config is what a machine is made of.
type Config struct {
	Self    int // number of this member, from 0
	Members int
	Chance  uint64 // seed from which the waits of this machine are drawn
}

// Ask is the least time between two claims of a member; chance adds as much again.
const Ask = pair.Ask

// standDown is for how long a leader without a lease goes on in silence.
const standDown = 3 * time.Second
