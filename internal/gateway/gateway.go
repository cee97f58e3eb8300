package gateway

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/replica"
	"aldis/internal/link/seal"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/site"
)

// Face is the LAN side of a gateway for one kind of software: jxtabridge.Bridge, or a load that a simulation makes. Items
// that it told in an earlier run count until it withdraws them or they expire.
type Face interface {
	// Step brings the face to now and applies ev; a nil ev means that only time passed.
	Step(now time.Time, ev site.Event) site.Output
	// DescribeItem and DescribeMessage say what the operator's rules may go by, also of what came from other sites.
	// Direction and Site are the caller's. They neither change the face nor depend on what it has seen.
	DescribeItem(site.Item) site.Subject
	DescribeMessage(*site.Message) site.Subject
}

// PeerConfig is a sister gateway.
type PeerConfig struct {
	ID   uint16
	Name string
	Addr netip.AddrPort // invalid: learned from its first authentic datagram
}

// Config is what a gateway is made of.
type Config struct {
	ID        uint16
	Name      string
	Peers     []PeerConfig
	Profile   profile.Profile
	Shore     bool // the link's profile is that of the peers' terminals, this end is ashore
	Key       seal.Key
	Boot      seal.Boot // new at every start; the caller made its number durable
	Store     uint32    // of the journal, random at its creation
	Keepalive time.Duration
	// Group is the address of a radio net that all members share; with P_Mul what is for several goes there once.
	// Invalid: every peer gets a copy.
	Group netip.AddrPort
	Rand  *rand.Rand     // of P_Mul's random delays
	Rules []compact.Rule // how hard elements are tried to make smaller; compact.DefaultRules come after
	// Filter is what may cross; nil has no rules. The bridge has the same one, for what local peers may offer each other.
	Filter *filter.Filter
	// Messages say how urgent a message is, how long it is worth sending, and what it replaces; the first that fits decides.
	Messages []mark.Rule
	// MaxWaiting bounds the octets that wait for one peer; 0 means DefaultMaxWaiting. What does not fit is refused.
	MaxWaiting int
	// Faces make the LAN sides, each from what it asked to remember.
	Faces map[site.Face]func(memories []site.Memory) (Face, error)
}

// DefaultMaxWaiting is 64 MiB: at 9,600 bit/s more than fifteen hours of air.
const DefaultMaxWaiting = 64 << 20

// Gateway is one node. It is not for concurrent use.
type Gateway struct {
	cfg       Config
	custody   custody.Config // timers and windows of the link
	faces     faces
	sealer    *seal.Sealer
	opener    *seal.Opener
	coder     compact.Coder
	replica   *replica.Replica
	peers     []*peer // by id
	byID      map[uint16]*peer
	air       air // of a terminal: one for all peers
	turn      int // whose turn it is among peers that share the air
	started   bool
	seq       uint64 // of messages waiting
	norm      normState
	silence   silence
	slow      slow
	mul       *mul // nil unless the profile's transport is P_Mul
	stats     Stats
	nextPurge time.Time // of what has expired

	linkDue time.Time // when the link wants a Step, as the last one found that looked at it
	looked  bool      // at the link, in any Step

	// Of one Step.
	touched      bool // something was done that concerns the link
	out          *Output
	now          time.Time
	restoredOwn  []site.Item
	restoredFar  []site.FarItem
	restoredMail []site.FarMessage
}

// New starts from what the journal holds; nil for a new node. The error says what in restore cannot be understood.
func New(cfg Config, restore []Record) (*Gateway, error) {
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = DefaultMaxWaiting
	}
	if cfg.Profile.DatagramOctets < minDatagram {
		return nil, fmt.Errorf("gateway: profile %s: datagrams of %d octets, at least %d needed",
			cfg.Profile.Name, cfg.Profile.DatagramOctets, minDatagram)
	}
	cfg.Rules = slices.Concat(cfg.Rules, compact.DefaultRules)
	g := &Gateway{cfg: cfg, custody: custodyConfig(cfg.Profile), byID: map[uint16]*peer{}, stats: newStats()}
	ids := []uint16{}
	for _, pc := range cfg.Peers {
		if pc.ID == 0 || pc.ID == cfg.ID || g.byID[pc.ID] != nil {
			return nil, fmt.Errorf("gateway: peer id %d is not unique in the net", pc.ID)
		}
		p, err := g.newPeer(pc)
		if err != nil {
			return nil, err
		}
		g.byID[pc.ID] = p
		g.peers = append(g.peers, p)
		ids = append(ids, pc.ID)
	}
	slices.SortFunc(g.peers, func(a, b *peer) int { return int(a.ID) - int(b.ID) })
	g.replica = replica.New(ids)
	if err := g.faces.start(cfg.Faces, restore); err != nil {
		return nil, err
	}
	states, err := g.restore(restore)
	if err != nil {
		return nil, err
	}
	if err := g.newMul(restore); err != nil {
		return nil, err
	}
	g.sealer = seal.NewSealer(cfg.Key, cfg.ID, cfg.Boot)
	g.opener = seal.NewOpener(cfg.Key, cfg.ID, cfg.Boot, states)
	return g, nil
}

