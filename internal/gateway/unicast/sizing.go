package unicast

import (
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// Only the model tells whether a message of some kilobytes fits a datagram, and it takes milliseconds for each. So such a
// message waits unsized in the direct queue. It is sized when its turn comes, and a long one is coded before libnorm gets it,
// both in slices: local peers wait for a slice at the most. docs/decisions/fairness.md.
const (
	sliceOctets = 1 << 10 // of text that one turn of the loop codes
	// afterOctets bounds the work of coding texts above longText after the messages before them: one such message in a turn, and no
	// other until the loop has had as much time for other work. Further ones are coded by themselves.
	afterOctets = 4 << 10
	longText    = 1 << 10
	// Where the air is not scarce (profile.Scarce) the model codes only as many short messages as people write: modelRate a second for
	// long, and modelBurst at once. More than that comes from a machine, and the processor has better things to do.
	modelRate  = 2
	modelBurst = 20
)

// work finds out how the messages of a line travel, and has them coded. It keeps count of the loop's time that this takes.
type work struct {
	slices mail.Turn
	after  mail.Turn
	turn   int // whose turn it is among the peers
	model  due.Bucket
}

func newWork() work {
	return work{slices: mail.NewTurn(sliceOctets), after: mail.NewTurn(afterOctets)}
}

// queueAtOnce is queueOf for messages whose queue is known without coding them.
func queueAtOnce(p *profile.Profile, m *mail.Message) (queue frame.Queue, known bool) {
	switch {
	case len(m.Full)+4 <= maxDirect(p):
		return frame.Direct, true
	case len(m.Full) > maxModel*maxDirect(p): // no model makes that fit
		return frame.Bulk, true
	}
	return frame.Direct, false
}

// queueOf says how a message travels, by its size with nothing before it: after earlier ones of its flow it only gets shorter.
// Its flow is spelt out where the peer would need that now.
func (s *shared) queueOf(l *peerLink, m *mail.Message) frame.Queue {
	const number = 1 << 20 // as long as a flow's number ever gets
	queue, known := queueAtOnce(s.Profile, m)
	if known {
		return queue
	}
	if len(s.pack(m, number, !l.history.Knows(m.Content.Payload), s.Services.Texts(l.Peer))) <= maxDirect(s.Profile) {
		return frame.Direct
	}
	return frame.Bulk
}

// toSize is the next message of a peer whose queue has to be known now; nil: there is none.
func (w *work) toSize(l *peerLink) *mail.Entry {
	if l.mayGo(frame.Direct) {
		if e := l.Box.Head(frame.Direct); e != nil && e.Unsized {
			return e
		}
	}
	if norm := l.of.norm.up && l.mayGoBulk(); norm || l.Handshake.Segments {
		e := l.Box.FirstUnsized(frame.Direct)
		if e != nil && e.Before(l.Box.First(frame.Bulk)) && (norm || l.inSegments(e)) {
			return e
		}
	}
	return nil
}

// toCode is the next long message of a peer; nil: it is coded, or there is none. A message that goes in segments is coded while the one
// before it is cut, so that its first segment can share a datagram with the last segment of that one.
func (w *work) toCode(l *peerLink) *mail.Entry {
	if e := l.Box.First(frame.Bulk); e != nil && l.inSegments(e) {
		if e.Coded {
			return nil
		}
		return e
	}
	if e := l.cut.nextLong(l); e != nil && !e.Coded {
		return e
	}
	return nil
}

// toLearn is the next message of the direct queue, if it takes long to code it after those before it; nil: there is none.
func (w *work) toLearn(l *peerLink) *mail.Entry {
	if e := l.first(frame.Direct); e != nil && len(e.Full) > longText && e.Content.Payload != nil {
		return e
	}
	return nil
}

// learning says that the next message of the direct queue is not coded yet.
func (w *work) learning(l *peerLink) bool {
	e := w.toLearn(l)
	return e != nil && !e.Learned
}

// step sizes and codes the messages that need it, as many as this turn of the loop has room for. True: a text is coded in part.
func (w *work) step(l *peerLink, now time.Time) (unfinished bool) {
	for !unfinished && w.slices.Room(now) {
		if e := w.toSize(l); e != nil && !w.codesFirst(l, e) {
			unfinished = !w.code(l, e, l.of.Services.Texts(l.Peer))
			if unfinished {
				break
			}
			e.Unsized = false
			if l.of.queueOf(l, e.Message) == frame.Bulk {
				l.of.Store.Move(e, frame.Bulk)
			}
		} else if e := w.toCode(l); e != nil {
			texts := l.of.Services.Texts(l.Peer)
			l.history.EncodeLong(texts, e.Spoken(), l.sender.Next(frame.Bulk))
			e.Coded = w.code(l, e, texts)
			unfinished = !e.Coded
		} else if e := w.toLearn(l); e != nil {
			at := mail.TransmissionID{Queue: frame.Direct, Number: l.sender.Next(frame.Direct)}
			texts, _ := w.texts(now, l, at, e.Message, true, false)
			e.Learned = w.code(l, e, texts)
			return !e.Learned
		} else {
			break
		}
	}
	return unfinished
}

// codesFirst says that a message of the same source, which goes before e, is to be coded before e is sized. Otherwise the air
// would stand still until all waiting messages are sized, and a message that is sized so long before its turn would be coded twice.
func (w *work) codesFirst(l *peerLink, e *mail.Entry) bool {
	before := func(next *mail.Entry) bool { return next != nil && next.Source() == e.Source() && next.Before(e) }
	return before(w.toCode(l)) || w.learning(l) && before(w.toLearn(l))
}

// code codes a slice of a message's texts; true: they are coded.
func (w *work) code(l *peerLink, e *mail.Entry, texts *envelope.Texts) (done bool) {
	before := worked(l.of.Coder, texts)
	done = texts.Prepare(e.Content, sliceOctets)
	octets := 0
	if done {
		octets = len(e.Full)
	}
	w.slices.Spent(worked(l.of.Coder, texts)-before, octets)
	return done
}

// worked is the work of the coder of these texts; if texts is nil, that is the carrier's own coder.
func worked(coder *compact.Coder, texts *envelope.Texts) uint64 {
	if texts != nil {
		coder = texts.Coder
	}
	return coder.Work()
}

// due is when more can be sized or coded; zero: there is nothing.
func (w *work) due(l *peerLink) (at time.Time) {
	if l.sender.Dead() || w.toSize(l) == nil && w.toCode(l) == nil && !w.learning(l) {
		return at
	}
	return w.slices.Due()
}

// texts codes m under a number of the direct queue, after the messages before it where it learns from them. The flow is nil
// for a message that has none.
func (w *work) texts(now time.Time, l *peerLink, at mail.TransmissionID, m *mail.Message, learns, gone bool) (*envelope.Texts, *mail.Flow) {
	texts := l.of.Services.Texts(l.Peer)
	if l.Handshake.Model == 0 && !gone { // the peer has not said its model yet: most likely it is ours. If not, it refuses and says so
		texts = l.of.Services.Texts()
	}
	f := l.history.Flow(m.Content.Payload)
	if texts != nil && !l.of.Profile.Scarce() && len(m.Full) <= longText && !w.model.Allow(now, modelRate, modelBurst) {
		texts.Sparing = true
		return texts, f
	}
	if f != nil && learns {
		l.history.Encode(texts, f, at.Number, nil, m.Content.Payload)
	}
	return texts, f
}

// mayLearn says whether a message may be coded after those before it, which takes longer than by itself.
func (w *work) mayLearn(now time.Time, m *mail.Message) bool {
	return len(m.Full) <= longText || w.after.Room(now)
}
