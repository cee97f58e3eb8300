package server

import (
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/site"
)

// session is a client of a user that is logged in, or whose connection broke a while ago (XEP-0198).
type session struct {
	conn       site.ConnID // 0: broken
	user       *account
	seed       string
	resource   string          // "": none is bound yet
	there      *stanza.Element // its presence; nil: it is not available
	priority   int
	carbons    bool // XEP-0280
	interested bool // in the roster
	directed   map[string]bool
	// Of XEP-0198.
	token    string // "": not enabled
	in       uint32 // stanzas of the client that were handled
	kept     uint32 // the value of in that the journal has
	out      uint32 // stanzas that were sent
	queue    []sent // not acknowledged, the oldest first
	octets   int    // of the queue
	asked    bool   // the client owes an acknowledgement
	restored bool   // from an earlier run: the stanzas that were sent are not known
	until    time.Time
}

// sent is a stanza that the client has not acknowledged.
type sent struct {
	xml    []byte
	letter *letter // nil: the stanza is useless after the end of the session
}

func (s *Server) full(c *session) string { return s.bare(c.user) + "/" + c.resource }

// unread takes in that a stanza broke a bound.
func (s *Server) unread(c *session, ev Said) {
	s.trouble.Count("refused " + string(ev.Fault.Reason))
	e := ev.Element.In(stanza.Client, ns)
	if e.Name == "message" || e.Name == "iq" && e.Get("type") != "result" && e.Get("type") != "error" {
		s.write(c, stanza.Refusal(&e, "policy-violation", ev.Fault.Text), nil)
	}
	s.handled(c, false)
}

// said takes a stanza of a client.
func (s *Server) said(c *session, e stanza.Element) {
	e = e.In(stanza.Client, ns)
	switch {
	case e.Space == nsSM:
		s.manage(c, &e)
	case e.Space == nsCSI:
	case e.Space != ns || e.Name != "message" && e.Name != "presence" && e.Name != "iq":
		s.expel(c, "unsupported-stanza-type", "")
	case c.resource == "":
		s.bind(c, &e)
	default:
		if from := e.Get("from"); from != "" {
			local, domain, resource, ok := stanza.CutAddress(from)
			if !ok || local != c.user.name || domain != s.cfg.Domain || resource != "" && resource != c.resource {
				s.trouble.Count("refused forged")
				s.expel(c, "invalid-from", "")
				return
			}
		}
		s.from(c, e.Set("from", s.full(c)))
		s.handled(c, e.Name == "message")
	}
}

// handled counts a stanza of a client. A stanza with a durable effect also counts in the next run.
func (s *Server) handled(c *session, durable bool) {
	if c.token == "" {
		return
	}
	if c.in++; durable {
		s.keepCount(c)
	}
}

func (s *Server) keepCount(c *session) {
	if lasts(s, c) && c.kept != c.in {
		c.kept = c.in
		s.remember(keyCount+c.token, []byte(strconv.FormatUint(uint64(c.in), 10)))
	}
}

// from takes a stanza of a client that is bound.
func (s *Server) from(c *session, e stanza.Element) {
	to := e.Get("to")
	switch {
	case e.Name == "presence":
		s.presenceOf(c, e, to)
		return
	case to == "":
		to = s.bare(c.user)
		e = e.Set("to", to)
	}
	if e.Name == "iq" {
		if kind := e.Get("type"); e.Get("id") == "" || kind != "get" && kind != "set" && kind != "result" && kind != "error" {
			s.write(c, stanza.Refusal(&e, "bad-request", ""), nil)
			return
		}
		if to == s.bare(c.user) || to == s.cfg.Domain {
			s.own(c, &e)
			return
		}
	}
	if e.Name == "message" {
		s.sentBy(c, &e)
	}
	s.route(e, c)
}

// bind gives a client its resource (RFC 6120, 7).
func (s *Server) bind(c *session, e *stanza.Element) {
	asks := e.Kid(nsBind, "bind")
	if e.Name != "iq" || e.Get("type") != "set" || asks == nil {
		s.expel(c, "not-authorized", "bind a resource first")
		return
	}
	name := asks.Kid(nsBind, "resource").Inside()
	resource, ok := stanza.Resource(name)
	if name == "" || !ok || len(resource) > 256 {
		resource = c.seed[:12]
	}
	if other := c.user.session(resource); other != nil {
		s.expel(other, "conflict", "")
	}
	if len(c.user.sessions) >= mostSessions {
		s.order(c.conn, stanza.New(ns, "iq", "id", e.Get("id"), "type", "error").With(stanza.Failure("resource-constraint", "")))
		return
	}
	c.resource, c.directed = resource, map[string]bool{}
	c.user.sessions = append(c.user.sessions, c)
	s.order(c.conn, stanza.New(ns, "iq", "id", e.Get("id"), "type", "result").With(stanza.New(nsBind, "bind").With(stanza.New(nsBind, "jid").Says(s.full(c)))))
}

