package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/link/seal"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/rules/route"
	"aldis/internal/site"
)

// Adapter is the LAN side of a gateway for one kind of software: jxtabridge.Bridge, or a load that a simulation makes. Items
// that it announced in an earlier run count until it withdraws them or they expire.
type Adapter interface {
	// Step brings the adapter to now and applies ev; a nil ev means that only time passed.
	Step(now time.Time, ev site.Event) site.Output
	// DescribeItem and DescribeMessage return the properties that the operator's rules judge by, also for items and messages of
	// other sites. The caller sets Direction and Site. They do not change the adapter, and only Subject.Owners depend on what it has
	// seen; of an item of another site they mean nothing.
	DescribeItem(site.Item) site.Subject
	DescribeMessage(*site.Message) site.Subject
}

// PeerConfig is a sister gateway.
type PeerConfig struct {
	ID   uint16
	Name string
	Addr netip.AddrPort // invalid: learned from its first authentic datagram
	// Shore: this node is a terminal of a star, and the peer is ashore. Where a peer is ashore, terminals that have never met greet
	// each other only when one has something for the other.
	Shore bool
	Via   []uint16 // peers that pass on messages for it, the first that answers; none: only a peer that has passed on one of its messages
	// enrolled: the roster names the peer. later: it came into the roster after this node.
	later, enrolled bool
}

// Config is what a gateway is made of.
type Config struct {
	ID          uint16
	Name        string
	Peers       []PeerConfig
	Profile     profile.Profile
	Shore       bool             // the link's profile is that of the peers' terminals, this end is ashore
	Key         seal.Key         // shared by all nodes
	Trust       *Trust           // in its place: each node has its own key; nil: Key counts
	Incarnation seal.Incarnation // new at every start; the caller made its number durable
	Store       uint32           // number of the journal, random at its creation
	Keepalive   time.Duration
	// Silent is an order of the configuration: nothing is ever transmitted, whatever the journal says.
	Silent bool
	// Windows are times of silence that come by themselves.
	Windows calendar.Windows
	// SinceLast is how long ago the last run on this journal began, by a clock that nobody sets; 0: unknown.
	SinceLast time.Duration
	// TakesOver: the site has two machines, and a start is usually one on the other machine (docs/decisions/two-at-a-site.md).
	TakesOver bool
	// Group is the address of a radio net that all members share; with P_Mul a message for several goes there once.
	// Invalid: every peer gets a copy.
	Group  netip.AddrPort
	Bearer string         // name of the bearer that Profile, Shore, Keepalive and Group belong to; "": it has none
	Price  float64        // of that bearer (BearerConfig.Price)
	Lines  bool           // of that bearer (BearerConfig.Lines)
	PerDay int64          // of that bearer (BearerConfig.PerDay)
	Direct int            // of that bearer (BearerConfig.Direct)
	More   []BearerConfig // other bearers
	Relay  bool           // this node passes on messages that other gateways have sealed for each other
	// willing are the peers that pass on messages for a peer that only the roster names, as the roster says.
	willing []uint16
	Rand    *rand.Rand     // of P_Mul's random delays
	Rules   []compact.Rule // how hard the gateway tries to make elements smaller; compact.DefaultRules come after
	// Corpus is the network's own. Messages to peers that have the same corpus are coded with it. Nil: none.
	Corpus *compact.NetworkCorpus
	// Known are the results of the models of a virtual net, shared by its gateways; nil, as in every real net: this gateway's model does
	// all the work.
	Known *compact.Known
	// Filter says what may cross; nil has no rules. The bridge has the same one, which also says what local peers may offer each other.
	Filter *filter.Filter
	// Messages say how urgent a message is, how long it is worth sending, and what it replaces; the first that fits decides.
	Messages []mark.Rule
	// Routes say which bearers messages may take, and how soon they should be there; the first that fits decides.
	Routes []route.Rule
	// Wait is how long a far message waits for local peers that are away and no rule says otherwise; 0 means DefaultWait.
	Wait time.Duration
	// MaxWaiting bounds the octets that wait for one peer; 0 means DefaultMaxWaiting. Messages that do not fit are refused.
	MaxWaiting int
	// Refused hears of each record of the journal that cannot be used and that the gateway can do without (Spare). nil: such
	// a record is an error of New.
	Refused func(r api.Record, why error)
	// Groups are the groups that this node is in.
	Groups []GroupConfig
	// Fleet is this node's part in the roll-up.
	Fleet FleetConfig
	// Adapters make the LAN sides, each from its memories.
	Adapters map[site.Adapter]func(memories []site.Memory) (Adapter, error)
	// Meeting makes the place where adapters meet, from its memories; nil: they do not meet.
	Meeting func(memories []site.Memory) (Meeting, error)
}

