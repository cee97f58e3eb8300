package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/gateway/api"
	"aldis/internal/lab/linkemu"
	"aldis/internal/lab/sim"
	"aldis/internal/lab/trace"
	"aldis/internal/site"
)

// MaxXMPPEvents bounds a play.
const MaxXMPPEvents = 100_000

// XMPPEvent is a stanza of a user.
type XMPPEvent struct {
	At     time.Duration // from the beginning
	Stanza stanza.Element
	Ship   bool // from a client of the LAN where the capture was made
}

// XMPPEvents are the stanzas of a trace of XMPP alone; none if it is a trace of something else.
func XMPPEvents(f *trace.File) (list []XMPPEvent, err error) {
	pipes, ship := map[string]bool{}, map[string]bool{}
	for i := range f.Lines {
		l := &f.Lines[i]
		switch {
		case l.Do == "pipe" && l.Kind == trace.PipeXMPP:
			pipes[l.Pipe] = true
		case l.Do == "peer":
			ship[l.Peer] = l.Edge
		case l.Do == trace.EventSend && !pipes[l.Pipe]:
			return nil, nil
		case l.Do == trace.EventSend:
			if len(l.Parts) != 1 || l.Parts[0].Content() == nil {
				return nil, fmt.Errorf("replay: the stanza at %.3f s has no content: a trace of XMPP can be played only with it", l.T)
			}
			e, err := stanzaIn(l.Parts[0].Content())
			if err != nil || len(list) >= MaxXMPPEvents {
				return nil, fmt.Errorf("replay: the stanza at %.3f s, the %d. of %d at most: %w", l.T, len(list)+1, MaxXMPPEvents, err)
			}
			list = append(list, XMPPEvent{time.Duration(l.T * float64(time.Second)), e, ship[l.Peer]})
		}
	}
	return list, nil
}

func stanzaIn(b []byte) (e stanza.Element, err error) {
	var s stanza.Splitter
	whole := errors.New("no whole stanza")
	err = s.Feed(fmt.Appendf(nil, "<stream:stream xmlns='%s' xmlns:stream='%s'>%s", stanza.Component, stanza.Streams, b), func(got *stanza.Element, f *stanza.Fault) {
		if f == nil && got.Name != "stream" {
			e, whole = *got, nil
		}
	})
	return e, errors.Join(err, whole)
}

// parts are the parts of a JID.
func parts(jid string) (bare, domain, resource string) {
	bare, resource, _ = strings.Cut(jid, "/")
	return bare, bare[strings.IndexByte(bare, '@')+1:], resource
}

// xmppPlayer is one play. The domain of the users on the captured LAN is the ship's, another one headquarters'; a room belongs to the
// site whose domain the room's domain ends with.
type xmppPlayer struct {
	w      *sim.World
	o      Options
	domain [2]string // of headquarters, of the ship
	rooms  [2]string
	conns  [2]map[string]site.ConnID
	in     map[string]bool        // by user and room: the user has entered it
	sent   map[string][]time.Time // by side, kind and text: lines that have not come yet
	took   map[string][]float64   // by kind, s
	ended  map[string]int         // by kind: errors that their senders got
	said   map[string]int
	res    trace.XMPPCost
}

// ErrNoXMPP says that there is nothing to play.
var ErrNoXMPP = errors.New("replay: no stanzas between users of two domains")

// RunXMPP plays the stanzas of users of two domains, in order of time, through two gateways.
func RunXMPP(ctx Context, events []XMPPEvent, o Options) (*trace.XMPPCost, error) {
	p := &xmppPlayer{o: o, in: map[string]bool{}, sent: map[string][]time.Time{}, took: map[string][]float64{}, ended: map[string]int{}, said: map[string]int{},
		res: trace.XMPPCost{Profile: o.Profile.Name, Summary: o.Profile.Summary, Seed: o.Seed}}
	if !p.domains(events) {
		return nil, ErrNoXMPP
	}
	var err error
	p.w, err = o.world(func(n *sim.Node, c *sim.Setup) {
		i := int(n.ID - 1)
		cfg := xmpp.Config{ID: n.ID, Domain: p.domain[i], Rooms: p.rooms[i], Occupants: -1,
			Sites: []xmpp.Site{{ID: c.Peers[0].ID, Domain: p.domain[1-i], Rooms: p.rooms[1-i]}}}
		cfg.Suit(o.Profile.Gathers())
		c.Adapters[site.XMPP] = func(memories []site.Memory) (sim.Adapter, error) { return xmpp.New(cfg, memories) }
	}, p.output)
	if err != nil {
		return nil, err
	}
	conn := site.ConnID(0)
	for i, n := range p.w.Nodes {
		p.conns[i] = map[string]site.ConnID{}
		for _, d := range []string{p.domain[1-i], p.rooms[1-i]} {
			conn++
			p.conns[i][d] = conn
			p.w.DeliverLAN(n, site.XMPP, xmpp.Opened{Conn: conn, Domain: d})
		}
	}
	p.w.Run(takMeeting)
	before, zero := p.w.Link.Stats(), p.w.Now
	for _, e := range events {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at := zero.Add(e.At); at.After(p.w.Now) {
			p.w.Run(at.Sub(p.w.Now))
		}
		p.play(e.Stanza)
	}
	length := max(time.Second, p.w.Now.Sub(zero))
	p.w.Run(TAKDrain)
	p.figures(before, length)
	return &p.res, nil
}

