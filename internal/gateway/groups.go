package gateway

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/custody"
	"aldis/internal/link/entropy"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/hearing"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// Groups of gateways, and open messages to all that are in them: docs/decisions/groups.md.

// GroupConfig is a group that this node is in unless an order says otherwise.
type GroupConfig struct {
	Name string        // as entropy.CheckName takes it
	Life time.Duration // of its open messages for which no rule names a lifetime; 0: DefaultGroupLife
	Hops int           // how many gateways may take such a message one after the other; 0: entropy.MostHops
	Key  bool          // its messages are sealed with a key of its members alone
}

// DefaultGroupLife is the lifetime of an open message for which nobody names one.
const DefaultGroupLife = time.Hour

// GroupOrder is the operator's order to join a group or to leave it.
type GroupOrder struct {
	Name string
	In   bool
	Key  bool // with In: as GroupConfig.Key
}

// GatewayEvent marks GroupOrder as an event of the gateway.
func (GroupOrder) GatewayEvent() {}

// GroupRefusal says why an order about a group would be refused by a gateway with this status; nil: it would not, as far as the status shows.
func GroupRefusal(s api.Status, o GroupOrder) error {
	in := slices.ContainsFunc(s.Groups, func(g api.GroupStatus) bool { return g.Name == o.Name })
	inside := slices.IndexFunc(s.Groups, func(g api.GroupStatus) bool { return strings.HasPrefix(g.Name, o.Name+"/") })
	switch {
	case s.Roster == nil:
		return errNoRoster
	case !o.In && !in:
		return errNotIn
	case !o.In && inside >= 0:
		return insideOf(s.Groups[inside].Name)
	}
	return nil
}

var (
	errNoRoster = errors.New("groups need link.roster: with one key for all every member could speak in another's name")
	errNotIn    = errors.New("this gateway is not in that group")
)

func insideOf(inside string) error {
	return fmt.Errorf("this gateway is in %s, which is inside of it: leave that first", inside)
}

// Buckets of the journal.
const (
	bucketGroup = "group" // name -> 1: joined by order, 2: with a key of its own, 0: left by order
	bucketOpen  = "open"  // keys and values of package entropy
)

// groups are the groups of this node.
type groups struct {
	g       *Gateway
	engine  *entropy.Engine // nil: no group was ever joined
	ordered map[string]byte // by name, as bucketGroup has it
	secrets groupSecrets
	naming  groupNames
	names   map[entropy.Tag]string
	numbers map[entropy.Tag]uint64 // of the last messages of this run, also in groups that were left
	saved   []api.Record           // of bucketOpen, until the first Step
	ports   []groupPort
	muted   map[int]bool      // bearers
	heard   map[int]time.Time // by bearer: when another node last spoke P_Mul there
	refused uint64            // messages that were too long to be open
	hearing *hearing.Net
	said    *due.Recent[[sha256.Size]byte] // messages already sent, for a site that opens a pipe after others
}

// mostSaid is how many of its last messages this node recognises.
const mostSaid = 1024

// groupPort is a port of the engine, with its bearer and leg.
type groupPort struct {
	entropy.Port
	b     *bearer
	leg   *leg // of the one neighbour, or of the first
	after int64
	since time.Time // since when something waits that may not go yet
}

// mostOpen is how many octets of open messages a node holds.
const mostOpen = 8 << 20

// groupLimit is how many octets a datagram has besides an open message, at most: frame, head of the message, signature.
const groupLimit = frame.OpenOverhead + 20 + len(seal.Signature{})

func newGroups(g *Gateway) (*groups, error) {
	gs := &groups{g: g, said: due.NewRecent[[sha256.Size]byte](mostSaid), ordered: map[string]byte{}, secrets: newGroupSecrets(), naming: groupNames{map[naming]uint64{}, fewNames}, names: map[entropy.Tag]string{}, numbers: map[entropy.Tag]uint64{}, muted: map[int]bool{}, heard: map[int]time.Time{},
		hearing: hearing.New(hearing.Name{ID: g.cfg.ID, Start: g.cfg.Incarnation.Number})}
	for _, c := range g.cfg.Groups {
		if err := entropy.CheckName(c.Name); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		if g.cfg.Trust == nil {
			return nil, fmt.Errorf("gateway: %w", errNoRoster)
		}
	}
	return gs, nil
}

