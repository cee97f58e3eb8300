package gateway

import (
	"time"

	"aldis/internal/site"
)

// linkState is the state of the link to a peer as operators see it, and since when.
type linkState struct {
	word  string
	since time.Time
	known time.Time // of the first look
	doubt time.Time // since when it does not answer, while this is not reported yet; zero: it answers, or the report was made
}

// doubtFor is how long a link may fail to answer, beyond its bound, before this is reported. A busy machine at the other end may answer
// so late, and the first time nobody can know that. Datagrams on the air do not wait for it.
const doubtFor = 3 * time.Second

// The words for a link.
const (
	linkUnknown   = "unknown"   // the peer was never heard in this run
	linkUnmet     = "unmet"     // nor before, and it was not asked: neither site has anything for the other
	linkUp        = "up"        // it answers
	linkSilent    = "silent"    // it does not answer
	linkListening = "listening" // it has said that it will not answer
	linkGone      = "gone"      // the roster does not name it any more
)

// linkWord is the state of the link to a peer now.
func linkWord(p *leg) string {
	switch {
	case p.Gone:
		return linkGone
	case p.Link.Dead(), p.Off:
		return linkSilent
	case p.Link.Listening():
		return linkListening
	case p.Handshake.Unmet:
		return linkUnmet
	case p.LastHeard.IsZero():
		return linkUnknown
	}
	return linkUp
}

// shown is the state of the link for the operator: a link that may only be late keeps its old state.
func (l *linkState) shown(p *leg) string {
	switch {
	case l.doubt.IsZero():
		return linkWord(p)
	case l.word == "":
		return linkUnknown
	}
	return l.word
}

// due is when a doubt becomes a report; zero: there is no doubt.
func (l *linkState) due() time.Time {
	if l.doubt.IsZero() {
		return l.doubt
	}
	return l.doubt.Add(doubtFor)
}

// check takes the state of the link now, and reports a link that has gone down. Its return is reported where the peer is heard.
func (l *linkState) check(now time.Time, p *leg) (notes site.Notes) {
	word := linkWord(p)
	if l.known.IsZero() {
		l.known = now.UTC().Round(0)
	}
	if word != linkSilent || l.word == linkSilent {
		l.doubt = time.Time{}
	} else if l.doubt.IsZero() {
		l.doubt = now
	}
	if word == l.word || !l.doubt.IsZero() && now.Before(l.due()) {
		return nil
	}
	if word == linkSilent {
		news, _, _ := p.Box.News()
		waiting := p.Box.Waiting(0, 1) - news
		if p.bearer.modem.Down {
			notes.Note("warn", "the link to a peer is down: its modem says so", append(p.named(), "waiting", waiting)...)
		} else if p.Off {
			notes.Note("warn", "the link to a peer is down: it has no connection", append(p.named(), "waiting", waiting)...)
		} else if p.LastHeard.IsZero() {
			notes.Note("warn", "the link to a peer is down: it was not heard in this run", append(p.named(), "waiting", waiting)...)
		} else {
			notes.Note("warn", "the link to a peer is down: it does not answer",
				append(p.named(), "waiting", waiting, "last_heard", p.LastHeard.UTC().Round(time.Second))...)
		}
	}
	l.word, l.since, l.doubt = word, now.UTC().Round(0), time.Time{}
	return notes
}
