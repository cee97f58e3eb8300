package gateway

import (
	"time"
)

// linkState is what the operator is told of the link to a peer, and since when that is so.
type linkState struct {
	word  string
	since time.Time
}

// The words for a link.
const (
	linkUnknown   = "unknown"   // the peer was never heard in this run
	linkUp        = "up"        // it answers
	linkSilent    = "silent"    // it does not answer
	linkListening = "listening" // it has said that it will not answer
	linkGone      = "gone"      // the roster does not name it any more
)

// linkWord is the state of the link to a peer now.
func linkWord(p *peer) string {
	switch lines := p.bearer.lines; {
	case p.Gone:
		return linkGone
	case lines.Dead(p.Peer):
		return linkSilent
	case lines.Listening(p.Peer):
		return linkListening
	case p.LastHeard.IsZero():
		return linkUnknown
	}
	return linkUp
}

// look takes the state of the link now, and says in the log when it has gone down: that it is back is said where it is heard.
func (l *linkState) look(g *Gateway, now time.Time, p *peer) {
	word := linkWord(p)
	if word == l.word {
		return
	}
	if word == linkSilent {
		attrs := []any{"peer", p.Name, "waiting", p.Box.Waiting(0, 1)}
		if p.LastHeard.IsZero() {
			g.Note("warn", "the link to a peer is down: it was not heard in this run", attrs...)
		} else {
			g.Note("warn", "the link to a peer is down: it does not answer", append(attrs, "last_heard", p.LastHeard.UTC().Round(time.Second))...)
		}
	}
	l.word, l.since = word, now.UTC().Round(0)
}
