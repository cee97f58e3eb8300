package tak

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/cot"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/site"
)

// mostSeen is how many of the last events of the streams are remembered, so that a duplicate is dropped.
const mostSeen = 4096

// seenBefore says whether an event was there before, and notes it.
func (f *Adapter) seenBefore(e *cot.Event) bool {
	return !f.events.Add(e.UID + "\x00" + e.Type + "\x00" + e.Time.Format(cot.TimeFormat))
}

// event takes an event of a device that is not only for this server.
func (f *Adapter) event(now time.Time, c *client, e *cot.Event) {
	if who := f.devices.claimed(c, e.UID, f.cfg.Beside); who != nil && !c.met {
		f.refuse(now, "claimed", c, e.UID, nil)
		return
	}
	if f.fromFar(c, e) { // a far site's event that has come back
		f.trouble.Count("loops")
		return
	}
	if !c.server && !c.mesh && !c.met && e.Is("a") && e.Find("contact") != nil && (c.uid == "" || c.uid == e.UID) && !f.cfg.Placed(e) {
		f.devices.identify(now, c, e)
	}
	if f.seenBefore(e) {
		f.trouble.Count("twice")
		return
	}
	f.devices.noteServer(c, e)
	if f.words.receipted(now, e, f.sure) {
		return
	}
	dests := e.Dests()
	plain := e.Without("marti")
	switch {
	case len(dests) > 0:
		f.address(now, c, plain, dests)
	case c.mesh:
		f.devices.give(e)
		f.cross(now, c, e)
	default:
		f.devices.spread(e, f.devices.streams(c)...)
		f.cross(now, c, e)
	}
}

// claimed is the device that already claims this uid, if c is another device. A device that comes by another machine of this
// site may be the same.
func (d *devices) claimed(c *client, uid string, beside []string) *client {
	for _, o := range d.clients {
		if o != c && o.uid == uid && o.host != c.host && !slices.Contains(beside, o.host) && !slices.Contains(beside, c.host) {
			return o
		}
	}
	return nil
}

// fromFar says whether an event is about a far unit that we have shown here. The LAN's own server keeps the events that it was
// given, also by an earlier run of this gateway, and gives them again to each client that connects: they may be older than our
// picture.
func (f *Adapter) fromFar(c *client, e *cot.Event) bool {
	if e.Is("a") {
		for _, far := range f.far {
			u := far.Find(e.UID)
			if u == nil {
				continue
			}
			if at := u.At.Truncate(time.Millisecond); at.Equal(e.Time) || c.server && e.Time.Before(at) {
				return true
			}
		}
	}
	return f.kept.isFar(e, c.server)
}

// identify learns who a device is.
func (d *devices) identify(now time.Time, c *client, e *cot.Event) {
	fresh := c.uid == ""
	c.uid, c.callsign = e.UID, e.Callsign()
	if fresh {
		d.note("info", "a TAK device has connected", "uid", c.uid, "callsign", c.callsign, "remote", c.host)
		if !c.server {
			d.catchUp(now, c)
		}
		d.release(now)
	}
}

// flowTags is the element in which TAK servers note the route of an event, with times. It is useless elsewhere, and makes each
// report differ.
const flowTags = "_flow-tags_"

// cross takes the steps by which an event reaches far sites.
func (f *Adapter) cross(now time.Time, c *client, e *cot.Event) {
	e = e.Without(flowTags)
	switch {
	case f.cfg.Placed(e):
		f.placed(now, c, e)
		return
	case e.Is("a"):
		f.kept.moves(0, e.UID, f.remember)
		f.position(now, c, e)
		return
	case e.Type == "t-x-d-d":
		for _, uid := range withdrawn(e) {
			if u := f.near.Get(uid); u != nil {
				f.gone(now, u, code.Withdrawn)
				return
			}
			f.kept.drop(uid, f.remember)
		}
	}
	e = f.trueTimes(now, c, e)
	if keeps(e) {
		f.kept.put(0, e, f.remember)
	}
	f.carry(now, c, e, f.cfg.Sites)
}

// withdrawn are the uids that a withdrawal names.
func withdrawn(e *cot.Event) (uids []string) {
	for i := range e.Detail {
		if n := &e.Detail[i]; n.Name == "link" && n.Get("uid") != "" {
			uids = append(uids, n.Get("uid"))
		}
	}
	return uids
}

// ruled says whether a site wants an event of so many octets and the rules let it go there, and puts their precedence and expiry into
// m. An event with named recipients goes whether or not the site wants it.
func (f *Adapter) ruled(now time.Time, e *cot.Event, to uint16, octets int, m *site.Mark) bool {
	if e.Find("marti") == nil && e.Type != "t-x-d-d" && !f.wants.wanted(e, to) {
		f.trouble.Count("not_wanted")
		return false
	}
	r := rule.Judge(f.cfg.Rules, f.subject(e, to))
	if r == nil {
		return true
	}
	if b := f.wants.budget(r, to); r.Action != rule.Local && b != nil {
		if !b.Left(now) {
			f.trouble.Count("over_rate")
			return false
		}
		b.Spend(octets)
	}
	if r.Action == rule.Local {
		f.trouble.Count("kept_local")
		return false
	}
	if r.Precedence != nil {
		m.Precedence = *r.Precedence
	}
	if r.Expires > 0 {
		m.Expires = now.Add(r.Expires)
	}
	return true
}

