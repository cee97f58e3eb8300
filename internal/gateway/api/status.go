package api

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/rules/filter"
)

// PeerCounts are totals of a peer since the start.
type PeerCounts struct {
	Accepted   uint64 `json:"accepted"`   // messages of local peers taken into custody for this peer; a kill before their commit loses the newest
	Refused    uint64 `json:"refused"`    // not taken: no room, or not encodable
	Expired    uint64 `json:"expired"`    // of those accepted, not sent in their lifetime; over P_Mul, not acknowledged
	Superseded uint64 `json:"superseded"` // of those accepted, replaced by a newer one before they were sent
	Cancelled  uint64 `json:"cancelled"`  // of those accepted, given up for a more urgent one when the bound was reached, or by an order
	Delivered  uint64 `json:"delivered"`  // of those accepted, acknowledged by the peer as durable, and not reported as undeliverable
	// Undeliverable counts messages that the peer has acknowledged and then reported as not handed to all their receivers
	// there. Revoked counts those of them that had been counted as delivered in this run.
	Undeliverable     uint64 `json:"undeliverable"`
	Revoked           uint64 `json:"-"`
	Repeated          uint64 `json:"repeated"`           // repeated transmissions
	Received          uint64 `json:"received"`           // messages of the peer for local peers, each once
	HandedOver        uint64 `json:"handed_over"`        // of those, given to all local peers that wanted them
	UndeliverableHere uint64 `json:"undeliverable_here"` // of those, ended otherwise: somebody here did not get them
	Duplicates        uint64 `json:"duplicates"`         // received again and dropped
	Unreadable        uint64 `json:"unreadable"`         // messages of the peer that could not be decoded, and are dropped
	DatagramsSent     uint64 `json:"datagrams_sent"`     // of all kinds
	DatagramsReceived uint64 `json:"datagrams_received"` // authentic ones
	// Forged counts datagrams that a member of the network has sealed for all in the peer's name, Strange those that claim to be from
	// the peer and are not sealed with its key. Both are counted only where each node has a key of its own.
	Forged  uint64 `json:"forged,omitempty"`
	Strange uint64 `json:"strange,omitempty"`
	Pending int    `json:"pending"` // received, and neither handed over nor undeliverable yet
}

// NormStatus is the child that runs libnorm.
type NormStatus struct {
	Up         bool  `json:"up"`         // it runs and takes orders
	Generation uint8 `json:"generation"` // which child this is, modulo 256
	Failures   int   `json:"failures"`   // how often a child has ended since one last ran for a minute
}

// BillStatus is what the link's datagrams cost since the start, where its tariff has units.
type BillStatus struct {
	UnitOctets int    `json:"unit_octets"` // size of a unit of the tariff
	Sent       uint64 `json:"sent"`        // units, those that each datagram has begun
	Received   uint64 `json:"received"`    // the same of received datagrams
	// SentOctets and ReceivedOctets are IP octets in these units. The rest of Sent*UnitOctets was paid for and not used.
	SentOctets     uint64 `json:"sent_octets"`
	ReceivedOctets uint64 `json:"received_octets"`
}

// DelayBounds are the upper bounds of Delays in seconds.
var DelayBounds = [...]float64{0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400}

// Delays counts messages by how long they took from custody here to the acknowledgement of the far gateway. Messages are not counted
// if nobody knows when they came.
type Delays struct {
	Counts [len(DelayBounds)]uint64 `json:"counts"` // of messages that took at most this bound, and longer than the bound before
	Count  uint64                   `json:"count"`  // of all messages
	SumS   float64                  `json:"sum_s"`  // seconds of all messages together
}

// How a link differs from its profile.
const (
	DiffersRate  = "rate"  // it is slower, or over P_Mul faster: datagrams are paced by the measured rate
	DiffersDelay = "delay" // a round trip takes longer than the longest of the profile, or less than half of the shortest
	DiffersLoss  = "loss"  // messages go again much more often than the profile's losses ask for
)

// Differences are all of them.
var Differences = []string{DiffersRate, DiffersDelay, DiffersLoss}

