package unicast

import (
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// How much may be under way towards a peer is decided here: the window of the profile, what goes beyond it, and when the peer
// is asked for a receipt at once because the window is what everything waits for. docs/decisions/fairness.md.

// urgentRoom is how many messages above routine may be under way beyond the window.
const urgentRoom = 4

// first is the next message of a lane; nil when none waits, or there is no room for it under way. A source that fills the
// window holds up no other: half a window more is for sources that have less than their share of it.
func (l *line) first(lane frame.Lane) *mail.Entry {
	e := l.Box.First(lane)
	switch {
	case e == nil:
		return nil
	case l.sender.Room(lane), e.Urgent() && l.sender.RoomFor(lane, urgentRoom):
		return e
	}
	if l.sender.RoomFor(lane, max(1, l.half(lane))) {
		return l.Box.FirstBelow(lane, l.sender.Window(lane))
	}
	return nil
}

// mayGo says whether a message of a lane that is not sized yet may be the next to go.
func (l *line) mayGo(lane frame.Lane) bool {
	return l.sender.RoomFor(lane, max(urgentRoom, l.half(lane)))
}

// roomForNews says whether the window has room for news. The first has a slot of its own: messages that fill the window
// would hold it up for ever, and far peers' messages are dropped there while nobody is known to listen here.
func (l *line) roomForNews() bool {
	extra := 0
	if l.Box.Flying(frame.Direct) == 0 {
		extra = 1
	}
	return l.sender.RoomFor(frame.Direct, extra)
}

// asks says whether the message that goes next in the direct lane asks for a receipt at once: one in every half window of them,
// while the window is half used. Otherwise receipts wait for something to ride on.
func (l *line) asks() bool {
	half := l.half(frame.Direct)
	return l.unasked+1 >= half && l.sender.UnderWay(frame.Direct)+1 >= half
}

// went notes that a message went in the direct lane, and whether it asked.
func (l *line) went(asked bool) {
	l.unasked++
	if asked {
		l.unasked = 0
	}
}

func (l *line) half(lane frame.Lane) int { return l.sender.Window(lane) / 2 }
