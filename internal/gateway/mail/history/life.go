package history

import (
	"slices"
	"strings"
	"time"

	"aldis/internal/site"
)

// State is where a message stands with one recipient. Of those from Delivered on each is final, but for two: Delivered
// becomes Undeliverable when the recipient tells so, and Again where the recipient could not read what it had acknowledged.
type State string

// The states.
const (
	Waiting       State = "waiting"
	OnHold        State = "held"          // it waits until the operator releases it
	UnderWay      State = "under_way"     // it has its number towards the recipient: on the air, or about to be
	Delivered     State = "delivered"     // the recipient's gateway has it in its store
	Undeliverable State = "undeliverable" // that gateway had it, and could not hand it to all who should have had it
	Expired       State = "expired"
	Refused       State = "refused"
	Cancelled     State = "cancelled"
	Superseded    State = "superseded"
	Again         State = "again" // it goes once more, as another message
)

// Final says whether nothing more happens to the message for this recipient.
func (s State) Final() bool { return s != Waiting && s != OnHold && s != UnderWay }

// Fate is where a message stands with one recipient.
type Fate struct {
	Peer   uint16
	State  State
	Since  time.Time
	Detail string // why, where that is not plain
	Sent   int    // octets of it that went on the air towards this recipient for the first time
	SentAt time.Time
}

// Event is something that happened to a message. Events of one kind that follow each other are one.
type Event struct {
	At      time.Time
	Until   time.Time // of the last, where N > 1
	What    string    // one of the words below
	Peer    uint16    // 0: it concerns all recipients
	N       int       // how often
	Octets  int       // on the air: of the message, in all
	Company int       // on the air: messages of this site that shared the last datagram
	Detail  string
	Link    string // Chosen: the bearer
	Rule    string // Chosen: the operator's, by which; "": none
}

// cost is about how many octets an event takes.
func (e *Event) cost() int { return eventOctets + len(e.Detail) + len(e.Rule) }

// What happens. The final states of a recipient are events too, under the name of the state.
const (
	Accepted = "accepted"
	OnTheAir = "on the air"
	Repeated = "repeated"
	Arrived  = "arrived" // the recipient has it, and waits for one before it
	Foreseen = "late"    // it will expire before it is there, by the forecast: the detail says when it would be
	Moved    = "moved"   // to another bearer, which the detail names
	Passed   = "passed"  // the gateway that the detail names has taken it, and passes it on
	Chosen   = "way"     // which bearer it takes, and why
	Ordered  = "ordered" // the operator said so: the detail says what, and who
)

// Life is what is known of one message.
type Life struct {
	ID         uint64
	Adapter    site.Adapter
	From       string // the endpoint that said it
	To         string // the pipe or topic, or the endpoint and which part of it
	Label      string // what it is about, where a rule says how to find that
	Precedence site.Precedence
	Octets     int       // as journalled
	Accepted   time.Time // zero: nobody knows any more
	Expires    time.Time // zero: never
	Fates      []Fate
	Events     []Event // the oldest first
	Lost       int     // events that had no room: those after the first

	cost int // octets in memory, about
}

// Of is the fate of a recipient; nil: the message was not for it.
func (l *Life) Of(peer uint16) *Fate {
	for i := range l.Fates {
		if l.Fates[i].Peer == peer {
			return &l.Fates[i]
		}
	}
	return nil
}

// Ended says that the message has ended for everybody.
func (l *Life) Ended() bool {
	return !slices.ContainsFunc(l.Fates, func(f Fate) bool { return !f.State.Final() })
}

// What is kept at the most. A life costs what its texts, events and recipients cost.
const (
	MostEvents = 32
	MostLives  = 1 << 14
	MostOctets = 16 << 20

	lifeOctets  = 256
	eventOctets = 144
	fateOctets  = 96
	textMost    = 512 // octets of one text; a longer one is cut
)

// Lives is the lives of the messages of this site: of those in custody, and of those that have ended, the newest. The zero
// value is ready. It is not for concurrent use.
type Lives struct {
	now    time.Time
	byID   map[uint64]*Life
	ended  []uint64 // in the order in which they ended; some may have gone since
	octets int
	unkept uint64
}

// Turn brings the lives to now: what is noted next happens then.
func (s *Lives) Turn(now time.Time) { s.now = now }

// Now is the time of this turn.
func (s *Lives) Now() time.Time { return s.now }

// Len is how many lives are kept; Unkept is how many messages had no room for theirs since the start.
func (s *Lives) Len() int { return len(s.byID) }

// Unkept counts what was not recorded because a bound was reached.
func (s *Lives) Unkept() uint64 { return s.unkept }

// Get is the life of a message; nil: it is not kept.
func (s *Lives) Get(id uint64) *Life { return s.byID[id] }

// IDs appends those of all lives, in no order.
func (s *Lives) IDs(to []uint64) []uint64 {
	for id := range s.byID {
		to = append(to, id)
	}
	return to
}