// LinkMeasured is what the messages to a peer show of the link. Zero: nothing yet. Over P_Mul only the rate is learned, that of
// the channel.
type LinkMeasured struct {
	RateBps    int       `json:"rate_bps,omitempty"`     // away from here, where it is not as the profile says
	PaceBps    int       `json:"pace_bps,omitempty"`     // at which datagrams go then: an eighth of the profile's rate at the least
	Since      time.Time `json:"since,omitzero"`         // since when these two hold
	RoundTripS float64   `json:"round_trip_s,omitempty"` // the least of the last ones of single messages
	LossPct    float64   `json:"loss_percent,omitempty"` // messages that went again, of all that went
	Differs    []string  `json:"differs,omitempty"`      // of Differences: those in which the link is not as the profile says
}

// DrainStatus describes a drain to an operator; nil while there is none.
type DrainStatus struct {
	Since   time.Time `json:"since"`   // of the order
	Refused uint64    `json:"refused"` // messages that were not taken since then, once for each site
	// Messages of this site that have not ended, and of other sites that wait for local peers.
	Messages int            `json:"messages"`
	Sites    map[string]int `json:"sites,omitempty"` // of these, by the site for which they are
	Pending  int            `json:"pending"`         // messages of other sites that wait for local peers
}

// Foreseen counts the messages that wait for a peer and will expire before they are there, by the queue's forecast (Queue.Expected).
// Nobody can tell while the link is down or this end is silent.
type Foreseen struct {
	Messages int       `json:"messages,omitempty"` // how many
	Octets   int       `json:"octets,omitempty"`   // as journalled
	Expires  time.Time `json:"expires,omitzero"`   // of the first of them
	Expected time.Time `json:"expected,omitzero"`  // when that one would be there
}

// SilenceStatus is this node's EMCON and the traffic that will go out when it ends.
type SilenceStatus struct {
	On        bool    `json:"on"`               // nothing is transmitted, by this silence
	Quiet     bool    `json:"quiet,omitempty"`  // nothing is transmitted, for whatever reason: this silence, that of the gateway, or octets of the day that are used up
	Fixed     bool    `json:"fixed,omitempty"`  // by the configuration: no order ends it
	Until     string  `json:"until,omitempty"`  // RFC 3339; empty: until told otherwise
	Next      string  `json:"next,omitempty"`   // RFC 3339: when the next window of the configuration begins
	LeftS     float64 `json:"left_s,omitempty"` // how long it still lasts at the least, when there is an end
	Acks      int     `json:"acks_owed"`        // peers that wait for acknowledgements
	Messages  int     `json:"messages"`         // that wait or may have to go again
	Items     int     `json:"items"`            // of this site that peers lack, once for each peer
	Octets    int     `json:"octets"`           // IP octets, about: before deflating
	AirtimeS  float64 `json:"airtime_s"`        // seconds of transmission for all this traffic
	Datagrams int     `json:"datagrams"`        // about, for all this traffic
}

// HoldStatus is a standing order to hold.
type HoldStatus struct {
	Precedence string    `json:"precedence"` // of the messages that are held
	Since      time.Time `json:"since"`      // of the order
	By         string    `json:"by"`         // the operator who gave it
	Messages   int       `json:"messages"`   // that are held, once for each site
}

