package mail

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/due"
	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Group is the lane of messages that go to several peers at once, beside the two of each peer.
const (
	Group frame.Lane = frame.Lanes
	lanes            = frame.Lanes + 1
)

// Attempt is what a carrier calls a message while it is under way: its number in a lane.
type Attempt = custody.ID

// Message is held once, whoever it is for and whichever way it goes.
type Message struct {
	ID      uint64 // of the journal's life
	Content envelope.Message
	Full    []byte // the envelope with everything spelt out, as the journal has it
	Kind    Kind
	// Accepted is when it came into custody; zero: a gateway accepted it that did not write that down.
	Accepted time.Time
	Spelt    bool // its flow went spelt out: who has it knows the flow's number

	to      map[uint16]*Entry // for whom it has not ended
	unknown int               // recipients that are configured no more
}

// Entry is a message on its way to one recipient.
type Entry struct {
	*Message
	Peer  *Peer
	Order uint64 // its place among those that wait; 0: it never waited
	Lane  frame.Lane
	At    Attempt // its number while it is under way; Number 0: it waits
	Gone  bool    // it has been on the air, perhaps
	Again bool    // it has gone more than once in this run
	Held  bool    // the recipient has it, and not all before it

	OnHold  bool // it waits until the operator releases it
	ordered bool // the journal has an order of the operator's for it

	Unsized bool // it waits, and its carrier does not know yet whether its lane is the right one
	Coded   bool // its texts have been coded for the link,
	Learned bool // and after the messages before it

	Aired Aired // of the direct lane and NORM's: when it went last

	audience *Audience
}

var routine = site.Routine.Rank()

// Rank is how urgent a message is; state is routine.
func (m *Message) Rank() int {
	if m.Content.Payload == nil {
		return routine
	}
	return m.Content.Payload.Precedence.Rank()
}

// Twice says whether a message goes a second time before its loss is noticed: what is of flash precedence or above, and what
// its face wants to.
func (m *Message) Twice() bool {
	return m.Rank() >= flash || m.Content.Payload != nil && m.Content.Payload.Twice
}

var flash = site.Flash.Rank()

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
	return m.Content.Payload.Supersedes
}

// For is the entry of a recipient; nil when the message has ended for it.
func (m *Message) For(peer uint16) *Entry { return m.to[peer] }

