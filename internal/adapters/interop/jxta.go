package interop

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/rules/filter"
	"aldis/internal/site"
)

// Here is the site number of the Meeting for JXTA's adapter. No gateway with [[meet]] rules has another site of this number.
const Here uint16 = 0xFFFF

// jxtaSide is the meeting towards the JXTA adapter.
type jxtaSide struct {
	*Meeting
	pipes     []*rulePipe
	listeners map[pipe]map[string]bool // peers of this LAN
	names     map[string]string        // of peers of this LAN
	count     int                      // of listeners
	next      uint64                   // token
	waiting   map[uint64]*site.FarMessage
}

// pipe is a pipe of a group, by unique values.
type pipe struct{ group, id string }

// rulePipe is a rule with its pipe.
type rulePipe struct {
	*Rule
	id   string           // "": its advertisement was not seen yet
	rate due.Each[string] // of each peer
}

// takes says whether the rate of a peer allows a message now.
func (p *rulePipe) takes(now time.Time, peer string) bool {
	b := p.rate.Of(now, peer)
	return b != nil && b.Allow(now, mostRate, mostAtOnce)
}

func (p *rulePipe) pipe() pipe { return pipe{p.Group, p.id} }

const (
	mostListeners = 65_536
	mostNames     = 4096
	mostWaiting   = 1000
	// trackLife is how long the report of a unit waits for a JXTA peer; lineLife is how long a line waits.
	trackLife = 30 * time.Second
	lineLife  = 24 * time.Hour
	svcPipe   = "PipeService"
)

// mark is the element of messages that a Meeting has made.
var mark = site.Part{Namespace: "aldis", Name: "met", Type: "text/plain", Data: []byte("TAK")}

// begin opens the pipes, and gives JXTA's adapter again the lines that an earlier run has not delivered.
func (s *jxtaSide) begin(now time.Time) {
	s.next = max(s.next, uint64(now.Unix())<<16)
	for _, p := range s.pipes {
		s.open(p)
	}
	for _, token := range slices.Sorted(maps.Keys(s.waiting)) {
		if m := s.waiting[token]; now.Before(m.Until) {
			s.notify(site.JXTA, *m)
		} else {
			s.over(token)
		}
	}
}

// open tells JXTA's adapter that a rule's pipe is open at the site of the Meeting.
func (s *jxtaSide) open(p *rulePipe) {
	if p.id == "" {
		return
	}
	kind := jxtabridge.PipePropagate
	if p.Unicast { // peers look for the peer of a unicast pipe
		kind = jxtabridge.PipeUnicast
		doc := jxta.AppendXML(nil, jxta.PeerAdvertisement{Peer: s.cfg.Peer, Group: p.Group, Name: s.cfg.Name}.Node())
		s.notify(site.JXTA, site.FarItem{Site: Here, Item: site.Item{Kind: site.Endpoint, Scope: p.Group, Owner: s.cfg.Peer, Doc: doc}})
	}
	if p.FromJXTA {
		s.notify(site.JXTA, site.FarItem{Site: Here, Item: site.Item{Kind: site.Listener, Scope: p.Group, Owner: s.cfg.Peer, ID: p.id, Sub: kind}})
	}
}

// hear takes the output of JXTA's adapter.
func (s *jxtaSide) hear(now time.Time, ev site.Event, out *site.Output) {
	if far, ok := ev.(site.FarItem); ok && far.Item.Kind == site.Document {
		s.named(far.Item)
	}
	for _, it := range out.Items {
		s.item(it)
	}
	if slices.ContainsFunc(out.Carry, func(c site.Carry) bool { return slices.Contains(c.Sites, Here) }) {
		var rest []site.Carry
		for _, c := range out.Carry {
			if slices.Contains(c.Sites, Here) {
				s.heard(now, &c.Message)
				c.Sites = slices.DeleteFunc(slices.Clone(c.Sites), func(id uint16) bool { return id == Here })
				if len(c.Sites) == 0 {
					continue
				}
			}
			rest = append(rest, c)
		}
		out.Carry = rest
	}
	ours := func(token uint64) bool { return uint16(token>>48) == Here }
	out.Done = slices.DeleteFunc(out.Done, func(token uint64) bool { return ours(token) && s.over(token) })
	out.Undelivered = slices.DeleteFunc(out.Undelivered, func(u site.Undelivered) bool {
		if !ours(u.Token) {
			return false
		}
		s.trouble.Count("undelivered")
		return s.over(u.Token)
	})
}