// restore takes a record of the journal.
func (gs *groups) restore(r api.Record) error {
	switch r.Bucket {
	case bucketOpen:
		gs.saved = append(gs.saved, r)
		return nil
	case bucketGroupKeys:
		gs.secrets.standing[string(r.Key)] = r.Value
		return nil
	case bucketUnread:
		return gs.secrets.restore(r.Key, r.Value)
	case bucketKeyless:
		return gs.secrets.restoreKeyless(r.Key, r.Value)
	}
	if len(r.Value) != 1 || entropy.CheckName(string(r.Key)) != nil {
		return mail.ErrRecord
	}
	gs.ordered[string(r.Key)] = r.Value[0]
	return nil
}

// start joins the groups that configuration and journal name.
func (gs *groups) start(now time.Time) {
	for _, name := range gs.wanted() {
		if err := gs.join(now, name); err != nil {
			gs.g.Note("warn", "an order about a group was refused", "group", name, "why", err)
		}
	}
	for _, r := range gs.saved {
		if gs.engine == nil {
			gs.g.Record(bucketOpen, r.Key, nil)
		} else if err := gs.engine.Restore(r.Key, r.Value); err != nil {
			gs.g.Drop("group_record")
		}
	}
	gs.saved = nil
	if gs.engine == nil {
		gs.sayKeyless(now) // in no group they cannot be said any more
		return
	}
	for _, tag := range gs.engine.Tags() {
		for _, it := range gs.engine.Named(tag) {
			if flow, ok := gs.defined(now, &it); ok {
				gs.learn(naming{tag, it.Origin, flow.Ref()}, &it)
			}
		}
	}
}

