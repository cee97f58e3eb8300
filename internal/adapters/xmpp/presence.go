package xmpp

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/code"
	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// presence knows which users here and at far sites are available, and who is subscribed to them.
type presence struct {
	*step
	nodes *nodes
	pairs map[pair]*watching
	users map[string]*user // of this site, by local part
	far   map[uint16]map[string]*code.Presence
	down  map[uint16]*outage // links that are down, by site
	away  time.Time          // when the users here count as gone, because their server is; zero: it is there
	late  time.Time          // when the first user whose last presence went too recently may send news; zero: none waits
	asked time.Time          // when users who have not answered a probe count as gone; zero: nobody is asked
}

// pair is a user here and a user of a far site.
type pair struct {
	site      uint16
	here, far string // local parts
}

// watching says which user of a pair is subscribed to the other's presence.
type watching struct{ here, far bool }

// user is a user here.
type user struct {
	resources map[string]code.Presence
	next      time.Time // the earliest time at which far sites are told again
	late      bool      // there may be news at that time
	stale     bool      // not heard of since the server was connected
	stated    []byte    // the presence that far sites have; nil: none
	to        []uint16  // the sites that have it
}

// outage is a link that is down.
type outage struct {
	*component
	since       time.Time
	drawn, gone bool // how the far users are shown
}

// Bounds.
const (
	mostPairs     = 20_000
	mostResources = 16
	// The users of a server that is away count as gone after awayAfter; a user who does not answer a probe within probeFor is not there.
	awayAfter = time.Minute
	probeFor  = 30 * time.Second
	// leastApart is the least time between two presences of one user that go to far sites; the newest one goes.
	leastApart = 5 * time.Second
	resource   = "aldis" // of all far users
)

func newPresence(s *step, ns *nodes) presence {
	return presence{step: s, nodes: ns, pairs: map[pair]*watching{}, users: map[string]*user{}, far: map[uint16]map[string]*code.Presence{}, down: map[uint16]*outage{}}
}

// of is the state of a pair; nil: there are too many pairs.
func (p *presence) of(k pair) *watching {
	w := p.pairs[k]
	if w == nil && len(p.pairs) < mostPairs {
		w = &watching{}
		p.pairs[k] = w
	}
	return w
}

// set changes which user of a pair is subscribed.
func (p *presence) set(k pair, change func(*watching)) {
	w := p.of(k)
	if w == nil {
		p.trouble.Count("refused pairs")
		return
	}
	before := *w
	if change(w); *w == before {
		return
	}
	key := keyPair + string([]byte{byte(k.site >> 8), byte(k.site)}) + k.here + "\x00" + k.far
	switch flags := flag(w.here, 1) | flag(w.far, 2); flags {
	case 0:
		delete(p.pairs, k)
		p.remember(key, nil)
	default:
		p.remember(key, []byte{flags})
	}
	p.state(k.here)
}

