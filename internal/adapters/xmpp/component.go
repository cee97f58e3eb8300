package xmpp

import (
	"fmt"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// component is the gateway as the server of this LAN sees it under one domain.
type component struct {
	*step
	site   *Site
	domain string
	rooms  bool        // it is the room service of the site, not its users
	nodes  bool        // it is the publish-subscribe service of the site
	upload bool        // it is the upload service of this site
	conn   site.ConnID // 0: the server is not connected
	// waiting are stanzas to be written to the server; given were written and are not confirmed, the oldest first. The first
	// asked of given were written before a ping, to which the server has owed an answer since askedAt.
	waiting, given []held
	asked          int
	askedAt        time.Time
	pings          int
	promised       bool      // given has a stanza after the first asked that the gateway must know to have arrived
	since          time.Time // no stanza of given after the first asked was written before this
}

// users says whether c stands for users, and not for a service.
func (c *component) users() bool { return !c.rooms && !c.nodes && !c.upload }

// held is a stanza that is not lost when the server stops.
type held struct {
	xml    []byte
	token  uint64    // of the far message from which it was made; 0: none
	site   uint16    // of that message
	number uint16    // number of that message plus 1: its site is told when it expires; 0: it is not told
	until  time.Time // zero: it never expires
	soon   bool      // Send.Soon
	to     string    // Send.To
	memory string    // key of a memory that is deleted when the stanza was delivered; "": none
}

// mostWaiting is how many stanzas wait for one server.
const mostWaiting = 20_000

// askAfter is how long written stanzas wait for more before a ping, so that one ping confirms all; promised stanzas do not wait.
const askAfter = 200 * time.Millisecond

// mostUnasked is how many stanzas wait for a ping at most.
const mostUnasked = 1000

// pinger is the lane of pings (Send.To).
const pinger = "ping"

// confirmIn is how long a server has to answer a ping. After that its stanzas count as read, because nobody can know more.
const confirmIn = 30 * time.Second

func (c *component) opened(now time.Time, ev Opened) {
	c.closed()
	c.conn = ev.Conn
}

// closed takes back stanzas that were not confirmed: they are written again on the next connection.
func (c *component) closed() {
	c.waiting = append(c.given, c.waiting...)
	c.conn, c.given, c.asked, c.promised = 0, nil, 0, false
}

// write writes a stanza that is useless later: it is dropped if the server is not connected.
func (c *component) write(e stanza.Element) {
	if c.own != nil {
		c.toOwn = append(c.toOwn, e)
	} else if c.conn != 0 {
		c.out.Orders = append(c.out.Orders, Send{Conn: c.conn, XML: e.Append(nil, stanza.Component)})
	}
}

// hold writes a stanza as soon as the server is connected, and again until the server has it; false: too many wait.
func (c *component) hold(e stanza.Element, h held) bool {
	if c.own != nil {
		c.write(e)
		c.done(h)
		return true
	}
	if len(c.waiting)+len(c.given) >= mostWaiting {
		return false
	}
	if h.xml == nil {
		h.xml = e.Append(make([]byte, 0, 384), stanza.Component)
	}
	c.waiting = append(c.waiting, h)
	return true
}

// turn writes waiting stanzas and asks whether the server has them. It returns the stanzas that have expired.
func (c *component) turn(now time.Time) (expired []held) {
	kept := c.waiting[:0]
	for _, h := range c.waiting {
		switch {
		case !h.until.IsZero() && !now.Before(h.until):
			expired = append(expired, h)
		case c.conn != 0:
			c.out.Orders = append(c.out.Orders, Send{c.conn, h.xml, h.soon, h.to})
			if len(c.given) == c.asked {
				c.since = now
			}
			c.given = append(c.given, h)
			c.promised = c.promised || h.token != 0 || h.memory != ""
		default:
			kept = append(kept, h)
		}
	}
	clear(c.waiting[len(kept):])
	c.waiting = kept
	if c.asked > 0 && !now.Before(c.askedAt.Add(confirmIn)) {
		c.trouble.Count("unconfirmed")
		c.confirmed()
	}
	if c.conn != 0 && c.asked == 0 && len(c.given) > 0 && (c.promised || len(c.given) >= mostUnasked || !now.Before(c.since.Add(askAfter))) {
		c.pings++
		c.asked, c.askedAt, c.promised = len(c.given), now, false
		e := stanza.New(stanza.Component, "iq", "type", "get", "id", c.ping(), "from", c.domain, "to", c.cfg.Domain).With(stanza.New(nsPing, "ping"))
		c.out.Orders = append(c.out.Orders, Send{Conn: c.conn, XML: e.Append(nil, stanza.Component), To: pinger})
	}
	return expired
}

func (c *component) due() (at time.Time) {
	if c.asked > 0 {
		at = c.askedAt.Add(confirmIn)
	} else if c.conn != 0 && len(c.given) > 0 {
		at = c.since.Add(askAfter)
	}
	for _, h := range c.waiting {
		at = due.Earliest(at, h.until)
	}
	return at
}

const pingPrefix = "aldis-ping-"

func (c *component) ping() string { return fmt.Sprint(pingPrefix, c.pings) }

// answered takes the server's answer to a question of ours: whatever it says, the server has read the stanzas that were written before.
func (c *component) answered(id string) {
	if strings.HasPrefix(id, pingPrefix) && id == c.ping() && c.asked > 0 {
		c.confirmed()
	}
}

// confirmed ends the stanzas that the server has.
func (c *component) confirmed() {
	for _, h := range c.given[:c.asked] {
		c.done(h)
	}
	c.given = append([]held(nil), c.given[c.asked:]...)
	c.asked = 0
}

// done ends a stanza that the server has.
func (c *component) done(h held) {
	if h.token != 0 {
		c.out.Done = append(c.out.Done, h.token)
	}
	if h.memory != "" {
		c.remember(h.memory, nil)
	}
}