// DefaultMaxWaiting is 64 MiB: at 9,600 bit/s more than fifteen hours of air.
const DefaultMaxWaiting = 64 << 20

// Gateway is one node. It is not for concurrent use.
type Gateway struct {
	cfg       Config
	adapters  adapters
	keys      *keys.Keys
	coders    coders
	replica   *replica.Replica
	mail      *mail.Store
	peers     []*peer // by id
	byID      map[uint16]*peer
	bearers   []*bearer
	now       time.Time // of this Step
	silence   silence
	crossing  crossing
	dropped   map[string]uint64 // datagrams and packets, by reason
	nextPurge time.Time         // of expired items

	passed   passed // messages passed on for others
	groups   *groups
	queries  queries
	rollups  *rollups
	probing  *linkProbes // of the last order to measure a link; nil: there was none
	roll     roll
	link     linkWait
	restored *restored   // until the first Step
	orders   orders      // about messages
	out      *api.Output // of this Step
}

// New starts from the records of the journal; nil for a new node. The error says what in restore cannot be understood.
func New(cfg Config, restore []api.Record) (*Gateway, error) {
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = DefaultMaxWaiting
	}
	if cfg.Filter == nil {
		cfg.Filter = filter.New(nil)
	}
	if cfg.Wait == 0 {
		cfg.Wait = DefaultWait
	}
	cfg.Rules = slices.Concat(cfg.Rules, compact.DefaultRules)
	g := &Gateway{cfg: cfg, byID: map[uint16]*peer{}, dropped: map[string]uint64{}, restored: &restored{}, out: &api.Output{}}
	g.coders.network.Network = cfg.Corpus
	g.coders.plain.Known, g.coders.network.Known = cfg.Known, cfg.Known
	parts := split(restore)
	g.cfg.enroll(parts[""])
	cfg = g.cfg
	ways := cfg.bearersOf()
	if err := checkBearers(ways); err != nil {
		return nil, err
	}
	for i, way := range ways {
		g.bearers = append(g.bearers, newBearer(g, way, i))
	}
	g.mail = mail.NewStore(g.bearers[0].road, cfg.Incarnation.Number, cfg.MaxWaiting, g.ended)
	g.mail.Elsewhere = func(e *mail.Entry) { elsewhere(g, e) }
	g.orders = orders{store: g.mail, services: g, adapters: &g.adapters,
		carrier: func(m *mail.Peer) mail.Orders { return legOf(g, m).bearer.Carrier().Orders() }}
	for _, pc := range cfg.Peers {
		if pc.ID == 0 || pc.ID == cfg.ID || g.byID[pc.ID] != nil {
			return nil, fmt.Errorf("gateway: peer id %d is not unique in the network", pc.ID)
		}
		p := newPeer(pc, g.bearers[0], &g.mail.Lives, cfg.Profile.Transport == profile.PMul)
		g.byID[pc.ID] = p
		g.peers = append(g.peers, p)
	}
	slices.SortFunc(g.peers, func(a, b *peer) int { return int(a.ID) - int(b.ID) })
	ids := make([]uint16, len(g.peers))
	for i, p := range g.peers {
		ids[i] = p.ID
	}
	g.replica = replica.New(ids)
	g.queries = newQueries(g)
	g.crossing = crossing{filter: cfg.Filter, adapters: &g.adapters, replica: g.replica, log: g, sites: slices.Clone(ids)}
	var err error
	if g.groups, err = newGroups(g); err != nil {
		return nil, err
	}
	if g.rollups, err = newRollups(g); err != nil {
		return nil, err
	}
	if err := g.adapters.start(cfg, parts[""]); err != nil {
		return nil, err
	}
	parts[cfg.Bearer] = parts[""]
	for i, b := range g.bearers {
		if err := b.reach(ways[i], parts[b.name.Name]); err != nil {
			return nil, err
		}
	}
	g.roll.left = leftBehind(parts[""], g.byID)
	states, err := g.restore(parts)
	if err != nil {
		return nil, err
	}
	if first := parts[""]; cfg.Bearer != "" && !slices.ContainsFunc(first, func(r api.Record) bool { return r.Bucket == bucketFirst && string(r.Value) == cfg.Bearer }) {
		g.Record(bucketFirst, []byte("first"), []byte(cfg.Bearer))
	}
	g.restored.records = g.out.Records
	g.silence.fixed = cfg.Silent
	for i, b := range g.bearers {
		if err := b.keys.Begin(states[i]); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
	}
	return g, nil
}

