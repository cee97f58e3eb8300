package mail

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/ground/share"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Group is the queue of messages that go to several peers at once, besides the two of each peer.
const (
	Group  frame.Queue = frame.Queues
	queues             = frame.Queues + 1
)

// TransmissionID is what a carrier calls a message while it is under way: its number in a queue.
type TransmissionID = custody.ID

// Message is held once, whoever it is for and whichever way it goes.
type Message struct {
	ID      uint64 // of the journal's life
	Content envelope.Message
	Full    []byte // the envelope with everything spelt out, as the journal has it
	Kind    Kind
	// Accepted is when it came into custody; zero: a gateway accepted it that did not write that down.
	Accepted time.Time
	Defines  bool // its flow went spelt out: a peer that has it knows the flow's number

	to      map[uint16]*Entry // recipients for which it has not ended
	unknown int               // recipients that are no longer configured
}

// Entry is a message on its way to one recipient.
type Entry struct {
	*Message
	Peer  *Peer
	Order uint64 // its place among those that wait; 0: it never waited
	Queue frame.Queue
	At    TransmissionID // its number while it is under way; Number 0: it waits
	Gone  bool           // it has been on the air, perhaps
	Again bool           // it has gone more than once in this run
	Held  bool           // the recipient has it, and not all before it

	Weight int // in the window of its queue; 0: it went in an earlier run

	OnHold  bool // it waits until the operator releases it
	ordered bool // the journal has an order of the operator's for it

	Unsized bool // it waits, and its carrier does not know yet whether its queue is the right one
	Coded   bool // its texts have been coded for the link,
	Learned bool // and after the messages before it

	Aired Aired // of the direct queue and NORM's: when it went last

	Behind bool  // it waits, and not for its turn: an earlier one of its line is on another bearer, or it is for another bearer itself
	Way    *Peer // the peer on the bearer that it waits for; nil: it waits on the right one

	history  *SharedHistory
	attempts *attempts // nil: it is under way on one bearer at the most
	try      int       // its place among them
}

var routine = site.Routine.Rank()

// Rank is how urgent a message is; state is routine.
func (m *Message) Rank() int {
	if m.Content.Payload == nil {
		return routine
	}
	return m.Content.Payload.Precedence.Rank()
}

// Twice says whether a message goes a second time before its loss is noticed: it is of flash precedence or above, or its adapter
// wants that.
func (m *Message) Twice() bool {
	return m.Rank() >= flash || m.Content.Payload != nil && m.Content.Payload.Twice
}

var flash = site.Flash.Rank()

// Takes says whether a message may take a bearer; state may take any. A message that a relay is to pass on takes no relay to that relay.
func (m *Message) Takes(bearer string) bool {
	p := m.Content.Payload
	return p == nil || p.Takes(bearer) && (p.Adapter != site.Relay || bearer != Relay)
}

// Relay is the name of the bearer over other gateways: docs/decisions/relay.md.
const Relay = "relay"

// Urgent says whether it goes beyond the window.
func (m *Message) Urgent() bool { return m.Rank() > routine }

// expires is when the message is not sent any more; zero: never.
func (m *Message) expires() time.Time {
	if m.Content.Payload == nil {
		return time.Time{}
	}
	return m.Content.Payload.Expires
}

// supersedes names what the message is about; "" when it replaces nothing.
func (m *Message) supersedes() string {
	if m.Content.Payload == nil {
		return ""
	}
	return m.Content.Payload.LastValue
}

// For is the entry of a recipient; nil when the message has ended for it.
func (m *Message) For(peer uint16) *Entry { return m.to[peer] }

// PeerQueue has the messages held for one peer: those that wait, in order of precedence, and those under way. A message that waits
// has no number yet, so it can be dropped, replaced and overtaken; docs/decisions/precedence.md. In one precedence the local
// sources take turns; docs/decisions/fairness.md.
type PeerQueue struct {
	waiting  [frame.Queues]queue
	rotas    [ranks]share.Rota // of all queues
	onHold   map[uint64]*Entry // by ID: neither in waiting nor under way
	underWay map[TransmissionID]*Entry
	expiry   time.Time // of the first that waits; zero: none ends
	octets   [queues]int
	byRank   [ranks]int     // octets that wait
	shares   map[string]int // octets that wait, by source
	expired  tally
	gaveUp   tally
	shared   tally // given up for messages of others
}

// tally is how often something has happened since the log said so.
type tally struct {
	n    int
	said time.Time
}

// push puts an entry that has its order and queue among those that wait.
func (b *PeerQueue) push(e *Entry) {
	b.octets[e.Queue] += len(e.Full)
	b.expiry = due.Earliest(b.expiry, e.expires())
	if e.OnHold {
		if b.onHold == nil {
			b.onHold = map[uint64]*Entry{}
		}
		b.onHold[e.ID] = e
		return
	}
	b.waiting[e.Queue].push(e)
	b.byRank[e.Rank()] += len(e.Full)
	b.share(e, len(e.Full))
}

// pull takes an entry out, wherever it is.
func (b *PeerQueue) pull(e *Entry) {
	b.octets[e.Queue] -= len(e.Full)
	if e.At.Number != 0 {
		delete(b.underWay, e.At)
	} else if e.OnHold {
		delete(b.onHold, e.ID)
	} else if b.waiting[e.Queue].pull(e) {
		b.byRank[e.Rank()] -= len(e.Full)
		b.share(e, -len(e.Full))
	}
}

