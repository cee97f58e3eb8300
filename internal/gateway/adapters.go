package gateway

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/envelope"
	"aldis/internal/link/profile"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// adapters are the LAN sides of this gateway.
type adapters struct {
	list    []*adapter // by number
	stepped bool       // one of them is being stepped: news for adapters waits
	fates   []fateOf
	drain   drain
	meeting meeting
	nearest []uint16           // sites by distance, as last told to the adapters
	ways    map[uint16]*bearer // by site, as last told to the adapters
}

// adapter is one of them.
type adapter struct {
	Adapter
	number site.Adapter
	due    time.Time // when it wants a Step
}

// fateOf is the fate of a message, for the adapter that asked about it.
type fateOf struct {
	adapter site.Adapter
	site.Fate
}

// start makes the adapters from the journal.
func (fs *adapters) start(cfg Config, records []api.Record) (err error) {
	memories := memoriesOf(records)
	for number, maker := range cfg.Adapters {
		f, err := maker(memories[number])
		if err != nil {
			return err
		}
		fs.list = append(fs.list, &adapter{Adapter: f, number: number})
	}
	slices.SortFunc(fs.list, func(a, b *adapter) int { return int(a.number) - int(b.number) })
	if cfg.Meeting != nil {
		fs.meeting.Meeting, err = cfg.Meeting(memories[site.Meeting])
	}
	return err
}

// Memories are the memories of an adapter in a journal.
func Memories(records []api.Record, number site.Adapter) []site.Memory {
	return memoriesOf(records)[number]
}

func memoriesOf(records []api.Record) map[site.Adapter][]site.Memory {
	memories := map[site.Adapter][]site.Memory{}
	records = slices.SortedStableFunc(slices.Values(records), func(a, b api.Record) int { return slices.Compare(a.Key, b.Key) })
	for _, r := range records {
		switch {
		case r.Bucket == bucketBridge:
			memories[site.JXTA] = append(memories[site.JXTA], site.Memory{Key: string(r.Key), Value: r.Value})
		case r.Bucket == bucketAdapter && len(r.Key) > 0:
			number := site.Adapter(r.Key[0])
			memories[number] = append(memories[number], site.Memory{Key: string(r.Key[1:]), Value: r.Value})
		}
	}
	return memories
}

// of is the adapter with this number; nil when this gateway has none.
func (fs *adapters) of(number site.Adapter) *adapter {
	for _, f := range fs.list {
		if f.number == number {
			return f
		}
	}
	return nil
}

// due is when the first of them wants a Step; zero: none does.
func (fs *adapters) due() (at time.Time) {
	for _, f := range fs.list {
		at = due.Earliest(at, f.due)
	}
	return due.Earliest(at, fs.meeting.due)
}

// describeItem is an item as the rules see it.
func (fs *adapters) describeItem(it site.Item) site.Subject {
	if f := fs.of(it.Adapter); f != nil {
		return f.DescribeItem(it)
	}
	return site.Subject{Type: filter.Other, Scope: it.Scope, Owner: it.Owner, Octets: len(it.Doc)}
}

// describe is a message as the rules see it.
func (fs *adapters) describe(m *site.Message) site.Subject {
	if f := fs.of(m.Adapter); f != nil {
		return f.DescribeMessage(m)
	}
	return site.Subject{Scope: m.Scope, Owner: m.From, Topic: m.Topic}
}

// remark finds again the last-value key of a message that came from the journal.
func (fs *adapters) remark(rules []mark.Rule, m *site.Message) {
	if m.Key != 0 {
		s := fs.describe(m)
		mark.Remark(rules, m, &s)
	}
}

// reroute says again which bearers a message of the journal may take.
func (fs *adapters) reroute(rules []mark.Rule, m *site.Message) {
	if slices.ContainsFunc(rules, func(r mark.Rule) bool { return r.Links != nil }) {
		s := fs.describe(m)
		mark.Route(rules, m, &s)
	}
}