// Hold is how long a bridge should keep a propagate pipe's message for news of a listener: the news may have to be sent
// twice. Over P_Mul it may be lost four times, in one burst of losses on HF: each time the sender waits for half of
// AckDelay and a round trip, from the third time on twice as long as before (docs/decisions/waiting.md).
func Hold(p profile.Profile) time.Duration {
	trip := p.RoundTripMax(p.DatagramOctets + profile.IPUDPOctets)
	if p.Transport == profile.PMul {
		return max(15*time.Second, (1+1+2+4)*(p.AckDelay/2+trip))
	}
	return max(15*time.Second, 5*trip/2)
}

// AskAfter is how long a bridge should wait for an answer to come by itself before it asks far sites: an answer may be on its way.
func AskAfter(p profile.Profile) time.Duration {
	return max(3*time.Second, p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets))
}

// Step brings the gateway to now and applies ev; a nil ev means that only time passed.
func (g *Gateway) Step(now time.Time, ev api.Event) (out api.Output) {
	g.out, g.link.touched, g.now = &out, false, now
	if by := g.link.late(now, ev); by > 0 {
		for l := range legsOf(g) {
			l.Link.Late(now, by)
		}
	}
	g.mail.Turn(now)
	for _, b := range g.bearers {
		b.keys.Step(now)
	}
	defer func() { g.out = nil }()
	if g.restored != nil {
		g.start(now)
	}
	if _, clock := ev.(api.Clock); !clock {
		g.windows(now)
	}
	idle := func() bool { return g.link.idle(now) && !due.Reached(now, g.adapters.due()) }
	switch ev := ev.(type) {
	case api.LAN:
		g.stepAdapter(now, ev.Adapter, ev.Event)
		if idle() {
			out.Deadline = due.Earliest(g.link.due, g.adapters.due())
			return out
		}
	case api.Datagram:
		b := g.bearers[ev.Bearer]
		b.billed.received(g.silence.wall(now), siteAt(g, ev.Bearer, ev.Addr), len(ev.Data))
		b.day.count(g.silence.wall(now), len(ev.Data)+profile.IPUDPOctets)
		g.link.touched = true
		g.receive(now, ev)
		if ev.More {
			if g.link.touched {
				g.link.due = now // whatever comes next
			}
			out.Deadline = now
			return out
		}
		if idle() { // the datagram was refused
			out.Deadline = due.Earliest(g.link.due, g.adapters.due())
			return out
		}
	case api.Stop:
		// The Step does nothing else: a message that it read after this would be handed over, and its peer would not know.
		g.recordBills()
		for _, b := range g.bearers {
			for _, c := range b.Carriers {
				if !b.mute() {
					c.Settle(now)
				}
			}
		}
		return out
	default:
		g.apply(now, ev)
	}
	for _, f := range g.adapters.list {
		if due.Reached(now, f.due) {
			g.stepAdapter(now, f.number, nil)
		}
	}
	g.meet(now)
	if !now.Before(g.nextPurge) {
		g.purge(now)
		g.adapters.near(g, now)
	}
	g.orders.step(now)
	g.crossing.step(now, func(from uint16, it site.Item) { g.stepAdapter(now, it.Adapter, site.FarItem{Site: from, Item: it}) })
	for l := range legsOf(g) {
		g.mail.Expire(now, l.Peer)
	}
	for _, b := range g.bearers {
		b.direct.step(now)
	}
	for _, p := range g.peers {
		g.adapters.way(g, now, p)
		p.ends.step(now)
		handOver(g, now, p)
	}
	if serial := g.keys.Rosters.Newest(); serial != g.roll.serial {
		g.roll.serial = serial
		enlist(g, now)
	}
	g.tellRosters(now)
	g.TellFates(now)
	g.passed.step(g, now)
	g.groups.step(now)
	g.rollups.step(now)
	for _, b := range g.bearers { // time passes in the carriers
		for _, c := range b.Carriers {
			c.Step(now)
		}
	}
	g.silence.step(g, g.bearers, now)
	for _, b := range g.bearers {
		b.silence.step(g, []*bearer{b}, now)
		b.day.step(now)
	}
	g.transmit(now)
	for _, b := range g.bearers {
		b.lines.hush(b, &out)
		b.silence.tell(b, &out)
	}
	for _, p := range g.peers {
		before := p.unreachable()
		for l := range legsTo(p) {
			out.Notes = append(out.Notes, slices.Concat(l.link.check(now, l), l.differs.check(now, l, l.bearer.shore))...)
		}
		if p.late.Due(now) {
			out.Notes = append(out.Notes, p.late.Look(now, &g.sites(p)[0], g.mail)...)
			if p.late.Messages > 0 && len(p.legs) > 1 {
				p.usable |= 1 << 63 // late messages may be in time on another bearer
			}
		}
		if down := p.unreachable(); down != before {
			tellReach(g, now, p, down)
		}
	}
	g.link.due, g.link.looked = g.deadline(now), true
	out.Deadline = due.Earliest(g.link.due, g.adapters.due())
	return out
}

