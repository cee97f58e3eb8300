package server

import (
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Config of a Server.
type Config struct {
	Domain  string
	Users   []string // local parts
	Reaches []string // domains that the adapter serves
}

// Output is the output of a Server after events.
type Output struct {
	Orders   []site.Order
	Remember []site.Memory
	Away     []stanza.Element // for the domains of Config.Reaches
}

// Server is the XMPP server of a LAN that has no other. It is not for concurrent use.
type Server struct {
	cfg      Config
	now      time.Time
	out      Output
	accounts map[string]*account // by local part
	conns    map[site.ConnID]*session
	tokens   map[string]*session // by the token of stream management
	last     uint64              // number of the newest letter, or line of an archive
	octets   int                 // of all letters
	late     time.Time           // when the first session whose connection broke may end; zero: there is none
	past     *Archive
	pushes   int        // of rosters so far
	ask      []*session // whose clients may owe an acknowledgement
	trouble  *due.Tally
}

// Bounds.
const (
	MaxStanza     = 256 << 10 // octets of a client's stanza
	usualStanza   = 384       // octets
	mostSessions  = 16        // of one user
	mostContacts  = 1000
	mostAsks      = 200      // unanswered requests for a subscription
	mostPapers    = 16       // of one user
	mostPaper     = 32 << 10 // octets of one
	mostDirected  = 500      // rooms and users to whom a client has shown itself
	mostLetters   = 1000
	mostOctets    = 1 << 20          // octets of the letters of one user
	mostStored    = 16 << 20         // octets of all letters
	mostOfID      = 1200             // octets that the archive adds to a message
	mostQueued    = 2000             // stanzas that a client has not acknowledged
	resumeFor     = 5 * time.Minute  // how long a session waits for a client whose connection broke
	defaultResume = "300"            // resumeFor in seconds
	mostQueuedB   = 2 << 20          // octets of these stanzas
	ns            = stanza.Component // of all stanzas inside of the gateway
)

// Namespaces.
const (
	nsBind    = "urn:ietf:params:xml:ns:xmpp-bind"
	nsSession = "urn:ietf:params:xml:ns:xmpp-session"
	nsRoster  = "jabber:iq:roster"
	nsPing    = "urn:xmpp:ping"
	nsInfo    = "http://jabber.org/protocol/disco#info"
	nsItems   = "http://jabber.org/protocol/disco#items"
	nsSM      = "urn:xmpp:sm:3"
	nsCarbons = "urn:xmpp:carbons:2"
	nsForward = "urn:xmpp:forward:0"
	nsDelay   = "urn:xmpp:delay"
	nsHints   = "urn:xmpp:hints"
	nsStates  = "http://jabber.org/protocol/chatstates"
	nsPrivate = "jabber:iq:private"
	nsVCard   = "vcard-temp"
	nsCSI     = "urn:xmpp:csi:0"
	stampForm = "2006-01-02T15:04:05.000Z"
)

// Events from the LAN room.
type (
	// Came: a client has proved that it is this user. Seed is fresh and secret: 16 octets.
	Came struct {
		Conn site.ConnID
		User string
		Seed []byte
	}
	// Said: a client has sent a stanza. Nothing in it is trusted.
	Said struct {
		Conn    site.ConnID
		Element stanza.Element
		Fault   *stanza.Fault // why it was not read; Element is then its first tag, or empty
	}
	// Gone: a connection is no more. Ended says that the client has closed its stream.
	Gone struct {
		Conn  site.ConnID
		Ended bool
	}
	// Users are all users from now on.
	Users struct{ Names []string }
)

// AdapterEvent marks Came as an event of a protocol adapter.
func (Came) AdapterEvent() {}

// AdapterEvent marks Said as an event of a protocol adapter.
func (Said) AdapterEvent() {}

// AdapterEvent marks Gone as an event of a protocol adapter.
func (Gone) AdapterEvent() {}

// AdapterEvent marks Users as an event of a protocol adapter.
func (Users) AdapterEvent() {}

// Send makes the LAN room write to a client, and with End then close the connection.
type Send struct {
	Conn site.ConnID
	XML  []byte
	End  bool
}

// Concerns names the connection. A stanza may tell a client that its message has arrived, so that the client forgets it.
func (s Send) Concerns() (site.ConnID, bool) { return s.Conn, true }

// Octets is the size of the stanza.
func (s Send) Octets() int { return len(s.XML) }

// account is a user.
type account struct {
	name     string
	contacts map[string]*contact       // by bare address
	asks     map[string]stanza.Element // requests for a subscription, by bare address
	sessions []*session
	letters  []*letter                 // the oldest first
	octets   int                       // of the letters
	papers   map[string]stanza.Element // documents that clients have stored, by namespace and name
}

// New makes a server; Restore gives it its memories.
func New(cfg Config, trouble *due.Tally) *Server {
	s := &Server{cfg: cfg, accounts: map[string]*account{}, conns: map[site.ConnID]*session{}, tokens: map[string]*session{}, trouble: trouble}
	s.past = NewArchive(keyArchive)
	for _, name := range cfg.Users {
		s.accounts[name] = newAccount(name)
	}
	return s
}

func newAccount(name string) *account {
	return &account{name: name, contacts: map[string]*contact{}, asks: map[string]stanza.Element{}, papers: map[string]stanza.Element{}}
}

func (s *Server) bare(a *account) string { return a.name + "@" + s.cfg.Domain }

// Start begins a run: sessions of an earlier run wait for their clients.
func (s *Server) Start(now time.Time) {
	s.now = now
	for _, c := range s.tokens {
		s.leaveOpen(c)
	}
	for _, a := range s.accounts {
		for _, l := range a.letters {
			maps.DeleteFunc(l.given, func(token string, _ uint32) bool { return s.tokens[token] == nil })
		}
	}
}

// Step takes an event of the LAN room.
func (s *Server) Step(now time.Time, ev site.Event) {
	s.now = now
	switch ev := ev.(type) {
	case Came:
		a := s.accounts[ev.User]
		if a == nil {
			s.hang(ev.Conn, "not-authorized", "")
			return
		}
		s.trouble.Count("logged_in")
		s.conns[ev.Conn] = &session{conn: ev.Conn, user: a, seed: hex.EncodeToString(ev.Seed)}
	case Said:
		if c := s.conns[ev.Conn]; c != nil && ev.Fault != nil {
			s.unread(c, ev)
		} else if c != nil {
			s.said(c, ev.Element)
		}
	case Gone:
		if c := s.conns[ev.Conn]; c != nil {
			delete(s.conns, ev.Conn)
			c.conn = 0
			if c.token != "" && !ev.Ended {
				s.leaveOpen(c)
			} else {
				s.end(c)
			}
		}
	case Users:
		s.users(ev.Names)
	}
}

// users takes in which users exist.
func (s *Server) users(names []string) {
	there := map[string]bool{}
	for _, name := range names {
		if there[name] = true; s.accounts[name] == nil {
			s.accounts[name] = newAccount(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.accounts)) {
		if !there[name] {
			s.remove(s.accounts[name])
		}
	}
}

// remove forgets a user, whose clients are put out: also those that have not bound a resource yet.
func (s *Server) remove(a *account) {
	gone := slices.Clone(a.sessions)
	for _, conn := range slices.Sorted(maps.Keys(s.conns)) {
		if c := s.conns[conn]; c.user == a && c.resource == "" {
			gone = append(gone, c)
		}
	}
	for _, c := range gone {
		s.expel(c, "not-authorized", "the user was removed")
	}
	for _, l := range slices.Clone(a.letters) {
		s.burn(a, l)
	}
	for _, with := range slices.Sorted(maps.Keys(a.contacts)) {
		s.forgetContact(a, with)
	}
	for what := range a.papers {
		s.remember(keyPaper+a.name+"\x00"+what, nil)
	}
	for with := range a.asks {
		s.remember(keyAsk+a.name+"\x00"+with, nil)
	}
	s.past.Forget(a.name, s.remember)
	delete(s.accounts, a.name)
}

// Turn does what is due, and asks clients for acknowledgements.
func (s *Server) Turn(now time.Time) {
	s.now = now
	if due.Reached(now, s.late) {
		s.late = time.Time{}
		for _, token := range slices.Sorted(maps.Keys(s.tokens)) {
			switch c := s.tokens[token]; {
			case c == nil || c.conn != 0: // nil: it has ended because another one did
			case !now.Before(c.until):
				s.end(c)
			default:
				s.late = due.Earliest(s.late, c.until)
			}
		}
	}
	for _, c := range s.ask {
		if c.conn != 0 && c.token != "" && !c.asked && len(c.queue) > 0 {
			c.asked = true
			s.order(c.conn, stanza.New(nsSM, "r"))
		}
	}
	s.ask = s.ask[:0]
}

// Due is when Turn has something to do; zero: never.
func (s *Server) Due() time.Time { return s.late }

// leaveOpen makes a session wait for its client.
func (s *Server) leaveOpen(c *session) {
	c.until, c.asked = s.now.Add(resumeFor), false
	s.late = due.Earliest(s.late, c.until)
}

// Take returns the output so far, and empties it.
func (s *Server) Take() Output {
	out := s.out
	s.out = Output{}
	return out
}

// Sessions and Stored are for the metrics: clients that are logged in, and messages that wait for users.
func (s *Server) Sessions() int { return len(s.conns) }

// Stored is how many messages wait for users.
func (s *Server) Stored() (n int) {
	for _, a := range s.accounts {
		n += len(a.letters)
	}
	return n
}

func (s *Server) remember(key string, value []byte) {
	s.out.Remember = append(s.out.Remember, site.Memory{Key: key, Value: value})
}

func (s *Server) order(conn site.ConnID, e stanza.Element) {
	s.out.Orders = append(s.out.Orders, Send{Conn: conn, XML: e.Append(nil, ns)})
}

// hang ends a stream for a reason (RFC 6120, 4.9.3).
func (s *Server) hang(conn site.ConnID, condition, text string, more ...stanza.Element) {
	s.out.Orders = append(s.out.Orders, Send{Conn: conn, XML: StreamError(condition, text, more...), End: true})
}

// Deliver takes a stanza from one of the domains of Config.Reaches.
func (s *Server) Deliver(now time.Time, e stanza.Element) {
	s.now = now
	s.route(e, nil)
}

// route takes a stanza whose sender is verified; by is the client here that has sent it, or nil.
func (s *Server) route(e stanza.Element, by *session) {
	local, domain, resource, ok := stanza.CutAddress(e.Get("to"))
	switch {
	case !ok:
		s.bounce(e, "jid-malformed")
	case slices.Contains(s.cfg.Reaches, domain):
		s.out.Away = append(s.out.Away, e)
	case domain != s.cfg.Domain:
		s.bounce(e, "remote-server-not-found")
	case local == "" && e.Name == "iq":
		s.query(e, nil)
	case local == "":
		s.bounce(e, "service-unavailable")
	case s.accounts[local] == nil:
		if kind := e.Get("type"); e.Name == "presence" && (kind == "subscribe" || kind == "probe") {
			s.route(stanza.New(ns, "presence", "from", local+"@"+domain, "to", e.Get("from"), "type", "unsubscribed"), nil)
		} else {
			s.bounce(e, "service-unavailable")
		}
	default:
		s.inbound(s.accounts[local], resource, e, by)
	}
}

// bounce sends an error back, if the stanza calls for one.
func (s *Server) bounce(e stanza.Element, condition string) {
	s.trouble.Count("bounced " + condition)
	if kind := e.Get("type"); e.Name == "presence" || kind == "error" || kind == "result" || e.Get("from") == "" {
		return
	}
	s.route(stanza.Refusal(&e, condition, ""), nil)
}

// inbound takes a stanza for a user here.
func (s *Server) inbound(a *account, resource string, e stanza.Element, by *session) {
	c := a.session(resource)
	switch {
	case e.Name == "message":
		s.message(a, resource, e, by)
	case e.Name == "iq" && resource == "":
		s.query(e, a)
	case e.Name == "iq" && c != nil:
		s.write(c, e, nil)
	case e.Name == "iq":
		s.bounce(e, "service-unavailable")
	default:
		s.presence(a, c, e)
	}
}

// session is the session of a resource; nil: there is none.
func (a *account) session(resource string) *session {
	for _, c := range a.sessions {
		if c.resource == resource {
			return c
		}
	}
	return nil
}

// bareOf is an address without its resource.
func bareOf(address string) string {
	bare, _, _ := strings.Cut(address, "/")
	return bare
}