// domains finds the domains of the sites and rooms; false: no user sends to another site.
func (p *xmppPlayer) domains(events []XMPPEvent) bool {
	for i := range events {
		if _, d, _ := parts(events[i].Stanza.Get("from")); p.domain[1] == "" && (events[i].Ship || i == len(events)-1) {
			p.domain[1] = d
		}
	}
	if _, d, _ := parts(events[0].Stanza.Get("from")); !slices.ContainsFunc(events, func(e XMPPEvent) bool { return e.Ship }) {
		p.domain[1] = d // a capture between servers does not show whose LAN it is
	}
	for _, e := range events {
		for _, name := range []string{"to", "from"} {
			_, d, _ := parts(e.Stanza.Get(name))
			room := e.Stanza.Get("type") == "groupchat" || e.Stanza.Kid("http://jabber.org/protocol/muc", "x") != nil
			switch own := d == p.domain[1]; {
			case own, d == p.rooms[0], d == p.rooms[1]:
			case room && name == "to" && strings.HasSuffix(d, "."+p.domain[1]):
				p.rooms[1] = d
			case room && name == "to":
				p.rooms[0] = d
			case !room && p.domain[0] == "":
				p.domain[0] = d
			}
		}
	}
	if _, parent, ok := strings.Cut(p.rooms[0], "."); p.domain[0] == "" && ok {
		p.domain[0] = parent
	}
	for i := range p.rooms {
		if p.rooms[i] == "" {
			p.rooms[i] = "conference." + p.domain[i]
		}
	}
	return p.domain[0] != "" && p.domain[1] != ""
}

// kindOfStanza is the kind of a stanza, for a row.
func kindOfStanza(e *stanza.Element) string {
	switch {
	case e.Name == "presence":
		return "presence"
	case e.Get("type") == "groupchat":
		return "line in a room"
	}
	return "message"
}

// play has a user of one site send a stanza that concerns the other.
func (p *xmppPlayer) play(e stanza.Element) {
	from, domain, resource := parts(e.Get("from"))
	_, to, nick := parts(e.Get("to"))
	side := slices.Index(p.domain[:], domain)
	if side < 0 || p.conns[side][to] == 0 {
		return // it stays on its LAN, or is a copy from a room
	}
	e.Attrs = slices.Clone(e.Attrs)
	if resource == "" {
		for i := range e.Attrs {
			if e.Attrs[i].Name == "from" {
				e.Attrs[i].Value = from + "/replay"
			}
		}
	}
	kind, text := kindOfStanza(&e), e.Kid(stanza.Component, "body").Inside()
	p.res.Stanzas++
	p.res.XMPP += int64(len(e.Append(nil, stanza.Component)))
	p.said[kind]++
	if kind == "line in a room" && !p.in[from+e.Get("to")] {
		local, _, _ := strings.Cut(from, "@")
		enter := stanza.New(stanza.Component, "presence", "from", e.Get("from"), "to", e.Get("to")+"/"+local)
		p.in[from+e.Get("to")] = true
		p.w.DeliverLAN(p.w.Nodes[side], site.XMPP, xmpp.Heard{Conn: p.conns[side][to], Element: enter})
	} else if kind == "presence" && nick != "" {
		room, _, _ := strings.Cut(e.Get("to"), "/")
		p.in[from+room] = e.Get("type") == ""
	}
	if text != "" {
		key := fmt.Sprint(1-side, kind, text)
		p.sent[key] = append(p.sent[key], p.w.Now)
	}
	p.w.DeliverLAN(p.w.Nodes[side], site.XMPP, xmpp.Heard{Conn: p.conns[side][to], Element: e})
}

