package unicast

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// A line is the mail.Link to its peer, for all carriers of the bearer.

// Dead says that the peer does not answer.
func (l *peerLink) Dead() bool { return l.sender.Dead() }

// Listening says that the peer has announced its silence.
func (l *peerLink) Listening() bool { return l.sender.IsListening() }

// Heard notes an authentic datagram of the peer.
func (l *peerLink) Heard(now time.Time) { l.sender.Heard(now) }

// Restarted notes the first datagram of a start of the peer. That datagram had all acknowledgements that the peer owed.
func (l *peerLink) Restarted() { l.sender.ResendAll() }

// Ask has the peer asked at once which messages have arrived.
func (l *peerLink) Ask() { l.sender.Ask() }

// Doubt asks the peer at once whether it is there.
func (l *peerLink) Doubt() { l.sender.Doubt() }

// Late says that this machine is late by so much.
func (l *peerLink) Late(now time.Time, by time.Duration) {
	l.late = now
	l.sender.Late(now, by)
	air, _ := l.Air()
	air.Gauge.Idle()
}

// Together says that the peer is greeted at once with all others.
func (l *peerLink) Together() bool { return l.of.Greeting.On() }

// Greeting takes a greeting of the peer to all.
func (l *peerLink) Greeting(now time.Time, f frame.Greeting) { l.of.Greeting.heard(now, l.Peer, f) }

// Greet sends a HELLO at once to an address that is not believed to be the peer's, and nothing else.
func (l *peerLink) Greet(now time.Time, to netip.AddrPort, hello frame.Hello) {
	body := frame.Append(nil, hello, true)
	data, ok := l.of.Services.Seal(l.ID, true, body)
	if !ok {
		return
	}
	l.Ledger.Head(mail.Sent, true)
	l.Ledger.Add(mail.Sent, mail.Key, len(body))
	l.Counts.DatagramsSent++
	air, rate := l.Air()
	air.Sent(now, l.of.Profile, len(data), rate)
	l.of.Services.Send(to, data)
}

// Readdress takes an address that the operator has written anew.
func (l *peerLink) Readdress(addr netip.AddrPort) {
	if l.Write(addr) {
		l.of.Services.Note("info", "the configured address of a peer has changed; the gateway uses it instead of the learned one", "peer", l.Name, "address", addr)
		l.RecordPaths()
	}
}

// Record makes the numbers durable; due whenever one of them has changed.
func (l *peerLink) Record() { l.of.Services.Record(bucketPeer, peerKey(l.ID), l.appendTo(nil)) }

// RecordPaths makes the addresses durable.
func (l *peerLink) RecordPaths() {
	l.of.Services.Record(bucketPath, peerKey(l.ID), l.Paths.Append(nil))
}

// Air is the transmitter that reaches the peer, and its rate in bits per second.
func (l *peerLink) Air() (*mail.Air, int) {
	rate, air := l.of.Profile.Sending(l.of.Shore).RateBps, l.of.Air
	if l.of.Shore {
		air = &l.air
	}
	if bps := *l.of.ModemBps; bps > 0 {
		return air, bps
	}
	return air, air.Gauge.Pace(rate)
}

// Progress is how many octets of a long message that goes in segments are at the peer, and how many it has as coded.
func (l *peerLink) Progress(e *mail.Entry) (there, all int) {
	if e.At.Number == 0 || e.At.Queue != frame.Bulk {
		return 0, 0
	}
	return l.cut.Progress(e.At.Number)
}