// marked is the sites to which an event goes with the same precedence and expiry.
type marked struct {
	sites []uint16
	mark  site.Mark
}

// carry hands an event of a device to custody for the sites to which the rules let it go.
func (f *Adapter) carry(now time.Time, c *client, e *cot.Event, sites []uint16) {
	if c, ok := code.ChatOf(e); ok {
		var to []marked
		for _, id := range sites {
			m := site.Mark{Precedence: site.Priority, Expires: e.Stale}
			if !f.ruled(now, e, id, len(e.UID), &m) {
				continue
			}
			i := slices.IndexFunc(to, func(g marked) bool { return g.mark.Precedence == m.Precedence && g.mark.Expires.Equal(m.Expires) })
			if i < 0 {
				i, to = len(to), append(to, marked{mark: m})
			}
			to[i].sites = append(to[i].sites, id)
		}
		f.words.chat(now, c, e, to, f.sure)
		return
	}
	if f.files.offer(now, c, e, sites) {
		return
	}
	f.carryEvent(now, e, sites)
}

// carryEvent is carry for an event in the usual form.
func (f *Adapter) carryEvent(now time.Time, e *cot.Event, sites []uint16) {
	p := rule.PrecedenceOf(e.Type)
	if e.Is("a") { // it was placed, like markers of the types b-m
		p = site.Routine
	}
	f.carryAs(now, e, sites, p)
}

// carryAs is carryEvent with a precedence for the case that no rule sets one.
func (f *Adapter) carryAs(now time.Time, e *cot.Event, sites []uint16, p site.Precedence) {
	var groups []site.Carry
	f.heardUrgent(now, rule.PrecedenceOf(e.Type))
	at := code.Quarters(now)
	data := code.Append(appendTime(nil, at), e, at, nil)
	for _, to := range sites {
		m := site.Message{Published: true, Scope: scope, Topic: topicEvent, Parts: []site.Part{{Name: e.Type, Data: data}}}
		m.Precedence, m.Expires = p, e.Stale
		if !utf8Name(e.Type) {
			m.Parts[0].Name = ""
		}
		if !f.ruled(now, e, to, len(data), &m.Mark) {
			continue
		}
		if uid := replaces(e); uid != "" {
			m.LastValue = strings.Repeat(site.KeyEnd, 6) + uid
			m.Key = keyOf(uid)
		}
		i := slices.IndexFunc(groups, func(g site.Carry) bool {
			return g.Message.Precedence == m.Precedence && g.Message.Expires.Equal(m.Expires)
		})
		if i < 0 {
			groups = append(groups, site.Carry{Sites: []uint16{to}, Message: m})
		} else {
			groups[i].Sites = append(groups[i].Sites, to)
		}
	}
	f.out.Carry = append(f.out.Carry, groups...)
	f.trouble.Of["carried"] += len(groups)
}

// replaces is the uid whose earlier event in the queue an event replaces; "": none. Chats and orders replace nothing.
func replaces(e *cot.Event) string {
	uids := withdrawn(e)
	switch {
	case keeps(e), e.Is("a"):
		return e.UID
	case e.Type == "t-x-d-d" && len(uids) == 1:
		return uids[0]
	}
	return ""
}

// keyOf is 24 bits of a hash, never 0.
func keyOf(uid string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return max(1, h.Sum32()&(1<<24-1))
}

func utf8Name(name string) bool {
	return strings.ToValidUTF8(name, "") == name && len(name) <= cot.MaxName
}

// appendTime appends a time in quarters of a second, modulo 2^24.
func appendTime(dst []byte, at time.Time) []byte {
	q := uint32(at.UnixMilli() / code.Quarter.Milliseconds())
	return append(dst, byte(q>>16), byte(q>>8), byte(q))
}

// timeOf is the time nearest to now that appendTime writes as b.
func timeOf(b []byte, now time.Time) time.Time {
	q, here := int64(b[0])<<16|int64(b[1])<<8|int64(b[2]), now.UnixMilli()/code.Quarter.Milliseconds()
	d := (q - here) & (1<<24 - 1)
	if d >= 1<<23 {
		d -= 1 << 24
	}
	return time.UnixMilli((here + d) * code.Quarter.Milliseconds()).UTC()
}

// withDests is the event with these recipients.
func withDests(e *cot.Event, dests []cot.Dest) *cot.Event {
	c := *e
	c.Detail = append(slices.Clone(e.Detail), code.Marti(dests))
	return &c
}
