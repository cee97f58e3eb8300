package gateway

import (
	"net/netip"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/link/seal"
)

// Trust is keys of single nodes, in the place of Config.Key.
type Trust struct {
	Own       *seal.SigningKey
	Authority seal.PublicKey
	Roster    *roster.Roster // which the authority has signed, and which names this node with Own
	// Chance fills 32 octets with chance that nobody can guess: ephemeral keys are made of it; nil: there are none. Hold is given
	// the memory that these lie in; it may be nil.
	Chance func(*[32]byte)
	Hold   func(octets []byte)
}

// keys is what this node seals and opens with.
type keys struct {
	sealer *seal.Sealer
	opener *seal.Opener
	trust  *Trust // nil: all share a key
	ring   *seal.Keyring
	// forward is keys of this start and a peer's; nil: none are made, for a peer's silence is a matter of course on this link.
	forward *seal.Forward

	rosters  []*roster.Roster     // the newest first, of that serial perhaps several; nil: all share a key
	common   *roster.Roster       // what those of the newest serial all name: it is gone by
	mark     uint16               // roster.Mark of them
	kept     []*roster.Roster     // of the journal, before begin
	use      uint32               // serial of the one that is sealed with for all
	known    map[uint16]shelf     // the rosters that peers are known to keep
	told     map[uint16]uint32    // and those that they are being told
	lags     map[uint16]time.Time // since when a peer is known to go by an older one than this node
	again    map[uint16]time.Time // when one that was told is told again at the earliest
	denied   map[uint16]time.Time // when a peer has last said that it goes by an older one
	changed  map[uint16]uint32    // serials of which peers were told what they change of an older one
	retry    time.Time            // no peer is told before
	spread   bool                 // that is to begin
	refusals int
	refusal  string
	given    uint32 // an operator gave this one here, and it tells all peers
}

// forget knows nothing of a peer's rosters any more.
func (k *keys) forget(id uint16) {
	delete(k.known, id)
	delete(k.told, id)
	delete(k.lags, id)
	delete(k.again, id)
	delete(k.denied, id)
	delete(k.changed, id)
}

// begin makes the keys of this start. states is what is known of the peers.
func (k *keys) begin(cfg *Config, states map[uint16]seal.PeerState) error {
	var with seal.Keys = cfg.Key
	if k.trust = cfg.Trust; k.trust != nil {
		if err := k.choose(cfg.ID, k.kept); err != nil {
			return err
		}
		with = k.ring
	}
	k.sealer = seal.NewSealer(with, cfg.ID, cfg.Boot)
	k.opener = seal.NewOpener(with, cfg.ID, cfg.Boot, states)
	if k.trust != nil && k.trust.Chance != nil && cfg.Profile.Transport != profile.PMul {
		k.forward = seal.NewForward(k.ring, cfg.ID, cfg.Boot, k.trust.Chance, k.trust.Hold)
		k.sealer.Forward(k.forward)
		k.opener.Forward(k.forward)
	}
	return nil
}

// forwardSecrecy is what keys of this start and a peer's have to do with its HELLOs: docs/decisions/forward-secrecy.md.
type forwardSecrecy struct{ g *Gateway }

// say adds to a HELLO what it has to say of them.
func (s forwardSecrecy) say(h *frame.Hello, p *mail.Peer) {
	if f := s.g.keys.forward; f != nil {
		h.Ephemeral, h.HeardEphemeral = f.Says(p.ID)
	}
}

// hear takes what the newest HELLO of a peer says of them. A peer that waits to see that its key is here is told soon.
func (s forwardSecrecy) hear(now time.Time, p *peer, h frame.Hello) {
	f := s.g.keys.forward
	if f == nil {
		return
	}
	state := s.g.keys.opener.State(p.ID)
	if f.Hear(p.ID, seal.Boot{Number: state.Boot, Salt: state.Salt}, h.Ephemeral, h.HeardEphemeral) && !p.Met.Owed {
		p.Met.Owe(now.Add(s.g.cfg.Profile.AckDelay))
	}
}

// lacks says that a peer is not known to have what its key is made of: receipts for it take a HELLO along.
func (s forwardSecrecy) lacks(peer uint16) bool {
	return s.g.keys.forward != nil && s.g.keys.forward.Lacks(peer)
}

// orphaned says that a datagram which nobody can open may be sealed with the key of a start of this node that is over: a short one,
// of a peer that has not been heard since.
func (s forwardSecrecy) orphaned(p *peer, datagram []byte) bool {
	_, boot := seal.Claims(datagram, p.ID)
	return s.g.keys.forward != nil && p.LastHeard.IsZero() && boot == 0
}

// proofsMost is the room that datagrams to all must leave for proofs, also of rosters to come.
func proofsMost(cfg *Config) int {
	if cfg.Trust == nil {
		return 0
	}
	return seal.ProofsMost
}