// over forgets a line that was delivered, or will not be.
func (s *jxtaSide) over(token uint64) bool {
	if s.waiting[token] != nil {
		delete(s.waiting, token)
		s.forget(token)
	}
	return true
}

// item learns pipes, peers and listeners of this LAN.
func (s *jxtaSide) item(it site.Item) {
	switch it.Kind {
	case site.Document:
		s.named(it)
	case site.Endpoint:
		s.peer(it)
	case site.Listener:
		k := pipe{it.Scope, it.ID}
		if !it.Gone {
			if s.count >= mostListeners || !s.interesting(k) || s.listeners[k][it.Owner] {
				return
			}
			if s.listeners[k] == nil {
				s.listeners[k] = map[string]bool{}
			}
			s.listeners[k][it.Owner] = true
			s.count++
		} else if s.listeners[k][it.Owner] {
			s.count--
			delete(s.listeners[k], it.Owner)
			if len(s.listeners[k]) == 0 {
				delete(s.listeners, k)
			}
		}
	}
}

// interesting says whether a pipe is that of a rule, or may turn out to be when its advertisement is seen.
func (s *jxtaSide) interesting(k pipe) bool {
	return slices.ContainsFunc(s.pipes, func(p *rulePipe) bool { return p.pipe() == k || p.id == "" })
}

// peer learns the name of a peer of this LAN.
func (s *jxtaSide) peer(it site.Item) {
	if it.Gone {
		delete(s.names, it.Owner)
		return
	}
	if s.names == nil {
		s.names = map[string]string{}
	}
	if len(s.names) < mostNames {
		s.names[it.Owner] = jxtabridge.DescribeItem(it).Name
	}
}

// named learns which pipe has the name of a rule.
func (s *jxtaSide) named(it site.Item) {
	if it.Gone || !slices.ContainsFunc(s.pipes, func(p *rulePipe) bool { return p.id == "" && p.Group == it.Scope }) {
		return
	}
	d := jxtabridge.DescribeItem(it)
	for _, p := range s.pipes {
		if p.id == "" && p.Group == it.Scope && d.Topic != "" && filter.Match(p.Name, d.Name) {
			p.id = d.Topic
			s.note("info", "the pipe of a [[meet]] rule was found", "rule", p.String(), "name", d.Name, "pipe", p.id)
			if s.begun {
				s.open(p)
			}
		}
	}
}

// listens says whether a peer of this LAN listens on a rule's pipe.
func (s *jxtaSide) listens(p *rulePipe) bool { return p.id != "" && len(s.listeners[p.pipe()]) > 0 }

// heard takes a message of a peer of this LAN.
func (s *jxtaSide) heard(now time.Time, m *site.Message) {
	k, ok := pipe{m.Scope, m.Topic}, m.Published
	if !m.Published && m.Service == svcPipe {
		id, err := jxta.ParseURN(m.Param)
		k.id, ok = id, err == nil
	}
	if m.Token != 0 { // of a stream, which no rule takes
		s.notify(site.JXTA, site.Fate{Token: m.Token, Ending: site.Refused})
		return
	}
	if slices.ContainsFunc(m.Parts, func(p site.Part) bool { return p.Namespace == mark.Namespace && p.Name == mark.Name }) {
		s.trouble.Count("met_before")
		return
	}
	for _, p := range s.pipes {
		if !ok || !p.FromJXTA || p.pipe() != k {
			continue
		}
		i := slices.IndexFunc(m.Parts, func(part site.Part) bool {
			return part.Name == p.Element && (p.Space == "" || part.Namespace == p.Space)
		})
		var err error
		switch {
		case i < 0:
			err = fault("no_element", "the message has no element %s", p.Element)
		case !p.takes(now, m.From):
			err = fault("rate", "more than %d messages a second of one peer", mostRate)
		default:
			err = s.read(now, p.Rule, m, m.Parts[i].Data)
		}
		if err != nil {
			s.refuse(now, p.Rule, m.From, err)
		}
	}
}

