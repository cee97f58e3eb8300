package relay

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
)

// A line is the mail.Link to its node.

// Hop is the name of the gateway to which what is for a node goes now.
func (c *Carrier) Hop(id uint16) string {
	hop, _ := c.lines[id].hop()
	return c.Ways.Name(hop)
}

// Dead says that a node has not answered for long, though relays took what was for it.
func (l *line) Dead() bool { return l.tries >= silentAfter }

// Listening says nothing: custody waits for a node that is silent.
func (l *line) Listening() bool { return false }

// Heard notes that a node has said something that is provably its own.
func (l *line) Heard(now time.Time) {
	l.LastHeard, l.tries = now, 0
}

// Together says that nodes are greeted one by one.
func (l *line) Together() bool { return false }

// Air is no transmitter: those of other bearers carry capsules.
func (l *line) Air() (*mail.Air, int) { return &l.air, 0 }

// Progress is not known.
func (l *line) Progress(*mail.Entry) (there, all int) { return 0, 0 }

// RecordPaths keeps no address.
func (l *line) RecordPaths() {}

// Readdress takes none.
func (l *line) Readdress(netip.AddrPort) {}

// Restarted does not concern what relays carry; nor do HELLOs, which datagrams have.
func (l *line) Restarted() {}

// Late does not either.
func (l *line) Late(time.Time, time.Duration) {}

// Hello adds nothing.
func (l *line) Hello(*frame.Hello) {}

// Compare takes none.
func (l *line) Compare(time.Time, frame.Hello, uint32) {}

// Greeting takes none.
func (l *line) Greeting(time.Time, frame.Greeting) {}

// Greet sends none.
func (l *line) Greet(time.Time, netip.AddrPort, frame.Hello) {}

// Handover is the carrier as messages change their bearer.
type Handover struct{ C *Carrier }

// Adopt puts an entry of another bearer among those that wait.
func (h Handover) Adopt(_ time.Time, e *mail.Entry) bool {
	h.C.Store.Seat(e, frame.Direct, h.C.setFor(e.Message, []uint16{e.Peer.ID}).history)
	return true
}

// Room is no bound: what waits here can go elsewhere.
func (h Handover) Room() int { return never }

// Rest is all of a message: relays do not say how far it has come.
func (h Handover) Rest(*mail.Entry) ([]envelope.Moved, *envelope.Rest) { return nil, nil }

// Elsewhere empties a message under way: the node has it. Its number is waited for.
func (h Handover) Elsewhere(_ time.Time, e *mail.Entry) { h.C.Store.Void(e) }

// Used counts a number of the node as used.
func (h Handover) Used(p *mail.Peer, at mail.TransmissionID) (read bool) {
	l := h.C.lines[p.ID]
	number, n := uint16(at.Number>>32), uint32(at.Number)
	in := l.inflow(number)
	if in == nil || n > in.cumulative+mostEarly {
		return false
	}
	body, kept := in.early[n]
	if n <= in.cumulative || kept && len(body) == 0 {
		return true
	}
	l.keep(number, in, n, nil)
	l.read(h.C.Store.Lives.Now(), number, in)
	return false
}

// Beside says nothing: receipts come by themselves.
func (h Handover) Beside(*mail.Peer) []frame.Beside { return nil }

// Acked takes none.
func (h Handover) Acked(time.Time, *mail.Peer, frame.Beside) {}

// Whole joins nothing.
func (h Handover) Whole(*mail.Peer, mail.TransmissionID, *envelope.Rest) []byte { return nil }

// Ask does nothing: an ask of this bearer is a message, and goes when something waits.
func (l *line) Ask() {}

// Doubt does nothing either: receipts are awaited by the message.
func (l *line) Doubt() {}