// Begin keeps the life of a message that was accepted, with its recipients to come (For). The oldest that have ended make
// room. Where all that are kept go on, this one is not kept.
func (s *Lives) Begin(l Life) {
	if s.byID == nil {
		s.byID = map[uint64]*Life{}
	}
	if s.byID[l.ID] != nil {
		return
	}
	l.From, l.To, l.Label = cut(l.From), cut(l.To), cut(l.Label)
	l.cost = lifeOctets + len(l.From) + len(l.To) + len(l.Label)
	if !s.room(l.cost + eventOctets) {
		s.unkept++
		return
	}
	s.byID[l.ID] = &l
	s.octets += l.cost
	l.Events = append(l.Events, Event{At: l.Accepted, N: 1, What: Accepted})
	if s.now.IsZero() { // the gateway starts: what else happened in an earlier run nobody knows any more
		l.Events[0].Detail = "in an earlier run: what happened then is not kept"
	}
	s.grow(&l, l.Events[0].cost())
}

// cut is a bounded text of its own: a part of a longer one would keep that in memory.
func cut(text string) string { return strings.Clone(text[:min(len(text), textMost)]) }

// room makes room for so many octets; false: there is none.
func (s *Lives) room(octets int) bool {
	for len(s.byID) >= MostLives || s.octets+octets > MostOctets {
		if !s.forget() {
			return false
		}
	}
	return true
}

// forget drops the life that ended first; false: none has.
func (s *Lives) forget() bool {
	if len(s.ended) == 0 {
		return false
	}
	s.drop(s.ended[0])
	s.ended = s.ended[1:]
	return true
}

func (s *Lives) drop(id uint64) {
	if l := s.byID[id]; l != nil {
		s.octets -= l.cost
		delete(s.byID, id)
	}
}

// For notes a recipient of a message, for whom it is in this state.
func (s *Lives) For(id uint64, peer uint16, state State) {
	l := s.byID[id]
	if l == nil {
		return
	}
	if f := l.Of(peer); f != nil {
		f.State, f.Since = state, s.now
		return
	}
	l.Fates = append(l.Fates, Fate{Peer: peer, State: state, Since: s.now})
	s.grow(l, fateOctets)
}

func (s *Lives) grow(l *Life, octets int) {
	l.cost += octets
	s.octets += octets
}

// Note adds an event to a life. One like the last is added up with it.
func (s *Lives) Note(id uint64, e Event) {
	l := s.byID[id]
	if l == nil {
		return
	}
	e.At, e.N, e.Detail, e.Rule = s.now, 1, cut(e.Detail), cut(e.Rule)
	if n := len(l.Events); n > 0 {
		last := &l.Events[n-1]
		if last.What == e.What && last.Peer == e.Peer && last.Detail == e.Detail && (e.What == OnTheAir || e.What == Repeated) {
			last.N++
			last.Until = s.now
			last.Octets += e.Octets
			last.Company = e.Company
			return
		}
	}
	if len(l.Events) == MostEvents { // the first says when it was accepted
		s.grow(l, -l.Events[1].cost())
		l.Events = slices.Delete(l.Events, 1, 2)
		l.Lost++
	}
	for octets := e.cost(); s.octets+octets > MostOctets; {
		if !s.forget() || s.byID[id] == nil {
			l.Lost++
			return
		}
	}
	l.Events = append(l.Events, e)
	s.grow(l, e.cost())
}

// Aired notes that so many octets of a message went on the air towards a recipient, 0 for all, in a datagram with so many
// other messages.
func (s *Lives) Aired(id uint64, peer uint16, octets, company int, again bool) {
	l := s.byID[id]
	if l == nil {
		return
	}
	what := OnTheAir
	if again {
		what = Repeated
	}
	for i := range l.Fates {
		if f := &l.Fates[i]; peer == 0 && !f.State.Final() || f.Peer == peer {
			f.SentAt = s.now
			if !again {
				f.Sent += octets
			}
		}
	}
	s.Note(id, Event{What: what, Peer: peer, Octets: octets, Company: company})
}

// State notes that a message is in another state with a recipient, without an event of its own.
func (s *Lives) State(id uint64, peer uint16, state State) {
	if l := s.byID[id]; l != nil {
		if f := l.Of(peer); f != nil && f.State != state {
			f.State, f.Since = state, s.now
		}
	}
}

// End notes the final state of a message with a recipient. A final state stays but for those that State names.
func (s *Lives) End(id uint64, peer uint16, state State, detail string) {
	l := s.byID[id]
	if l == nil {
		return
	}
	f := l.Of(peer)
	if f == nil || f.State.Final() && (f.State != Delivered || state != Undeliverable && state != Again) {
		return
	}
	was := l.Ended()
	f.State, f.Since, f.Detail = state, s.now, cut(detail)
	s.Note(id, Event{What: string(state), Peer: peer, Detail: detail})
	if !was && l.Ended() {
		s.ended = append(s.ended, id)
	}
}

// Mark changes what is known of a message's precedence.
func (s *Lives) Mark(id uint64, p site.Precedence) {
	if l := s.byID[id]; l != nil {
		l.Precedence = p
	}
}
