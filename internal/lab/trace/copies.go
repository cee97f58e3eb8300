package trace

import (
	"crypto/sha256"

	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
)

// maxCopied is how many datagrams of a way are remembered. A gateway repeats the last one with a message; datagrams without messages go
// between.
const maxCopied = 8

// opened is a short datagram that may come again unchanged, on air that costs nothing.
type opened struct {
	sum [sha256.Size]byte
	at  int64 // as segment.at
	d   *direction
	seal.OpenInfo
}

// copies are the last datagrams of a way.
type copies struct {
	last [maxCopied]opened
	next int // place in last
}

// remember keeps an opened datagram.
func (c *copies) remember(at int64, data []byte, d *direction, info seal.OpenInfo) {
	c.last[c.next] = opened{sha256.Sum256(data), at, d, info}
	c.next = (c.next + 1) % maxCopied
}

// find finds the datagram of which data is the second copy. A copy that comes before a gateway would repeat is a second capture of the
// same datagram.
func (c *copies) find(at int64, data []byte) *opened {
	sum := sha256.Sum256(data)
	for i := range c.last {
		if o := &c.last[i]; o.d != nil && o.sum == sum && at-o.at >= profile.LeastCopyAfter.Nanoseconds() {
			return o
		}
	}
	return nil
}

// secondCopy takes in the second copy of a datagram: its content is repair.
func (l *linkAnalyser) secondCopy(s *tcpSegment, o *opened) {
	l.r.Opened++
	o.d.at = s.at - l.a.start
	l.around(o.d, s, o.Long)
	content := len(s.data) - seal.Overhead(o.Long)
	o.d.charge("repair", content)
	l.layer(layerAgain, content)
}

// around charges the headers and the seal around the content of a datagram.
func (l *linkAnalyser) around(d *direction, s *tcpSegment, long bool) {
	l.outside(s.ip, len(s.data), long)
	d.charge("header", s.ip-len(s.data)+seal.OverheadShort)
	if long {
		d.charge("key", seal.OverheadLong-seal.OverheadShort)
	}
}
