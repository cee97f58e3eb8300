package lan

import (
	"net/http"
	"sync"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/site"
)

// maxPolls is how many polls of one peer stay open. JXSE 2.7 has two at once, and a third while it replaces one (ghosts 8). A
// poll beyond maxPolls closes the oldest.
const maxPolls = 4

// web is the part of a LAN for peers over HTTP.
type web struct {
	servers  map[*http.Server]bool
	sessions map[caller]*session
	callers  map[string]int // sessions by host
	owners   map[site.ConnID]*session
}

func newWeb() web {
	return web{servers: map[*http.Server]bool{}, sessions: map[caller]*session{}, callers: map[string]int{},
		owners: map[site.ConnID]*session{}}
}

// caller is a peer at a host.
type caller struct{ peer, host string }

// session is a peer over HTTP. Each of its polls is a connection for the bridge. Its own messages come in other requests; they
// count as received on the newest open poll, or on the last one that was open.
type session struct {
	lan *LAN
	caller
	unwanted bool // the bridge has closed it; guarded by lan.mu

	// order is held while an event is posted, so that events are posted in the order in which things happened. Posting may
	// wait, so functions that the bridge calls must not take it.
	order sync.Mutex
	polls []*poll // open, oldest first
	quiet site.ConnID
	until time.Time // when it is forgotten if no poll comes
	timer *time.Timer
	ended bool
}

// session finds or makes the session of a caller, and returns it with its order held; nil: it is refused, and reason says why.
func (l *LAN) session(c caller) (s *session, reason string) {
	for {
		l.mu.Lock()
		s = l.sessions[c]
		if s == nil {
			switch {
			case l.closed:
				reason = "shutdown"
			case len(l.sessions) >= l.cfg.MaxConns:
				reason = "http_peers"
			case l.callers[c.host] >= l.cfg.MaxConnsPerAddress:
				reason = "http_peers_per_address"
			}
			if reason != "" {
				l.mu.Unlock()
				return nil, reason
			}
			s = &session{lan: l, caller: c}
			l.sessions[c] = s
			l.callers[c.host]++
			l.wait.Add(1)
		}
		l.mu.Unlock()
		s.order.Lock()
		if !s.ended {
			return s, ""
		}
		s.order.Unlock()
	}
}

// greet announces a connection of this session to the bridge. The order is held.
func (s *session) greet(id site.ConnID, remote, dest string, quiet bool) {
	l := s.lan
	l.mu.Lock()
	l.owners[id] = s
	l.mu.Unlock()
	l.post(jxtabridge.Opened{Conn: id, Remote: remote, HTTP: true})
	if quiet {
		l.post(jxtabridge.Quiet{Conn: id})
	}
	l.post(jxtabridge.Welcomed{Conn: id, Welcome: jxta.Welcome{
		Dest: dest, Public: "http://" + remote, Peer: jxta.URN(s.peer), Version: "1.1"}})
}

// part closes one connection of the session. The order is held.
func (s *session) part(id site.ConnID) {
	s.lan.mu.Lock()
	delete(s.lan.owners, id)
	s.lan.mu.Unlock()
	s.lan.post(jxtabridge.Closed{Conn: id})
}

// open adds a poll, which carries messages to the peer from now on. The order is held.
func (s *session) open(p *poll, dest string) {
	l := s.lan
	l.mu.Lock()
	l.conns[p.id] = &p.outbox
	closed := l.closed
	l.mu.Unlock()
	if closed {
		p.finish()
	}
	for i := 0; len(s.polls)-i >= maxPolls; i++ { // some of these may be finished and not yet closed
		s.polls[i].finish()
	}
	s.polls = append(s.polls, p)
	l.metrics.Polls.Inc()
	s.greet(p.id, p.remote, dest, false)
	if s.quiet != 0 {
		s.part(s.quiet)
		s.quiet = 0
	}
}

// close removes a poll. The last one stays for a while, as a connection that cannot be written to.
func (s *session) close(p *poll) {
	s.order.Lock()
	defer s.order.Unlock()
	l := s.lan
	l.metrics.Polls.Dec()
	var rest []*poll
	for _, o := range s.polls {
		if o != p {
			rest = append(rest, o)
		}
	}
	s.polls = rest
	l.mu.Lock()
	delete(l.conns, p.id)
	over := s.unwanted || l.closed
	l.mu.Unlock()
	if len(rest) > 0 {
		s.part(p.id)
		return
	}
	s.quiet = p.id
	if over {
		s.end()
		return
	}
	l.post(jxtabridge.Quiet{Conn: p.id})
	s.linger()
}

// linger keeps a session without a poll for a while. The order is held.
func (s *session) linger() {
	s.until = time.Now().Add(s.lan.cfg.PollLinger)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.lan.cfg.PollLinger, s.expire)
		return
	}
	s.timer.Reset(s.lan.cfg.PollLinger)
}

// received posts a message from the peer. The order is held.
func (s *session) received(body []byte, remote, dest string, d debt) {
	var id site.ConnID
	switch {
	case len(s.polls) > 0:
		id = s.polls[len(s.polls)-1].id
	case s.quiet != 0:
		id = s.quiet
		s.linger()
	default: // its first message has overtaken its poll, or this gateway has restarted
		id = site.ConnID(s.lan.nextID.Add(1))
		s.quiet = id
		s.greet(id, remote, dest, true)
		s.linger()
	}
	s.lan.accounts.book(id, d)
	s.lan.post(jxtabridge.Received{Conn: id, Body: body})
}

// expire ends a session that has had no poll for PollLinger, that the bridge has closed, or when the LAN shuts down.
func (s *session) expire() {
	s.order.Lock()
	defer s.order.Unlock()
	if s.ended || len(s.polls) > 0 {
		return // closing the last poll ends it
	}
	s.lan.mu.Lock()
	over := s.unwanted || s.lan.closed
	s.lan.mu.Unlock()
	if left := time.Until(s.until); !over && left > 0 {
		s.timer.Reset(left)
		return
	}
	s.end()
}

// end forgets the session. The order is held, and no poll is open.
func (s *session) end() {
	l := s.lan
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.quiet != 0 {
		s.part(s.quiet)
	}
	s.ended = true
	l.mu.Lock()
	delete(l.sessions, s.caller)
	l.callers[s.host]--
	if l.callers[s.host] == 0 {
		delete(l.callers, s.host)
	}
	l.mu.Unlock()
	l.wait.Done()
}