// wanted are the groups that configuration and orders name, in order.
func (gs *groups) wanted() (list []string) {
	for _, c := range gs.g.cfg.Groups {
		if in, ordered := gs.ordered[c.Name]; in > 0 || !ordered {
			list = append(list, c.Name)
		}
	}
	for name, in := range gs.ordered {
		if in > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// above are the groups that contain a group, and the group itself.
func above(name string) (list []string) {
	for i, c := range name {
		if c == '/' {
			list = append(list, name[:i])
		}
	}
	return append(list, name)
}

// join enters a group and those that contain it; the error says why not.
func (gs *groups) join(now time.Time, name string) error {
	if gs.g.cfg.Trust == nil {
		return errNoRoster
	}
	if gs.engine == nil {
		gs.engine = entropy.New(entropy.Config{Self: gs.g.cfg.ID, Start: gs.g.cfg.Incarnation.Number, Most: mostOpen, Verify: gs.verify,
			Keep: func(key, value []byte) { gs.g.Record(bucketOpen, key, value) }, Hearing: gs.hearing,
			Rand: rand.New(rand.NewPCG(uint64(gs.g.cfg.ID), uint64(gs.g.cfg.Incarnation.Number)))})
	}
	for _, each := range above(name) {
		tag := entropy.TagOf(each)
		if is := gs.names[tag]; is != "" && is != each {
			return fmt.Errorf("the groups %s and %s are called alike on the link: give one another name", is, each)
		}
		if !gs.engine.Join(now, tag) {
			return fmt.Errorf("this gateway is in %d groups, and may not be in more", entropy.MostGroups)
		}
		gs.names[tag] = each
		if err := gs.hide(tag, each); err != nil {
			return err
		}
	}
	return nil
}

// order obeys the operator.
func (gs *groups) order(now time.Time, o GroupOrder) {
	err := entropy.CheckName(o.Name)
	value := []byte{0}
	before := gs.ordered[o.Name]
	if err == nil && o.In {
		if value[0] = 1; o.Key {
			value[0] = 2
		}
		gs.ordered[o.Name] = value[0]
		err = gs.join(now, o.Name)
	} else if err == nil {
		err = gs.leaves(o.Name)
	}
	if err != nil {
		gs.g.Note("warn", "an order about a group was refused", "group", o.Name, "why", err)
		if gs.ordered[o.Name] = before; before == 0 && o.In {
			delete(gs.ordered, o.Name)
		}
		return
	}
	gs.ordered[o.Name] = value[0]
	gs.leaveRest(now)
	gs.g.Record(bucketGroup, []byte(o.Name), value)
	gs.g.Note("info", "the groups of this gateway were changed", "group", o.Name, "joined", o.In)
}

// leaves says why this node may not leave a group; nil: it may.
func (gs *groups) leaves(name string) error {
	if tag := entropy.TagOf(name); gs.names[tag] != name || gs.secrets.leaves(tag) {
		return errNotIn
	}
	for _, inside := range gs.names {
		if strings.HasPrefix(inside, name+"/") {
			return insideOf(inside)
		}
	}
	return nil
}

// leaveRest leaves the groups in which nothing keeps this node.
func (gs *groups) leaveRest(now time.Time) {
	in := map[string]bool{}
	for _, name := range gs.wanted() {
		for _, each := range above(name) {
			in[each] = true
		}
	}
	for tag, name := range gs.names {
		if !in[name] && !gs.parts(now, tag, name) {
			gs.engine.Leave(now, tag, false)
			delete(gs.names, tag)
		}
	}
}

const groupPurpose = "aldis open message 1"

// signed is the text that an origin signs. It has the group's name, because two groups may have the same tag.
func (gs *groups) signed(it *entropy.Item, body []byte) []byte {
	text := append([]byte(gs.names[it.Tag]), 0) // no name has an octet below that of a blank
	if it.Names {
		text[len(text)-1] = 1
	}
	return append(it.Signed(text), body...)
}

// content is a message without its signature.
func content(it *entropy.Item) []byte { return it.Body[:len(it.Body)-len(seal.Signature{})] }

// verify says whether a message is from the origin that it names.
func (gs *groups) verify(it *entropy.Item) entropy.Verdict {
	public, ok := gs.g.keys.Public(it.Origin)
	split := len(it.Body) - len(seal.Signature{})
	switch {
	case !ok || gs.g.byID[it.Origin] == nil:
		return entropy.Stranger
	case split < 0 || !public.Verify(groupPurpose, gs.signed(it, content(it)), seal.Signature(it.Body[split:])):
		return entropy.Forged
	}
	return entropy.Genuine
}

// say gives a message to its group; false: it cannot be an open one, and goes into custody as others do. again: it was given to sites before;
// if the whole group has it already, it is not sent anew.
func (gs *groups) say(now time.Time, m *site.Message, again bool) bool {
	tag := entropy.TagOf(m.Open)
	if m.Open == "" || !m.Published || m.Token != 0 || gs.engine == nil || gs.names[tag] != m.Open || gs.secrets.leaves(tag) {
		return false
	}
	same := *m
	same.Expires = time.Time{}
	whole, err := envelope.Append(nil, envelope.Message{Payload: &same}, 0, true)
	if err != nil {
		gs.refused++
		return false
	}
	life, hops := DefaultGroupLife, entropy.MostHops
	if c := gs.configured(m.Open); c != nil {
		life, hops = cmp.Or(max(c.Life, 0), life), cmp.Or(c.Hops, hops)
	}
	if !m.Expires.IsZero() {
		life = m.Expires.Sub(now)
	}
	it := gs.item(now, tag, life, hops)
	body, n, says, err := gs.pack(now, &it, m)
	if err != nil || len(body)+gs.secrets.octets(tag) > gs.room() {
		gs.refused++
		return false
	}
	if news := gs.said.Add(sha256.Sum256(whole)); again && !news {
		return true
	}
	if body, ok := gs.seal(now, &it, body); ok {
		it.About = aboutAdapter(m.Adapter)
		if gs.utter(now, it, body); says {
			gs.learn(n, &it)
		}
		return true
	}
	return gs.wait(*m, now.Add(life))
}

// configured is the configuration of a group; nil: there is none.
func (gs *groups) configured(name string) *GroupConfig {
	for i := range gs.g.cfg.Groups {
		if c := &gs.g.cfg.Groups[i]; c.Name == name {
			return c
		}
	}
	return nil
}

// item is the next message of this node in a group, without its body.
func (gs *groups) item(now time.Time, tag entropy.Tag, life time.Duration, hops int) entropy.Item {
	number := max(gs.engine.NextNumber(tag), gs.numbers[tag]+1)
	if last := gs.numbers[tag]; last > 0 && number > last+1 { // put back, it has used numbers twice: names that it has said since may have reached nobody
		maps.DeleteFunc(gs.naming.number, func(n naming, _ uint64) bool { return n.tag == tag && n.origin == gs.g.cfg.ID })
	}
	if number == 1 {
		number = entropy.FirstNumber(gs.g.cfg.Incarnation.Number)
	}
	it := entropy.Item{Tag: tag, Name: entropy.Name{Origin: gs.g.cfg.ID, Number: number}, Life: entropy.Life(life), Hops: uint8(hops)}
	it.Expires = now.Add(entropy.LifeOf(it.Life))
	return it
}

// utter signs a message and gives it to its group.
func (gs *groups) utter(now time.Time, it entropy.Item, body []byte) {
	signature := gs.g.cfg.Trust.Own.Sign(groupPurpose, gs.signed(&it, body))
	it.Body = append(slices.Clone(body), signature[:]...)
	gs.numbers[it.Tag] = it.Number
	gs.engine.Say(now, it)
}

// room is how many octets an open message may have to fit a datagram of every bearer.
func (gs *groups) room() (octets int) {
	octets = entropy.MostBody
	for _, b := range gs.g.bearers {
		if b.Relay == nil {
			octets = min(octets, b.groupRoom()-groupLimit)
		}
	}
	return octets
}

// groupRoom is how many octets of frames fit a datagram, to all or to one, in the short form and the long.
func (b *bearer) groupRoom() int {
	return b.Profile.Filled() - seal.OverheadLong - b.keys.ProofsMost()
}

// openQueue is the queue of the journal's records of open messages that wait for local peers.
const openQueue frame.Queue = 0xfe

// aboutAdapter is Item.About of a message of an adapter.
func aboutAdapter(a site.Adapter) uint8 { return 1 + uint8(a) }

// open hands a message of a group to its adapter. It came on a leg; nil: long ago.
func (gs *groups) open(now time.Time, it entropy.Item, by *leg) {
	g, p := gs.g, gs.g.byID[it.Origin]
	body, ok := gs.unseal(now, &it, content(&it))
	if !ok {
		return
	}
	m, ok := gs.unpack(now, &it, body)
	if !ok {
		return
	}
	gs.engine.Count(it.Tag, it.Name, aboutAdapter(m.Payload.Adapter))
	if by != nil {
		by.Ledger.Read(&m, len(it.Body))
	}
	if !g.cfg.Filter.Empty() && !g.crossing.carries(now, site.In, p.ID, g.adapters.describe(m.Payload)) {
		g.Drop("filter")
		return
	}
	far, err := p.ends.keep(now, p.leg.Peer, m, custody.ID{Queue: openQueue, Number: uint64(it.Tag)<<48 | it.Number})
	if err != nil {
		g.Drop("group_unreadable")
		return
	}
	g.deliver(now, far)
}

// receive takes a frame of a neighbour; false: the frame is not about groups.
func (gs *groups) receive(now time.Time, p *leg, f frame.Frame, octets int) bool {
	id := p.port()
	if gs.engine != nil && !slices.ContainsFunc(gs.ports, func(q groupPort) bool { return q.ID == id }) {
		gs.look(now) // a peer that could not be reached is heard
	}
	switch f := f.(type) {
	case frame.Digest:
		p.Ledger.Add(mail.Received, mail.State, octets)
		if gs.engine != nil {
			gs.engine.Digest(now, id, p.ID, entropy.Tag(f.Tag), f.Hash, f.Fresh)
		}
	case frame.Open:
		p.Ledger.Came(octets)
		p.Ledger.Named(mail.Payload, octets)
		if gs.engine == nil {
			gs.g.Drop("group_unknown")
			return true
		}
		got := gs.engine.Receive(now, id, p.ID, f.Body)
		for _, reason := range got.Dropped {
			gs.g.Drop(reason)
		}
		for _, it := range got.New {
			gs.open(now, it, p)
		}
	case frame.PMul:
		gs.heard[p.bearer.index] = now
		return false
	default:
		return false
	}
	return true
}

// started is the peer with its start, as heard on this leg.
func (l *leg) started() hearing.Name {
	if l.LastHeard.IsZero() {
		return hearing.Name{ID: l.ID}
	}
	return hearing.Name{ID: l.ID, Start: l.bearer.keys.Incarnation(l.ID)}
}

// greeted learns which nodes a peer has heard on a bearer. The greeting does not name the start of a member that is Apart.
func (gs *groups) greeted(now time.Time, p *leg, f frame.Greeting) {
	var names []hearing.Name
	for _, m := range f.Members {
		if m.Apart || m.HeardIncarnation != 0 {
			names = append(names, hearing.Name{ID: m.ID, Start: m.HeardIncarnation})
		}
	}
	gs.hearing.Greets(now, p.bearer.index, p.started(), names, !f.More && !f.Starts)
}

// repeatable is a copy of a datagram to all on a shared channel, which a node in groups may send again for its sender; nil: it may not.
func (gs *groups) repeatable(b *bearer, data []byte, info seal.OpenInfo) []byte {
	if gs.engine == nil || !info.Group || !b.sharesGroup() {
		return nil
	}
	return slices.Clone(data)
}

// port is the port of a leg.
func (l *leg) port() entropy.PortID {
	if l.bearer.sharesGroup() {
		return entropy.PortID(l.bearer.index) << 16
	}
	return entropy.PortID(l.bearer.index)<<16 | entropy.PortID(l.ID)
}

// sharesGroup says that one transmission reaches all peers of the bearer.
func (b *bearer) sharesGroup() bool { return len(b.Channels) > 0 && b.Common.Group.IsValid() }

// told is the leg on which a peer gets news of groups: the leg of messages, or one on which it has met this node already.
func (p *peer) told() *leg {
	best := p.best(nil)
	if best != nil && best.met() {
		return best
	}
	for l := range legsTo(p) {
		if l.bearer.Relay == nil && l.met() && l.answers() {
			return l
		}
	}
	return best
}

// look tells the engine which ports there are now. A peer that does not answer is sent digests all the same, for nothing else
// would find that it is back.
func (gs *groups) look(now time.Time) {
	g, before := gs.g, gs.ports
	gs.ports = nil
	var down []*leg
	for _, p := range g.peers {
		for l := range legsTo(p) {
			if l.bearer.Relay == nil {
				here := !l.Gone && !l.Off && !l.Link.Dead() && (!l.LastHeard.IsZero() || l.Addr.IsValid())
				gs.hearing.Present(now, l.bearer.index, l.started(), here)
			}
		}
		l := p.told()
		switch {
		case l == nil || l.bearer.Relay != nil || l.Gone || l.Off || !l.bearer.sharesGroup() && !l.Addr.IsValid():
		case l.Link.Dead():
			down = append(down, l)
		default:
			gs.see(before, l, false)
		}
	}
	for _, l := range down {
		gs.see(before, l, true)
	}
	for _, p := range gs.ports { // on a bearer after the first, a peer for which nothing waits is not greeted
		for _, id := range p.Peers {
			if l := g.byID[id].legs[p.b.index]; !l.met() && !gs.engine.Waiting(p.ID).IsZero() && !p.b.mute() {
				l.want(now)
			}
		}
	}
	list := make([]entropy.Port, len(gs.ports))
	for i, p := range gs.ports {
		list[i] = p.Port
	}
	gs.engine.Ports(now, list)
}

// see adds a leg to the ports; down: its peer does not answer. On a shared channel such a peer hears the datagrams to the others.
func (gs *groups) see(before []groupPort, l *leg, down bool) {
	id, shared := l.port(), l.bearer.sharesGroup()
	if i := slices.IndexFunc(gs.ports, func(q groupPort) bool { return q.ID == id }); i >= 0 {
		if gs.ports[i].Down == down {
			gs.ports[i].Peers = append(gs.ports[i].Peers, l.ID)
		}
		return
	}
	_, rate := l.Link.Air()
	port := groupPort{Port: entropy.Port{ID: id, Channel: l.bearer.index, Shared: shared, Down: down, Peers: []uint16{l.ID}, Hub: l.of.Ashore && !shared,
		Spreads: l.bearer.shore && !shared, Trip: l.bearer.Common.Timing.RoundTrip, Bps: rate}, b: l.bearer, leg: l}
	if i := slices.IndexFunc(before, func(q groupPort) bool { return q.ID == id }); i >= 0 {
		port.after, port.since = before[i].after, before[i].since
	}
	gs.ports = append(gs.ports, port)
}

// step lets time pass.
func (gs *groups) step(now time.Time) {
	if gs.engine == nil {
		return
	}
	gs.look(now)
	for _, b := range gs.g.bearers {
		if mute := b.mute(); mute != gs.muted[b.index] {
			if gs.muted[b.index] = mute; !mute {
				gs.engine.Wake(now)
			}
		}
	}
	gs.turnSecrets(now)
	gs.engine.Step(now)
}
