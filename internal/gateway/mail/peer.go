package mail

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
)

// Peer is a sister gateway as custody and the carriers of one bearer see it. Each bearer that reaches a gateway has a Peer of its own:
// counters, numbers, timers and addresses are those of the way, not of the gateway.
type Peer struct {
	ID     uint16
	Name   string
	Bearer Bearer
	Paths
	Link      Link // that reaches it; the maker of a bearer sets it
	Handshake Handshake
	Box       PeerQueue
	Reader    Reader
	Counts    *api.PeerCounts // of all bearers together
	Ledger    Ledger
	Opened    Kind // of the last message opened
	Stamp          // of its datagram that is read now
	Turn      Turn // how much of its messages one turn of the loop reads
	Shows     Evidence
	Pace      Pace // how fast messages get there while some wait

	LastSent  time.Time
	LastHeard time.Time
	Off       bool // nothing gets there now, as the edge of its bearer says: nothing is sent to it
	Gone      bool // the roster does not name it: nothing is sent to it
	Ashore    bool // this node is a terminal of a star, and the peer its shore
	Enrolled  bool // the roster names it, and no configuration
	Later     bool // it came into the roster after this node, and greets first
}

// Absent says that the peer is in the roster and was never heard: datagrams to all take no account of it.
func (p *Peer) Absent() bool { return p.Later && p.Handshake.Store == 0 }

// Bearer names a way over the air: in configuration and journal by its name, on the link by Mark. The bearer without a name has 0.
type Bearer struct {
	Name string
	Mark uint8
}

// Stamp is the place of a datagram among those of its sender.
type Stamp struct{ Incarnation, Counter uint32 }

// Reachable says that a datagram may go to the peer, at an address that is known.
func (p *Peer) Reachable() bool { return p.Addr.IsValid() && !p.Gone && !p.Off }

// NewPeer is a peer that was never heard.
func NewPeer(id uint16, name string, addr netip.AddrPort, services Services, late bool) *Peer {
	p := &Peer{ID: id, Name: name, Paths: NewPaths(addr), Handshake: Handshake{Stream: 1}, Turn: NewTurn(ReadOctets), Counts: &api.PeerCounts{}}
	if late {
		p.Turn = NewTurn(ReadWhole)
	}
	p.Box.underWay = map[TransmissionID]*Entry{}
	for queue := range p.Box.waiting {
		for rank := range p.Box.rotas {
			p.Box.waiting[queue].levels[rank].Rota = &p.Box.rotas[rank]
		}
	}
	p.Reader = Reader{peer: id, services: services, late: late}
	p.Reader.clear()
	return p
}

// Handshake is what two gateways know of each other's state, as their HELLOs say.
type Handshake struct {
	Store      uint32    // of the peer; 0: never heard
	Model      uint16    // of compaction, the peer's
	Corpus     uint32    // the network's corpus that the peer has, as it has said in this run; 0: none, or it has not said yet
	Forgot     uint8     // raised whenever we could not read messages coded after earlier ones of it
	PeerForgot uint8     // the same of the peer
	Segments   bool      // it understands segments of long messages
	Ahead      bool      // it takes numbers up to custody.MaxAhead ahead, and on a shared channel batches
	Stream     uint8     // of our message numbers towards it
	InStream   uint8     // of its numbers towards us
	Placed     bool      // in this start it has said that InStream is the stream of its numbers
	Compared   uint32    // the last start of the peer whose numbers count: its first ones were compared with what we have
	Started    bool      // the peer has started, and no acknowledgement of this start was compared with those before it
	Refused    Refusal   // nothing that the peer sends counts until it begins a new stream
	Era        uint16    // raised whenever the peer's numbers begin anew
	Agreed     bool      // in this start it has said that it hears this stream of ours: its acknowledgements are for that
	Ending     bool      // our stream ends: nothing more of it goes
	Reissued   Refusal   // what the peer says of our stream in this datagram: a new one begins after it
	Known      uint32    // with Void: the last start of ours whose numbers count there
	KnowsUs    bool      // it has told that it knows our incarnation and stream: the short form will do
	Unmet      bool      // never heard, and this start greets it only when one of us has something to say
	Owed       bool      // it does not know that we know it
	Due        time.Time // of a hello; zero: none goes by itself
	tries      int
}

// Refusal is why a receiver takes nothing more of a stream (docs/decisions/put-back.md).
type Refusal uint8

// The reasons.
const (
	Taken Refusal = iota // it takes all that comes
	Void                 // the sender gives numbers a second time
	Ended                // the sender has asked for it
)

// End stops our stream: the peer is asked which of its messages have arrived.
func (a *Handshake) End(now time.Time) {
	a.Ending, a.KnowsUs = true, false
	a.Owe(now)
}

// Owe makes a hello go at the latest then.
func (a *Handshake) Owe(at time.Time) { a.Owed, a.Due = true, due.Earliest(a.Due, at) }

// helloLimit is the longest that a peer which does not answer waits for the next hello.
const helloLimit = 10 * time.Minute

// Said notes that a hello went. One that gets no answer goes again: first after prompt, since the first may simply have
// been lost, then ever later from interval on.
func (a *Handshake) Said(now time.Time, prompt, interval time.Duration) {
	a.Unmet, a.Owed, a.Due = false, false, time.Time{}
	if a.KnowsUs {
		return
	}
	wait := prompt
	if a.tries > 0 {
		wait = interval << min(a.tries-1, 10)
	}
	a.Due = now.Add(min(wait, helloLimit))
	a.tries++
}

// Tries is how many hellos have gone in a row that had no answer.
func (a *Handshake) Tries() int { return a.tries }

// Misread raises Forgot, of which a HELLO has seven bits.
func (a *Handshake) Misread() { a.Forgot = (a.Forgot + 1) & 0x7f }

// Answered takes from a hello whether the peer knows our start, which is incarnation.
func (a *Handshake) Answered(now time.Time, h frame.Hello, incarnation uint32) {
	knew := a.KnowsUs
	a.Unmet = false
	a.Agreed = h.HeardStream == a.Stream
	ours := h.HeardIncarnation == incarnation && h.HeardStream == a.Stream
	switch {
	case ours && h.Void:
		a.Reissued, a.Known = Void, h.Known
	case ours && h.Ended:
		a.Reissued = Ended
	}
	a.KnowsUs = ours && !h.Void && (h.Ended || !a.Ending)
	if a.KnowsUs {
		a.tries = 0
		if !a.Owed {
			a.Due = time.Time{}
		}
	} else if knew {
		a.Due = due.Earliest(a.Due, now)
	}
}
