package unicast

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// A line is the mail.Link to its peer, for all carriers of the bearer.

// Dead says that the peer does not answer.
func (l *line) Dead() bool { return l.sender.Dead() }

// Listening says that the peer has announced its silence.
func (l *line) Listening() bool { return l.sender.IsListening() }

// Heard notes an authentic datagram of the peer.
func (l *line) Heard(now time.Time) { l.sender.Heard(now) }

// Restarted notes the first datagram of a start of the peer, which had the acknowledgements that it owed.
func (l *line) Restarted() { l.sender.Again() }

// Late says that this machine is late by so much.
func (l *line) Late(now time.Time, by time.Duration) {
	l.late = now
	l.sender.Late(now, by)
	air, _ := l.Air()
	air.Gauge.Idle()
}

// Together says that the peer is greeted at once with all others.
func (l *line) Together() bool { return l.of.Roll.On() }

// Greeting takes what the peer says to all.
func (l *line) Greeting(now time.Time, f frame.Greeting) { l.of.Roll.heard(now, l.Peer, f) }

// Greet sends a HELLO at once to an address that is not believed to be the peer's, and nothing else.
func (l *line) Greet(now time.Time, to netip.AddrPort, hello frame.Hello) {
	body := frame.Append(nil, hello, true)
	data, ok := l.of.Road.Seal(l.ID, true, body)
	if !ok {
		return
	}
	l.Ledger.Head(mail.Sent, true)
	l.Ledger.Add(mail.Sent, mail.Key, len(body))
	l.Counts.DatagramsSent++
	air, rate := l.Air()
	air.Took(now, l.of.Profile, len(data), rate)
	l.of.Road.Send(to, data)
}

// Readdress takes an address that the operator has written anew.
func (l *line) Readdress(addr netip.AddrPort) {
	if l.Write(addr) {
		l.of.Road.Note("info", "the configured address of a peer has changed; the gateway uses it instead of the learned one", "peer", l.Name, "address", addr)
		l.RecordPaths()
	}
}

// Record makes the numbers durable; due whenever one of them has changed.
func (l *line) Record() { l.of.Road.Record(bucketPeer, peerKey(l.ID), l.appendTo(nil)) }

// RecordPaths makes the addresses durable.
func (l *line) RecordPaths() { l.of.Road.Record(bucketPath, peerKey(l.ID), l.Paths.Append(nil)) }

// Air is the transmitter that reaches the peer, and its rate in bits per second.
func (l *line) Air() (*mail.Air, int) {
	rate, air := l.of.Profile.Sending(l.of.Shore).RateBps, l.of.Air
	if l.of.Shore {
		air = &l.air
	}
	return air, air.Gauge.Pace(rate)
}

// Progress is how many octets of a long message that goes in segments are at the peer, and how many it has as coded.
func (l *line) Progress(e *mail.Entry) (there, all int) {
	if e.At.Number == 0 || e.At.Lane != frame.Bulk {
		return 0, 0
	}
	return l.cut.Progress(e.At.Number)
}
