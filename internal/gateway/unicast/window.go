package unicast

import (
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// How much may be under way towards a peer is decided here: the window of the profile, which messages go beyond it, and when the peer
// is asked for an acknowledgement at once because everything waits for the window. docs/decisions/fairness.md.

// urgentRoom is how many datagrams of messages above routine may be under way beyond the window.
const urgentRoom = 4

// moreBulk is how many long messages may be under way beyond the window. Each needs an acknowledgement: with a window of two short ones of
// them, a link would stand still for most of a round trip.
const moreBulk = 14

// mayGoBulk says whether a long message may go. Beyond the window it may when libnorm has sent all of those under way, so that a
// message of another source waits for less than before. Twice the octets that the link holds may be under way.
func (l *peerLink) mayGoBulk() bool {
	if l.sender.Room(frame.Bulk) {
		return true
	}
	octets := 0
	for _, b := range l.long.under {
		octets += b.octets
	}
	return l.long.unsent() == 0 && octets < 2*l.held && l.sender.RoomFor(frame.Bulk, moreBulk)
}

// unsent is how many long messages libnorm has not sent as a whole.
func (l *long) unsent() (n int) {
	for _, b := range l.under {
		if !b.drained {
			n++
		}
	}
	return n
}

// first is the next message of a queue; nil when none waits, or there is no room for it under way. A source that fills the
// window holds up no other: half a window more is for sources that have less than their share of it. Until the peer has answered in this
// start, no more messages go than the profile's window.
func (l *peerLink) first(queue frame.Queue) *mail.Entry {
	e := l.Box.First(queue)
	switch {
	case e == nil:
		return nil
	case queue == frame.Bulk && l.inSegments(e):
		if l.mayBegin(e) {
			return e
		}
		return nil
	case queue == frame.Direct && !l.Handshake.KnowsUs && l.sender.UnderWay(queue) >= l.of.Profile.Window:
		return nil
	case l.sender.Room(queue), e.Urgent() && l.sender.RoomFor(queue, l.urgent(queue)):
		return e
	case queue == frame.Bulk && l.mayGoBulk():
		return e
	}
	extra := max(1, l.half(queue))
	if queue == frame.Bulk && l.long.unsent() < BulkWindow {
		extra += moreBulk
	}
	if l.sender.RoomFor(queue, extra) {
		return l.Box.FirstBelow(queue, l.sender.Window(queue))
	}
	return nil
}

// mayGo says whether a message of a queue that is not sized yet may be the next to go.
func (l *peerLink) mayGo(queue frame.Queue) bool {
	return l.sender.RoomFor(queue, max(l.urgent(queue), l.half(queue)))
}

// urgent is by how much the window of a queue is larger for messages above routine.
func (l *peerLink) urgent(queue frame.Queue) int {
	if queue == frame.Direct {
		return urgentRoom * l.of.Profile.Filled()
	}
	return urgentRoom
}

// roomForNews says whether the window has room for news. The first has a slot of its own: messages that fill the window
// would hold it up for ever, and a far site drops its peers' messages as long as it knows of nobody who listens here.
func (l *peerLink) roomForNews() bool {
	extra := 0
	if l.Box.Flying(frame.Direct) == 0 {
		extra = l.of.Profile.Filled()
	}
	return l.sender.RoomFor(frame.Direct, extra)
}

// someLoss is the loss, in percent, from which on a message that stands alone asks for its acknowledgement.
const someLoss = 0.5

// losesSome says whether the link to a peer loses enough that a message behind which nothing comes asks for its acknowledgement at once,
// and goes again when that is overdue. Otherwise the next message shows the loss, or a probe when the receiver's patience is over. Where
// a copy goes on idle air, nothing is asked.
func losesSome(l *peerLink) bool {
	p := l.of.Profile
	if p.CopyAfter > 0 || l.sender.IsListening() || !l.of.Messages {
		return false
	}
	_, least, _ := l.Shows.Loss() // a loss of less than the profile's is never sure
	return max(least, p.Sending(l.of.Shore).MeanLossPct()) >= someLoss
}

// asked counts the messages that have gone in the direct queue since an acknowledgement was asked for.
type asked struct {
	weight int // in the window
	silent int // octets of messages since then, or since an acknowledgement last named some
}

// went notes that a message of so many octets went, what it weighs in the window, and whether it asked.
func (a *asked) went(prompt bool, octets, weight int) {
	a.weight, a.silent = a.weight+weight, a.silent+octets
	if prompt {
		*a = asked{}
	}
}

// asks says whether the message of so much weight that goes next in the direct queue asks for an acknowledgement at once: one in every
// half window, while the window is half used. Otherwise acknowledgements wait for something to ride on.
func (l *peerLink) asks(weight int) bool {
	half := l.half(frame.Direct)
	return l.asked.weight+weight >= half && l.sender.Weight(frame.Direct)+weight >= half
}

// endsBurst says whether the message of so many octets that goes next in the direct queue is the last of a burst: half of the
// profile's window is under way, and more than a datagram of it since an acknowledgement was asked for or came. Nothing comes behind it that
// would show its loss, so that it asks for its acknowledgement, and goes again when that is overdue. waits says that it still counts among
// the waiting messages.
func endsBurst(l *peerLink, p *profile.Profile, waits bool, octets int) bool {
	waiting, underWay := l.Box.Waiting(frame.Direct, frame.Bulk), l.sender.UnderWay(frame.Direct)-l.cut.Flying()
	if waits {
		waiting, underWay = waiting-1, underWay+1
	}
	return waiting == 0 && underWay >= max(2, p.Window/2) && l.asked.silent+octets > p.DatagramOctets
}

func (l *peerLink) half(queue frame.Queue) int { return l.sender.Window(queue) / 2 }
