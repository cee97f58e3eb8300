package xmpp

import (
	"slices"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// Config of an Adapter.
type Config struct {
	ID     uint16        // of this site
	Domain string        // of the users of this LAN
	Rooms  string        // domain of its room service; "": it has none
	PubSub string        // domain of its publish-subscribe service; "": it has none
	Nodes  string        // domain of the publish-subscribe service of the gateway itself, for units of other adapters; "": none
	Sites  []Site        // far sites whose users the LAN can reach
	Life   time.Duration // of a message; default 24 h
	// Drawn is how long a link is down before far users are shown as extended away, Gone before they are shown as unavailable;
	// defaults 5 min and 1 h.
	Drawn, Gone time.Duration
	// Occupants is up to how many occupants of this site in one of its rooms are all announced to other sites. If there are
	// more, only those who have spoken are announced, and all once somebody at the other site asks who is in the room. Below 0:
	// the value that Suit sets.
	Occupants int
	// Gather is how long a line waits for others of the same sender to the same receivers: they then share a message. 0: no line waits.
	Gather time.Duration
	Files  Files
	Rules  []rule.Rule
	// Own says that the LAN has no other server: the adapter serves clients itself, these Users (local parts) to begin with.
	Own   bool
	Users []string
}

// Suit sets the options that depend on the link. Where octets or messages cost, lines gather for a time that is short compared
// with the delay of such a link, and only occupants who have spoken are announced to other sites.
func (c *Config) Suit(costs bool) {
	if costs {
		c.Gather = 200 * time.Millisecond
	}
	if c.Occupants < 0 && costs {
		c.Occupants = 0
	} else if c.Occupants < 0 {
		c.Occupants = 20
	}
}

// Site is a far site.
type Site struct {
	ID     uint16
	Domain string // of its users
	Rooms  string // domain of its room service; "": it has none
	PubSub string // domain of its publish-subscribe service; "": it has none
}

// domainOf is the domain of the users of a site.
func (c *Config) domainOf(id uint16) string {
	for _, s := range c.Sites {
		if s.ID == id {
			return s.Domain
		}
	}
	return ""
}

// siteOf is the site whose users have a domain; 0: none.
func (c *Config) siteOf(domain string) uint16 {
	if domain == c.Domain {
		return c.ID
	}
	for _, s := range c.Sites {
		if s.Domain == domain {
			return s.ID
		}
	}
	return 0
}

func (c Config) withDefaults() Config {
	for d, usual := range map[*time.Duration]time.Duration{&c.Life: 24 * time.Hour, &c.Drawn: 5 * time.Minute, &c.Gone: time.Hour} {
		if *d == 0 {
			*d = usual
		}
	}
	return c
}

// Adapter is the XMPP side of a gateway. It is not for concurrent use.
type Adapter struct {
	*step
	components []*component        // one for each domain of a far site
	numbers    map[uint16]*numbers // of each site; 0: lines in rooms
	presence   presence
	rooms      rooms
	nodes      *nodes
	uploads    *uploads
	batches    batches
	told       map[uint16]*outcomes
	rates      due.Each[string]
	served     bool            // its own server has started
	owed       []owed          // from an earlier run, until the first Step
	archive    *server.Archive // of the rooms here, if the gateway is their server
}

// step is the state that all parts share: configuration, counters, and the Step under way.
type step struct {
	cfg     Config
	now     time.Time
	trouble due.Tally
	out     site.Output
	own     *server.Server   // nil: the LAN has its own
	toOwn   []stanza.Element // stanzas of components for it
}

func (s *step) note(level, text string, attrs ...any) {
	s.out.Notes = append(s.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

func (s *step) remember(key string, value []byte) {
	s.out.Remember = append(s.out.Remember, site.Memory{Key: key, Value: value})
}

// A user may send rate stanzas a second all the time, burst at once: more than a person and the person's client need.
const (
	rate      = 20
	burst     = 400
	mostRates = 10_000
)

// New restores an adapter from its memories.
func New(cfg Config, memories []site.Memory) (*Adapter, error) {
	f := &Adapter{step: &step{cfg: cfg.withDefaults(), trouble: due.NewTally()}, numbers: map[uint16]*numbers{}, batches: batches{all: map[string]*batch{}}, told: map[uint16]*outcomes{},
		rates: due.Each[string]{Rate: rate, Burst: burst, Most: mostRates}}
	f.nodes = &nodes{step: f.step, f: f, all: map[nodeID]*node{}, clients: map[string]map[string]*client{}, asked: map[string]nodeID{}}
	f.presence = newPresence(f.step, f.nodes)
	f.uploads = newUploads(f)
	f.numbers[0] = &numbers{step: f.step}
	f.rooms = rooms{step: f.step, f: f, all: map[roomID]*room{}, charters: map[string]*charter{}}
	for i := range f.cfg.Sites {
		s := &f.cfg.Sites[i]
		f.numbers[s.ID] = &numbers{step: f.step, site: s.ID}
		f.components = append(f.components, &component{step: f.step, site: s, domain: s.Domain})
		if s.Rooms != "" {
			f.components = append(f.components, &component{step: f.step, site: s, domain: s.Rooms, rooms: true})
		}
		if s.PubSub != "" {
			f.components = append(f.components, &component{step: f.step, site: s, domain: s.PubSub, nodes: true})
		}
	}
	if d := f.cfg.Files.Domain; d != "" {
		f.components = append(f.components, &component{step: f.step, site: &Site{ID: f.cfg.ID}, domain: d, upload: true})
	}
	if d := f.cfg.Nodes; d != "" {
		f.components = append(f.components, &component{step: f.step, site: &Site{ID: metSite}, domain: d, nodes: true})
	}
	f.archive = server.NewArchive(keyArchive)
	f.archive.Spare = func(name string) bool { return unused(&f.rooms, name) }
	if cfg.Own {
		f.serve()
	}
	return f, f.restore(memories)
}

// Step brings the adapter to now and applies ev.
func (f *Adapter) Step(now time.Time, ev site.Event) site.Output {
	f.out, f.now = site.Output{}, now
	for _, o := range f.owed {
		f.owe(o)
	}
	f.owed = nil
	if f.own != nil && !f.served {
		f.start(now)
	}
	if !f.uploads.event(now, ev) {
		f.event(now, ev)
	}
	f.exchange(now)
	f.turn(now)
	f.exchange(now)
	f.gather(now)
	f.turnBatches(now)
	f.out.Done = slices.DeleteFunc(f.out.Done, func(token uint64) bool { return token == ofBatch })
	f.out.Undelivered = slices.DeleteFunc(f.out.Undelivered, func(u site.Undelivered) bool { return u.Token == ofBatch })
	f.out.Deadline = f.due()
	return f.out
}

func (f *Adapter) event(now time.Time, ev site.Event) {
	switch ev := ev.(type) {
	case Opened:
		if c := f.componentOf(ev.Domain); c != nil {
			c.opened(now, ev)
			f.trouble.Count("connected")
			f.note("info", "the XMPP server has taken the component of a far site", "site", c.site.ID, "domain", c.domain)
			f.begun(now, c)
		}
	case Closed:
		if c := f.connected(ev.Conn); c != nil {
			c.closed()
			if c.users() && f.find(func(o *component) bool { return o.users() && o.conn != 0 }) == nil {
				f.presence.closed(now)
			}
			if c.rooms && f.find(func(o *component) bool { return o.rooms && o.conn != 0 }) == nil {
				f.rooms.away = now.Add(awayAfter)
			}
		}
	case Skipped:
		if c := f.connected(ev.Conn); c != nil {
			f.skipped(now, c, ev)
		}
	case Heard:
		if f.connected(ev.Conn) != nil {
			f.heard(now, ev)
		}
	case site.FarMessage:
		if len(ev.Message.Parts) == 1 && code.IsBatch(ev.Message.Parts[0].Data) {
			for _, one := range each(ev) {
				f.farMessage(now, one)
			}
		} else {
			f.farMessage(now, ev)
		}
	case site.FarItem:
		f.farItem(now, ev)
	case site.SiteLost:
		if c := f.componentAt(ev.Site); c != nil {
			f.presence.lost(now, c)
			f.rooms.lost(now, ev.Site)
			f.nodes.lost(ev.Site)
			f.uploads.Lost(ev.Site)
		}
	case site.Reach:
		if c := f.componentAt(ev.Site); c != nil {
			f.presence.reach(now, c, ev)
		}
	case Ears:
		f.rooms.listen(now, ev)
		f.nodes.meet(ev.Nodes)
	case Unit:
		f.nodes.unit(now, ev)
	case server.Came, server.Said, server.Gone, server.Users:
		if f.own != nil {
			f.own.Step(now, ev)
		}
	case Met:
		f.rooms.sayMet(now, ev)
	case site.Fate:
		f.fate(now, ev)
	}
}

// begun sends the first stanzas and questions of a component that the server has accepted.
func (f *Adapter) begun(now time.Time, c *component) {
	switch {
	case c.rooms:
		f.rooms.askLocals(c)
	case c.users():
		f.presence.opened(now, c)
		f.rooms.rejoin(c)
	}
	f.nodes.opened(c)
}

// farItem takes in a piece of the state of a far site.
func (f *Adapter) farItem(now time.Time, ev site.FarItem) {
	c, it := f.componentAt(ev.Site), ev.Item
	switch {
	case c == nil:
	case it.Kind == site.Endpoint:
		f.presence.farItem(now, c, it)
	case it.Kind == site.Question:
		f.nodes.wanted(ev.Site, it)
	case it.Kind == site.Document && it.Scope != "":
		f.nodes.farItem(now, ev.Site, it)
	default:
		f.rooms.farItem(now, ev.Site, it)
	}
}

// turn does what is due.
func (f *Adapter) turn(now time.Time) {
	for _, c := range f.components {
		for _, h := range c.turn(now) {
			f.tooLate(now, h)
		}
	}
	f.presence.turn(now)
	f.rooms.turn(now)
	f.nodes.turn(now)
	f.uploads.turn(now)
	f.turnOutcomes(now)
}

func (f *Adapter) due() (at time.Time) {
	for _, c := range f.components {
		at = due.Earliest(at, c.due())
	}
	for _, t := range f.told {
		at = due.Earliest(at, t.at)
	}
	at = due.Earliest(at, f.batches.at)
	if f.own != nil {
		at = due.Earliest(at, f.own.Due())
	}
	return due.Earliest(due.Earliest(due.Earliest(at, f.nodes.at), f.presence.due()), due.Earliest(due.Earliest(f.rooms.away, f.rooms.news), f.rooms.early))
}

// componentOf is the component for a domain, componentAt the one for the users of a site, roomsAt the one for its rooms,
// connected the one of a connection; nil: there is none.
func (f *Adapter) componentOf(domain string) *component {
	return f.find(func(c *component) bool { return c.domain == domain })
}

func (f *Adapter) componentAt(id uint16) *component {
	return f.find(func(c *component) bool { return c.site.ID == id && c.users() })
}

func (f *Adapter) roomsAt(id uint16) *component {
	return f.find(func(c *component) bool { return c.site.ID == id && c.rooms })
}

func (f *Adapter) connected(conn site.ConnID) *component {
	return f.find(func(c *component) bool { return c.conn == conn && conn != 0 })
}

func (f *Adapter) find(is func(*component) bool) *component {
	for _, c := range f.components {
		if is(c) {
			return c
		}
	}
	return nil
}

// tooLate ends a far message that could not be delivered before it expired.
func (f *Adapter) tooLate(now time.Time, h held) {
	f.trouble.Count("expired")
	if h.token != 0 {
		f.out.Undelivered = append(f.out.Undelivered, site.Undelivered{Token: h.token, Why: site.LifeOver})
	}
	if h.number != 0 {
		f.tell(now, h.site, code.Outcome{Number: h.number - 1, Became: code.Failed, Reason: code.ReasonOf("remote-server-timeout")})
	}
}
