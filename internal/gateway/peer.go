package gateway

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/link/custody"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/link/replica"
	"aldis/internal/norm/elide"
	"aldis/internal/site"
)

// peer is all that is known of a sister gateway.
type peer struct {
	PeerConfig
	addr netip.AddrPort // where its newest authentic datagram came from

	store    uint32 // of the peer; 0: never heard
	model    uint16 // of compaction, as its HELLO says
	forgot   uint8  // raised whenever we could not read what was coded after messages of it
	heForgot uint8  // the same of the peer, as its HELLO says
	stream   uint8  // of our message numbers towards it
	inStream uint8  // of its numbers towards us

	sender   *custody.Sender
	receiver *custody.Receiver

	knowsUs    bool      // it has told that it knows our boot and stream: the short form will do
	owesHello  bool      // it does not know that we know it
	helloDue   time.Time // zero: none to send by itself
	helloTries int
	answers    []uint8 // probes to be answered

	waiting  [frame.Lanes][]*message // the most urgent first
	latest   map[string]*message     // of those, by what they supersede
	expiry   time.Time               // of the first of them; zero: none has one
	underWay map[custody.ID]*message
	octets   int // of all messages waiting and under way

	flows    map[envelope.Flow]*flow // towards it
	nextFlow uint32
	inFlows  map[uint32]envelope.Flow
	held     map[custody.ID][]byte // arrived before their turn

	sentBefore envelope.Histories  // messages that the peer holds: later ones are coded after them
	settled    map[uint64]*message // acknowledged in the direct lane, while one before them is not
	learnFrom  uint64              // the first number of this run: of those before it some are not known any more
	gotBefore  envelope.Histories  // messages delivered from the peer
	gotNumbers map[string][]uint64 // of those, by journal key without number

	far     map[string]site.Item // the state of its site, as it told us
	farEnds replica.Calendar

	normwire *elide.Session
	normOut  []normFrame
	objects  uint16           // of the present child, enqueued so far
	bulk     map[uint64]*bulk // bulk number -> how far it is
	direct   int              // datagrams without NORM since the last with it, while NORM waited

	order mulOrder // of P_Mul's messages from it

	air         air
	news        news
	readyAt     time.Time
	lastSent    time.Time
	lastHeard   time.Time
	announce    bool      // it has to be told that we go silent
	complain    time.Time // of something that anybody could provoke
	expired     int       // since it was last said
	expiredSaid time.Time
	gaveUp      int // for more urgent ones, the same
	gaveUpSaid  time.Time
	stale       time.Time // when a datagram of an earlier start came in
	ledger      ledger
	count       PeerCounts
}

// flow is what a number towards a peer means. Its definer spells it out in every transmission; the lane is read in
// order, so all later messages need only the number.
type flow struct {
	number  uint32
	definer uint64 // number in the direct lane of the first message that used it; 0: none has yet
}

// message is what custody holds for a peer. full is its envelope with everything spelt out, as the journal has it.
type message struct {
	lane    frame.Lane
	seq     uint64 // of waiting; 0 for state made when there was air
	full    []byte
	content envelope.Message
	kind    ledgerKind
	gone    bool // it has been on the air
}

func (g *Gateway) newPeer(pc PeerConfig) (*peer, error) {
	p := &peer{
		PeerConfig: pc, addr: pc.Addr, stream: 1, nextFlow: 1,
		underWay: map[custody.ID]*message{}, flows: map[envelope.Flow]*flow{}, inFlows: map[uint32]envelope.Flow{},
		held: map[custody.ID][]byte{}, settled: map[uint64]*message{}, gotNumbers: map[string][]uint64{}, far: map[string]site.Item{},
		latest: map[string]*message{},
		bulk:   map[uint64]*bulk{}, ledger: ledger{},
	}
	p.sender = custody.NewSender(g.custody, [frame.Lanes]uint64{1, 1})
	p.receiver = custody.NewReceiver(g.custody, [frame.Lanes]uint64{})
	var err error
	p.normwire, err = elide.NewSession(elide.Config{
		Self: g.cfg.ID, Peer: pc.ID, Segment: g.cfg.Profile.SegmentOctets, GRTT: g.cfg.Profile.GRTT})
	return p, err
}

// underWayIn lists the messages of a lane that are not acknowledged, oldest first.
func (p *peer) underWayIn(lane frame.Lane) (ids []custody.ID) {
	for id := range p.underWay {
		if id.Lane == lane {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b custody.ID) int { return cmp.Compare(a.Number, b.Number) })
	return ids
}

// asking says whether our list of what we hold of the peer's site is on its way to it.
func (p *peer) asking() bool {
	for _, m := range p.underWay {
		if m.content.Asks {
			return true
		}
	}
	for _, waiting := range p.waiting {
		for _, m := range waiting {
			if m.content.Asks {
				return true
			}
		}
	}
	return false
}

// Journal buckets. Keys start with the peer's id where they belong to one.
const (
	bucketSeal    = "seal"    // peer -> seal.PeerState
	bucketPeer    = "peer"    // peer -> numbers and address (appendPeer)
	bucketWaiting = "waiting" // peer, seq -> envelope in full
	bucketOut     = "out"     // peer, lane, number -> envelope in full
	bucketHeld    = "copy"    // peer, item key -> version that the peer holds
	bucketEarly   = "early"   // peer, lane, number -> body that arrived before its turn
	bucketDeliver = "deliver" // token -> envelope in full, for local peers
	bucketFlow    = "flow"    // peer, number -> its definer, flow towards it
	bucketInFlow  = "inflow"  // peer, number -> flow from it
	bucketBefore  = "before"  // peer, flow, element, number -> data of a message delivered from it
	bucketFar     = "far"     // peer, item key -> envelope with the item
	bucketOwn     = "own"     // item key -> envelope with the item
	bucketBridge  = "bridge"  // memories of the JXTA face
	bucketFace    = "face"    // face, key -> memories of the others
	bucketNorm    = "norm"    // "generation"
	bucketSilence = "silence" // "self" -> when it ends (appendSilence)
)

func peerKey(id uint16, rest []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, id), rest...)
}

func seqKey(id uint16, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(peerKey(id, nil), seq)
}

func idKey(peer uint16, id custody.ID) []byte {
	return binary.BigEndian.AppendUint64(peerKey(peer, []byte{byte(id.Lane)}), id.Number)
}

func flowKey(id uint16, number uint32) []byte {
	return binary.BigEndian.AppendUint32(peerKey(id, nil), number)
}

// token names a received message for the bridge; numbers below 2^40 are enough for any store's life.
func token(peer uint16, id custody.ID) uint64 {
	return uint64(peer)<<48 | uint64(id.Lane)<<40 | id.Number&(1<<40-1)
}

func tokenKey(t uint64) []byte { return binary.BigEndian.AppendUint64(nil, t) }

// recordPeer makes the peer's numbers durable; due whenever one of them has changed.
func (g *Gateway) recordPeer(p *peer) { g.record(bucketPeer, peerKey(p.ID, nil), appendPeer(nil, p)) }

// recordSeal makes what keeps replays out durable.
func (g *Gateway) recordSeal(p *peer) {
	state := g.opener.State(p.ID)
	g.record(bucketSeal, peerKey(p.ID, nil), state.Append(nil))
}
