package gateway

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/probe"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/site"
)

// BearerConfig describes a way over the air. Config itself describes the first.
type BearerConfig struct {
	Name      string // the same at both ends; "" is allowed for the first alone
	Profile   profile.Profile
	Shore     bool // as Config.Shore
	Keepalive time.Duration
	Group     netip.AddrPort
	Price     float64                   // of 1,000 IP octets; 0: nothing where the tariff does not grow with octets, else UsualPrice
	PerDay    int64                     // IP octets that a day (UTC) may carry, sent and received; 0: any
	Peers     map[uint16]netip.AddrPort // the peers that it reaches, and where; invalid: learned
	Lines     bool                      // a peer is reached only while api.Line says that there is a connection
	Direct    int                       // sessions at most with peers that relays introduce: docs/decisions/direct.md; 0, or without Keepalive: none
}

// UsualPrice is the price of 1,000 octets where the bill grows with them and the configuration names no price.
const UsualPrice = 1.0

// PriceOf is the price of 1,000 octets in the gateway's reckoning. named is the price in the configuration; 0: it names none.
func PriceOf(named float64, p *profile.Profile) float64 {
	if named == 0 && !p.Free() {
		return UsualPrice
	}
	return named
}

// MostBearers is how many bearers a gateway has at most.
const MostBearers = 8

// bearer is a way over the air, with its keys, accounts and silence.
type bearer struct {
	*carriage.Bearer
	road       road
	name       mail.Bearer
	index      int // in the list of bearers
	shore      bool
	price      float64 // of 1,000 IP octets
	keys       *keys.Keys
	billed     billed
	day        allowance
	linkProbes *linkProbes
	silence    *silence // of this bearer alone; the gateway's makes it quiet too
	lines      connections
	modem      api.Modem // its last report
	direct     sessions
}

// bearersOf lists the bearers of a configuration, the first first.
func (c *Config) bearersOf() []BearerConfig {
	first := BearerConfig{Name: c.Bearer, Profile: c.Profile, Shore: c.Shore, Keepalive: c.Keepalive, Group: c.Group, Price: c.Price, PerDay: c.PerDay, Lines: c.Lines, Direct: c.Direct, Peers: map[uint16]netip.AddrPort{}}
	for _, p := range c.Peers {
		first.Peers[p.ID] = p.Addr
	}
	list := append([]BearerConfig{first}, c.More...)
	if c.relays() {
		list = append(list, relayBearer(c, list))
	}
	return list
}

// checkBearers says what is wrong with a list of bearers.
func checkBearers(list []BearerConfig) error {
	if len(list) > MostBearers {
		return fmt.Errorf("gateway: %d bearers, at most %d", len(list), MostBearers)
	}
	marks := map[uint8]string{}
	for i, b := range list {
		other, known := marks[seal.BearerMark(b.Name)]
		switch {
		case i > 0 && b.Name == "", strings.Contains(b.Name, onBearer):
			return fmt.Errorf("gateway: %q is no name of a bearer", b.Name)
		case known:
			return fmt.Errorf("gateway: the bearers %q and %q are called alike on the link: give one another name", other, b.Name)
		}
		marks[seal.BearerMark(b.Name)] = b.Name
	}
	return nil
}

// newBearer is a bearer that reaches nobody yet; index is its place in the list.
func newBearer(g *Gateway, cfg BearerConfig, index int) *bearer {
	b := &bearer{name: mail.Bearer{Name: cfg.Name, Mark: seal.BearerMark(cfg.Name)}, index: index, shore: cfg.Shore, price: PriceOf(cfg.Price, &cfg.Profile), billed: billed{Bill: cfg.Profile.Bill}}
	b.road = road{g, g, b}
	b.day = allowance{most: cfg.PerDay, bearer: b}
	b.silence = &silence{name: cfg.Name, all: &g.silence}
	b.lines.needed = cfg.Lines
	return b
}

// reach makes the carriers of a bearer to some of the peers. records are the bearer's own in the journal.
func (b *bearer) reach(cfg BearerConfig, records []api.Record) error {
	g := b.road.g
	var reached []*mail.Peer
	for _, p := range g.peers {
		addr, ok := cfg.Peers[p.ID]
		if l := b.leg(p, addr, ok, cfg.Profile.Transport == profile.PMul); l != nil {
			reached = append(reached, l.Peer)
		}
	}
	b.keys = newKeys(&g.cfg, cfg, g.keys, b.road, reached)
	if g.keys == nil {
		g.keys = b.keys
	}
	if b.name.Name == mail.Relay {
		b.relay(cfg, reached)
		return nil
	}
	many := len(g.bearers) > 1
	var beside func(uint16) []frame.Beside
	if many {
		beside = func(peer uint16) []frame.Beside { return besides(g, peer, b) }
	}
	made, err := carriage.New(carriage.Config{
		Common: mail.Common{
			Self: g.cfg.ID, Peers: reached, Services: b.road, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain,
			Group: cfg.Group, Introduce: func(peer uint16, tries int) [][]byte { return b.keys.Introduce(peer, tries, cfg.Profile.Filled()) }, Proofs: b.keys.ProofsMost(), Behind: b.keys.Rosters.MayLack, Tells: func(peer uint16) bool { return !many || tellsBy(g, peer, b) },
		},
		Profile: cfg.Profile, Incarnation: g.cfg.Incarnation.Number, Shore: cfg.Shore, Keepalive: cfg.Keepalive, Rand: g.cfg.Rand, Late: b.index > 0, Hasty: many, TakesOver: g.cfg.TakesOver,
		Lacks: b.keys.Lacks, Far: b.keys.Far, Beside: beside, Proven: b.keys.Proofs, Records: records, Holds: g.orders.takes,
	})
	if err != nil {
		return err
	}
	b.Bearer = made
	b.direct = newSessions(b, cfg.Direct)
	b.linkProbes = newLinkProbes(b, cfg.Shore)
	return nil
}