// windows begins the silence of each window that holds now: before anything else in a Step, for the Step may be late, and an event may make
// P_Mul transmit.
func (g *Gateway) windows(now time.Time) {
	g.silence.window(g, g.bearers, now)
	for _, b := range g.bearers {
		b.silence.window(g, []*bearer{b}, now)
	}
}

// transmit sends what is ready and has air; a silent node sends nothing.
func (g *Gateway) transmit(now time.Time) {
	g.queries.begin(now)
	for _, b := range g.bearers {
		if b.mute() {
			b.linkProbes.hush(now)
			continue
		}
		g.queries.pump(now, b)
		g.groups.pump(now, b)
		g.rollups.pump(now, b)
		b.direct.pump(now)
		for _, c := range b.Carriers {
			c.Pump(now)
		}
		b.linkProbes.pump(now)
	}
}

// apply carries out orders of operators, and takes reports of the edges.
func (g *Gateway) apply(now time.Time, ev api.Event) {
	switch ev := ev.(type) {
	case api.Silence:
		for _, b := range g.bearers {
			if ev.Bearer != "" && ev.Bearer == b.name.Name {
				b.silence.apply(g, []*bearer{b}, now, ev)
			}
		}
		if ev.Bearer == "" {
			g.silence.apply(g, g.bearers, now, ev)
		}
	case api.Clock:
		g.silence.hear(now, ev)
		for _, b := range g.bearers {
			b.silence.hear(now, ev)
		}
		g.windows(now)
	case MessageOrder:
		g.orders.apply(now, ev)
	case ClassOrder:
		g.orders.obeyClass(now, ev)
	case api.Forget:
		g.forget(now, ev)
	case NewRules:
		g.newRules(now, ev)
	case api.Drain:
		g.out.Notes = append(g.out.Notes, g.adapters.drain.order(now, ev)...)
	case NewLink:
		g.newLink(now, ev)
	case GroupOrder:
		g.groups.order(now, ev)
	case LinkProbeOrder:
		ev.order(g, now)
	case api.Line:
		g.bearers[ev.Bearer].lines.take(now, g, ev)
	case api.Modem:
		g.bearers[ev.Bearer].hearModem(now, ev)
	case NewRoster:
		g.keys.Rosters.Give(ev.Roster)
		g.part(now)
	default:
		for _, c := range g.bearers[0].Carriers { // libnorm serves the first bearer
			c.Event(now, ev)
		}
	}
}

// start is the first Step: everything known from the journal is told to the adapters before anything else happens.
func (g *Gateway) start(now time.Time) {
	r := g.restored
	g.restored = nil
	g.out.Records = r.records
	g.silence.resume(g, &g.cfg, now)
	for _, b := range g.bearers {
		if b.silence.name != "" {
			b.silence.resume(g, &g.cfg, now)
		}
		b.day.step(now)
	}
	for _, b := range g.bearers {
		b.keys.Start(now)
	}
	g.adapters.stepped = true // fates wait until the adapters have begun
	for _, b := range g.bearers {
		for _, c := range b.Carriers {
			if b.mute() { // P_Mul sends in its own time
				c.Silence(now, true)
			}
		}
	}
	g.part(now)
	g.adapters.stepped = false
	g.groups.start(now)
	g.roll.serial = g.keys.Rosters.Newest()
	for _, it := range r.own { // before an adapter says anew which items somebody uses
		g.crossing.put(now, it)
	}
	for _, f := range g.adapters.list {
		g.stepAdapter(now, f.number, nil)
	}
	for _, p := range g.peers {
		if p.Enrolled {
			tellJoined(g, now, p)
		}
	}
	g.adapters.meeting.begin(now, slices.DeleteFunc(r.own, func(it site.Item) bool { _, is := g.replica.Own()[it.Key()]; return !is }))
	g.meet(now)
	for _, f := range r.far {
		g.farItem(now, f.Site, f.Item, false)
	}
	for _, p := range g.peers {
		p.ends.start(now)
	}
	for _, m := range r.mail {
		g.byID[m.Site].ends.boundLife(now, &m)
		g.deliver(now, m)
	}
	for _, b := range g.bearers {
		b.direct.start(now)
		for _, c := range b.Carriers {
			c.Start(now)
			c.Silence(now, b.mute())
			for l := range legsOf(g) {
				if l.bearer == b && l.Link.Listening() {
					c.PeerSilent(now, l.Peer, true)
				}
			}
		}
	}
	g.purge(now)
}

