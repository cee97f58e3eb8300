package unicast

import (
	"errors"
	"maps"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
)

// The messages of one source, and those behind state of the site, are read in order. Others need not wait for each other: where
// much of another source is under way, and where a message goes twice because no loss may delay it, it says which is the last before
// it that it has to wait for, and the peer reads it although others are missing. This costs an octet, but only where a source floods or a
// message hurries. docs/decisions/fairness.md.

// givenOf notes which lines got the numbers of the direct queue that were given in this run.
type givenOf struct {
	from uint64            // the first of these numbers
	last map[string]uint64 // the last of each line (mail.Message.Line); that of state under ""
}

// gave notes that a message got its number; oldest is the oldest under way, before which nobody looks any more.
func (g *givenOf) gave(number, oldest uint64, line string) {
	if g.last == nil {
		g.from, g.last = number, map[string]uint64{}
	}
	g.last[line] = number
	if len(g.last) > 2*custody.MaxAhead {
		maps.DeleteFunc(g.last, func(_ string, last uint64) bool { return last < oldest })
	}
}

// free says whether a message need not wait for those before it that its peer lacks, and how far back the one is that it has to
// wait for; 0: none is. All messages with lower numbers than the oldest under way have been read.
func (l *peerLink) free(at mail.TransmissionID, m *mail.Message) (free bool, after uint8) {
	if m.Content.Payload == nil {
		return false, 0
	}
	own, others, line := 0, 0, m.Line()
	twice, hurries := m.Twice(), false
	for _, e := range l.Box.UnderWay(frame.Direct) {
		if e.At.Number >= at.Number || e.Content.Payload == nil {
			continue
		}
		if e.Source() == m.Source() {
			own += e.Weight
		} else {
			others += e.Weight
		}
		hurries = hurries || twice && e.Line() != line
	}
	oldest := l.Box.Oldest(frame.Direct, at.Number)
	_, _, held := l.Box.Held(frame.Direct)
	flooded := l.cut.Flying() > 0 || others > own && held > l.half(frame.Direct)
	if !(flooded || hurries) || l.given.last == nil || oldest < l.given.from { // whose messages went before this run is not known
		return false, 0
	}
	last := max(l.given.last[line], l.given.last[""])
	switch {
	case last >= at.Number: // it goes again, and nobody knows any more which message was before it
		return false, 0
	case last < oldest:
		return true, 0
	}
	return at.Number-last <= 255, uint8(at.Number - last)
}

// ahead is the next message that need not wait for the missing ones, while nothing is left to read in its turn.
func (l *peerLink) ahead() (a mail.Arrival, ok bool) {
	for queue := range frame.Queue(frame.Queues) {
		if _, next := l.receiver.Next(queue); next {
			return a, false
		}
	}
	for queue := range frame.Queue(frame.Queues) {
		if a, ok = l.reordered.Ahead(queue, l.receiver.Cumulative(queue)); ok {
			return a, true
		}
	}
	return a, false
}

// readAhead reads messages before their turn while this turn of the loop has room. Their places are noted until their turn.
func (l *peerLink) readAhead(now time.Time) {
	for l.Turn.Room(now) {
		a, ok := l.ahead()
		if !ok {
			return
		}
		switch err := l.of.Services.OpenSlice(now, l.Peer, a.Place, a.Body); {
		case errors.Is(err, compact.ErrUnfinished): // Step goes on with it
			return
		case err != nil: // it is looked at again in its turn
			a.Free = false
			l.reordered.Keep(a, false)
		default:
			l.reordered.Keep(mail.Arrival{Place: a.Place, Number: a.Number}, true)
		}
	}
}
