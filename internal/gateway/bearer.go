package gateway

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/group"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/custody"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/survey"
)

// bearer is a way over the air: a link's profile, an antenna, and what moves messages there.
type bearer struct {
	profile  profile.Profile
	timing   custody.Config // timers and windows of the link
	group    netip.AddrPort // of a radio net that all members share; invalid: it has none
	air      mail.Air       // of a terminal: one for all peers
	ledger   mail.Ledger    // of what goes to the group
	billed   billed
	lines    *unicast.Carrier
	surveys  *surveys
	carriers []mail.Carrier // the first takes new messages
	channels []mail.Channel // those of them that share their channel with all peers
}

// carrier is what takes new messages.
func (b *bearer) carrier() mail.Carrier { return b.carriers[0] }

// smallMessage is the octets of a short message on the air: a window of so many fills twice what the link holds.
const smallMessage = 100

// eagerShare is how many probes are under way to a peer that does not answer, where octets cost nothing.
const eagerShare = 3

// busyTrip is what the machines at both ends of a link that takes no time may need to answer: a turn of the loop and a commit each,
// beside other work.
const busyTrip = 500 * time.Millisecond

// timingOf derives the timers and windows of custody from the link. While receipts come, two round trips of short messages may
// be under way: a receipt that half a window asks for is back before the other half has gone.
func timingOf(p profile.Profile, shore bool) custody.Config {
	c := custody.Config{
		RoundTrip:     p.RoundTripMax(p.DatagramOctets+profile.IPUDPOctets) + p.OneWayMax(p.DatagramOctets+profile.IPUDPOctets)/2,
		Prompt:        p.RoundTripMax(p.DatagramOctets + profile.IPUDPOctets),
		AckDelay:      p.AckDelay,
		ProbeInterval: p.ProbeInterval,
	}
	c.RoundTrip, c.Prompt = max(c.RoundTrip, busyTrip), max(c.Prompt, busyTrip)
	if p.Free() {
		c.EagerInterval = max(time.Second, c.Prompt/eagerShare)
	}
	held := int(c.RoundTrip.Seconds() * float64(p.Sending(shore).RateBps) / 8)
	c.Window[frame.Direct] = firstWindow(p, shore)
	c.Most = max(c.Window[frame.Direct], min(2*held/smallMessage, custody.ShortAhead))
	c.Window[frame.Bulk] = unicast.BulkWindow
	if p.Reorder {
		c.HoleAge, c.Reorder = p.HoleAge, true
	}
	return c
}

// firstWindow is how many messages may be under way before the first receipt: the profile's window, or more where full datagrams of
// so many have gone before the receipt that half of them ask for is back after a mean round trip.
func firstWindow(p profile.Profile, shore bool) int {
	rate := p.Sending(shore).RateBps
	if rate == 0 {
		return p.Window
	}
	trip := p.Up.Delay + p.Up.Jitter/2 + p.Down.Delay + p.Down.Jitter/2
	full := profile.Airtime(p.DatagramOctets+profile.IPUDPOctets, rate)
	half := int((trip + full - 1) / full)
	return max(p.Window, min(2*half, custody.ShortAhead))
}

// newBearer makes the bearer that reaches these peers. Every one has lines, for HELLOs at least; on a shared channel
// messages go to several peers at once.
func (g *Gateway) newBearer(peers []*mail.Peer, records []api.Record) (b *bearer, err error) {
	p := g.cfg.Profile
	b = &bearer{profile: p, timing: timingOf(p, g.cfg.Shore), billed: billed{Bill: p.Bill}}
	shared := p.Transport == profile.PMul
	if shared {
		b.group = g.cfg.Group
	}
	b.lines, err = unicast.New(unicast.Config{
		Self: g.cfg.ID, Boot: g.cfg.Boot.Number, Profile: &b.profile, Timing: b.timing, Shore: g.cfg.Shore,
		Keepalive: g.cfg.Keepalive, Messages: !shared, Peers: peers,
		Road: g, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain, Air: &b.air, Norm: &g.norm,
		Group: b.group, GroupLedger: &b.ledger, Proofs: g.keys.ProofsMost(),
		Behind: g.keys.Rosters.MayLack, Lacks: g.keys.Lacks,
	})
	b.surveys = &surveys{b: b, road: g, quiet: g.silence.quiet, peers: func() []*peer { return g.peers },
		shore: g.cfg.Shore, boot: uint8(g.cfg.Boot.Number), far: map[uint16]*survey.Answerer{}}
	if err != nil || !shared {
		b.carriers = []mail.Carrier{b.lines}
		return b, err
	}
	rng := g.cfg.Rand
	if rng == nil {
		rng = rand.New(rand.NewPCG(uint64(g.cfg.ID), uint64(g.cfg.Boot.Number)))
	}
	several, err := group.New(group.Config{
		Self: g.cfg.ID, Profile: &b.profile, Timing: b.timing, Group: b.group, Rand: rng, Peers: peers,
		Road: g, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain, Air: &b.air, Ledger: &b.ledger,
		Met: b.lines.Roll.Met, Proofs: g.keys.ProofsMost(), Proven: g.keys.Proofs, Behind: g.keys.Rosters.Behind,
		Holds: g.orders.takes,
	}, records)
	if err != nil {
		return nil, err
	}
	b.lines.Roll.Greeted = several.Tell
	b.carriers, b.channels = []mail.Carrier{several, b.lines}, []mail.Channel{several}
	return b, err
}

// announce tells the peers at once that this node goes silent.
func (b *bearer) announce(now time.Time, f frame.Silence) {
	for _, c := range b.carriers {
		if c.Announce(now, f) {
			return
		}
	}
}

// settle pays every acknowledgement that is owed, whatever the air is doing.
func (b *bearer) settle(now time.Time) { unicast.Settle(b.lines, now) }

// has says whether a carrier of the bearer moves messages in this lane.
func (b *bearer) has(lane frame.Lane) bool { return lane < frame.Lanes || len(b.carriers) > 1 }