// proofs is the octets of proofs behind what goes to all now.
func (k *keys) proofs() int {
	if k.ring == nil {
		return 0
	}
	return k.ring.Proofs()
}

// fingerprint is what two operators compare: of the net's key, or of this node's own.
func (k *keys) fingerprint(cfg *Config) string {
	if k.trust == nil {
		return cfg.Key.Fingerprint()
	}
	return k.trust.Own.Public().Fingerprint()
}

// describe adds what the roster says to a status.
func (k *keys) describe(s *api.Status) {
	r := k.newest()
	if r == nil {
		return
	}
	var digests []string
	for _, one := range k.alike() {
		digests = append(digests, one.Fingerprint())
	}
	s.Roster = &api.RosterStatus{Net: r.Net, Serial: r.Serial, Sealing: k.use, Made: r.Made, At: r.At, Refusals: k.refusals, Refusal: k.refusal, Authority: k.trust.Authority.Fingerprint(), AuthorityKey: roster.AuthorityPublic(k.trust.Authority),
		Digests: digests, Differs: len(digests) > 1}
	for i := range s.Peers {
		p := &s.Peers[i]
		if n, ok := r.Node(p.ID); ok {
			p.Key = n.Public.Fingerprint()
		}
		p.Roster, p.Forward = k.known[p.ID].newest, k.forward.InForce(p.ID)
		p.RosterDiffers = p.Link != linkGone && k.differs(k.known[p.ID])
		s.Roster.Differs = s.Roster.Differs || p.RosterDiffers
	}
}

const (
	forgedMost  = 64          // misses in one name, in forgedEvery
	forgedEvery = time.Minute // docs/decisions/trust.md
)

// forgeries are what members have sealed for all in another's name.
type forgeries struct {
	since time.Time // the first of these
	count int
	deaf  bool // what is for all is not looked at in this name
}

// enter counts one. deaf says that no more are looked at until the time is over.
func (f *forgeries) enter(now time.Time) (deaf bool) {
	if now.Sub(f.since) >= forgedEvery {
		f.since, f.count = now, 0
	}
	f.count++
	f.deaf = f.count >= forgedMost
	return f.deaf
}

// over ends the deafness.
func (f *forgeries) over(now time.Time) bool {
	if !f.deaf || now.Sub(f.since) < forgedEvery {
		return false
	}
	f.deaf = false
	return true
}

// forged says that a member of the net has sealed for all in another's name: a peer's, or this node's.
func (d door) forged(now time.Time, id uint16, dg api.Datagram) {
	v, name, count := d.visits[id], d.g.cfg.Name, uint64(1)
	if p := d.g.byID[id]; p != nil {
		p.Counts.Forged++
		name, count = p.Name, p.Counts.Forged
	}
	if v.forged.enter(now) {
		d.g.keys.opener.Mute(id, true)
	}
	if v.may(now, "forged", sayAgain) {
		d.g.Note("error", "a member of the net seals datagrams to all in the name of another, and they are refused: find out who, and have the authority take it out of the roster",
			"in_the_name_of", name, "address", dg.Addr, "address_of", d.at(dg.Addr), "datagrams", count)
	}
}

// gone says that a node which the roster does not name any more still sends.
func (d door) gone(now time.Time, id uint16, dg api.Datagram) {
	v := d.visits[id]
	if v != nil && v.may(now, "gone", sayAgain) {
		d.g.Note("warn", "a node that the roster does not name any more, or names with another key, sends datagrams: they are refused",
			"id", id, "address", dg.Addr)
	}
}

// otherName says that datagrams in the name of a peer were not sealed by its key: with keys of single nodes that is no other
// net's key at the peer, but somebody else.
func (d door) otherName(now time.Time, dg api.Datagram) {
	var one *peer
	for _, p := range d.g.peers {
		if fits, _ := seal.Claims(dg.Data, p.ID); !fits {
			continue
		}
		if d.visits[p.ID].forged.over(now) {
			d.g.keys.opener.Mute(p.ID, false)
		}
		if p.Known(dg.Addr) {
			one = p
			break
		}
		if one != nil {
			return // nobody knows in whose
		}
		one = p
	}
	if one == nil {
		return
	}
	if (forwardSecrecy{d.g}).orphaned(one, dg.Data) {
		return
	}
	one.Counts.Strange++
	v := d.visits[one.ID]
	v.strange++
	if v.strange >= keySigns && v.may(now, "name", sayAgain) {
		d.g.Note("warn", "datagrams that say to be from a peer are not sealed with its key, and are refused: somebody else sends them, or the two go by different rosters or node keys",
			"in_the_name_of", one.Name, "address", dg.Addr, "address_of", d.at(dg.Addr), "datagrams", one.Counts.Strange)
	}
}

// at names the peer that is believed to be at an address; "": none is.
func (d door) at(addr netip.AddrPort) string {
	for _, p := range d.g.peers {
		if p.Addr == addr || p.Known(addr) {
			return p.Name
		}
	}
	return ""
}
