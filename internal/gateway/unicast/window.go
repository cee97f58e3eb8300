package unicast

import (
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// How much may be under way towards a peer is decided here: the window of the profile, what goes beyond it, and when the peer
// is asked for an acknowledgement at once because the window is what everything waits for. docs/decisions/fairness.md.

// urgentRoom is how many messages above routine may be under way beyond the window.
const urgentRoom = 4

// moreBulk is how many long messages may be under way beyond the window. Each has an acknowledgement, so that a link whose window is two
// short ones of them would stand still for most of a round trip.
const moreBulk = 14

// mayGoBulk says whether a long message may go. Beyond the window it may when libnorm has sent all of those under way, so that a
// message of another source waits for less than before. What is under way is bounded by twice what the link holds.
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
// window holds up no other: half a window more is for sources that have less than their share of it.
func (l *peerLink) first(queue frame.Queue) *mail.Entry {
	e := l.Box.First(queue)
	beside := 0 // segments have a bound of their own
	if queue == frame.Direct {
		beside = l.cut.Flying()
	}
	switch {
	case e == nil:
		return nil
	case queue == frame.Bulk && l.inSegments(e):
		if l.mayBegin(e) {
			return e
		}
		return nil
	case l.sender.RoomFor(queue, beside), e.Urgent() && l.sender.RoomFor(queue, beside+urgentRoom):
		return e
	case queue == frame.Bulk && l.mayGoBulk():
		return e
	}
	extra := beside + max(1, l.half(queue))
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
	return l.sender.RoomFor(queue, l.cut.Flying()+max(urgentRoom, l.half(queue)))
}

// roomForNews says whether the window has room for news. The first has a slot of its own: messages that fill the window
// would hold it up for ever, and far peers' messages are dropped there while nobody is known to listen here.
func (l *peerLink) roomForNews() bool {
	extra := l.cut.Flying()
	if l.Box.Flying(frame.Direct) == 0 {
		extra++
	}
	return l.sender.RoomFor(frame.Direct, extra)
}

// asks says whether the message that goes next in the direct queue asks for an acknowledgement at once: one in every half window of them,
// while the window is half used. Otherwise acknowledgements wait for something to ride on.
func (l *peerLink) asks() bool {
	half := l.half(frame.Direct)
	return l.unasked+1 >= half && l.sender.UnderWay(frame.Direct)-l.cut.Flying()+1 >= half
}

// endsBurst says whether the message of so many octets that goes next in the direct queue is the last of a burst: half of the
// profile's window is under way, and more than a datagram of it since an acknowledgement was asked for or came. Nothing comes behind it that
// would show its loss, so that it asks for its acknowledgement, and goes again when that is overdue. waits says that it is one of those that
// wait.
func (l *peerLink) endsBurst(p *profile.Profile, waits bool, octets int) bool {
	waiting, underWay := l.Box.Waiting(frame.Direct, frame.Bulk), l.sender.UnderWay(frame.Direct)-l.cut.Flying()
	if waits {
		waiting, underWay = waiting-1, underWay+1
	}
	return waiting == 0 && underWay >= max(2, p.Window/2) && l.silent+octets > p.DatagramOctets
}

// went notes that a message of so many octets went in the direct queue, and whether it asked.
func (l *peerLink) went(asked bool, octets int) {
	l.unasked, l.silent = l.unasked+1, l.silent+octets
	if asked {
		l.unasked, l.silent, l.cut.unasked = 0, 0, 0
	}
}

func (l *peerLink) half(queue frame.Queue) int { return l.sender.Window(queue) / 2 }