// Status is everything an operator may be told; nothing in it is shared with the gateway.
type Status struct {
	ID                uint16            `json:"id"`                   // of this node in the network
	Name              string            `json:"name"`                 // of this node
	Key               string            `json:"key_fingerprint"`      // of the network's key or of this node's own, for two operators to compare
	Roster            *RosterStatus     `json:"roster,omitempty"`     // absent where all share one key
	Profile           string            `json:"profile"`              // name of the link profile, of several that of the first bearer
	Bearers           []BearerStatus    `json:"bearers,omitempty"`    // where there are several
	End               string            `json:"end"`                  // "terminal" or "shore": which end of the link this is
	IncarnationNumber uint32            `json:"incarnation"`          // incarnation: the number of this start
	Transport         string            `json:"transport"`            // "norm" or "p_mul"
	NORM              NormStatus        `json:"norm"`                 // of the child that runs libnorm
	Link              LinkStatus        `json:"link"`                 // what the profile says of it
	Items             int               `json:"items"`                // of this site, as its peers should have them
	Silence           SilenceStatus     `json:"silence"`              // EMCON of this node
	Peers             []PeerStatus      `json:"peers"`                // by id
	Ledger            []LedgerRow       `json:"ledger"`               // octets on the link by peer, direction and kind
	Adapters          []AdapterRow      `json:"adapters"`             // the same octets by protocol adapter, direction and kind
	Dropped           map[string]uint64 `json:"dropped"`              // datagrams and packets that came to nothing, by reason
	Modelled          uint64            `json:"modelled_octets"`      // that the model has coded, read or learned: some microseconds each
	Filters           []filter.Status   `json:"filters,omitempty"`    // the operator's rules, in order
	Corpus            string            `json:"corpus,omitempty"`     // the name of the network's corpus, as gateway corpus show has it
	LinkProbe         *LinkProbeStatus  `json:"link_probe,omitempty"` // the last that was ordered in this run
	Reloads           uint64            `json:"reloads,omitempty"`    // how often the rules were replaced in this run
	Groups            []GroupStatus     `json:"groups,omitempty"`     // that this node is in
	Channels          []ChannelStatus   `json:"channels,omitempty"`   // shared channels, where this node is in a group
	Fleet             *FleetStatus      `json:"fleet,omitempty"`      // absent: it takes no part in a roll-up
	Drain             *DrainStatus      `json:"drain,omitempty"`      // absent: there is none
	Holds             []HoldStatus      `json:"holds,omitempty"`      // standing orders
	Bill              *BillStatus       `json:"bill,omitempty"`       // where the tariff of the first bearer has units
	Month             *BillMonth        `json:"month,omitempty"`      // this calendar month on the first bearer, of earlier runs too
	Relinked          uint64            `json:"relinked,omitempty"`   // how often peers, keepalive and tariff were taken from a configuration that was read again
	LeftPeers         []uint16          `json:"left_peers,omitempty"` // no longer configured, but with records in the journal: one of them comes back with a restart
}

// GroupStatus is a group that the node is in.
type GroupStatus struct {
	Name    string   `json:"name"`
	Members []string `json:"members,omitempty"` // neighbours that are in it, and gateways that have said what is held
	Held    int      `json:"held"`              // open messages that have not outlived their lifetime
	Octets  int      `json:"octets"`            // of these messages
	Sure    bool     `json:"sure,omitempty"`    // a neighbour has said lately that it knows of no other key: a message need not wait to hear that
	Keyed   bool     `json:"keyed,omitempty"`   // its messages are sealed with a key of its members
	Key     string   `json:"key,omitempty"`     // mark that tells this key from others; "": there is none yet
}

// ChannelStatus says who hears whom on a shared channel, by the greetings that were heard there.
type ChannelStatus struct {
	Link string `json:"link"` // name of the bearer, or of its profile where there is one bearer without a name
	// Components are the sites that reach each other there, over one another if need be, by mutual hearing.
	Components [][]string `json:"components"`
	// Speaks are the gateways that speak first for others there, the most stable first: two at the most, this one among them or not.
	Speaks []string        `json:"speaks"`
	Sites  []ChannelHearer `json:"sites"` // by id
}

// ChannelHearer says which sites a gateway hears on a shared channel, by name. Whether it hears a site in neither list is not known.
type ChannelHearer struct {
	Site       string    `json:"site"`
	Hears      []string  `json:"hears,omitempty"`
	HearsNot   []string  `json:"hears_not,omitempty"`
	GreetingAt time.Time `json:"greeting_at,omitzero"` // when it last said of every site whether it hears it; zero: it has not, or is this gateway
}

