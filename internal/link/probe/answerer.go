package probe

import (
	"time"

	"aldis/internal/link/profile"
)

// The answers to one far gateway are bounded: so many octets in so long a time, whoever asks. A node that has the network's
// key and keeps asking cannot make others pay more.
const (
	Allowance = 128 << 10
	allowedIn = time.Hour
	refusals  = 1000 // octets of refusals
)

// Answerer is the far end of link probes with one peer, one after the other. In a link probe it never sends more octets
// than it has received.
type Answerer struct {
	gap      time.Duration // between octets of a train
	overhead int
	datagram int // octets at the most

	id      uint8
	known   bool // there is a link probe
	first   time.Time
	events  []Event
	credit  int // octets that may go
	echoes  []answer
	shape   Shape // of the train being sent
	shot    int   // number of its next datagram
	trained bool
	next    time.Time
	ask     int // the report is wanted from this event on; -1: it was not requested
	frozen  bool
	pending Word

	spent   int // octets sent, from since on
	since   time.Time
	refusal bool // a refusal is to be sent
}

// answer is an answer to be sent.
type answer struct {
	seq    uint16
	octets int
}

// mostEchoes is how many answers may wait.
const mostEchoes = 4

// NewAnswerer is a far end that has answered nothing yet. rateBps is the profile's rate of the direction in which it sends.
func NewAnswerer(p profile.Profile, rateBps, overhead int) *Answerer {
	a := &Answerer{overhead: overhead, datagram: p.DatagramOctets + profile.IPUDPOctets, ask: -1}
	if rateBps > 0 {
		a.gap = profile.Airtime(1, rateBps) / 4
	}
	return a
}

// Receive takes a word of the near end that came in a datagram of so many octets.
func (a *Answerer) Receive(now time.Time, w Word, octets int) {
	if !a.known || w.ID != a.id {
		*a = Answerer{gap: a.gap, overhead: a.overhead, datagram: a.datagram, spent: a.spent, since: a.since,
			id: w.ID, known: true, ask: -1}
	}
	if now.Sub(a.since) >= allowedIn {
		a.since, a.spent = now, 0
	}
	a.credit += octets
	if a.spent+octets > Allowance {
		a.Drop()
		a.refusal = a.spent < Allowance+refusals
		return
	}
	if w.Op != Ask {
		a.note(now, Event{Seq: w.Seq})
	}
	switch w.Op {
	case Echo:
		if len(a.echoes) < mostEchoes && w.Seq < trainFrom {
			a.echoes = append(a.echoes, answer{w.Seq, octets})
		}
	case Train:
		if !a.trained && w.Small >= a.overhead+headOctets && w.Small <= a.datagram && w.Large <= a.datagram {
			a.trained, a.shape, a.shot = true, Shape{w.Small, w.Count, w.Large}, 0
		}
	case Ask:
		a.frozen, a.ask = true, min(w.From, len(a.events))
	}
}

// note keeps an event for the report, until the report is requested.
func (a *Answerer) note(now time.Time, e Event) {
	if a.frozen || len(a.events) >= MostEvents {
		return
	}
	if len(a.events) == 0 {
		a.first = now
	}
	e.At = now.Sub(a.first)
	if e.At > longest {
		return
	}
	a.events = append(a.events, e)
}

// reserve is the part of the credit that is kept for the report.
func (a *Answerer) reserve() int { return 2 * (reportBase + perEvent*len(a.events)) }

// Next is the word to send now and the octets of its datagram; false: none.
func (a *Answerer) Next(now time.Time) (w Word, octets int, ok bool) {
	w = Word{Op: Back, ID: a.id}
	switch {
	case a.refusal:
		w.Op, w.Why, octets = Refuse, TooMuch, a.overhead
	case len(a.echoes) > 0:
		w.Seq, octets = a.echoes[0].seq, a.echoes[0].octets
	case a.ask >= 0:
		w.Op, w.From, w.Total = Report, a.ask, len(a.events)
		w.Events, octets = a.part(w)
	case a.Streams() || a.shape != Shape{}:
		var more bool
		octets, more = a.shape.At(a.shot)
		if !more || a.credit < octets+a.reserve() {
			a.shape = Shape{}
			return w, 0, false
		}
		if now.Before(a.next) {
			return w, 0, false
		}
		w.Seq = trainFrom + uint16(a.shot)
	default:
		return w, 0, false
	}
	octets = max(octets, a.overhead+len(Append(nil, w, 0)))
	if octets > a.credit {
		a.echoes, a.ask, a.refusal = nil, -1, false
		return w, 0, false
	}
	a.pending = w
	return w, octets, true
}

// part is as many events as a datagram and the credit have room for.
func (a *Answerer) part(w Word) (list []Event, octets int) {
	room := min(a.datagram, a.credit)
	for i := a.ask; i < len(a.events); i++ {
		w.Events = append(w.Events, a.events[i])
		if a.overhead+len(Append(nil, w, 0)) > room {
			break
		}
		list = w.Events
	}
	return list, a.overhead
}

// Streams says that the next word belongs to a train that has begun.
func (a *Answerer) Streams() bool {
	return a.shape != Shape{} && a.shot > 0 && len(a.echoes) == 0 && a.ask < 0
}

// Sent notes that the word that Next gave went in a datagram of so many octets.
func (a *Answerer) Sent(now time.Time, octets int) {
	a.credit -= octets
	a.spent += octets
	switch w := a.pending; w.Op {
	case Refuse:
		a.refusal = false
	case Report:
		a.ask = -1
	case Back:
		a.note(now, Event{Sent: true, Seq: w.Seq})
		if len(a.echoes) > 0 {
			a.echoes = a.echoes[1:]
			return
		}
		a.shot++
		a.next = now.Add(time.Duration(octets) * a.gap)
	}
}

// Drop forgets everything that is to be sent: this end may not transmit.
func (a *Answerer) Drop() { a.echoes, a.shape, a.ask, a.refusal = nil, Shape{}, -1, false }

// Due is when Next has a word, apart from the air; zero: not before something arrives.
func (a *Answerer) Due(now time.Time) time.Time {
	switch {
	case a.refusal, len(a.echoes) > 0, a.ask >= 0:
		return now
	case a.shape != Shape{}:
		if a.next.After(now) {
			return a.next
		}
		return now
	}
	return time.Time{}
}
