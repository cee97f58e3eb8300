package unicast

import (
	"net/netip"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
)

// question is the last question to a peer, a probe or a hello, and what its answer says of an address.
type question struct {
	asked   time.Time // zero: it has been answered
	to      netip.AddrPort
	hello   bool
	probe   uint8
	misses  int    // probes without a sign of the peer in a row
	told    bool   // the log knows that another address is tried
	since   uint64 // messages of the direct queue with this number or a higher one went to there alone
	there   netip.AddrPort
	journal bool // the journal has the addresses, and the one that the operator had written when they were learned
	changed bool // the operator has written another address since
}

// strangeAfter is how many probes a peer leaves without a sign before one of them goes in the long form with a hello: the
// peer may have lost its store, and then it cannot open the short form. After that each of strangeAgain goes so.
const (
	strangeAfter = 6
	strangeAgain = 20
)

// ask notes that a question goes now, and turns to another address when the one before had no answer. It says whether the
// question should introduce us anew.
func ask(now time.Time, l *peerLink, probe bool) (anew bool) {
	q := &l.question
	if q.hello && l.Handshake.KnowsUs {
		q.asked = time.Time{}
	}
	if hello := !probe && !l.Handshake.KnowsUs && due.Reached(now, l.Handshake.Due); probe || hello {
		heard := q.asked.IsZero() || !l.LastHeard.Before(q.asked)
		if heard {
			q.misses, q.told = 0, false
		} else if probe {
			q.misses++
		}
		missed := !q.asked.IsZero() && q.to == l.Addr && now.Sub(q.asked) >= l.of.Timing.Prompt && (!heard || !l.Proven())
		if missed && l.Missed() && !q.told {
			q.told = true
			l.of.Services.Note("info", "a peer does not answer; the gateway tries its addresses in turn", "peer", l.Name, "tried", q.to, "next", l.Addr)
		}
		q.asked, q.to, q.hello = now, l.Addr, hello
		anew = q.misses == strangeAfter || q.misses > 0 && q.misses%strangeAgain == 0
	}
	if q.there != l.Addr {
		q.there, q.since = l.Addr, l.sender.Next(frame.Direct)
	}
	return anew
}

// answered notes that a datagram to an address has reached the peer.
func (l *peerLink) answered(now time.Time, at netip.AddrPort) {
	l.question.asked = time.Time{}
	if l.Answered(now, at) {
		l.RecordPaths()
	}
}

// readdressed makes the addresses durable with the one that the operator has written, and says when that one is new.
func readdressed(l *peerLink) {
	if l.question.changed {
		l.of.Services.Note("info", "the configured address of a peer has changed; the gateway uses it instead of the learned one", "peer", l.Name, "address", l.Addr)
	}
	if l.question.changed || !l.question.journal {
		l.RecordPaths()
	}
}