// PeerStatus is a sister gateway.
type PeerStatus struct {
	ID     uint16 `json:"id"`                        // in the network
	Name   string `json:"name"`                      // as configured
	Key    string `json:"key_fingerprint,omitempty"` // of its own, as the roster has it
	Roster uint32 `json:"roster,omitempty"`          // serial that it is known to go by; 0: it has not said so in this run
	// RosterDiffers: it goes by a roster that has the serial of this node's roster and is another one.
	RosterDiffers bool   `json:"roster_differs,omitempty"`
	Forward       bool   `json:"forward_secret,omitempty"`     // datagrams to it are sealed with a key that both ends forget
	Corpus        string `json:"corpus,omitempty"`             // of the network, that it has; empty: none, or it has not said so in this run
	Address       string `json:"address,omitempty"`            // to which everything goes now
	Configured    string `json:"configured_address,omitempty"` // as the operator wrote it
	Start         uint32 `json:"start"`                        // incarnation number of its newest start that counts; 0: nothing of it counts yet
	Forgotten     int    `json:"forgotten,omitempty"`          // how often the operator had it forgotten in this run
	Unopened      int    `json:"unopened,omitempty"`           // datagrams that seem to come from it and open with no key of ours, since the last one that opened
	Link          string `json:"link"`                         // "unknown": never heard in this run; "unmet": nor before, and not asked, for neither site has anything for the other; "up"; "silent": does not answer; "listening": said that it will not; "gone": the roster does not name it
	// LinkSince is when the link got this state; zero before the first turn of the loop.
	LinkSince time.Time `json:"link_since,omitzero"`
	LastHeard string    `json:"last_heard,omitempty"` // RFC 3339; empty: not in this run
	Knows     bool      `json:"knows_us"`             // it has confirmed this start, so that short datagrams will do
	Enrolled  bool      `json:"enrolled,omitempty"`   // the roster names it on a bearer of this gateway: it stays a peer without a [[link.peer]]
	// KnownSince is when this run came to know the peer: its start, or when a reload brought the peer.
	KnownSince    time.Time `json:"known_since,omitzero"`
	Waiting       int       `json:"waiting"`                  // in custody without a number, news of this site included: see Messages
	UnderWay      int       `json:"under_way"`                // sent, not acknowledged
	WaitingOctets int       `json:"waiting_octets"`           // of both
	NewsWaiting   int       `json:"news_waiting,omitempty"`   // changes of this site's state that wait
	NewsUnderWay  int       `json:"news_under_way,omitempty"` // and those that are sent and not acknowledged
	NewsOctets    int       `json:"news_octets,omitempty"`    // of both
	ItemsHeld     int       `json:"items_held"`               // of this site's items, known to be there
	ItemsUnderWay int       `json:"items_under_way"`          // of this site's items, sent and not acknowledged
	FarItems      int       `json:"far_items"`                // of the peer's site, held here
	// Queue counts the messages that wait, by precedence, the most urgent first.
	Queue []QueueRow `json:"queue,omitempty"`
	// Late counts those messages of the queue that will expire before they are there.
	Late   Foreseen `json:"late"`
	Delays Delays   `json:"delays"` // from custody here to its acknowledgements
	// Measured is what the traffic shows of the link, as far as it does.
	Measured LinkMeasured `json:"measured"`
	// Bearers are the ways to the peer, where this gateway has several. The fields above describe the way that messages take.
	Bearers []PeerBearer `json:"bearers,omitempty"`
	Quality
	PeerCounts
}

// Messages counts the messages of local peers that wait for the peer and that are under way to it, and the octets of both. All
// code that tells an operator that messages wait counts them so.
func (p PeerStatus) Messages() (waiting, underWay, octets int) {
	return p.Waiting - p.NewsWaiting, p.UnderWay - p.NewsUnderWay, p.WaitingOctets - p.NewsOctets
}

// Names names each peer once: two sites have one name while one of them has gone and its successor has come. The first is called by
// its name, the second "name (id)".
func Names(peers []PeerStatus) []string {
	names := make([]string, len(peers))
	for i, p := range peers {
		name := p.Name
		for slices.Contains(names[:i], name) {
			name = fmt.Sprintf("%s (%d)", name, p.ID)
		}
		names[i] = name
	}
	return names
}

// QueueRow counts the messages of one precedence that wait for a peer.
type QueueRow struct {
	Precedence string    `json:"precedence"`      // of the messages
	Messages   int       `json:"messages"`        // how many wait
	Octets     int       `json:"octets"`          // as journalled
	Oldest     time.Time `json:"oldest,omitzero"` // when the oldest was accepted; where nobody knows, the start
	// Expected is when the last of them will be there, as Queue.Expected has it. Zero: nobody can tell, the link is down or a
	// silence has no end.
	Expected time.Time `json:"expected,omitzero"`
}

// LinkStatus is what the profile says of the link, as this end sees it. Rates are bits per second, 0 is unlimited.
type LinkStatus struct {
	SendBps        int     `json:"send_bps"`             // away from here
	ReceiveBps     int     `json:"receive_bps"`          // towards here
	SendLossPct    float64 `json:"send_loss_percent"`    // of frames
	ReceiveLossPct float64 `json:"receive_loss_percent"` // of frames
	Shared         bool    `json:"shared"`               // one channel for all, in both directions
	Each           bool    `json:"each"`                 // each peer has a leg of its own, and the rates are those of one
	Tariff         string  `json:"tariff"`               // "octets", "minutes" or "none"
}

