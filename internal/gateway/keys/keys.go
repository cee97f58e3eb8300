// Package keys decides which keys this node seals and opens with, which datagrams of other gateways count, and by which
// roster of members it goes: docs/decisions/incarnations.md, docs/decisions/trust.md, docs/decisions/rollover.md and
// docs/decisions/forward-secrecy.md.
//
// It reads what is known of a peer (mail.Peer) and changes nothing there: the values that it returns say what is to be done about a
// peer. Its records and log lines go to its Services at once.
//
// Read keys.go first, then authenticator.go (datagrams), rollover.go (newer rosters), introduction.go (a node that brings one),
// rosterhistory.go (which rosters a node has kept) and groupkeys.go (keys of groups).
package keys

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// BucketSeal of the journal holds what was heard of each peer: peer -> seal.PeerState.
const BucketSeal = "seal"

// Trust has a key for each node, in the place of one that all share.
type Trust struct {
	Own       *seal.SigningKey
	Authority seal.PublicKey
	Roster    *roster.Roster // which the authority has signed, and which names this node with Own
	// Chance fills 32 octets with bits that nobody can guess: ephemeral keys are made of these; nil: there are no such keys. Hold is
	// given the memory that the keys lie in; it may be nil.
	Chance func(*[32]byte)
	Hold   func(octets []byte)
	// Members is told of each roster that this node goes by from now on; nil: nobody wants to know. It must not wait.
	Members func(*roster.Roster)
}

// Services is the gateway around the keys, as they use it.
type Services interface {
	// Record changes the journal, with all else of this Step.
	Record(bucket string, key, value []byte)
	// Note says something in the operator's log; Drop counts a datagram that came to nothing.
	Note(level, text string, attrs ...any)
	Drop(reason string)
}

// Config is what the keys of a node are made of.
type Config struct {
	ID          uint16
	Name        string
	Incarnation seal.Incarnation
	Key         seal.Key
	Trust       *Trust // nil: Key
	Services    Services
	// Forward: ephemeral keys are made, where Trust has Chance. On a link where a peer's silence is a matter of course none are.
	Forward bool
	Shared  bool // all share one channel, and a greeting there is heard by all
	// Bearer is the number of the bearer that these keys are of; Of has the same rosters on another bearer, nil: there is none. Apart: no
	// datagram is for all.
	Bearer uint64
	Of     *Keys
	Apart  bool
	// AckDelay, ProbeInterval and RoundTrip are those of the link.
	AckDelay, ProbeInterval, RoundTrip time.Duration
}

// Keys seals and opens a node's datagrams. It is not for concurrent use.
type Keys struct {
	Rosters *Rosters
	cfg     Config
	sealer  *seal.Sealer
	opener  *seal.Opener
	forward *seal.Forward // keys of this start and a peer's; nil: none are made

	peers []*member          // by id
	known map[uint16]*member // also this node, and peers that have left in this run
}

// member is another node of the network, as its datagrams go.
type member struct {
	*mail.Peer // to be read; nil: it is this node
	here       bool
	visit
	forged  uint64 // datagrams that a member of the network has sealed for all in its name
	foreign uint64 // datagrams that claim to be from it and are not sealed with its key
}

// New makes Keys for these peers, by id, of which nothing is known yet. They are of no use before Begin.
func New(cfg Config, peers []*mail.Peer) *Keys {
	k := &Keys{cfg: cfg, known: map[uint16]*member{cfg.ID: {visit: newVisit()}}}
	if cfg.Of != nil {
		k.Rosters = cfg.Of.Rosters
	} else {
		k.Rosters = newRosters(cfg)
	}
	for _, p := range peers {
		k.enlist(p)
	}
	return k
}

func (k *Keys) enlist(p *mail.Peer) {
	m := k.known[p.ID]
	if m == nil {
		m = &member{Peer: p, visit: newVisit(seal.Incarnation{})}
		k.known[p.ID] = m
	}
	m.here = true
	if k.cfg.Of == nil {
		k.Rosters.join(p)
	}
	at, _ := slices.BinarySearchFunc(k.peers, p.ID, func(q *member, id uint16) int { return cmp.Compare(q.ID, id) })
	k.peers = slices.Insert(k.peers, at, m)
}