// read takes an element of a rule's pipe.
func (s *jxtaSide) read(now time.Time, r *Rule, m *site.Message, data []byte) error {
	if r.Room == "" {
		t, err := r.Track(now, data)
		if err != nil {
			return err
		}
		return s.tak.tellTrack(now, r, t, site.JXTA)
	}
	l, err := r.Chat(now, m.ID+m.From, cmp.Or(s.names[m.From], shortOf(m.From)), data)
	if err != nil {
		return err
	}
	if err := s.tak.tellLine(now, r, l); err != nil {
		return err
	}
	s.tellRoom(r, l)
	return nil
}

// shortOf makes a name for a peer that has not told its name.
func shortOf(peer string) string {
	return "peer " + strings.TrimSuffix(peer, "03")[max(0, len(peer)-10):]
}

// tellTrack sends the peers of this LAN the report of a unit, as often as the rule allows.
func (s *jxtaSide) tellTrack(now time.Time, p *rulePipe, u *unit, t *Track) {
	o := u.outlets[p]
	if o == nil {
		o = &outlet{pipe: p}
		u.outlets[p] = o
	}
	switch next := o.told.Add(p.Every); {
	case o.queued:
		o.wait = t
	case !o.told.IsZero() && now.Before(next):
		o.due, o.wait, o.queued = next, t, true
		s.wait.Push(o)
	default:
		s.giveTrack(now, o, t)
	}
}

func (s *jxtaSide) giveTrack(now time.Time, o *outlet, t *Track) {
	o.told, o.wait = now, nil
	s.trouble.Count("tracks_to_jxta")
	id := uuid("track", t.ID, t.Time.String(), decimal(t.Lat, 7), decimal(t.Lon, 7))
	s.post(now, o.pipe, id, o.pipe.TrackElement(t), now.Add(trackLife), false)
}

// tellLine sends a line of a rule's room on the rule's pipe.
func (s *jxtaSide) tellLine(now time.Time, p *rulePipe, l *Line) {
	s.trouble.Count("lines_to_jxta")
	s.post(now, p, uuid("line", p.Room, l.ID), p.LineElement(l), now.Add(lineLife), true)
}

// post gives JXTA's adapter a message for the peers of this LAN that listen on a rule's pipe. keep: it survives a restart.
func (s *jxtaSide) post(now time.Time, p *rulePipe, id string, data []byte, until time.Time, keep bool) {
	m := site.Message{Published: !p.Unicast, Scope: p.Group, From: s.cfg.Peer, ID: id,
		Parts: []site.Part{{Namespace: p.Space, Name: p.Element, Type: p.MIME, Data: data}, mark}}
	to := []string{""}
	if m.Published {
		m.Topic = p.id
	} else {
		m.Service, m.Param = svcPipe, jxta.URN(p.id)
		to = slices.Sorted(maps.Keys(s.listeners[p.pipe()]))
	}
	for _, peer := range to {
		if keep && len(s.waiting) >= mostWaiting {
			s.refuse(now, p.Rule, "", fault("no_room", "%d lines wait for JXTA peers already", mostWaiting))
			return
		}
		s.next++
		far := site.FarMessage{Site: Here, Token: uint64(Here)<<48 | s.next, Message: m, Until: until}
		far.Message.To = peer
		if keep {
			s.waiting[far.Token] = &far
			s.remember(&far)
		}
		s.notify(site.JXTA, far)
	}
}
