package relay

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
)

// A line is the mail.Link to its node.

// Hop is the gateway to which capsules for a node go now, 0: there is none, and how many gateways are on the way, the node included, by
// the node's last capsule.
func (c *Carrier) Hop(id uint16) (hop uint16, gateways int) {
	l := c.lines[id]
	hop, _ = l.hop()
	return hop, max(2, l.hops)
}

// Dead says that a node has not answered for long, though relays took capsules for it.
func (l *line) Dead() bool { return l.tries >= silentAfter }

// Heard notes that a node has said something that is provably its own.
func (l *line) Heard(now time.Time) { l.LastHeard, l.tries = now, 0 }

// Relays carry capsules and no datagrams. So a line has no transmitter and no address, nodes are greeted by capsules, each message waits for
// its own receipt, and one for a silent node waits in custody.

func (l *line) Listening() bool                              { return false }
func (l *line) Together() bool                               { return false }
func (l *line) Air() (*mail.Air, int)                        { return &l.air, 0 }
func (l *line) Progress(*mail.Entry) (there, all int)        { return 0, 0 }
func (l *line) RecordPaths()                                 {}
func (l *line) Readdress(netip.AddrPort)                     {}
func (l *line) Restarted()                                   {}
func (l *line) Late(time.Time, time.Duration)                {}
func (l *line) Hello(*frame.Hello)                           {}
func (l *line) Compare(time.Time, frame.Hello, uint32)       {}
func (l *line) Greeting(time.Time, frame.Greeting)           {}
func (l *line) Greet(time.Time, netip.AddrPort, frame.Hello) {}
func (l *line) Ask()                                         {}
func (l *line) Doubt()                                       {}

// Handover is the carrier's part when messages change their bearer.
type Handover struct {
	mail.Undivided
	C *Carrier
}

// Adopt puts an entry of another bearer among those that wait.
func (h Handover) Adopt(_ time.Time, e *mail.Entry) bool {
	h.C.Store.Seat(e, frame.Direct, h.C.setFor(e.Message, []uint16{e.Peer.ID}).history)
	return true
}

// Room sets no bound: messages that wait here can go by another bearer.
func (h Handover) Room() int { return never }

// Elsewhere empties a message under way, since the node has it from another bearer. The node still waits for its number.
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