// LedgerRow is one account of the airtime ledger.
type LedgerRow struct {
	Bearer    string `json:"bearer,omitempty"` // its name; empty where there is one bearer without a name
	Direction string `json:"direction"`        // "sent" or "received"
	Peer      string `json:"peer"`             // name of the peer, or "group"
	Kind      string `json:"kind"`             // what the octets were for
	Octets    uint64 `json:"octets"`           // IP octets
}

// AdapterRow is the octets on all links that were for one protocol adapter.
type AdapterRow struct {
	// Adapter is "jxta", "tak", "xmpp", "corpus" (corpora that sites send each other), "other" (an adapter that this version does not know),
	// "relay" (messages that gateways have sealed for each other over this one or another), or "gateway": all that belongs to none of these.
	// "unread" is what was received and not read as a message: a part of one, a repeat, or a message for others on a shared channel.
	Adapter   string `json:"adapter"`
	Direction string `json:"direction"` // "sent" or "received"
	Kind      string `json:"kind"`      // as LedgerRow.Kind; of a received message as it was read
	Octets    uint64 `json:"octets"`    // IP octets, as on the air
}

// Unread is the AdapterRow.Adapter whose octets become those of others.
const Unread = "unread"

// BearerStatus is a bearer of a gateway that has several.
type BearerStatus struct {
	Name    string  `json:"name"`    // as configured
	Profile string  `json:"profile"` // name of its link profile
	End     string  `json:"end"`     // as Status.End
	Price   float64 `json:"price"`   // of 1,000 IP octets
	// Silence is that of this bearer alone.
	Silence SilenceStatus `json:"silence"`
	Day     *DayStatus    `json:"day,omitempty"`    // absent: its octets of a day have no bound
	Link    *LinkStatus   `json:"link,omitempty"`   // what the profile says of it; absent: other gateways are the bearer
	Bill    *BillStatus   `json:"bill,omitempty"`   // as Status.Bill
	Month   *BillMonth    `json:"month,omitempty"`  // as Status.Month
	Direct  *DirectStatus `json:"direct,omitempty"` // absent: the bearer takes no direct sessions
}

// DirectStatus is the direct sessions of a bearer.
type DirectStatus struct {
	Limit    int             `json:"limit"`              // sessions at most
	Sessions []DirectSession `json:"sessions,omitempty"` // by the peer's id
	Opening  []string        `json:"opening,omitempty"`  // peers with which a session is being opened
	Greylist []DirectGrey    `json:"greylist,omitempty"` // peers with which that has failed
}

// DirectSession is a direct session with a peer.
type DirectSession struct {
	Peer   string    `json:"peer"`
	Since  time.Time `json:"since"`
	Spared int64     `json:"spared_octets"` // of messages, either way, that a relay would have sent once more, in this run
}

// DirectGrey is a peer with which no session is opened before Until.
type DirectGrey struct {
	Peer     string    `json:"peer"`
	Until    time.Time `json:"until"`
	Failures int       `json:"failures"` // in a row
}

// DayStatus counts the octets that a bearer has carried in this day (UTC).
type DayStatus struct {
	Octets int64     `json:"octets"`          // IP octets, sent and received; after a kill up to a 64th of Most more than went
	Most   int64     `json:"octets_per_day"`  // that it may carry
	Spent  bool      `json:"spent,omitempty"` // they are used up: the bearer is silent, but for messages that a rule lets go beyond
	Until  time.Time `json:"until"`           // when the day ends
}

// PeerBearer is a peer on one bearer of a gateway that has several.
type PeerBearer struct {
	Bearer    string `json:"bearer"`               // its name
	Link      string `json:"link"`                 // as PeerStatus.Link
	Up        bool   `json:"up"`                   // messages may take it: it answers, and nobody is silent there
	Used      bool   `json:"used"`                 // new messages take it now
	Address   string `json:"address,omitempty"`    // to which everything goes there; on the bearer relay "via" and the name of the next gateway
	LastHeard string `json:"last_heard,omitempty"` // RFC 3339; empty: not in this run
	Waiting   int    `json:"waiting"`              // as PeerStatus.Waiting
	UnderWay  int    `json:"under_way"`            // as PeerStatus.UnderWay
	Quality
}

