package unicast

import (
	"slices"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// A datagram is larger than usual where nobody waits behind it: docs/decisions/large-datagrams.md.

const (
	sharedFor  = time.Minute      // so long after a message of another pipe, both may have more to say
	urgentFor  = time.Hour        // so long after a message above routine, the next may come at any time
	talksFor   = 30 * time.Second // so long after a message of the peer, another may be on the air
	largeLoses = 3                // percent: where more is lost, it may be by the length, and repeats cost more
)

// talk notes which pipes have had messages for a transmitter lately.
type talk struct {
	pipe   pipe      // of the last message
	at     time.Time // of its last message
	other  time.Time // of the last message of another pipe; zero: there was none
	mixed  bool      // messages of several pipes may still wait
	urgent time.Time // of the last message above routine; zero: there was none
	heard  time.Time // of the peer's last message
}

// pipe is a source of messages. The short and the long messages of one count as two, for the short ones wait behind the long.
type pipe struct {
	line, scope, topic string
	long               bool
}

// says notes a message for a peer.
func (c *Carrier) says(now time.Time, l *peerLink, m *mail.Message) {
	p := m.Content.Payload
	if p == nil {
		return
	}
	t := talkOf(l)
	if of := (pipe{m.Line(), p.Scope, p.Topic, len(m.Full) > maxDirect(c.Profile)}); of != t.pipe {
		t.pipe, t.other, t.mixed = of, t.at, true
	}
	t.mixed = t.mixed && !c.idle(l)
	t.at = now
	if m.Rank() > site.Routine.Rank() {
		t.urgent = now
	}
}

// alone says whether one pipe alone has had something to say, and nothing above routine.
func (t *talk) alone(now time.Time) bool {
	return !t.mixed && (t.other.IsZero() || now.Sub(t.other) > sharedFor) && (t.urgent.IsZero() || now.Sub(t.urgent) > urgentFor)
}

// idle says whether nothing waits for the transmitter that reaches a peer, or is under way.
func (c *Carrier) idle(l *peerLink) bool {
	none := func(l *peerLink) bool {
		return l.Box.Waiting(frame.Direct, frame.Bulk)+l.sender.UnderWay(frame.Direct)+l.sender.UnderWay(frame.Bulk) == 0
	}
	return none(l) && (c.Shore || !slices.ContainsFunc(c.order, func(l *peerLink) bool { return !none(l) }))
}

// talkOf is the talk for the transmitter that reaches a peer.
func talkOf(l *peerLink) *talk {
	if l.of.Shore {
		return &l.talk
	}
	return &l.of.talk
}

// room is the largest UDP payload that goes to a peer now. longer is by how much its answer may exceed the time that timers allow: the
// payload takes more air, and the answer waits behind as large a datagram of a peer that talks too.
func room(now time.Time, l *peerLink) (octets int, longer time.Duration) {
	octets, longer = largest(now, l)
	if _, rate := l.Air(); rate == *l.of.ModemBps { // timers are for the profile's rate
		longer += max(0, profile.Airtime(octets, rate)-l.of.Profile.Airtime(l.of.Profile.Sending(l.of.Shore), octets))
	}
	return octets, longer
}

// largest is room where the link is as fast as its profile says.
func largest(now time.Time, l *peerLink) (octets int, longer time.Duration) {
	p, usual, large := l.of.Profile, l.of.Profile.Filled(), l.of.Profile.Largest()
	if p.UnitOctets > 0 || large <= usual || !l.Handshake.KnowsUs || l.sender.Dead() || !talkOf(l).alone(now) {
		return usual, 0
	}
	if _, _, held := l.Box.Held(frame.Direct, frame.Bulk); held <= usual {
		return usual, 0
	}
	if _, least, _ := l.Shows.Loss(); least > largeLoses {
		return usual, 0
	}
	air, rate := l.Air()
	if rate < p.Sending(l.of.Shore).RateBps && rate == air.Gauge.Pace(rate+1) {
		return usual, 0 // slower than its profile: a large one would take long, and say little of how fast it is
	}
	longer = profile.Airtime(large-usual, rate)
	if now.Sub(l.talk.heard) < talksFor {
		longer += profile.Airtime(large-usual, p.Sending(!l.of.Shore).RateBps)
	}
	return large, longer
}
