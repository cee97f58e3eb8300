package probe

import (
	"errors"
	"time"

	"aldis/internal/ground/due"
)

// Reasons why a link probe fails.
var (
	ErrNoAnswer = errors.New("the far gateway does not answer: does it run a version without link probes, or is it silent?")
	ErrReport   = errors.New("the far gateway does not report what came there")
	ErrRefused  = errors.New("the far gateway has answered as much as it does in an hour")
	ErrLong     = errors.New("the link was busy for too long: nothing of a link probe goes while messages wait")
)

// Packet is a datagram of a link probe. Times of the far end are by its own clock, from an unknown zero.
type Packet struct {
	Up      bool          `json:"up"` // from the near end
	Octets  int           `json:"octets"`
	Sent    time.Duration `json:"sent"`
	Arrived time.Duration `json:"arrived"` // zero where Lost
	Lost    bool          `json:"lost,omitempty"`
}

// Phases of the near end.
type phase uint8

const (
	singles phase = iota
	train         // a train goes out
	trainAsked
	reportAsked
	over
)

const (
	mute  = 5         // single datagrams without an answer, at the beginning
	tries = 4         // requests for a train, or for a part of a report
	lasts = time.Hour // a link probe, at the most
)

// Asker is the near end. The caller sends the word of Next when the air is free, and reports that with Sent.
type Asker struct {
	Plan
	id    uint8
	began time.Time
	phase phase
	err   error

	sent    []one // by seq
	heard   map[uint16]one
	octets  int // sent
	came    int // received
	single  int // single datagrams sent
	waits   bool
	since   time.Time // since when it waits
	next    time.Time // when the next datagram of a train may go
	shot    int       // datagrams of the train sent
	shots   int       // datagrams of the far train heard
	tried   int
	report  []Event
	total   int // events of the report; -1: not known
	pending Word
}

type one struct {
	at     time.Time
	octets int
	asks   bool // it asked for the report
}

// NewAsker begins a link probe. Successive link probes of one peer have different ids.
func NewAsker(now time.Time, id uint8, plan Plan) *Asker {
	return &Asker{Plan: plan, id: id, began: now, since: now, heard: map[uint16]one{}, total: -1}
}

// Over says that nothing more is sent; Err is why the probe failed, if it did.
func (a *Asker) Over() bool { return a.phase == over }

// Err is why the probe failed; nil if it did not.
func (a *Asker) Err() error { return a.err }

// Fail ends a link probe.
func (a *Asker) Fail(err error) {
	if a.phase != over {
		a.phase, a.err = over, err
	}
}

// Octets are the octets sent and received so far.
func (a *Asker) Octets() (sent, received int) { return a.octets, a.came }

// Next is the word to send now and the octets of its datagram; false: none. A datagram of a train that has begun need not
// wait for the air.
func (a *Asker) Next(now time.Time) (w Word, octets int, ok bool) {
	a.step(now)
	if a.phase == over || a.waits || now.Before(a.next) {
		return w, 0, false
	}
	w = Word{ID: a.id, Seq: uint16(len(a.sent))}
	octets = a.Up.Small
	switch a.phase {
	case singles:
		w.Op = Echo
	case train:
		w.Op = Shot
		size, more := a.Up.At(a.shot)
		octets = size
		if !more {
			w.Op, w.Small, w.Count, w.Large = Train, a.Down.Small, a.Down.Count, a.Down.Large
			octets = a.Overhead
		}
	case trainAsked:
		w.Op, w.Small, w.Count, w.Large = Train, a.Down.Small, a.Down.Count, a.Down.Large
		octets = a.Overhead
	case reportAsked:
		w.Op, w.From = Ask, len(a.report)
		octets = a.Overhead
	}
	octets = max(octets, a.Overhead+len(Append(nil, w, 0)))
	if a.octets+octets > a.Own {
		if a.phase < reportAsked {
			a.phase, a.tried = reportAsked, 0
			return a.Next(now)
		}
		a.Fail(ErrReport)
		return w, 0, false
	}
	a.pending = w
	return w, octets, true
}

// Streams says that the next word belongs to a train that has begun.
func (a *Asker) Streams() bool { return a.phase == train && a.shot > 0 }

