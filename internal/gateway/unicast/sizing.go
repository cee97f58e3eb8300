package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
)

// Only the model tells whether a message of some kilobytes fits a datagram, and it takes milliseconds for each. So such a
// message waits unsized in the direct lane. It is sized when its turn comes, and a long one is coded before libnorm gets it,
// both in slices: local peers wait for a slice at the most. docs/decisions/fairness.md.
const (
	sliceOctets = 1 << 10 // of text that one turn of the loop codes
	// afterOctets is of work for texts above longText after the messages before them: one such message in a turn, and until
	// the loop has had as much time for others. Further ones are coded by themselves.
	afterOctets = 4 << 10
	longText    = 1 << 10
)

// work is what coding has taken of the loop.
type work struct {
	slices mail.Turn
	after  mail.Turn
}

func newWork() work { return work{mail.NewTurn(sliceOctets), mail.NewTurn(afterOctets)} }

// laneAtOnce is laneOf where that takes no coding.
func (c *Carrier) laneAtOnce(m *mail.Message) (lane frame.Lane, known bool) {
	switch {
	case len(m.Full)+4 <= c.maxDirect():
		return frame.Direct, true
	case len(m.Full) > maxModel*c.maxDirect(): // no model makes that fit
		return frame.Bulk, true
	}
	return frame.Direct, false
}

// laneOf says how a message travels, by its size with its flow spelt out and nothing before it: as the later ones of its
// flow only get shorter.
func (c *Carrier) laneOf(p *mail.Peer, m *mail.Message) frame.Lane {
	const number = 1 << 20 // as long as a flow's number ever gets
	lane, known := c.laneAtOnce(m)
	if known {
		return lane
	}
	if len(c.pack(m, number, true, c.Road.Texts(p))) <= c.maxDirect() {
		return frame.Direct
	}
	return frame.Bulk
}

// toSize is the next message of a peer whose lane has to be known now; nil: there is none.
func (c *Carrier) toSize(l *line) *mail.Entry {
	window := l.sender.Window(frame.Direct)
	if l.sender.RoomFor(frame.Direct, max(urgentRoom, window/2)) {
		if e := l.Box.Head(frame.Direct); e != nil && e.Unsized {
			return e
		}
	}
	if c.norm.up && l.sender.RoomFor(frame.Bulk, 0) {
		if e := l.Box.FirstUnsized(frame.Direct); e != nil && e.Before(l.Box.First(frame.Bulk)) {
			return e
		}
	}
	return nil
}

// toCode is the next message of a peer that libnorm gets once it is coded; nil: there is none.
func (c *Carrier) toCode(l *line) *mail.Entry {
	if !c.norm.up {
		return nil
	}
	if e := l.first(frame.Bulk); e != nil && !e.Coded {
		return e
	}
	return nil
}

// toLearn is the next message of the direct lane where coding it after those before it takes long; nil: there is none.
func (c *Carrier) toLearn(l *line) *mail.Entry {
	if e := l.first(frame.Direct); e != nil && len(e.Full) > longText && e.Content.Payload != nil {
		return e
	}
	return nil
}

// learning says that the next message of the direct lane is not coded yet.
func (c *Carrier) learning(l *line) bool {
	e := c.toLearn(l)
	return e != nil && !e.Learned
}

// size sizes and codes what has to be, as much as this turn of the loop has room for.
func (c *Carrier) size(now time.Time, l *line) {
	for c.work.slices.Room(now) {
		if e := c.toSize(l); e != nil {
			if c.code(e, c.Road.Texts(l.Peer)) {
				e.Unsized = false
				if c.laneOf(l.Peer, e.Message) == frame.Bulk {
					c.Store.Move(e, frame.Bulk)
				}
			}
		} else if e := c.toCode(l); e != nil {
			e.Coded = c.code(e, c.Road.Texts(l.Peer))
		} else if e := c.toLearn(l); e != nil {
			at := mail.Attempt{Lane: frame.Direct, Number: l.sender.Next(frame.Direct)}
			texts, _ := c.textsOf(l, at, e.Message, true, false)
			if e.Learned = c.code(e, texts); e.Learned {
				return
			}
		} else {
			return
		}
	}
}

// code codes a slice of a message's texts; true: they are coded.
func (c *Carrier) code(e *mail.Entry, texts *envelope.Texts) (done bool) {
	before := c.Coder.Work()
	done = texts.Prepare(e.Content, sliceOctets)
	octets := 0
	if done {
		octets = len(e.Full)
	}
	c.work.slices.Spent(c.Coder.Work()-before, octets)
	return done
}

// sizingDue is when more can be sized or coded; zero: there is nothing.
func (c *Carrier) sizingDue(l *line) (at time.Time) {
	if l.sender.Dead() || c.toSize(l) == nil && c.toCode(l) == nil && !c.learning(l) {
		return at
	}
	return c.work.slices.Due()
}

// mayLearn says whether a message may be coded after those before it, which takes longer than by itself.
func (c *Carrier) mayLearn(now time.Time, m *mail.Message) bool {
	return len(m.Full) <= longText || c.work.after.Room(now)
}
