package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
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
	turn   int // whose turn it is among the peers
}

// sizing finds out how the messages of a line travel, and has them coded.
type sizing struct {
	c *Carrier
	l *line
}

func newWork() work {
	return work{slices: mail.NewTurn(sliceOctets), after: mail.NewTurn(afterOctets)}
}

// laneAtOnce is laneOf where that takes no coding.
func (s sizing) laneAtOnce(m *mail.Message) (lane frame.Lane, known bool) {
	switch {
	case len(m.Full)+4 <= maxDirect(s.c.Profile):
		return frame.Direct, true
	case len(m.Full) > maxModel*maxDirect(s.c.Profile): // no model makes that fit
		return frame.Bulk, true
	}
	return frame.Direct, false
}

// laneOf says how a message travels, by its size with nothing before it: after earlier ones of its flow it only gets shorter.
// Its flow is spelt out where the peer would need that now.
func (c *Carrier) laneOf(p *mail.Peer, m *mail.Message) frame.Lane {
	const number = 1 << 20 // as long as a flow's number ever gets
	l := c.lines[p.ID]
	lane, known := sizing{c, l}.laneAtOnce(m)
	if known {
		return lane
	}
	if len(c.pack(m, number, !l.audience.Knows(m.Content.Payload), c.Road.Texts(p))) <= maxDirect(c.Profile) {
		return frame.Direct
	}
	return frame.Bulk
}

// toSize is the next message of a peer whose lane has to be known now; nil: there is none.
func (s sizing) toSize() *mail.Entry {
	if s.l.mayGo(frame.Direct) {
		if e := s.l.Box.Head(frame.Direct); e != nil && e.Unsized {
			return e
		}
	}
	if norm := s.c.norm.up && s.l.mayGoBulk(); norm || s.l.Met.Pieces {
		e := s.l.Box.FirstUnsized(frame.Direct)
		if e != nil && e.Before(s.l.Box.First(frame.Bulk)) && (norm || s.l.inPieces(e)) {
			return e
		}
	}
	return nil
}

// toCode is the next long message of a peer; nil: it is coded, or there is none. What goes in pieces is coded while the one before
// it is cut: its first piece shares a datagram with the last of that.
func (s sizing) toCode() *mail.Entry {
	if e := s.l.Box.First(frame.Bulk); e != nil && s.l.inPieces(e) {
		if e.Coded {
			return nil
		}
		return e
	}
	if e := pieces(s).next(); e != nil && !e.Coded {
		return e
	}
	return nil
}

// toLearn is the next message of the direct lane where coding it after those before it takes long; nil: there is none.
func (s sizing) toLearn() *mail.Entry {
	if e := s.l.first(frame.Direct); e != nil && len(e.Full) > longText && e.Content.Payload != nil {
		return e
	}
	return nil
}

// learning says that the next message of the direct lane is not coded yet.
func (s sizing) learning() bool {
	e := s.toLearn()
	return e != nil && !e.Learned
}

// step sizes and codes what has to be, as much as this turn of the loop has room for. True: a text is coded in part.
func (s sizing) step(now time.Time) (unfinished bool) {
	for !unfinished && s.c.work.slices.Room(now) {
		if e := s.toSize(); e != nil && !s.codesFirst(e) {
			if unfinished = !s.code(e, s.c.Road.Texts(s.l.Peer)); unfinished {
				break
			}
			e.Unsized = false
			if s.c.laneOf(s.l.Peer, e.Message) == frame.Bulk {
				s.c.Store.Move(e, frame.Bulk)
			}
		} else if e := s.toCode(); e != nil {
			texts := s.c.Road.Texts(s.l.Peer)
			s.l.audience.EncodeLong(texts, e.Content.Payload, s.l.sender.Next(frame.Bulk))
			e.Coded = s.code(e, texts)
			unfinished = !e.Coded
		} else if e := s.toLearn(); e != nil {
			at := mail.Attempt{Lane: frame.Direct, Number: s.l.sender.Next(frame.Direct)}
			texts, _ := s.texts(at, e.Message, true, false)
			e.Learned = s.code(e, texts)
			return !e.Learned
		} else {
			break
		}
	}
	return unfinished
}

// codesFirst says that a message of the same source, which goes before e, is to be coded before e is sized. Otherwise the air
// would stand still until all that waits is sized, and who is sized so long before is coded twice.
func (s sizing) codesFirst(e *mail.Entry) bool {
	before := func(next *mail.Entry) bool { return next != nil && next.Source() == e.Source() && next.Before(e) }
	return before(s.toCode()) || s.learning() && before(s.toLearn())
}

// code codes a slice of a message's texts; true: they are coded.
func (s sizing) code(e *mail.Entry, texts *envelope.Texts) (done bool) {
	before := worked(s.c.Coder, texts)
	done = texts.Prepare(e.Content, sliceOctets)
	octets := 0
	if done {
		octets = len(e.Full)
	}
	s.c.work.slices.Spent(worked(s.c.Coder, texts)-before, octets)
	return done
}

// worked is the work of the coder that texts are coded by; nil ones are by the carrier's own.
func worked(coder *compact.Coder, texts *envelope.Texts) uint64 {
	if texts != nil {
		coder = texts.Coder
	}
	return coder.Work()
}

// due is when more can be sized or coded; zero: there is nothing.
func (s sizing) due() (at time.Time) {
	if s.l.sender.Dead() || s.toSize() == nil && s.toCode() == nil && !s.learning() {
		return at
	}
	return s.c.work.slices.Due()
}

// texts codes m under a number of the direct lane, after the messages before it where it learns from them. The flow is nil
// for what has none.
func (s sizing) texts(at mail.Attempt, m *mail.Message, learns, gone bool) (*envelope.Texts, *mail.Flow) {
	texts := s.c.Road.Texts(s.l.Peer)
	if s.l.Met.Model == 0 && !gone { // it has not said yet: most likely ours. If not, it refuses and says so
		texts = s.c.Road.Texts()
	}
	f := s.l.audience.Flow(m.Content.Payload)
	if f != nil && learns {
		s.l.audience.Encode(texts, f, at.Number, m.Content.Payload)
	}
	return texts, f
}

// mayLearn says whether a message may be coded after those before it, which takes longer than by itself.
func (w *work) mayLearn(now time.Time, m *mail.Message) bool {
	return len(m.Full) <= longText || w.after.Room(now)
}
