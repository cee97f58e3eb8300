package linkemu

import (
	"time"

	"aldis/internal/link/profile"
)

// channel is the shared half-duplex medium: one talker at a time, in turns, without collisions.
type channel struct {
	p        profile.Profile
	talker   int       // the node that sent last; -1: none yet
	busy     bool      // a frame is on the air, or a turn is granted
	turnFrom time.Time // when the talker's turn began
	freeAt   time.Time // end of the last frame
	stats    ChannelStats
}

func newChannel(p profile.Profile) *channel {
	return &channel{p: p, talker: -1}
}

// grant gives the free channel to the next node: the talker while it has frames and time, else the next in turn.
func (l *Link) grant() {
	c := l.chann
	if c.busy {
		return
	}
	next := l.nextTalker()
	if next < 0 {
		return
	}
	start := l.now
	newTurn := true
	switch {
	case c.talker < 0:
	case next != c.talker:
		// Counted from the end of the last frame: an idle channel has turned around already.
		if free := c.freeAt.Add(c.p.Turnaround); free.After(start) {
			c.stats.Turnaround += free.Sub(start)
			start = free
		}
		c.stats.Turns++
	default:
		newTurn = start.After(c.freeAt) // the same station keys again after a silence
	}
	if newTurn {
		c.turnFrom = start
		start = start.Add(c.p.KeyUp)
		c.stats.Turnaround += c.p.KeyUp
	}
	c.talker, c.busy = next, true
	from := l.nodes[next]
	f, _ := from.up.dequeue(l.now) // nextTalker has seen that there is one
	air := from.up.airtime(f)
	l.schedule(start.Add(air), func() { l.spoken(from, f, start, air) })
}

// nextTalker applies the rule of turns; -1 when no node has a frame to send. The talker and others have frames at the same time only at
// the end of a frame: on an idle channel the first frame is granted at once.
func (l *Link) nextTalker() int {
	c, n := l.chann, len(l.nodes)
	other := -1
	for i := 1; i <= n; i++ {
		if k := (c.talker + i) % n; k != c.talker && l.nodes[k].up.waits(l.now) {
			other = k
			break
		}
	}
	if c.talker < 0 {
		return other
	}
	if !l.nodes[c.talker].up.waits(l.now) {
		return other
	}
	own := l.nodes[c.talker].up.queue
	end := l.now.Add(c.p.Airtime(c.p.Up, own[0].Octets)) // the longest possible time
	if other >= 0 && end.Sub(c.turnFrom) > c.p.MaxHold {
		return other
	}
	return c.talker
}

// spoken is the end of a frame: every node on the air has received it, or lost it, each for itself.
func (l *Link) spoken(from *node, f Frame, start time.Time, air time.Duration) {
	c := l.chann
	c.busy, c.freeAt = false, l.now
	c.stats.Busy += air
	from.upStats.sent(f.Octets, air)
	sent := l.heardSince(from, start)
	if !sent {
		from.upStats.DroppedOutage.add(f.Octets)
	}
	for _, n := range l.nodes {
		if n == from {
			continue
		}
		at, fate := n.down.fate(start, l.now, f.Octets)
		mine := f.To == "" || f.To == n.Name
		if mine && sent {
			n.dnStats.Offered.add(f.Octets)
			n.dnStats.sent(f.Octets, air)
		}
		switch {
		case !mine || !sent:
		case !l.heardSince(n, start):
			n.dnStats.DroppedOutage.add(f.Octets)
		case fate == lost:
			n.dnStats.DroppedLoss.add(f.Octets)
		default:
			l.arrive(n.down, at, func() { l.atNode(n.down, f) })
		}
	}
	l.grant()
}