// Sent notes that the word that Next gave went in a datagram of so many octets.
func (a *Asker) Sent(now time.Time, octets int) {
	a.sent = append(a.sent, one{now, octets, a.pending.Op == Ask})
	a.octets += octets
	switch a.pending.Op {
	case Echo:
		a.single++
		a.waits, a.since = true, now
	case Shot:
		a.shot++
		a.next = now.Add(time.Duration(octets) * a.Gap)
	case Train:
		a.phase, a.waits, a.since = trainAsked, true, now
		a.tried++
	case Ask:
		a.waits, a.since = true, now
		a.tried++
	}
}

// step continues when an answer has taken too long.
func (a *Asker) step(now time.Time) {
	if now.Sub(a.began) > lasts {
		a.Fail(ErrLong)
	}
	if a.phase == singles && !a.waits && a.single >= a.Singles {
		a.phase = train
	}
	if !a.waits || now.Before(a.since.Add(a.Patience)) {
		return
	}
	a.waits = false
	switch a.phase {
	case singles:
		if len(a.heard) == 0 && a.single >= mute {
			a.Fail(ErrNoAnswer)
		} else if a.single >= a.Singles {
			a.phase = train
		}
	case trainAsked:
		if a.shots > 0 || a.tried >= tries {
			a.phase, a.tried = reportAsked, 0
		}
	case reportAsked:
		if a.tried >= tries {
			a.Fail(ErrReport)
		}
	}
}

// Due is when Next has a word, apart from the air; zero: not before something arrives.
func (a *Asker) Due() time.Time {
	switch {
	case a.phase == over:
		return time.Time{}
	case a.waits:
		return a.since.Add(a.Patience)
	}
	return due.Latest(a.next, a.since)
}

// Receive takes a word of the far end that came in a datagram of so many octets; false: it is not of this link probe.
func (a *Asker) Receive(now time.Time, w Word, octets int) bool {
	if a.phase == over || w.ID != a.id || a.came+octets > a.Budget {
		return false
	}
	a.came += octets
	switch w.Op {
	case Back:
		if _, again := a.heard[w.Seq]; again || len(a.heard) >= MostEvents {
			return true
		}
		a.heard[w.Seq] = one{at: now, octets: octets}
		switch a.phase {
		case singles:
			a.waits = false
			if a.single%2 == 1 {
				a.next = now.Add(a.Pause)
			}
		case trainAsked:
			a.shots++
			a.since = now
			if _, more := a.Down.At(a.shots); !more {
				a.phase, a.waits, a.tried = reportAsked, false, 0
			}
		}
	case Report:
		a.reported(w)
	case Refuse:
		a.Fail(ErrRefused)
	}
	return true
}

// reported takes a part of the report in its turn.
func (a *Asker) reported(w Word) {
	if a.phase != reportAsked || w.From != len(a.report) || a.total >= 0 && w.Total != a.total || len(w.Events) == 0 {
		return
	}
	a.report, a.total = append(a.report, w.Events...), w.Total
	a.waits, a.tried = false, 0
	if len(a.report) == a.total {
		a.phase = over
	}
}

// Packets are all datagrams of the link probe, when it is over. The near end's times are since its beginning.
func (a *Asker) Packets() (list []Packet) {
	came := map[uint16]time.Duration{}
	for _, e := range a.report {
		if _, again := came[e.Seq]; !e.Sent && !again {
			came[e.Seq] = e.At
		}
	}
	for seq, s := range a.sent {
		if s.asks { // the report does not list the requests for it
			continue
		}
		at, ok := came[uint16(seq)]
		list = append(list, Packet{true, s.octets, s.at.Sub(a.began), at, !ok})
	}
	for _, e := range a.report {
		octets, known := a.Up.Small, true
		if e.Seq >= trainFrom {
			octets, known = a.Down.At(int(e.Seq - trainFrom))
		}
		if !e.Sent || !known {
			continue
		}
		p := Packet{Octets: octets, Sent: e.At, Lost: true}
		if h, ok := a.heard[e.Seq]; ok {
			p.Octets, p.Arrived, p.Lost = h.octets, h.at.Sub(a.began), false
		}
		list = append(list, p)
	}
	return list
}