// custodyConfig derives the timers of custody from the link.
func custodyConfig(p profile.Profile) custody.Config {
	c := custody.Config{
		RoundTrip:     p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets) + p.OneWayMax(p.DatagramOctets+profile.IPUDPOctets)/2,
		Prompt:        p.RoundTripMax(p.DatagramOctets + profile.IPUDPOctets),
		AckDelay:      p.AckDelay,
		ProbeInterval: p.ProbeInterval,
	}
	c.Window[frame.Direct] = p.Window
	c.Window[frame.Bulk] = bulkWindow
	if p.Reorder {
		c.HoleAge, c.Reorder = p.HoleAge, true
	}
	return c
}

// Hold is how long a bridge should keep a propagate pipe's message for news of a listener: the news may have to be sent
// twice.
func Hold(p profile.Profile) time.Duration {
	return max(15*time.Second, 5*p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets)/2)
}

// AskAfter is how long a bridge should wait for an answer to come by itself before it asks far sites: one may be on its way.
func AskAfter(p profile.Profile) time.Duration {
	return max(3*time.Second, p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets))
}

// Step brings the gateway to now and applies ev; a nil ev means that only time passed.
func (g *Gateway) Step(now time.Time, ev Event) (out Output) {
	g.out, g.now, g.touched = &out, now, false
	defer func() { g.out = nil }()
	if !g.started {
		g.start(now)
	}
	switch ev := ev.(type) {
	case LAN:
		g.stepFace(now, ev.Face, ev.Event)
		if g.idle(now) {
			out.Deadline = earlier(g.linkDue, g.faces.due())
			return out
		}
	case Datagram:
		g.receive(now, ev)
	case Silence:
		g.setSilence(now, ev)
	case NormUp:
		g.normUp(now, ev.Generation)
	case NormDown:
		g.normDown(now, ev.Reason)
	case NormPacket:
		g.normPacket(now, ev)
	case NormObject:
		g.normObject(now, ev)
	case NormSent:
		g.normSent(now, ev)
	}
	if !g.norm.startAt.IsZero() && !now.Before(g.norm.startAt) {
		g.startNorm(now)
	}
	for _, f := range g.faces.list {
		if !f.due.IsZero() && !now.Before(f.due) {
			g.stepFace(now, f.number, nil)
		}
	}
	if !now.Before(g.nextPurge) {
		g.purge(now)
	}
	g.stepSlow(now)
	g.expire(now)
	g.stepMul(now)
	g.endSilence(now)
	if !g.silence.on {
		g.pump(now)
	}
	g.linkDue, g.looked = g.deadline(now), true
	out.Deadline = earlier(g.linkDue, g.faces.due())
	return out
}

// idle says that an event of the LAN has left the link as it was, and that nothing is due there: most of what local
// peers say to the gateway and to each other.
func (g *Gateway) idle(now time.Time) bool {
	due := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	return g.looked && !g.touched && !due(g.linkDue) && !due(g.faces.due())
}

// start is the first Step: everything known from the journal is told to the faces before anything else happens.
func (g *Gateway) start(now time.Time) {
	g.started = true
	for _, it := range g.restoredOwn { // before a face says anew which of them somebody uses
		g.put(now, it)
	}
	for _, f := range g.faces.list {
		g.stepFace(now, f.number, nil)
	}
	for _, f := range g.restoredFar {
		g.farItem(now, f.Site, f.Item, false)
	}
	for _, m := range g.restoredMail {
		g.deliver(now, m)
	}
	g.restoredOwn, g.restoredFar, g.restoredMail = nil, nil, nil
	for _, p := range g.peers {
		p.helloDue = now
		if p.receiver.Cumulative(frame.Direct)+p.receiver.Cumulative(frame.Bulk) > 0 {
			p.receiver.Probed(now) // what was owed when we stopped is owed now
		}
	}
	g.startNorm(now)
	g.startMul(now)
	g.purge(now)
}

// purgeMost is how much of a kind one turn of the loop forgets: a turn must stay short.
const purgeMost = 500