// share notes that so many octets more of a source wait.
func (b *PeerQueue) share(e *Entry, octets int) {
	if e.Content.Payload == nil {
		return
	}
	if b.shares == nil {
		b.shares = map[string]int{}
	}
	name := e.Source()
	b.shares[name] += octets
	if b.shares[name] <= 0 {
		delete(b.shares, name)
	}
}

// First is the next that waits in a queue and is sized; nil: none does.
func (b *PeerQueue) First(queue frame.Queue) *Entry { return b.waiting[queue].first(false) }

// Head is the next that waits in a queue, sized or not; nil: none does.
func (b *PeerQueue) Head(queue frame.Queue) *Entry { return b.waiting[queue].first(true) }

// FirstUnsized is the most urgent and oldest that waits unsized in a queue; nil: none does.
func (b *PeerQueue) FirstUnsized(queue frame.Queue) *Entry { return b.waiting[queue].firstUnsized() }

// Before says whether e is more urgent than another that waits, or older; other may be nil.
func (e *Entry) Before(other *Entry) bool { return other == nil || byUrgency(e, other) < 0 }

// FirstBelow is the next that waits in a queue of a source that has less under way there than its share of a window, in octets of the
// direct queue and messages of the others; nil: none does.
func (b *PeerQueue) FirstBelow(queue frame.Queue, window int) *Entry {
	under := map[string]int{}
	for a, e := range b.underWay {
		if a.Queue == queue && e.Content.Payload != nil && !e.Held {
			under[e.Source()] += e.Weight
		}
	}
	sources := len(under)
	b.waiting[queue].each(func(s *source) {
		if under[s.name] == 0 {
			sources++
		}
	})
	return b.waiting[queue].firstOf(func(s *source) bool { return under[s.name] < max(1, window/sources) })
}

// At is the entry under way under this number; nil: there is none.
func (b *PeerQueue) At(a TransmissionID) *Entry { return b.underWay[a] }

// UnderWay lists the entries that a carrier has under way in a queue, the oldest number first.
func (b *PeerQueue) UnderWay(queue frame.Queue) (list []*Entry) {
	for a, e := range b.underWay {
		if a.Queue == queue {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.At.Number, b.At.Number) })
	return list
}

// Oldest is the smallest number under way in a queue; next when none is.
func (b *PeerQueue) Oldest(queue frame.Queue, next uint64) uint64 {
	for a := range b.underWay {
		if a.Queue == queue {
			next = min(next, a.Number)
		}
	}
	return next
}

// Flying counts the messages of state under way in a queue that the peer does not have.
func (b *PeerQueue) Flying(queue frame.Queue) (n int) {
	for a, e := range b.underWay {
		if a.Queue == queue && e.Content.Payload == nil && !e.Held {
			n++
		}
	}
	return n
}

// Asks says whether a question for the peer's state is under way or waits in a queue of the peer's own.
func (b *PeerQueue) Asks() bool {
	for a, e := range b.underWay {
		if a.Queue != Group && e.Content.Asks {
			return true
		}
	}
	asks := false
	for i := range b.waiting {
		b.waiting[i].state(func(e *Entry) { asks = asks || e.Content.Asks })
	}
	return asks
}

// Waiting counts the entries that wait in some queues.
func (b *PeerQueue) Waiting(queues ...frame.Queue) (n int) {
	for _, queue := range queues {
		n += b.waiting[queue].n
	}
	return n
}

// Held counts the entries that wait and those under way in some queues, and their octets as journalled.
func (b *PeerQueue) Held(queues ...frame.Queue) (waiting, underWay, octets int) {
	for _, queue := range queues {
		octets += b.octets[queue]
		if queue < frame.Queues {
			waiting += b.waiting[queue].n
		}
	}
	for _, e := range b.onHold {
		if slices.Contains(queues, e.Queue) {
			waiting++
		}
	}
	for a := range b.underWay {
		if slices.Contains(queues, a.Queue) {
			underWay++
		}
	}
	return waiting, underWay, octets
}

// News counts those of Held, in all queues, that are state of this site and not messages of local peers.
func (b *PeerQueue) News() (waiting, underWay, octets int) {
	for i := range b.waiting {
		b.waiting[i].state(func(e *Entry) {
			waiting++
			octets += len(e.Full)
		})
	}
	for _, e := range b.underWay {
		if e.Content.Payload == nil {
			underWay++
			octets += len(e.Full)
		}
	}
	return waiting, underWay, octets
}

// all are the entries held for the peer in queues of its own, in the order in which they should go again.
func (b *PeerQueue) all() (list []*Entry) {
	for queue := range frame.Queue(frame.Queues) {
		list = append(list, b.UnderWay(queue)...)
		list = append(list, b.waiting[queue].list()...)
	}
	return append(list, b.listOnHold()...)
}

// own is the octets held for the peer in queues of its own, which MaxWaiting bounds.
func (b *PeerQueue) own() int { return b.octets[frame.Direct] + b.octets[frame.Bulk] }

// Ended says that nobody waits for the message any more.
func (m *Message) Ended() bool { return len(m.to) == 0 }