func flag(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

func (p *presence) restorePair(id uint16, key string, value []byte) error {
	here, far, ok := strings.Cut(key, "\x00")
	if !ok || len(value) != 1 {
		return errors.New("a pair without its names")
	}
	p.pairs[pair{id, here, far}] = &watching{value[0]&1 != 0, value[0]&2 != 0}
	return nil
}

// restoreStated notes that far sites have the presence of a user. Its sites are found when it is stated again or withdrawn.
func (p *presence) restoreStated(name string) {
	p.users[name] = &user{resources: map[string]code.Presence{}, stale: true, stated: []byte{}}
}

// heard takes a presence stanza of a user here to a far one.
func (p *presence) heard(now time.Time, c *component, e *stanza.Element, from, to jid) {
	if from.local == "" || to.local == "" {
		return
	}
	k := pair{c.site.ID, from.local, to.local}
	switch kind := e.Get("type"); kind {
	case "", "unavailable":
		u := p.users[from.local]
		if u == nil {
			if kind != "" || len(p.users) >= mostPairs {
				return
			}
			u = &user{resources: map[string]code.Presence{}}
			p.users[from.local] = u
		}
		before, had := u.resources[from.resource]
		if kind != "" {
			if delete(u.resources, from.resource); from.resource == "" { // the answer to a probe
				clear(u.resources)
			}
		} else if had || len(u.resources) < mostResources {
			u.resources[from.resource] = presenceIn(e)
		}
		if is, has := u.resources[from.resource]; !u.stale && from.resource != "" && is == before && has == had {
			return // the server sends it once for each far contact
		}
		u.stale = false
		p.state(from.local)
	case "probe":
		p.show(now, c, k, p.far[k.site][k.far])
	case "subscribe", "subscribed", "unsubscribe", "unsubscribed":
		s := code.Subscription(slices.Index(code.Subscriptions, kind))
		about, _ := SubjectOf(e)
		about.Site = k.site
		mark, keeps := p.judge(now, about)
		if keeps != nil {
			c.write(stanza.New(ns, "presence", "from", to.bare(), "to", from.bare(), "type", "unsubscribed"))
			return
		}
		switch s {
		case code.Subscribed:
			p.set(k, func(w *watching) { w.far = true })
		case code.Unsubscribed:
			p.set(k, func(w *watching) { w.far = false })
		case code.Unsubscribe:
			p.set(k, func(w *watching) { w.here = false })
		}
		p.trouble.Count("subscriptions")
		p.out.Carry = append(p.out.Carry, site.Carry{Sites: []uint16{k.site}, Message: site.Message{From: k.here, To: k.far, Parts: []site.Part{{Data: s.Append(nil)}}, Mark: mark}})
	}
}

// farSubscription takes in a far user's request or answer about a subscription with a user here.
func (p *presence) farSubscription(now time.Time, c *component, far, here string, s code.Subscription) {
	k := pair{c.site.ID, here, far}
	switch s {
	case code.Subscribed:
		p.set(k, func(w *watching) { w.here = true })
		p.show(now, c, k, p.far[k.site][k.far])
	case code.Unsubscribed:
		p.set(k, func(w *watching) { w.here = false })
	case code.Unsubscribe:
		p.set(k, func(w *watching) { w.far = false })
	}
}

// presenceIn reads a presence stanza.
func presenceIn(e *stanza.Element) (p code.Presence) {
	p.Show = code.Available
	if i := slices.Index(code.Shows, e.Kid(ns, "show").Inside()); i >= 0 {
		p.Show = code.Show(i)
	}
	if n, err := strconv.ParseInt(e.Kid(ns, "priority").Inside(), 10, 8); err == nil {
		p.Priority = int8(n)
	}
	p.Status = e.Kid(ns, "status").Inside()
	for len(p.Status) > code.MaxStatus {
		p.Status = strings.ToValidUTF8(p.Status[:code.MaxStatus], "")
	}
	return p
}

// best is the presence of the resource that stands for a user: the one with the highest priority, then the readiest; false: the
// user is not there.
func (u *user) best() (best code.Presence, there bool) {
	for _, name := range slices.Sorted(maps.Keys(u.resources)) {
		r := u.resources[name]
		if !there || r.Priority > best.Priority || r.Priority == best.Priority && r.Show < best.Show {
			best, there = r, true
		}
	}
	return best, there
}

// state sends the changed presence of a user here to the far sites where somebody is subscribed.
func (p *presence) state(name string) {
	u := p.users[name]
	if u == nil || u.stale {
		return
	}
	for _, until := range []time.Time{u.next, p.nodes.waits(name)} {
		if p.now.Before(until) {
			u.late = true
			p.late = due.Earliest(p.late, until)
			return
		}
	}
	it := site.Item{Kind: site.Endpoint, Owner: name, Home: true}
	for k, w := range p.pairs {
		if k.here == name && w.far && !slices.Contains(it.To, k.site) {
			about := rule.Subject{Kind: rule.Presence, From: jid{local: name, domain: p.cfg.Domain}.bare(), To: jid{local: k.far, domain: p.cfg.domainOf(k.site)}.bare(), Site: k.site}
			if r := rule.Judge(p.cfg.Rules, &about); r == nil || !r.Local {
				it.To = append(it.To, k.site)
			}
		}
	}
	slices.Sort(it.To)
	best, there := u.best()
	best.Wants = p.nodes.wants(name)
	if !there || len(it.To) == 0 {
		if u.stated != nil {
			p.out.Items = append(p.out.Items, it.Withdrawal())
			p.remember(keyStated+name, nil)
			u.next, u.late = p.now.Add(leastApart), true // leastApart also holds for a user who comes back at once
			p.late = due.Earliest(p.late, u.next)
		} else if !there {
			delete(p.users, name)
		}
		u.stated, u.to = nil, nil
		return
	}
	if it.Doc = best.Append(nil); slices.Equal(it.Doc, u.stated) && slices.Equal(it.To, u.to) {
		return
	}
	if u.stated == nil {
		p.remember(keyStated+name, []byte{1})
	}
	u.stated, u.to, u.next = it.Doc, it.To, p.now.Add(leastApart)
	p.trouble.Count("stated")
	p.out.Items = append(p.out.Items, it)
}

// opened asks the server who is there, and shows it the far users.
func (p *presence) opened(now time.Time, c *component) {
	p.away = time.Time{}
	asked := map[string]bool{}
	for _, k := range p.sorted(func(k pair) bool { return k.site == c.site.ID }) {
		w := p.pairs[k]
		if w.here {
			p.show(now, c, k, p.far[k.site][k.far])
		}
		if w.far && !asked[k.here] {
			asked[k.here] = true
			if u := p.users[k.here]; u != nil {
				u.stale = true
				clear(u.resources)
			}
			c.write(stanza.New(ns, "presence", "type", "probe", "from", jid{local: k.far, domain: c.site.Domain}.String(),
				"to", jid{local: k.here, domain: p.cfg.Domain}.String()))
		}
	}
	p.asked = now.Add(probeFor)
}

// sorted are the pairs for which is returns true, in an order that is always the same.
func (p *presence) sorted(is func(pair) bool) (list []pair) {
	for k := range p.pairs {
		if is(k) {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.site, b.site), cmp.Compare(a.here, b.here), cmp.Compare(a.far, b.far))
	})
	return list
}

