package carriage

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/group"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/relay"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// Config is what a bearer is made of. Common is the same for all carriers; New sets its Profile, Timing, Air and Ledger.
type Config struct {
	mail.Common
	Profile     profile.Profile
	Incarnation uint32 // number of this start
	Shore       bool   // each peer's terminal has a leg of its own, and the profile is theirs
	Keepalive   time.Duration
	Rand        *rand.Rand                       // of P_Mul's random delays; nil: seeded with Self and Incarnation
	Lacks       func(peer uint16) bool           // it may not have this node's half of this start's key with it, which HELLOs carry
	Far         func(peer uint16) bool           // the short form of datagrams may not reach it
	Beside      func(peer uint16) []frame.Beside // acknowledgements in HELLOs of a peer's messages on other bearers; nil: there are none
	Late        bool                             // peers are greeted only when there is something for them
	Hasty       bool                             // a failure is looked for early: there are other bearers
	TakesOver   bool                             // as gateway.Config has it
	Proven      func() int                       // octets of proofs that a datagram to the group has now
	Holds       func(*site.Message) bool
	Records     []api.Record // of the journal
}

// Bearer is a way over the air: the profile of its link, an antenna, and the carriers that move messages there.
type Bearer struct {
	Common    mail.Common
	Profile   profile.Profile // live: the carriers read it
	Keepalive time.Duration   // live
	Air       mail.Air        // of a terminal: one for all peers
	Carriers  []mail.Carrier  // the first takes new messages
	Channels  []mail.Channel  // those that share their channel with all peers
	Others    mail.Others     // of Channels; nil: there are none
	Handovers []mail.Handover // as Carriers
	Members   []mail.Members  // as their peers come; they go in the opposite order
	ModemBps  int             // the rate that the modem reports, live; 0: it reports none
	Relay     *relay.Carrier  // the bearer leads over other gateways, which pass messages on; nil: it has an antenna
	ledger    mail.Ledger     // of datagrams to the group
}

// NewRelay makes the bearer over other gateways: docs/decisions/relay.md.
func NewRelay(cfg relay.Config, p profile.Profile) *Bearer {
	b := &Bearer{Common: cfg.Common, Profile: p}
	b.Common.Profile, b.Common.Air, b.Common.Ledger = &b.Profile, &b.Air, &b.ledger
	cfg.Common = b.Common
	b.Relay = relay.New(cfg)
	b.Carriers, b.Members, b.Handovers = []mail.Carrier{b.Relay}, []mail.Members{b.Relay}, []mail.Handover{relay.Handover{C: b.Relay}}
	return b
}

// New makes a bearer for peers of which nothing is known yet; carriers take their records from the gateway, P_Mul from cfg.Records.
// On a shared channel messages go to several peers at once, and datagrams to one peer carry the rest.
func New(cfg Config) (*Bearer, error) {
	if cfg.Profile.Filled() < unicast.MinDatagram {
		return nil, fmt.Errorf("gateway: profile %s: datagrams of %d octets, at least %d needed", cfg.Profile.Name, cfg.Profile.Filled(), unicast.MinDatagram)
	}
	b := &Bearer{Common: cfg.Common, Profile: cfg.Profile, Keepalive: cfg.Keepalive}
	shared := cfg.Profile.Transport == profile.PMul
	if !shared {
		b.Common.Group = netip.AddrPort{} // each peer gets a copy
	}
	b.Common.Profile, b.Common.Timing = &b.Profile, TimingOf(cfg.Profile, cfg.Shore)
	b.Common.Timing.Hasty = cfg.Hasty
	b.Common.Air, b.Common.Ledger, b.Common.ModemBps = &b.Air, &b.ledger, &b.ModemBps
	datagrams, err := unicast.New(unicast.Config{
		Common: b.Common, Incarnation: cfg.Incarnation, Shore: cfg.Shore, Keepalive: &b.Keepalive, Messages: !shared, Lacks: cfg.Lacks, Far: cfg.Far, Beside: cfg.Beside, Late: cfg.Late, TakesOver: cfg.TakesOver,
	})
	if err != nil {
		return nil, err
	}
	if !shared {
		b.Carriers, b.Members, b.Handovers = []mail.Carrier{datagrams}, []mail.Members{datagrams}, []mail.Handover{unicast.Handover{C: datagrams}}
		return b, nil
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(uint64(cfg.Self), uint64(cfg.Incarnation)))
	}
	several, err := group.New(group.Config{Common: b.Common, Rand: cfg.Rand, Holds: cfg.Holds, Met: datagrams.Greeting.Met, Proven: cfg.Proven}, cfg.Records)
	if err != nil {
		return nil, err
	}
	datagrams.Greeting.Greeted = several.SubmitState
	b.Carriers, b.Channels = []mail.Carrier{several, datagrams}, []mail.Channel{several}
	b.Others = several.Others
	b.Members = []mail.Members{datagrams, group.Members{C: several}}
	b.Handovers = []mail.Handover{group.Handover{C: several}, unicast.Handover{C: datagrams}}
	return b, nil
}

// Carrier is the one that takes new messages.
func (b *Bearer) Carrier() mail.Carrier { return b.Carriers[0] }

// Handover is the carrier that has a queue.
func (b *Bearer) Handover(queue frame.Queue) mail.Handover {
	if queue == mail.Group {
		return b.Handovers[0]
	}
	return b.Handovers[len(b.Handovers)-1]
}

// Has says whether a carrier of the bearer moves messages in this queue.
func (b *Bearer) Has(queue frame.Queue) bool { return queue < frame.Queues || len(b.Channels) > 0 }

// Announce tells the peers at once that this node goes silent.
func (b *Bearer) Announce(now time.Time, f frame.Silence) {
	for _, c := range b.Carriers {
		if c.Announce(now, f) {
			return
		}
	}
}

// Renumbered is a peer's record of the journal for a new store: it keeps our knowledge of the peer and its place, and numbers
// begin anew. false: it is no such record.
func Renumbered(record []byte) ([]byte, bool) { return unicast.Renumbered(record) }

// Forgotten is the record of a peer whose own record is lost.
func Forgotten() []byte { return unicast.Forgotten() }