// Box is what is held for one peer: what waits, in order of precedence, and what is under way. What waits has no number
// yet, so it can be dropped, replaced and overtaken; docs/decisions/precedence.md. Of one precedence the local sources
// take turns; docs/decisions/fairness.md.
type Box struct {
	waiting  [frame.Lanes]queue
	rotas    [ranks]rota       // of all lanes
	onHold   map[uint64]*Entry // by ID: neither in waiting nor under way
	underWay map[Attempt]*Entry
	expiry   time.Time // of the first that waits; zero: none ends
	octets   [lanes]int
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

// push puts an entry that has its order and lane among those that wait.
func (b *Box) push(e *Entry) {
	b.octets[e.Lane] += len(e.Full)
	b.expiry = due.Earliest(b.expiry, e.expires())
	if e.OnHold {
		if b.onHold == nil {
			b.onHold = map[uint64]*Entry{}
		}
		b.onHold[e.ID] = e
		return
	}
	b.waiting[e.Lane].push(e)
	b.byRank[e.Rank()] += len(e.Full)
	b.share(e, len(e.Full))
}

// pull takes an entry out, wherever it is.
func (b *Box) pull(e *Entry) {
	b.octets[e.Lane] -= len(e.Full)
	if e.At.Number != 0 {
		delete(b.underWay, e.At)
	} else if e.OnHold {
		delete(b.onHold, e.ID)
	} else if b.waiting[e.Lane].pull(e) {
		b.byRank[e.Rank()] -= len(e.Full)
		b.share(e, -len(e.Full))
	}
}

// share notes that so many octets more of a source wait.
func (b *Box) share(e *Entry, octets int) {
	if e.Content.Payload == nil {
		return
	}
	if b.shares == nil {
		b.shares = map[string]int{}
	}
	name := e.Source()
	if b.shares[name] += octets; b.shares[name] <= 0 {
		delete(b.shares, name)
	}
}

// First is the next that waits in a lane and is sized; nil: none does.
func (b *Box) First(lane frame.Lane) *Entry { return b.waiting[lane].first(false) }

// Head is the next that waits in a lane, sized or not; nil: none does.
func (b *Box) Head(lane frame.Lane) *Entry { return b.waiting[lane].first(true) }

// FirstUnsized is the most urgent and oldest that waits unsized in a lane; nil: none does.
func (b *Box) FirstUnsized(lane frame.Lane) *Entry { return b.waiting[lane].firstUnsized() }

// Before says whether e is more urgent than another that waits, or older; other may be nil.
func (e *Entry) Before(other *Entry) bool { return other == nil || byUrgency(e, other) < 0 }

// FirstBelow is the next that waits in a lane of a source that has less under way there than its share of a window; nil:
// none does.
func (b *Box) FirstBelow(lane frame.Lane, window int) *Entry {
	under := map[string]int{}
	for a, e := range b.underWay {
		if a.Lane == lane && e.Content.Payload != nil && !e.Held {
			under[e.Source()]++
		}
	}
	sources := len(under)
	b.waiting[lane].each(func(s *source) {
		if under[s.name] == 0 {
			sources++
		}
	})
	return b.waiting[lane].firstOf(func(s *source) bool { return under[s.name] < max(1, window/sources) })
}

// At is what is under way as this; nil: nothing is.
func (b *Box) At(a Attempt) *Entry { return b.underWay[a] }

// UnderWay lists what a carrier has under way in a lane, the oldest number first.
func (b *Box) UnderWay(lane frame.Lane) (list []*Entry) {
	for a, e := range b.underWay {
		if a.Lane == lane {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *Entry) int { return cmp.Compare(a.At.Number, b.At.Number) })
	return list
}

// Oldest is the smallest number under way in a lane; next when none is.
func (b *Box) Oldest(lane frame.Lane, next uint64) uint64 {
	for a := range b.underWay {
		if a.Lane == lane {
			next = min(next, a.Number)
		}
	}
	return next
}

// Flying counts the messages of state under way in a lane that the peer does not have.
func (b *Box) Flying(lane frame.Lane) (n int) {
	for a, e := range b.underWay {
		if a.Lane == lane && e.Content.Payload == nil && !e.Held {
			n++
		}
	}
	return n
}

// Asks says whether a question for the peer's state is under way or waits in a lane of the peer's own.
func (b *Box) Asks() bool {
	for a, e := range b.underWay {
		if a.Lane != Group && e.Content.Asks {
			return true
		}
	}
	asks := false
	for i := range b.waiting {
		b.waiting[i].state(func(e *Entry) { asks = asks || e.Content.Asks })
	}
	return asks
}

// Waiting counts what waits in some lanes.
func (b *Box) Waiting(lanes ...frame.Lane) (n int) {
	for _, lane := range lanes {
		n += b.waiting[lane].n
	}
	return n
}

// Held counts what waits and is under way in some lanes, and its octets as journalled.
func (b *Box) Held(lanes ...frame.Lane) (waiting, underWay, octets int) {
	for _, lane := range lanes {
		octets += b.octets[lane]
		if lane < frame.Lanes {
			waiting += b.waiting[lane].n
		}
	}
	for _, e := range b.onHold {
		if slices.Contains(lanes, e.Lane) {
			waiting++
		}
	}
	for a := range b.underWay {
		if slices.Contains(lanes, a.Lane) {
			underWay++
		}
	}
	return waiting, underWay, octets
}

// News counts what of Held in all lanes is state of this site, and no message of a local peer.
func (b *Box) News() (waiting, underWay, octets int) {
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

// all is what is held for the peer in lanes of its own, in the order in which it should go again.
func (b *Box) all() (list []*Entry) {
	for lane := range frame.Lane(frame.Lanes) {
		list = append(list, b.UnderWay(lane)...)
		list = append(list, b.waiting[lane].list()...)
	}
	return append(list, b.listOnHold()...)
}

// own is the octets held for the peer in lanes of its own, which MaxWaiting bounds.
func (b *Box) own() int { return b.octets[frame.Direct] + b.octets[frame.Bulk] }

// Ended says that nobody waits for the message any more.
func (m *Message) Ended() bool { return len(m.to) == 0 }
