package server

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
)

// KeyPrefix begins the keys of all memories; the second letter is the kind of memory. Values are elements as stanza.Append writes them.
const KeyPrefix = "S"

const (
	keyContact = KeyPrefix + "r" // user, 0, address of the contact: its item
	keyAsk     = KeyPrefix + "p" // user, 0, address: the request
	keyLetter  = KeyPrefix + "l" // user, 0, number: time, sessions that were given it, the message
	keyArchive = KeyPrefix + "a" // user, 0, number: time, the other side, the message
	keyPaper   = KeyPrefix + "d" // user, 0, namespace, blank, name: the element
	keySession = KeyPrefix + "s" // token: user, resource, presence, addresses to which it was shown
	keyCount   = KeyPrefix + "t" // token: stanzas that were handled, in decimal
)

var errMemory = errors.New("a memory of another format")

// Restore takes a memory of an earlier run, in the order of their keys. Memories of users who no longer exist are left out. The error
// is a *stanza.Fault if the text of one client cannot be read.
func (s *Server) Restore(key string, value []byte) error {
	if len(key) < 2 {
		return errMemory
	}
	kind, rest := key[:2], key[2:]
	if kind == keyCount {
		n, err := strconv.ParseUint(string(value), 10, 32)
		if c := s.tokens[rest]; err == nil && c != nil {
			c.in, c.kept = uint32(n), uint32(n)
		}
		return err
	}
	if kind == keyArchive {
		name, _, _ := strings.Cut(rest, "\x00")
		if s.accounts[name] == nil {
			return nil
		}
		return s.past.Restore(rest, value)
	}
	e, fault := stanza.Parse(value)
	if fault != nil {
		return fault
	}
	if kind == keySession {
		return s.restoreSession(rest, &e)
	}
	name, with, ok := strings.Cut(rest, "\x00")
	a := s.accounts[name]
	switch {
	case !ok:
		return errMemory
	case a == nil:
	case kind == keyContact:
		a.contacts[with] = contactIn(&e)
	case kind == keyAsk:
		a.asks[with] = e
	case kind == keyPaper:
		a.papers[with] = e
	case kind == keyLetter:
		return s.restoreLetter(a, with, &e)
	default:
		return errMemory
	}
	return nil
}

func (s *Server) restoreSession(token string, e *stanza.Element) error {
	a := s.accounts[e.Get("user")]
	if a == nil {
		return nil
	}
	c := &session{user: a, resource: e.Get("resource"), token: token, carbons: e.Get("carbons") != "", interested: e.Get("interested") != "",
		directed: map[string]bool{}, restored: true}
	for i := range e.Kids {
		switch k := &e.Kids[i]; k.Name {
		case "presence":
			c.there = k
			priority, _ := strconv.ParseInt(k.Kid(ns, "priority").Inside(), 10, 8)
			c.priority = int(priority)
		case "to":
			c.directed[k.Inside()] = true
		}
	}
	a.sessions = append(a.sessions, c)
	s.tokens[token] = c
	return nil
}

func (s *Server) restoreLetter(a *account, number string, e *stanza.Element) error {
	n, err := strconv.ParseUint(number, 16, 64)
	at, err2 := strconv.ParseInt(e.Get("at"), 10, 64)
	if err != nil || err2 != nil || len(e.Kids) == 0 {
		return errMemory
	}
	last := len(e.Kids) - 1
	l := &letter{number: n, at: time.UnixMilli(at), e: e.Kids[last], given: map[string]uint32{}}
	l.octets = len(l.e.Append(nil, ns))
	for i := range e.Kids[:last] {
		n, err := strconv.ParseUint(e.Kids[i].Get("n"), 10, 32)
		if err != nil {
			return errMemory
		}
		l.given[e.Kids[i].Get("s")] = uint32(n)
	}
	a.letters = append(a.letters, l)
	a.octets += l.octets
	s.octets += l.octets
	s.last = max(s.last, n)
	return nil
}
