package server

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
)

// letter is a message that nobody has read yet: the user is away, or the clients that were given it have not acknowledged it.
type letter struct {
	number uint64
	at     time.Time
	e      stanza.Element
	octets int
	given  map[string]uint32 // by token of the sessions that were given it: its place among the stanzas sent to them
}

// notSent is the place of a letter for a session of an earlier run, whose client is not back yet.
const notSent = 0

// next is the place of the next stanza among the stanzas sent to a client.
func (c *session) next() uint32 {
	if c.restored {
		return notSent
	}
	return c.out + 1
}

// keeps says whether a message is to be kept for later, too: no hint forbids it, and it is more than a notice of typing.
func keeps(e *stanza.Element) bool {
	kind, of := e.Get("type"), false
	for i := range e.Kids {
		switch k := &e.Kids[i]; {
		case k.Space == nsHints && (k.Name == "no-store" || k.Name == "no-permanent-store"):
			return false
		case k.Name != "" && k.Space != nsStates && k.Space != nsHints && k.Name != "thread" && k.Space != NSID:
			of = true
		}
	}
	return of && (kind == "" || kind == "normal" || kind == "chat")
}

// waits says whether a message waits for a user who is away: also the error of a message that the user sent from a client that is gone.
func waits(e *stanza.Element) bool { return e.Get("type") == "error" || keeps(e) }

// message takes a message to a user here. by is the client of this LAN that has sent it; nil: it comes from elsewhere.
func (s *Server) message(a *account, resource string, e stanza.Element, by *session) {
	kind := e.Get("type")
	if c := a.session(resource); c != nil && resource != "" {
		s.hand(a, e, []*session{c}, kind != "headline", by)
		return
	}
	switch {
	case kind == "error" && by != nil:
		return
	case kind == "groupchat":
		s.bounce(e, "service-unavailable")
		return
	}
	var to []*session
	for _, c := range a.sessions {
		switch best := 0; {
		case c.there == nil || c.priority < 0:
		case kind == "headline":
			to = append(to, c)
		default:
			if len(to) > 0 {
				best = to[0].priority
			}
			if len(to) == 0 || c.priority > best {
				to = []*session{c}
			} else if c.priority == best {
				to = append(to, c)
			}
		}
	}
	if len(to) == 0 && !waits(&e) {
		return
	}
	s.hand(a, e, to, waits(&e), by)
}

// hand gives a message to clients, to the user's archive and to the user's other clients. A letter waits if the message must
// not be lost and no client is sure to get it.
func (s *Server) hand(a *account, e stanza.Element, to []*session, dear bool, by *session) {
	var l *letter
	safe := dear
	for _, c := range to {
		safe = safe && c.token != ""
	}
	octets := 0
	if safe {
		octets = len(e.Append(nil, ns)) + mostOfID
	}
	if safe && (len(a.letters) >= mostLetters || a.octets+octets > mostOctets || s.octets+octets > mostStored) {
		s.trouble.Count("refused letters")
		s.bounce(e, "resource-constraint")
		return
	}
	s.archive(a, &e, e.Get("from"), by)
	defer s.copies(a, &e, "received", to...)
	if safe {
		s.last++
		l = &letter{number: s.last, at: s.now, e: e, octets: octets, given: map[string]uint32{}}
		a.letters = append(a.letters, l)
		a.octets += octets
		s.octets += octets
		for _, c := range to {
			l.given[c.token] = c.next()
		}
		s.keepLetter(a, l)
	}
	for _, c := range slices.Clone(to) {
		s.write(c, e, l)
	}
}

func (s *Server) keepLetter(a *account, l *letter) {
	e := stanza.New(ns, "l", "at", strconv.FormatInt(l.at.UnixMilli(), 10))
	for _, token := range slices.Sorted(maps.Keys(l.given)) {
		e = e.With(stanza.New(ns, "to", "s", token, "n", count(l.given[token])))
	}
	e = e.With(l.e)
	s.remember(keyLetter+a.name+"\x00"+hexNumber(l.number), e.Append(nil, ns))
}

// burn forgets a letter.
func (s *Server) burn(a *account, l *letter) {
	a.letters = slices.DeleteFunc(a.letters, func(o *letter) bool { return o == l })
	a.octets -= l.octets
	s.octets -= l.octets
	s.remember(keyLetter+a.name+"\x00"+hexNumber(l.number), nil)
}