// manage takes an element of stream management (XEP-0198).
func (s *Server) manage(c *session, e *stanza.Element) {
	switch {
	case e.Name == "resume" && c.resource == "":
		s.resume(c, e)
	case e.Name == "enable" && c.resource != "" && c.token == "":
		c.token = c.seed[12:]
		s.tokens[c.token] = c
		s.keep(c)
		s.order(c.conn, stanza.New(nsSM, "enabled", "id", c.token, "resume", "true", "max", defaultResume))
	case e.Name == "enable" || e.Name == "resume":
		s.order(c.conn, stanza.New(nsSM, "failed").With(stanza.New(stanza.Stanzas, "unexpected-request")))
	case e.Name == "r" && c.token != "":
		s.keepCount(c) // the client forgets these stanzas, so they must count in the next run
		s.order(c.conn, stanza.New(nsSM, "a", "h", count(c.in)))
	case e.Name == "a" && c.token != "":
		c.asked = false
		if h, err := strconv.ParseUint(e.Get("h"), 10, 32); err != nil {
			s.expel(c, "bad-format", "")
		} else if !s.acknowledged(c, uint32(h)) {
			s.trouble.Count("refused acknowledgement")
			s.expel(c, "undefined-condition", "", stanza.New(nsSM, "handled-count-too-high", "h", e.Get("h"), "send-count", count(c.out)))
		}
	default:
		s.expel(c, "unsupported-stanza-type", "")
	}
}

func count(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// acknowledged takes in how many stanzas a client has received; false: so many were never sent.
func (s *Server) acknowledged(c *session, h uint32) bool {
	first := c.out - uint32(len(c.queue)) // acknowledged so far
	n := h - first
	if n > uint32(len(c.queue)) {
		return false
	}
	for _, q := range c.queue[:n] {
		if c.octets -= len(q.xml); q.letter != nil {
			s.read(c, q.letter)
		}
	}
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	} else {
		s.ask = append(s.ask, c)
	}
	return true
}

// resume gives a client the session that it had before its connection broke.
func (s *Server) resume(c *session, e *stanza.Element) {
	old := s.tokens[e.Get("previd")]
	h, err := strconv.ParseUint(e.Get("h"), 10, 32)
	if old == nil || old.user != c.user || err != nil {
		s.trouble.Count("resume_failed")
		s.order(c.conn, stanza.New(nsSM, "failed").With(stanza.New(stanza.Stanzas, "item-not-found")))
		return
	}
	again := old.restored
	if again {
		s.rebuild(old, uint32(h))
	} else if !s.acknowledged(old, uint32(h)) {
		s.trouble.Count("refused acknowledgement")
		s.expel(c, "undefined-condition", "", stanza.New(nsSM, "handled-count-too-high", "h", e.Get("h"), "send-count", count(old.out)))
		return
	}
	if old.conn != 0 { // the client has noticed before the server that its connection broke
		delete(s.conns, old.conn)
		s.hang(old.conn, "conflict", "")
	}
	s.trouble.Count("resumed")
	old.conn, old.asked = c.conn, false
	s.conns[c.conn] = old
	s.keepCount(old)
	s.order(old.conn, stanza.New(nsSM, "resumed", "previd", old.token, "h", count(old.in)))
	for _, q := range old.queue {
		s.out.Orders = append(s.out.Orders, Send{Conn: old.conn, XML: q.xml})
	}
	if s.ask = append(s.ask, old); again && old.there != nil { // the journal has no presences of others
		s.greet(old)
	}
}

// write sends a client a stanza. A letter is kept until the client has acknowledged it.
func (s *Server) write(c *session, e stanza.Element, l *letter) {
	if c.restored { // the stanza's letter waits in the journal
		return
	}
	xml := e.Append(make([]byte, 0, usualStanza), ns)
	if c.token != "" {
		c.out++
		c.queue = append(c.queue, sent{xml, l})
		if c.octets += len(xml); len(c.queue) > mostQueued || c.octets > mostQueuedB {
			s.trouble.Count("refused queue")
			s.expel(c, "policy-violation", "too many stanzas wait for an acknowledgement")
			return
		}
		s.ask = append(s.ask, c)
	}
	if c.conn != 0 {
		s.out.Orders = append(s.out.Orders, Send{Conn: c.conn, XML: xml})
	}
}

// expel ends a session and its connection for a reason.
func (s *Server) expel(c *session, condition, text string, more ...stanza.Element) {
	if c.conn != 0 {
		s.hang(c.conn, condition, text, more...)
		delete(s.conns, c.conn)
		c.conn = 0
	}
	s.end(c)
}

// end ends a session: others see it as unavailable, and messages that its client has not read wait for the user.
func (s *Server) end(c *session) {
	if c.resource == "" {
		return
	}
	c.user.sessions = slices.DeleteFunc(c.user.sessions, func(o *session) bool { return o == c })
	if c.token != "" {
		delete(s.tokens, c.token)
		s.remember(keySession+c.token, nil)
		s.remember(keyCount+c.token, nil)
	}
	if len(c.directed) > 0 || c.there != nil {
		s.unavailable(c, stanza.New(ns, "presence", "type", "unavailable", "from", s.full(c)))
	}
	for _, l := range slices.Clone(c.user.letters) {
		s.unreadBy(c, l)
	}
	c.queue = nil
}

// lasts says whether the journal is to have a session: it has a token, and a stanza of its own has not just ended it.
func lasts(s *Server, c *session) bool { return s.tokens[c.token] == c }

// keep saves a session, so that its client finds it after a restart of the gateway.
func (s *Server) keep(c *session) {
	if !lasts(s, c) {
		return
	}
	e := stanza.New(ns, "s", "user", c.user.name, "resource", c.resource, "carbons", flag(c.carbons), "interested", flag(c.interested))
	if c.there != nil {
		e = e.With(*c.there)
	}
	for _, to := range sortedKeys(c.directed) {
		e = e.With(stanza.New(ns, "to").Says(to))
	}
	s.remember(keySession+c.token, e.Append(nil, ns))
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}