// Begin makes the keys of this start. states is what is known of the peers.
func (k *Keys) Begin(states map[uint16]seal.PeerState) error {
	with := k.cfg.Key.On(k.cfg.Bearer)
	trust := k.cfg.Trust
	if trust != nil {
		if k.cfg.Of == nil {
			if err := k.Rosters.choose(); err != nil {
				return err
			}
		}
		with = k.Rosters.ring.On(k.cfg.Bearer)
	}
	k.sealer = seal.NewSealer(with, k.cfg.ID, k.cfg.Incarnation)
	if k.cfg.Apart {
		k.sealer.Apart()
	}
	k.opener = seal.NewOpener(with, k.cfg.ID, k.cfg.Incarnation, states)
	if trust != nil && trust.Chance != nil && k.cfg.Forward {
		k.forward = seal.NewForward(with, k.cfg.ID, k.cfg.Incarnation, trust.Chance, trust.Hold)
		k.sealer.Forward(k.forward)
		k.opener.Forward(k.forward)
	}
	k.Rosters.rekey = append(k.Rosters.rekey, func(ring *seal.Keyring) {
		k.sealer.Rekey(ring.On(k.cfg.Bearer))
		k.opener.Rekey(ring.On(k.cfg.Bearer))
	})
	for _, m := range k.peers {
		state := k.opener.State(m.ID)
		m.counted = []seal.Incarnation{{Number: state.Incarnation, Salt: state.Salt}}
	}
	k.opener.Strict()
	return nil
}

// ring has the keys with which this node seals on every bearer.
func (k *Keys) ring() *seal.Keyring {
	if k.cfg.Trust != nil {
		return k.Rosters.ring
	}
	return k.cfg.Key.On(0)
}

// End is the key with which one of two nodes, of which this is one, seals messages for the other that others pass on: seal.EndKey.
func (k *Keys) End(from, to uint16, streams []byte) (seal.EndKey, bool) {
	return k.ring().End(from, to, streams)
}

// Secret is a key that this node alone can make: from the same octets always the same one.
func (k *Keys) Secret(of []byte) [32]byte { return k.ring().Secret(of) }

// Public is the public key of a node that the newest roster names; false: it names none, or the network shares a key.
func (k *Keys) Public(id uint16) (seal.PublicKey, bool) { return k.ring().Public(id) }

// Join takes in a peer while the node runs, one that has left too.
func (k *Keys) Join(p *mail.Peer) {
	k.opener.Add(p.ID)
	k.enlist(p)
}

// Leave stops hearing a peer. The caller makes sure that it was forgotten first.
func (k *Keys) Leave(id uint16) {
	m := k.known[id]
	m.here = false
	if k.cfg.Of == nil {
		k.Rosters.leave(id)
	}
	k.peers = slices.DeleteFunc(k.peers, func(is *member) bool { return is == m })
	k.opener.Remove(id)
}

// Forget forgets a peer's starts; false: that was done too often in this run (seal.ForgetMost). anyStart: the next start that is
// heard may have any number.
func (k *Keys) Forget(id uint16, anyStart bool) bool {
	if !k.opener.Forget(id, anyStart) {
		return false
	}
	k.cfg.Services.Record(BucketSeal, key(id), nil)
	m := k.known[id]
	forgotten := m.forgotten + 1
	m.visit = newVisit(m.counted...)
	m.forgotten = forgotten
	return true
}

// Close shuts out the datagrams that a peer had sealed before it began to count its messages anew: their numbers mean other messages.
func (k *Keys) Close(id uint16) {
	k.opener.Close(id)
	k.record(id)
}

// record makes durable which datagrams of a peer have come: it keeps replays out.
func (k *Keys) record(id uint16) {
	state := k.opener.State(id)
	k.cfg.Services.Record(BucketSeal, key(id), state.Append(nil))
}

func key(id uint16) []byte { return binary.BigEndian.AppendUint16(nil, id) }

// Incarnation is the last start of a peer that counts; 0: none.
func (k *Keys) Incarnation(id uint16) uint32 { return k.opener.State(id).Incarnation }