// purge forgets what has expired here and at the peers.
func (g *Gateway) purge(now time.Time) {
	g.nextPurge = now.Add(time.Minute)
	own, held, more := g.replica.Purge(now, purgeMost)
	for _, key := range own {
		g.record(bucketOwn, []byte(key), nil)
	}
	for _, p := range g.peers {
		for _, key := range held[p.ID] {
			g.record(bucketHeld, peerKey(p.ID, []byte(key)), nil)
		}
		due := p.farEnds.Due(now, purgeMost)
		more = more || len(due) == purgeMost
		for _, key := range due {
			switch it, known := p.far[key]; {
			case !known || it.Expires.IsZero():
			case !now.Before(it.Expires):
				delete(p.far, key)
				g.record(bucketFar, peerKey(p.ID, []byte(key)), nil)
			case it.Expires.Sub(now) < time.Minute:
				p.farEnds.Add(it.Expires, key)
			}
		}
	}
	if more {
		g.nextPurge = now.Add(10 * time.Millisecond)
	}
}

func (g *Gateway) note(level, text string, attrs ...any) {
	g.out.Notes = append(g.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

func (g *Gateway) record(bucket string, key, value []byte) {
	g.out.Records = append(g.out.Records, Record{bucket, key, value})
}

// air is a transmitter: free says when the last datagram has left it.
type air struct{ free time.Time }

// airOf is the transmitter that reaches p, and its rate in bits per second.
func (g *Gateway) airOf(p *peer) (*air, int) {
	switch {
	case g.cfg.Shore: // every terminal has a leg of its own
		return &p.air, g.cfg.Profile.Down.RateBps
	default:
		return &g.air, g.cfg.Profile.Up.RateBps
	}
}

// pump sends what is ready and has air.
func (g *Gateway) pump(now time.Time) {
	for sent := true; sent; {
		sent = false
		for i := range g.peers {
			p := g.peers[(g.turn+i)%len(g.peers)]
			air, rate := g.airOf(p)
			if !p.addr.IsValid() || now.Before(air.free) || !g.bundled(now, p) {
				continue
			}
			n, err := g.compose(now, p)
			if errors.Is(err, seal.ErrSpent) {
				g.note("error", "this start has sealed all the datagrams it may: restart the gateway")
			}
			if n == 0 {
				continue
			}
			air.free = now.Add(profile.Airtime(n+g.cfg.Profile.FrameOverhead, rate))
			g.turn = (g.turn + i + 1) % len(g.peers)
			sent = true
			break
		}
	}
}

// bundled says whether p has something to send that has waited long enough for company.
func (g *Gateway) bundled(now time.Time, p *peer) bool {
	if ready, _ := g.ready(now, p); !ready {
		p.readyAt = time.Time{}
		return false
	}
	if p.readyAt.IsZero() {
		p.readyAt = now
	}
	return !now.Before(p.readyAt.Add(g.cfg.Profile.Bundle))
}

// ready says whether something could go to p now, and if not when that may change by itself (zero: it will not).
func (g *Gateway) ready(now time.Time, p *peer) (bool, time.Time) {
	var wake time.Time
	at := func(t time.Time) bool {
		if t.IsZero() {
			return false
		}
		if !now.Before(t) {
			return true
		}
		wake = earlier(wake, t)
		return false
	}
	if p.sender.ProbeDue(now) || len(p.answers) > 0 || at(p.helloDue) || at(p.receiver.Due()) {
		return true, time.Time{}
	}
	if !p.sender.Dead() {
		switch {
		case len(p.sender.Lost(now)) > 0, len(p.normOut) > 0,
			p.first(frame.Direct) != nil, g.norm.up && p.first(frame.Bulk) != nil:
			return true, time.Time{}
		case p.sender.Room(frame.Direct) && g.mul == nil && len(g.replica.Next(now, p.ID, 1)) > 0:
			may, when := g.mayTell(now, p)
			if may || at(when) {
				return true, time.Time{}
			}
		}
		if at(g.bulkDeadline(p)) {
			return true, time.Time{}
		}
	}
	at(p.sender.Deadline())
	if g.cfg.Keepalive > 0 && at(p.lastSent.Add(g.cfg.Keepalive)) {
		return true, time.Time{}
	}
	return false, wake
}

// deadline is when Step wants to be called at the latest.
func (g *Gateway) deadline(now time.Time) time.Time {
	due := earlier(earlier(g.nextPurge, g.norm.startAt), g.slow.due)
	if g.mul != nil {
		due = earlier(due, g.mul.due())
		for _, p := range g.peers {
			due = earlier(due, p.order.due(g.mulPatience()))
		}
	}
	for _, p := range g.peers {
		due = earlier(due, p.expiry)
	}
	if g.silence.on {
		return earlier(due, g.silence.until)
	}
	for _, p := range g.peers {
		if !p.addr.IsValid() {
			continue
		}
		ready, wake := g.ready(now, p)
		if ready {
			air, _ := g.airOf(p)
			wake = later(air.free, p.readyAt.Add(g.cfg.Profile.Bundle))
			if !wake.After(now) { // nothing came of it this time
				wake = now.Add(time.Second)
			}
		}
		due = earlier(due, wake)
	}
	return due
}

// earlier is the earlier of two times; a zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
