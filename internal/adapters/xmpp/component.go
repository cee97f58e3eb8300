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
	// waiting is to be handed to the server, given was written and not confirmed, the oldest first; asked of given were
	// written before the ping that the server owes an answer to since askedAt.
	waiting, given []held
	asked          int
	askedAt        time.Time
	pings          int
	promised       bool      // the gateway answers for one of given behind those asked of,
	since          time.Time // and so long ago it may be that the first of these was written
}

// users says whether it is none of the services.
func (c *component) users() bool { return !c.rooms && !c.nodes && !c.upload }

// held is a stanza that is not lost when the server stops.
type held struct {
	xml    []byte
	token  uint64    // of the far message that it comes of; 0: of none
	site   uint16    // of that message
	number uint16    // of that message and 1: its site is told when it expires; 0: it is not told
	until  time.Time // zero: it never expires
	soon   bool      // Send.Soon
	to     string    // Send.To
	memory string    // key of a memory that is forgotten when it was handed over; "": none
}

// mostWaiting is how many stanzas wait for one server.
const mostWaiting = 20_000

// askAfter is how long what was written and nobody answers for waits for more, so that one ping is for all.
const askAfter = 200 * time.Millisecond

// mostUnasked is how much waits so.
const mostUnasked = 1000

// pinger is the lane of pings (Send.To).
const pinger = "ping"

// confirmIn is how long a server has to answer a ping. One that never does has read what was written, as far as anybody can know.
const confirmIn = 30 * time.Second

func (c *component) opened(now time.Time, ev Opened) {
	c.closed()
	c.conn = ev.Conn
}

// closed takes back what was not confirmed: it is written again on the next connection.
func (c *component) closed() {
	c.waiting = append(c.given, c.waiting...)
	c.conn, c.given, c.asked, c.promised = 0, nil, 0, false
}

// write has a stanza written if the server is connected: one that is of no use later.
func (c *component) write(e stanza.Element) {
	if c.own != nil {
		c.toOwn = append(c.toOwn, e)
	} else if c.conn != 0 {
		c.out.Orders = append(c.out.Orders, Send{Conn: c.conn, XML: e.Append(nil, stanza.Component)})
	}
}

// hold has a stanza written as soon as the server is connected, again until the server has it; false: there is no room.
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

// turn writes what waits and asks whether the server has it. It answers what has expired.
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

// answered takes the server's answer to a question of ours: whatever it says, the server has read what was written before.
func (c *component) answered(id string) {
	if strings.HasPrefix(id, pingPrefix) && id == c.ping() && c.asked > 0 {
		c.confirmed()
	}
}

// confirmed ends what the server has.
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