// closed notes that a server is away.
func (p *presence) closed(now time.Time) { p.away = now.Add(awayAfter) }

// turn does what is due.
func (p *presence) turn(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(p.down)) {
		o := p.down[id]
		drawn, gone := !now.Before(o.since.Add(p.cfg.Drawn)), !now.Before(o.since.Add(p.cfg.Gone))
		if drawn != o.drawn || gone != o.gone {
			o.drawn, o.gone = drawn, gone
			p.showSite(now, o.component)
		}
	}
	if due.Reached(now, p.late) {
		p.late = time.Time{}
		for _, name := range slices.Sorted(maps.Keys(p.users)) {
			if u := p.users[name]; u.late && !now.Before(u.next) {
				u.late = false
				p.state(name)
			} else if u.late {
				p.late = due.Earliest(p.late, u.next)
			}
		}
	}
	if due.Reached(now, p.away) || due.Reached(now, p.asked) {
		all := due.Reached(now, p.away)
		for _, name := range slices.Sorted(maps.Keys(p.users)) {
			if u := p.users[name]; all || u.stale {
				u.stale = false
				clear(u.resources)
				p.state(name)
			}
		}
		p.asked = time.Time{}
		if all {
			p.away = time.Time{}
		}
	}
}

func (p *presence) due() time.Time {
	at := due.Earliest(due.Earliest(p.away, p.asked), p.late)
	for _, o := range p.down {
		switch {
		case !o.drawn:
			at = due.Earliest(at, o.since.Add(p.cfg.Drawn))
		case !o.gone:
			at = due.Earliest(at, o.since.Add(p.cfg.Gone))
		}
	}
	return at
}

// reach takes in that a link is down, or up again.
func (p *presence) reach(now time.Time, c *component, ev site.Reach) {
	before := p.down[ev.Site]
	switch {
	case ev.Down:
		p.down[ev.Site] = &outage{component: c, since: ev.Since}
	case before != nil:
		delete(p.down, ev.Site)
		if before.drawn {
			p.showSite(now, c)
		}
	}
}

// showSite shows all far users of a site.
func (p *presence) showSite(now time.Time, c *component) {
	for _, name := range slices.Sorted(maps.Keys(p.far[c.site.ID])) {
		p.showAll(now, c, name)
	}
}

// farItem takes in that a far user is available, or no longer.
func (p *presence) farItem(now time.Time, c *component, it site.Item) {
	name, ok := localOf(it.Owner)
	if it.Kind != site.Endpoint || !ok || name != it.Owner {
		p.trouble.Count("far_unreadable")
		return
	}
	users := p.far[c.site.ID]
	if users == nil {
		users = map[string]*code.Presence{}
		p.far[c.site.ID] = users
	}
	if it.Gone {
		delete(users, name)
	} else if is, err := code.ParsePresence(it.Doc); err != nil || !stanza.Printable(is.Status) {
		p.trouble.Count("far_unreadable")
		return
	} else {
		users[name] = &is
	}
	p.showAll(now, c, name)
}

// lost drops all users of a site.
func (p *presence) lost(now time.Time, c *component) {
	users := p.far[c.site.ID]
	delete(p.far, c.site.ID)
	for _, name := range slices.Sorted(maps.Keys(users)) {
		p.showAll(now, c, name)
	}
}

// showAll shows a far user to all here who are subscribed.
func (p *presence) showAll(now time.Time, c *component, name string) {
	for _, k := range p.sorted(func(k pair) bool { return k.site == c.site.ID && k.far == name && p.pairs[k].here }) {
		p.show(now, c, k, p.far[k.site][name])
	}
}

// show shows a far user to one user here; u is nil if the far user is not available.
func (p *presence) show(now time.Time, c *component, k pair, u *code.Presence) {
	e := stanza.New(ns, "presence", "from", jid{k.far, c.site.Domain, resource}.String(), "to", jid{local: k.here, domain: p.cfg.Domain}.String())
	o := p.down[k.site]
	if u == nil || o != nil && o.gone {
		e.Attrs = append(e.Attrs, stanza.Attr{Name: "type", Value: "unavailable"})
		c.write(e)
		return
	}
	add := func(name, text string) {
		if text != "" {
			e = e.With(stanza.New(ns, name).Says(text))
		}
	}
	if o != nil && o.drawn {
		add("show", code.Shows[code.ExtendedAway])
		add("status", strings.TrimSuffix("no link since "+o.since.UTC().Format("15:04Z")+": "+u.Status, ": "))
		e = e.With(stanza.New(nsDelay, "delay", "from", c.site.Domain, "stamp", o.since.UTC().Format(stampOfDelay)))
	} else {
		add("show", code.Shows[u.Show])
		add("status", u.Status)
	}
	if u.Priority != 0 {
		add("priority", strconv.Itoa(int(u.Priority)))
	}
	if u.Wants != 0 {
		e = e.With(capsOf(u.Wants))
	}
	c.write(e)
}