// purgeMost is how many entries of a kind one turn of the loop forgets: a turn must stay short.
const purgeMost = 500

// purge forgets expired items, of this site and of the peers'.
func (g *Gateway) purge(now time.Time) {
	g.nextPurge = now.Add(time.Minute)
	g.recordBills()
	own, held, more := g.replica.Purge(now, purgeMost)
	for _, key := range own {
		delete(g.crossing.unjudged, key)
		g.Record(bucketOwn, []byte(key), nil)
	}
	for _, p := range g.peers {
		for _, key := range held[p.ID] {
			g.Record(bucketCopy, peerKey(p.ID, []byte(key)), nil)
		}
		if p.far.purge(now, purgeMost) {
			more = true
		}
	}
	if more {
		g.nextPurge = now.Add(10 * time.Millisecond)
	}
}

// endings are the final states of custody in the terms of adapters.
var endings = map[mail.Fate]site.Ending{mail.Delivered: site.Stored, mail.Expired: site.Expired, mail.Refused: site.Refused,
	mail.Cancelled: site.Cancelled, mail.Superseded: site.Replaced}

// ended is called once for each message and recipient. It tells the adapter that asked, and notes what the peer now holds.
func (g *Gateway) ended(e *mail.Entry, fate mail.Fate) {
	if p := e.Content.Payload; p != nil && p.Adapter == site.Relay {
		passedOn(g, e, fate)
		return
	}
	if e.Content.Roster != nil {
		g.keys.Rosters.Ended(g.now, e.Peer.ID, e.Content.Roster, fate == mail.Delivered)
		return
	}
	switch fate {
	case mail.Reissued: // it goes on
		return
	case mail.Delivered:
		for _, h := range g.replica.Acked(e.Peer.ID, e.ID) {
			g.Record(copyRecord(e.Peer.ID, h))
		}
		if e.Content.Payload != nil {
			g.byID[e.Peer.ID].ends.acknowledged(g.now, e)
			forecast.Took(&g.byID[e.Peer.ID].delays, g.now, e.Accepted)
			legOf(g, e.Peer).took(g, e)
		}
	default:
		g.replica.Unsent(e.Peer.ID, e.ID)
		g.byID[e.Peer.ID].ends.back(g.now, e.Content.Lost)
	}
	g.adapters.ended(e.Content.Payload, endings[fate])
}

// Note says something in the operator's log.
func (g *Gateway) Note(level, text string, attrs ...any) {
	g.out.Notes = append(g.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// Record changes the journal, with the other records of this Step.
func (g *Gateway) Record(bucket string, key, value []byte) {
	g.out.Records = append(g.out.Records, api.Record{Bucket: bucket, Key: key, Value: value})
}

// RecordPeer makes a peer's numbers durable.
func (g *Gateway) RecordPeer(p *mail.Peer) { p.Link.Record() }

// Drop counts a datagram or packet that came to nothing.
func (g *Gateway) Drop(reason string) { g.dropped[reason]++ }

// deadline is when Step wants to be called at the latest.
func (g *Gateway) deadline(now time.Time) time.Time {
	at := due.Earliest(due.Earliest(g.nextPurge, g.crossing.limited.due), g.passed.due())
	for l := range legsOf(g) {
		at = due.Earliest(due.Earliest(at, g.mail.Due(l.Peer)), l.link.due())
	}
	for _, p := range g.peers {
		at = due.Earliest(at, p.ends.due())
	}
	at = due.Earliest(at, due.Earliest(due.Earliest(g.groups.due(now), g.rollups.due(now)), g.queries.due()))
	at = due.Earliest(due.Earliest(at, g.silence.due(now)), g.orders.due(now))
	for _, b := range g.bearers {
		for _, c := range b.Carriers {
			at = due.Earliest(at, c.Due(now, b.mute()))
		}
		at = due.Earliest(due.Earliest(at, due.Earliest(b.linkProbes.due(now), b.direct.due())), due.Earliest(due.Earliest(b.keys.Due(), b.silence.due(now)), b.day.due(now, g.silence.wall(now))))
	}
	return at
}