// Quality says how far a site is on one way, and how good that way is. It goes by the profile, by the messages that wait there, and by
// the traffic of this run. No datagram goes for it.
type Quality struct {
	ShortS      float64   `json:"seconds_200"`           // that a routine message of 200 octets takes now
	LongS       float64   `json:"seconds_20000"`         // likewise of 20,000 octets
	LostPct     float64   `json:"lost_percent"`          // of datagrams
	Price       float64   `json:"price"`                 // of 1,000 IP octets
	Hops        int       `json:"hops"`                  // gateways to the site, itself included: 1 is a direct way
	NextHop     string    `json:"next_hop,omitempty"`    // name of the gateway that passes on; absent: the way is direct
	SilentUntil time.Time `json:"silent_until,omitzero"` // as the site has said; absent: it is not silent there, or did not say
}

// RosterStatus is the roster that a gateway goes by.
type RosterStatus struct {
	Network   string    `json:"network"`               // name of the network
	Serial    uint32    `json:"serial"`                // of the roster in use
	Sealing   uint32    `json:"sealing"`               // serial of the roster that seals datagrams to all: an older one until all can follow
	Made      time.Time `json:"made"`                  // when its authority signed it
	At        time.Time `json:"at,omitzero"`           // from when on it seals datagrams to all; zero: when all have it
	Authority string    `json:"authority_fingerprint"` // fingerprint of the key that signed it
	// AuthorityKey is its public key as people pass it on.
	AuthorityKey string `json:"authority_key"`
	// Digests are those of the rosters with this serial that are known here: one as a rule. If there are several, the gateway goes only
	// by the nodes that all of them name. Differs says that there are several, here or at a peer.
	Digests []string `json:"digests"`
	Differs bool     `json:"differs,omitempty"` // several rosters have this serial, here or at a peer
	// Refusals are rosters of an operator that were not taken in this run, and Refusal why the last one was not.
	Refusals int    `json:"refusals,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
}

// FleetStatus describes the gateways of the fleet as far as they are known here, by the record that each gives of itself once a period.
type FleetStatus struct {
	PeriodS      float64    `json:"period_s"`               // of the records
	Headquarters bool       `json:"headquarters,omitempty"` // the records go no further
	Sum          FleetSum   `json:"sum"`                    // of the rows that have a record
	Gateways     []FleetRow `json:"gateways"`               // by id: this one, those that give their records to it, and at the headquarters all of the network
}

// FleetRow is a gateway by its last record.
type FleetRow struct {
	ID     uint16 `json:"id"`               // in the network
	Site   string `json:"site"`             // its name
	Parent string `json:"parent,omitempty"` // the gateway to which it gives its record; absent: it is the headquarters, or was not heard
	// State is "current", "silent" (as it has said), "late" (two periods old), "gone" (four), or "unheard": it has said nothing yet.
	State       string         `json:"state"`
	Proven      bool           `json:"proven,omitempty"`      // the record is its own for certain; at the headquarters each is
	Read        time.Time      `json:"read,omitzero"`         // when it made the record, as far as the gateways on the way have said
	AgeS        float64        `json:"age_s,omitempty"`       // since then
	Waiting     map[string]int `json:"waiting"`               // messages in custody there that wait, once for each recipient, by precedence
	Oldest      time.Time      `json:"oldest,omitzero"`       // since when the oldest of these messages waits, if it still does
	Bearers     int            `json:"bearers"`               // that it has
	Up          int            `json:"up"`                    // of these, on which somebody answers
	SilentUntil time.Time      `json:"silent_until,omitzero"` // absent: it is not silent, or has not said until when
	Version     string         `json:"version,omitempty"`     // of its program
}

// FleetSum is the sum of several records.
type FleetSum struct {
	Gateways int            `json:"gateways"`        // that have a record
	Waiting  map[string]int `json:"waiting"`         // as FleetRow.Waiting
	Oldest   time.Time      `json:"oldest,omitzero"` // of all
	Bearers  int            `json:"bearers"`
	Up       int            `json:"up"`
	Silent   int            `json:"silent,omitempty"` // that are silent
}