// output acts as the server of a LAN: it answers pings, admits everybody to its rooms, and notes stanzas that come.
func (p *xmppPlayer) output(n *sim.Node, out api.Output) {
	side := int(n.ID - 1)
	for _, o := range out.LAN {
		s, ok := o.Order.(xmpp.Send)
		if !ok {
			continue
		}
		e, err := stanzaIn(s.XML)
		if err != nil {
			continue
		}
		answer := ""
		switch room, _, nick := parts(e.Get("to")); {
		case e.Name == "iq" && e.Get("type") == "get":
			answer = fmt.Sprintf("<iq type='result' id='%s' from='%s' to='%s'/>", e.Get("id"), e.Get("to"), e.Get("from"))
		case e.Name == "presence" && nick != "" && e.Get("type") == "" && strings.HasSuffix(room, "@"+p.rooms[side]):
			x := stanza.New(stanza.Component, "presence", "from", e.Get("to"), "to", e.Get("from")).With(stanza.New("http://jabber.org/protocol/muc#user", "x").
				With(stanza.New("http://jabber.org/protocol/muc#user", "status", "code", "110")))
			answer = string(x.Append(nil, stanza.Component))
		case e.Name == "message" && e.Get("type") == "error":
			p.ended[kindOfStanza(&e)]++
		case e.Name == "message":
			p.came(side, &e)
		}
		if answer != "" {
			p.w.At(0, func() {
				if e, err := stanzaIn([]byte(answer)); err == nil {
					p.w.DeliverLAN(n, site.XMPP, xmpp.Heard{Conn: s.Conn, Element: e})
				}
			})
		}
	}
}

// came notes a text that has come, once for all its recipients.
func (p *xmppPlayer) came(side int, e *stanza.Element) {
	kind := kindOfStanza(e)
	key := fmt.Sprint(side, kind, e.Kid(stanza.Component, "body").Inside())
	if waits := p.sent[key]; len(waits) > 0 {
		p.took[kind] = append(p.took[kind], p.w.Now.Sub(waits[0]).Seconds())
		p.sent[key] = waits[1:]
	}
}

func (p *xmppPlayer) figures(before linkemu.Stats, length time.Duration) {
	var c trace.CoTCost
	c.CoT = p.res.XMPP
	PriceTAK(&c, p.o.Profile, before, p.w.Link.Stats(), length, TAKDrain)
	p.res.Octets, p.res.Datagrams, p.res.BusyPct, p.res.AirMinutes, p.res.UnaidedPct = c.Octets, c.Datagrams, c.BusyPct, c.AirMinutes, c.UnaidedPct
	for _, kind := range []string{"message", "line in a room", "presence"} {
		took := p.took[kind]
		slices.Sort(took)
		k := trace.XMPPKind{Kind: kind, Said: p.said[kind], Came: len(took), Ended: p.ended[kind]}
		for key, waits := range p.sent {
			if strings.HasPrefix(key[1:], kind) {
				k.Missing += len(waits)
			}
		}
		if n := len(took); n > 0 {
			k.MedianS, k.MaxS = linkemu.Between(took, 0.5), took[n-1]
		}
		if k.Said > 0 {
			p.res.Kinds = append(p.res.Kinds, k)
		}
	}
}

// JudgeXMPP judges several plays by the worst of them. There must be at least one.
func JudgeXMPP(plays []trace.XMPPCost, deadline time.Duration) (verdict, line string) {
	verdict, line = Go, ""
	slowest := 0.0
	for _, c := range plays {
		for _, k := range c.Kinds {
			switch slowest = max(slowest, k.MaxS); {
			case k.Missing > 0 || k.Ended > 0:
				verdict, line = No, fmt.Sprintf("NO. Of %d stanzas of the kind %q %d were refused or expired, and %d have not come on %s.", k.Said, k.Kind, k.Ended, k.Missing, c.Profile)
			case k.MaxS > deadline.Seconds() && verdict == Go:
				verdict, line = Late, fmt.Sprintf("LATE. A %s takes %s on %s, more than %s.", k.Kind, Duration(k.MaxS), c.Profile, Duration(deadline.Seconds()))
			}
		}
	}
	if verdict == Go {
		line = fmt.Sprintf("GO. All messages and lines come on %s, the slowest after %s.", plays[0].Profile, Duration(slowest))
	}
	return verdict, line
}
