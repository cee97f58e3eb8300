package pair

import "time"

// Times. A follower's promise outlasts the lease that its answer gives by a fifth, for clocks that run at different speeds.
const (
	Beat    = 300 * time.Millisecond  // between two beats of a leader
	Lease   = 2 * time.Second         // how long a leader may transmit after it has sent a beat that is answered
	Promise = 2400 * time.Millisecond // how long a follower asks for no vote after it has answered a beat
	Lost    = time.Second             // without an answer a leader takes its follower for lost
	Greet   = 1500 * time.Millisecond // a start waits so long for the other machine
	Ask     = 500 * time.Millisecond  // between two claims
)

// Stored is the state that a machine has on its disk. It is durable before the machine says anything that follows from it.
type Stored struct {
	Machine uint64 // drawn once for each data directory
	Epoch   uint64 // in which the newest commit of the journal was written
	Voted   uint64 // the newest epoch in which this machine has voted, or of which it has heard
	Other   bool   // the vote was for the other machine
	Whole   bool   // the journal has everything that was confirmed until Epoch
	Led     bool   // it was the leader of Epoch
}

// Hello is the state that each machine sends first on a connection.
type Hello struct {
	Stored
	Run, Seq uint64 // the commit that the journal ends with: drawn for each leadership, and counted in it
	Leads    bool
}

// Kind is a kind of Message.
type Kind byte

// Kinds of messages.
const (
	KindBeat   Kind = 1 + iota // a leader of Epoch; N counts
	KindAnswer                 // to the beat N of Epoch; Granted: this machine's journal is whole
	KindClaim                  // a machine whose journal is of epoch From asks for a vote for Epoch
	KindVote                   // for Epoch, or against it (Granted); Voted is the newest epoch of the voter
	KindWhole                  // a leader: the follower's journal is whole with the records that came before this
	KindYield                  // a leader that ends: the follower leads Epoch
	KindRetire                 // a follower asks the leader to yield
)

// Message goes between the two machines, in order.
type Message struct {
	Kind    Kind
	Epoch   uint64
	N       uint64
	From    uint64
	Voted   uint64
	Granted bool
}

// Claim asks the witness for its vote.
type Claim struct {
	Machine, Epoch, From uint64
	Forced               bool // an operator has said that the other machine is off
}

// Verdict is the answer of the witness: whether it votes for Epoch, and the newest epoch that it has voted for.
type Verdict struct {
	Epoch   uint64
	Granted bool
	Newest  uint64
}

// Event is what a machine hears: one of the types below, a Message or a Verdict. Nil: only time has passed.
type Event interface{ pairEvent() }

type (
	// Met is a connection with the other machine, which has said who it is.
	Met struct{ Hello }
	// Parted is the end of that connection.
	Parted struct{}
	// Caught says that the follower's journal has nearly all that the leader's has.
	Caught struct{}
	// Lead is the operator's order that this machine leads, whatever the other one does.
	Lead struct{}
	// Retire is the order that the other machine leads.
	Retire struct{}
)

func (Met) pairEvent()     {}
func (Parted) pairEvent()  {}
func (Caught) pairEvent()  {}
func (Lead) pairEvent()    {}
func (Retire) pairEvent()  {}
func (Message) pairEvent() {}
func (Verdict) pairEvent() {}

// Role is what a machine is.
type Role byte

// Roles.
const (
	Waiting   Role = iota // it knows no leader
	Following             // the other one leads
	Leading
)

// String names the role for people.
func (r Role) String() string { return [...]string{"waiting", "following", "leading"}[r] }

// Output is what a Step wants done: Store first, and nothing else before that is durable.
type Output struct {
	Store    *Stored
	Send     []Message
	Ask      *Claim // the witness
	Deadline time.Duration
}