// stepAdapter gives an adapter an event and carries out its output.
func (g *Gateway) stepAdapter(now time.Time, number site.Adapter, ev site.Event) {
	f := g.adapters.of(number)
	if f == nil {
		return
	}
	g.adapters.stepped = true
	fo := f.Step(now, ev)
	g.adapters.meeting.hear(now, number, ev, &fo)
	for _, o := range fo.Orders {
		g.out.LAN = append(g.out.LAN, api.LANOrder{Adapter: number, Order: o})
	}
	g.out.Notes = append(g.out.Notes, fo.Notes...)
	for _, m := range fo.Remember {
		g.Record(memoryRecord(number, m))
	}
	g.link.touched = g.link.touched || len(fo.Items)+len(fo.Carry)+len(fo.Done)+len(fo.Undelivered) > 0
	for _, it := range fo.Items {
		it.Adapter = number
		if envelope.Fits(&it) != nil { // no message can hold it
			g.Drop("item_size")
			it = it.Withdrawal()
		}
		g.crossing.put(now, it)
		g.queries.asked(it)
		if it.Gone {
			g.Record(bucketOwn, []byte(it.Key()), nil)
		} else if value, err := encodeItem(it); err == nil {
			g.Record(bucketOwn, []byte(it.Key()), value)
		}
	}
	for i := range fo.Carry {
		fo.Carry[i].Message.Adapter = number
		g.carry(now, f, &fo.Carry[i])
	}
	for _, t := range fo.Done {
		if p := g.known(senderOf(t)); p != nil {
			p.ends.handed(t)
		}
	}
	for _, u := range fo.Undelivered {
		if p := g.known(senderOf(u.Token)); p != nil {
			p.ends.failed(now, u)
		}
	}
	f.due = fo.Deadline
	g.adapters.stepped = false
	g.TellFates(now)
	g.meet(now)
}

// memoryRecord is the journal's record of a memory of an adapter.
func memoryRecord(number site.Adapter, m site.Memory) (bucket string, key, value []byte) {
	bucket, key, value = bucketBridge, []byte(m.Key), m.Value
	if number != site.JXTA {
		bucket, key = bucketAdapter, append([]byte{byte(number)}, m.Key...)
	}
	if len(value) == 0 {
		value = nil
	}
	return bucket, key, value
}

// carry takes a message of this site into custody for those sites that the rules let it go to.
func (g *Gateway) carry(now time.Time, f *adapter, c *site.Carry) {
	sites, m := c.Sites, &c.Message
	refuse := func(siteID uint16, how site.Ending) {
		if p := g.byID[siteID]; p != nil {
			p.Counts.Refused++
		}
		g.adapters.ended(m, how)
	}
	if d := &g.adapters.drain; d.on { // the sender hears of it as of a full queue
		for _, siteID := range sites {
			if g.byID[siteID] != nil {
				d.refused++
				refuse(siteID, site.Refused)
			}
		}
		return
	}
	m.Open = "" // only rules set it
	if len(g.cfg.Messages) > 0 || !g.cfg.Filter.Empty() {
		s := f.DescribeMessage(m)
		mark.Mark(g.cfg.Messages, now, m, &s)
		if !g.cfg.Filter.Empty() {
			sites = slices.DeleteFunc(slices.Clone(sites), func(siteID uint16) bool {
				stays := !g.crossing.carries(now, site.Out, siteID, s)
				if stays {
					refuse(siteID, site.Forbidden)
				}
				return stays
			})
		}
	}
	if len(sites) > 0 && g.groups.say(now, m, c.Again) {
		return
	}
	var to []*peer
	for _, siteID := range sites {
		if p := g.byID[siteID]; p != nil {
			to = append(to, p)
		}
	}
	if len(to) == 0 { // its sites were taken out: it ends like the messages that waited for them
		if len(sites) > 0 {
			g.adapters.ended(m, site.Cancelled)
		}
		return
	}
	refused := accept(g, now, to, envelope.Message{Payload: m}, mail.Payload)
	for _, p := range to {
		if slices.Contains(refused, p) {
			refuse(p.ID, site.Refused)
		} else {
			p.Counts.Accepted++
		}
	}
}

// waitsUntil is until when a far message waits for local peers; zero: as long as the connection that it belongs to.
func (g *Gateway) waitsUntil(now time.Time, m *site.Message) time.Time {
	s := g.adapters.describe(m)
	if s.Stream {
		return time.Time{}
	}
	return now.Add(mark.Wait(g.cfg.Messages, g.cfg.Wait, m, &s))
}

// deliver hands a message of a far site to its adapter. Where this gateway has no such adapter, the message is undeliverable.
func (g *Gateway) deliver(now time.Time, m site.FarMessage) {
	if g.adapters.of(m.Message.Adapter) == nil {
		g.Drop("face")
		g.byID[m.Site].ends.failed(now, site.Undelivered{Token: m.Token, Why: site.Nobody})
		return
	}
	g.stepAdapter(now, m.Message.Adapter, m)
}

