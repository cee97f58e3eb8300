package mail

import (
	"time"

	"aldis/internal/link/frame"
)

// Pace is how fast messages get to a peer while others wait: octets as journalled that were acknowledged, divided by the
// time that took. Coding for the link, losses, windows and the share of other peers are all in it. The zero value is ready.
type Pace struct {
	since   time.Time // of the last end of a message
	backlog bool      // after it others waited
	octets  float64
	took    time.Duration
}

const (
	paceWindow = 2 * time.Minute  // beyond it the earlier counts are halved
	pacePause  = 30 * time.Second // a longer time in which no message ends counts as this: the link was down
	paceLeast  = 10 * time.Second // of counting, before it says anything
)

// ended notes that a message has ended for the peer.
func (p *Pace) ended(now time.Time, e *Entry, fate Fate) {
	if fate != Delivered {
		return
	}
	if p.backlog {
		p.octets += float64(len(e.Full))
		p.took += min(max(now.Sub(p.since), 0), pacePause)
	}
	if p.took > paceWindow {
		p.octets, p.took = p.octets/2, p.took/2
	}
	b := &e.Peer.Box
	p.since, p.backlog = now, b.Waiting(frame.Direct, frame.Bulk) > 0 || e.Queue == Group && len(b.underWay) > 1
}

// Rate is octets as journalled a second; false: too little has gone to say.
func (p *Pace) Rate() (float64, bool) {
	if p.took < paceLeast || p.octets == 0 {
		return 0, false
	}
	return p.octets / p.took.Seconds(), true
}
