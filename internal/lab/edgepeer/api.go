package edgepeer

import (
	"crypto/rsa"
	"math/rand/v2"
	"time"

	"aldis/internal/jxta"
)

// Config of one peer.
type Config struct {
	ID   string // unique value of the peer; empty: drawn from Rand, or derived from Cert if there is one
	Name string // shown to others
	// Groups to have a lease in from the start; empty: the net peer group alone.
	Groups []string
	// Relay asks for a relay lease of this length in the welcome line, as peers that cannot be called back do
	// (wire 10); 0: no relay is asked for.
	Relay time.Duration
	// Key and Cert (DER, self-signed) make a peer of the signed 2.7 format; without them it sends the unsigned one. It does not verify
	// the messages that it receives.
	Key  *rsa.PrivateKey
	Cert []byte
	Rand *rand.Rand // message and query ids; must not be nil

	MaxWaiting int // messages that wait for a pipe to be resolved; default 1,024
	MaxDocs    int // own advertisements kept to answer questions; default 16,384
}

// Event is an event from the connection or the application, one of the types below; nil: only time has passed.
type Event interface{ edgeEvent() }

// From the connection.
type (
	// Dialled: a connection to a rendezvous is up. Output.Welcome is the line to send. Remote and Local are "ip:port".
	Dialled struct{ Remote, Local string }
	// Welcomed: the rendezvous's welcome line came. The peer asks for its leases now.
	Welcomed struct{ Welcome jxta.Welcome }
	// Received: the body of one package, trailer included. No reference to it is kept, but Message and Answer of the
	// same step alias it.
	Received struct{ Body []byte }
	// Lost: the connection is gone. The peer announces leases, pipes and advertisements again on the next one.
	Lost struct{}
)

// From the application. Messages to be sent while there is no connection are dropped and counted in Stats.Unsent; leases, pipes and
// advertisements are caught up with when there is a lease.
type (
	// Join asks for a lease in a further group.
	Join struct{ Group string }
	// Leave gives the lease in a group back.
	Leave struct{ Group string }
	// Renew asks for the lease in a group anew, before its time. A gateway of this module answers only when all that it received earlier
	// on the same connection is durable, because it writes the lease to disk too, after the rest.
	Renew struct{ Group string }
	// Publish makes an advertisement known: as remotePublish does, with the whole document, or by Index as peers of
	// 2.2 do, by its index fields alone; the rendezvous then asks for the document when it wants it. The peer answers
	// questions about it either way, until Life has passed (default 2 h).
	Publish struct {
		Group string
		Doc   string // a whole document, e.g. of Specification
		Life  time.Duration
		Index bool
	}
	// Query asks the group for advertisements. Output.QueryID names the question in its Answers.
	Query struct {
		Group       string
		Type        int // jxta.TypePeer, TypeGroup, TypeAdv
		Attr, Value string
		Threshold   int // most answers wanted of one peer; 0 means 1, for peers "each its own"
	}
	// Listen opens an input pipe. Kind is one of jxta.PipeType...
	Listen struct{ Group, Pipe, Kind string }
	// Unlisten closes it.
	Unlisten struct{ Group, Pipe string }
	// Resolve asks who listens on a unicast pipe. PipeResolved answers.
	Resolve struct{ Group, Pipe, Kind string }
	// Send sends a message on an output pipe. A propagate pipe's goes to the rendezvous; a unicast pipe's to the peer To or, if To is
	// empty, to the peer that holds the pipe. The message waits up to a minute until that peer is known. The peer keeps no reference to
	// the elements unless the message has to wait.
	Send struct {
		Group, Pipe, Kind string
		To                string
		MsgID             string // propagate only; empty: drawn
		Elements          []jxta.Element
	}
)

func (Dialled) edgeEvent()  {}
func (Welcomed) edgeEvent() {}
func (Received) edgeEvent() {}
func (Lost) edgeEvent()     {}
func (Join) edgeEvent()     {}
func (Leave) edgeEvent()    {}
func (Renew) edgeEvent()    {}
func (Publish) edgeEvent()  {}
func (Query) edgeEvent()    {}
func (Listen) edgeEvent()   {}
func (Unlisten) edgeEvent() {}
func (Resolve) edgeEvent()  {}
func (Send) edgeEvent()     {}

// Notice is news for the application, one of the types below.
type Notice interface{ edgeNotice() }

type (
	// Leased: the rendezvous has granted a lease, or renewed it.
	Leased struct {
		Group      string
		Rendezvous string // unique value
		Lease      time.Duration
		Renewed    bool
	}
	// Disowned: the rendezvous says that there is no lease. The peer asks for a new one by itself.
	Disowned struct{ Group string }
	// Relayed: the relay has granted a lease.
	Relayed struct{ Lease time.Duration }
	// Answer: a discovery response came. Several may come to one question.
	Answer struct {
		Group   string
		QueryID int // 0: it answers no question
		Raw     []byte
	}
	// Message: a message came on an input pipe.
	Message struct {
		Group, Pipe, Kind string
		Src               string // unique value of the origin; may be empty for a propagate pipe
		MsgID             string // propagate only
		Elements          []jxta.Element
	}
	// PipeResolved: a peer listens on a unicast pipe.
	PipeResolved struct {
		Group, Pipe string
		Peer        string
		QueryID     int
	}
	// PipeLost: no peer answered for a pipe within a minute, a listener has withdrawn, or the router could not reach it. Waiting of the
	// pipe's messages were given up.
	PipeLost struct {
		Group, Pipe string
		Waiting     int
	}
)

func (Leased) edgeNotice()       {}
func (Disowned) edgeNotice()     {}
func (Relayed) edgeNotice()      {}
func (Answer) edgeNotice()       {}
func (Message) edgeNotice()      {}
func (PipeResolved) edgeNotice() {}
func (PipeLost) edgeNotice()     {}

// Found are the advertisements of an answer.
func (a Answer) Found() ([]jxta.Found, error) {
	r, err := jxta.ParseResolverResponse(a.Raw)
	if err != nil {
		return nil, err
	}
	d, err := jxta.ParseDiscoveryResponse([]byte(r.Response))
	return d.Found, err
}

// Output is the result of one Step, for the caller to carry out.
type Output struct {
	Welcome  *jxta.Welcome // to be sent first on a new connection
	Send     [][]byte      // bodies of packages, in order
	Notices  []Notice
	QueryID  int       // of the question that this step asked; 0: none
	Deadline time.Time // zero: nothing to wait for
}

// Stats are counts since New.
type Stats struct {
	Sent, Received uint64 // messages
	Unsent         uint64 // not sent: no connection, or too long for a message
	Bad            uint64 // received and not understood
	Duplicates     uint64 // propagate pipe messages seen before, including echoes of own ones
	Answered       uint64 // questions of others
}