// read takes in that a client has received a letter.
func (s *Server) read(c *session, l *letter) {
	if slices.Contains(c.user.letters, l) {
		s.burn(c.user, l)
	}
}

// unreadBy takes in that a client that was given a letter will not read it.
func (s *Server) unreadBy(c *session, l *letter) {
	if _, given := l.given[c.token]; !given {
		return
	}
	delete(l.given, c.token)
	switch {
	case len(l.given) > 0:
	case !waits(&l.e):
		s.burn(c.user, l)
		return
	default:
		for _, o := range c.user.sessions {
			if o.there != nil && o.priority >= 0 { // another client of the user takes it
				s.letter(o, l)
				return
			}
		}
	}
	s.keepLetter(c.user, l)
}

// letter gives a client a letter that has waited.
func (s *Server) letter(c *session, l *letter) {
	e := l.e
	if e.Kid(nsDelay, "delay") == nil {
		e = e.With(stanza.New(nsDelay, "delay", "from", s.cfg.Domain, "stamp", l.at.UTC().Format(stampForm)))
	}
	if c.token == "" {
		s.burn(c.user, l)
		s.write(c, e, nil)
		return
	}
	l.given[c.token] = c.next()
	s.keepLetter(c.user, l)
	s.write(c, e, l)
}

// letters gives a client the letters that wait for the user: those that no client has, or only clients whose connection broke.
func (s *Server) letters(c *session) {
	for _, l := range slices.Clone(c.user.letters) {
		held := false
		for token := range l.given {
			o := s.tokens[token]
			held = held || o == c || o != nil && o.conn != 0
		}
		if !held && waits(&l.e) && c.there != nil {
			s.letter(c, l)
		}
	}
}

// rebuild makes the queue of a session of an earlier run, whose client has received h stanzas.
func (s *Server) rebuild(c *session, h uint32) {
	c.restored, c.out = false, h
	for _, l := range slices.Clone(c.user.letters) {
		n, given := l.given[c.token]
		switch {
		case !given:
		case n != notSent && int32(n-h) <= 0:
			s.burn(c.user, l)
		default:
			xml := l.e.Append(nil, ns)
			c.out++
			c.octets += len(xml)
			c.queue = append(c.queue, sent{xml, l})
			l.given[c.token] = c.out
			s.keepLetter(c.user, l)
		}
	}
}

// copies gives the other clients of a user a copy of a message that was received or sent (XEP-0280).
func (s *Server) copies(a *account, e *stanza.Element, how string, but ...*session) {
	if kind := e.Get("type"); kind != "chat" && (kind != "" && kind != "normal" || e.Kid(ns, "body") == nil) || e.Kid(nsHints, "no-copy") != nil || e.Kid(nsCarbons, "private") != nil {
		return
	}
	for _, c := range slices.Clone(a.sessions) {
		if c.carbons && !slices.Contains(but, c) {
			forwarded := stanza.New(nsForward, "forwarded").With(e.In(ns, stanza.Client))
			s.write(c, stanza.New(ns, "message", "from", s.bare(a), "to", s.full(c), "type", e.Get("type")).
				With(stanza.New(nsCarbons, how).With(forwarded)), nil)
		}
	}
}

// sentBy keeps a message that a client has sent, and shows it to the user's other clients.
func (s *Server) sentBy(c *session, e *stanza.Element) {
	if !keeps(e) {
		return
	}
	s.past.Keep(c.user.name, Line{At: s.now, With: bareOf(e.Get("to"))}, e, s.remember)
	s.copies(c.user, e, "sent", c)
}

// archive keeps a received message, and gives it its number in the archive (XEP-0359).
func (s *Server) archive(a *account, e *stanza.Element, from string, by *session) {
	kids := e.Kids
	e.Kids = nil
	for _, k := range kids {
		if k.Space != NSID || k.Name != "stanza-id" || k.Get("by") != s.bare(a) {
			e.Kids = append(e.Kids, k)
		}
	}
	if !keeps(e) || by != nil && by.user == a {
		return
	}
	id := s.past.Keep(a.name, Line{At: s.now, With: bareOf(from)}, e, s.remember)
	*e = e.With(stanza.New(NSID, "stanza-id", "by", s.bare(a), "id", id))
}