// leg makes the leg of a peer on a bearer, at an address; on: the bearer reaches the peer, as the first bearer always does. nil: it does not.
func (b *bearer) leg(p *peer, addr netip.AddrPort, on, shared bool) (l *leg) {
	switch {
	case b.index == 0:
		l = p.leg
	case on:
		l = &leg{Peer: mail.NewPeer(p.ID, p.Name, addr, b.road, shared), of: p}
		l.Counts, l.Later, l.Enrolled = p.Counts, p.Later, p.Enrolled
	}
	if l != nil {
		l.bearer, l.Bearer, l.Off = b, b.name, b.lines.needed
	}
	p.legs = append(p.legs, l)
	return l
}

func newLinkProbes(b *bearer, shore bool) *linkProbes {
	g := b.road.g
	return &linkProbes{b: b, services: b.road, quiet: b.silence.quiet,
		shore: shore, incarnation: uint8(g.cfg.Incarnation.Number), far: map[uint16]*probe.Answerer{}}
}

// onBearer stands between the name of a bucket of the journal and the name of the bearer that has it. The buckets of the first bearer have
// no such suffix.
const onBearer = "@"

// bucketFirst of the journal has the name of the bearer whose records are in the buckets without a name.
const bucketFirst = "bearer"

// restoreFirst takes the name that the first bearer had in the last run.
func (c *Config) restoreFirst(name string) error {
	if slices.ContainsFunc(c.More, func(b BearerConfig) bool { return b.Name == name }) {
		return fmt.Errorf("gateway: bearer %q was the first of the configuration until now: write it before the others again", name)
	}
	return nil
}

// core is the part of mail.Services that is the same for the carriers of all bearers.
type core interface {
	log
	RecordPeer(p *mail.Peer)
	Drop(reason string)
	Open(now time.Time, p *mail.Peer, at mail.TransmissionID, body []byte) error
	OpenSlice(now time.Time, p *mail.Peer, at mail.TransmissionID, body []byte) error
	Unread(now time.Time, from *mail.Peer, at mail.TransmissionID)
	Gone(now time.Time, to *mail.Peer, at mail.TransmissionID)
	TellFates(now time.Time)
	Texts(to ...*mail.Peer) *envelope.Texts
	News(now time.Time, p *mail.Peer, items []site.Item) (envelope.Message, []site.Item)
}

// road is the gateway as the parts of a bearer see it (mail.Services).
type road struct {
	core
	g *Gateway
	b *bearer
}

// Record changes the journal, with the other records of this Step, in a bucket of the bearer's own.
func (r road) Record(bucket string, key, value []byte) {
	if r.b.index > 0 {
		bucket += onBearer + r.b.name.Name
	}
	r.g.Record(bucket, key, value)
}

// Hello is a HELLO to a peer as it must read now.
func (r road) Hello(now time.Time, p *mail.Peer) frame.Hello {
	h := frame.Hello{Store: r.g.cfg.Store, Stream: p.Handshake.Stream, Digest: r.g.replica.Digest(now, p.ID), Model: modelOf(),
		Forgot: p.Handshake.Forgot & 0x7f, Corpus: r.g.cfg.Corpus.Name()}
	r.b.keys.Hello(p, &h)
	p.Link.Hello(&h)
	for _, c := range r.b.Channels {
		c.Hello(p, &h)
	}
	return h
}

// Seal makes a datagram of frames to a peer or seal.Group; false: this start has no counter left, which the log says, or the
// roster does not name the peer.
func (r road) Seal(to uint16, long bool, frames []byte) ([]byte, bool) {
	if p := r.g.byID[to]; p != nil && p.legs[r.b.index] != nil {
		r.b.keys.Silent(to, p.legs[r.b.index].Link.Listening())
	}
	return r.b.keys.Seal(to, long, r.g.rollups.ride(r.g.now, r.b, to, r.g.groups.ride(r.g.now, r.b, to, frames)))
}

// Send puts a datagram on the air.
func (r road) Send(to netip.AddrPort, data []byte) {
	wall := r.g.silence.wall(r.g.now)
	if !r.b.day.fits(len(data) + profile.IPUDPOctets) { // the bearer is silent in the next turn
		r.g.Drop("octets_per_day")
		return
	}
	r.b.day.count(wall, len(data)+profile.IPUDPOctets)
	r.b.billed.sent(wall, siteAt(r.g, r.b.index, to), len(data))
	r.g.out.Datagrams = append(r.g.out.Datagrams, api.Datagram{Bearer: r.b.index, Addr: to, Data: data})
}

// Norm is an order to the child that runs libnorm, which serves the first bearer. On others long messages go in segments.
func (r road) Norm(order api.NormCommand) {
	if r.b.index == 0 {
		r.g.out.Norm = append(r.g.out.Norm, order)
	}
}

// split parts the journal's records by bearer: those of the first, and those of no bearer, under "".
func split(records []api.Record) map[string][]api.Record {
	parts := map[string][]api.Record{}
	for _, r := range records {
		bucket, name, _ := strings.Cut(r.Bucket, onBearer)
		r.Bucket = bucket
		parts[name] = append(parts[name], r)
	}
	return parts
}