// siteLost tells every adapter that all it knows of a site is void.
func (g *Gateway) siteLost(now time.Time, siteID uint16) {
	for _, f := range g.adapters.list {
		g.stepAdapter(now, f.number, site.SiteLost{Site: siteID})
	}
}

// tellJoined tells every adapter of a site that the roster names.
func tellJoined(g *Gateway, now time.Time, p *peer) {
	for _, f := range g.adapters.list {
		g.stepAdapter(now, f.number, site.Joined{Site: p.ID})
	}
}

// tellReach tells every adapter that the link to a site is down, or up again.
func tellReach(g *Gateway, now time.Time, p *peer, down bool) {
	var since time.Time // when the site was last heard, on any bearer
	for l := range legsTo(p) {
		since = due.Latest(since, l.LastHeard)
	}
	if since.IsZero() {
		since = now
	}
	for _, f := range g.adapters.list {
		g.stepAdapter(now, f.number, site.Reach{Site: p.ID, Down: down, Since: since})
	}
}

// fast is the rate in bits per second from which a bearer is not thin.
const fast = 64_000

// way tells every adapter which bearer messages to a site take, when it has changed.
func (fs *adapters) way(g *Gateway, now time.Time, p *peer) {
	l := p.best(nil)
	if l == nil || fs.ways[p.ID] == l.bearer {
		return
	}
	if fs.ways == nil {
		fs.ways = map[uint16]*bearer{}
	}
	fs.ways[p.ID] = l.bearer
	w := site.Way{Site: p.ID, Bearer: l.bearer.name.Name, Fast: !g.cfg.Silent}
	for _, d := range []profile.Direction{l.bearer.Profile.Up, l.bearer.Profile.Down} {
		w.Fast = w.Fast && (d.RateBps == 0 || d.RateBps >= fast)
	}
	for _, f := range fs.list {
		g.stepAdapter(now, f.number, w)
	}
}

// ended notes that a message has reached its site, or never will.
func (fs *adapters) ended(m *site.Message, how site.Ending) {
	if m != nil && m.Token != 0 {
		fs.fates = append(fs.fates, fateOf{m.Adapter, site.Fate{Token: m.Token, Ending: how}})
	}
}

// TellFates tells the adapters what has become of their messages.
func (g *Gateway) TellFates(now time.Time) {
	for !g.adapters.stepped && len(g.adapters.fates) > 0 {
		f := g.adapters.fates[0]
		g.adapters.fates = g.adapters.fates[1:]
		g.stepAdapter(now, f.adapter, f.Fate)
	}
}

// Meeting is where adapters of this gateway meet (internal/adapters/interop): messages from the clients of one may reach those of another here.
type Meeting interface {
	// Hear receives the event and the output of every Step of an adapter. It takes out of the output whatever is not for the
	// core. Before the first Step it receives the items of an earlier run, one by one.
	Hear(now time.Time, from site.Adapter, ev site.Event, out *site.Output)
	// Step brings it to now, when something was heard or it is due.
	Step(now time.Time) site.Met
}

// meeting is the Meeting of a gateway, and when it has its next Step; empty where adapters do not meet.
type meeting struct {
	Meeting
	due   time.Time
	begun bool
	heard bool // since its last Step
	tells bool // the adapters are receiving its events
}

// hear passes a Step of an adapter on to the Meeting.
func (m *meeting) hear(now time.Time, from site.Adapter, ev site.Event, out *site.Output) {
	if m.Meeting != nil {
		m.Meeting.Hear(now, from, ev, out)
		m.heard = true
	}
}

// begin comes before the Meeting's first Step and after those of the adapters.
func (m *meeting) begin(now time.Time, own []site.Item) {
	if m.Meeting == nil {
		return
	}
	for _, it := range own {
		m.Meeting.Hear(now, it.Adapter, nil, &site.Output{Items: []site.Item{it}})
	}
	m.begun, m.heard = true, true
}

// meet gives the adapters the events of their meeting, until there are no more.
func (g *Gateway) meet(now time.Time) {
	m := &g.adapters.meeting
	if !m.begun || m.tells || g.adapters.stepped {
		return
	}
	m.tells = true
	for m.heard || due.Reached(now, m.due) {
		m.heard = false
		out := m.Step(now)
		m.due = out.Deadline
		g.out.Notes = append(g.out.Notes, out.Notes...)
		for _, memory := range out.Remember {
			g.Record(memoryRecord(site.Meeting, memory))
		}
		for _, t := range out.Tell {
			g.stepAdapter(now, t.Adapter, t.Event)
		}
	}
	m.tells = false
}