// Step brings ephemeral keys to now, and wipes those whose time is over. It is called at the beginning of each turn.
func (k *Keys) Step(now time.Time) { k.forward.Step(now) }

// Due is when Step, Rosters.Tell or Rosters.Turn has something to do by itself; zero: never.
func (k *Keys) Due() time.Time { return due.Earliest(k.Rosters.due(), k.forward.Due()) }

// Seal makes a datagram of frames to a peer or seal.Group; false: this start has no counter left, which it says, or the roster
// does not name the peer.
func (k *Keys) Seal(to uint16, long bool, frames []byte) ([]byte, bool) {
	data, err := k.sealer.Seal(nil, to, long, frames)
	if errors.Is(err, seal.ErrNoKey) {
		k.cfg.Services.Drop("no_key")
		return nil, false
	}
	if err != nil {
		k.cfg.Services.Note("error", "the datagram counter is used up; restart the gateway to get a new key")
	}
	return data, err == nil
}

// Silent says whether a peer is believed to be silent: it may start anew then and be unable to say so.
func (k *Keys) Silent(id uint16, silent bool) { k.forward.Silent(id, silent) }

// Hello fills the fields of a HELLO for a peer about starts, rosters and ephemeral keys.
func (k *Keys) Hello(p *mail.Peer, h *frame.Hello) {
	h.HeardIncarnation, h.HeardStream = k.opener.HeardIncarnation(p.ID), p.Handshake.InStream
	if k.opener.State(p.ID).Incarnation == 0 && h.HeardIncarnation != 0 {
		h.HeardStream = k.known[p.ID].stream
	}
	h.Roster, h.Mark = k.Rosters.said(), k.Rosters.mark
	h.Ephemeral, h.HeardEphemeral = k.forward.Says(p.ID)
}

// Hear notes what a peer's HELLO says of this node's starts and of its own rosters.
func (k *Keys) Hear(now time.Time, id uint16, h frame.Hello) {
	k.overtaken(now, k.known[id], h)
	k.Rosters.hear(now, id, h)
}

// Agree takes what the newest HELLO of a peer says of ephemeral keys; true: the peer waits to see that its key is here.
func (k *Keys) Agree(id uint16, h frame.Hello) bool {
	state := k.opener.State(id)
	return k.forward.Hear(id, seal.Incarnation{Number: state.Incarnation, Salt: state.Salt}, h.Ephemeral, h.HeardEphemeral)
}

// Far says that datagrams in the short form may not reach a peer: too many datagrams have gone to others since it was heard.
func (k *Keys) Far(id uint16) bool { return k.sealer.Far(id) }

// Lacks says that a peer may lack this node's half of their common key: acknowledgements for it take a HELLO along.
func (k *Keys) Lacks(id uint16) bool { return k.forward.Lacks(id) }

// ProofsMost is the room that datagrams to all must leave for proofs, also of rosters to come.
func (k *Keys) ProofsMost() int {
	if k.cfg.Trust == nil {
		return 0
	}
	return seal.ProofsMost
}

// Proofs is how many octets of proofs stand behind a datagram to all now.
func (k *Keys) Proofs() int {
	if k.Rosters.ring == nil {
		return 0
	}
	return k.Rosters.ring.Proofs()
}

// Describe adds to a status what the keys know. Key is the fingerprint that two operators compare: of the network's key, or of this
// node's own.
func (k *Keys) Describe(s *api.Status) {
	if k.cfg.Trust == nil {
		s.Key = k.cfg.Key.Fingerprint()
	} else {
		s.Key = k.cfg.Trust.Own.Public().Fingerprint()
	}
	for i := range s.Peers {
		p := &s.Peers[i]
		m := k.known[p.ID]
		p.Start, p.Forgotten, p.Unopened = k.Incarnation(p.ID), m.forgotten, m.strange
		p.Forged, p.Strange = m.forged, m.foreign
	}
	k.Rosters.describe(s)
	for i := range s.Peers {
		s.Peers[i].Forward = k.forward.InForce(s.Peers[i].ID)
	}
}
