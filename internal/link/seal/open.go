package seal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// Why a datagram was not opened. From ErrUnproven on, the datagram is authentic, and Open names its sender.
var (
	ErrShort              = errors.New("seal: datagram is too short")
	ErrVersion            = errors.New("seal: unknown version")
	ErrUnknownPeer        = errors.New("seal: no configured peer has this id")
	ErrUnknownIncarnation = errors.New("seal: short form from a peer whose incarnation number is not known")
	ErrAuth               = errors.New("seal: not authentic")
	ErrForged             = errors.New("seal: a member has sealed it in another's name")
	ErrGone               = errors.New("seal: from a node that the roster does not name any more, or names with another key")
	ErrUnproven           = errors.New("seal: from a peer of which nothing is known: it may be of yesterday")
	ErrFarIncarnation     = errors.New("seal: from a start of the peer that lies too far ahead")
	ErrStaleIncarnation   = errors.New("seal: from an earlier start of the peer")
	ErrTwin               = errors.New("seal: two nodes run with this peer's id")
	ErrOwnID              = errors.New("seal: another node runs with this node's id")
	ErrReplay             = errors.New("seal: received before")
	ErrTooOld             = errors.New("seal: older than the replay window")
)

// PeerState is what an Opener knows of a peer. The zero value knows nothing.
type PeerState struct {
	Incarnation uint32 // 0: not known
	Salt        uint16
	window
	// The start before it. A datagram of that start with a new counter reveals a second node with this id.
	before        Incarnation
	beforeHighest uint32
}

// Octets of a PeerState. The shorter form is of version 0.1 and lacks the start before.
const (
	peerStateShort = 1 + 4 + 2 + 4 + windowLen/8
	peerStateLen   = peerStateShort + 4 + 2 + 4
)

// ErrPeerState says that octets from the journal are no PeerState.
var ErrPeerState = errors.New("seal: not a peer state")

// Append appends p in the form that ParsePeerState reads.
func (p *PeerState) Append(b []byte) []byte {
	b = append(b, 1) // format
	b = binary.BigEndian.AppendUint32(b, p.Incarnation)
	b = binary.BigEndian.AppendUint16(b, p.Salt)
	b = binary.BigEndian.AppendUint32(b, p.highest)
	for _, w := range p.received {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	b = binary.BigEndian.AppendUint32(b, p.before.Number)
	b = binary.BigEndian.AppendUint16(b, p.before.Salt)
	return binary.BigEndian.AppendUint32(b, p.beforeHighest)
}

// ParsePeerState reads the output of Append, of this version or of 0.1.
func ParsePeerState(b []byte) (PeerState, error) {
	var p PeerState
	if len(b) != peerStateShort && len(b) != peerStateLen || b[0] != 1 {
		return p, ErrPeerState
	}
	p.Incarnation = binary.BigEndian.Uint32(b[1:])
	p.Salt = binary.BigEndian.Uint16(b[5:])
	p.highest = binary.BigEndian.Uint32(b[7:])
	for i := range p.received {
		p.received[i] = binary.BigEndian.Uint64(b[11+8*i:])
	}
	b = b[peerStateShort:]
	if len(b) > 0 {
		p.before = Incarnation{binary.BigEndian.Uint32(b), binary.BigEndian.Uint16(b[4:])}
		p.beforeHighest = binary.BigEndian.Uint32(b[6:])
	}
	return p, nil
}

type peer struct {
	id    uint16
	state PeerState
	keys  []opening // for state.Incarnation and state.Salt
	// For state.before, and the highest counter of that start received since it ended.
	beforeKeys []opening
	ranOn      uint32
	stranger
}

// Opener opens the datagrams that a node receives.
type Opener struct {
	ring        *Keyring
	self        uint16
	incarnation Incarnation
	byHint      [hintMask + 1][]*peer // by the low bits of the id
	byID        map[uint16]*peer
	away        map[uint16]*peer // removed in this run
	strict      bool             // strangers must be proven
	bound       uint32           // starts with a greater number are refused; 0: none is
	muted       map[uint16]bool
	forward     *Forward
	scratch     []byte
}

// NewOpener returns the Opener of node self in its start incarnation, for the given peers. self must not be among them.
func NewOpener(keys Keys, self uint16, incarnation Incarnation, peers map[uint16]PeerState) *Opener {
	start()
	o := &Opener{ring: keys.ring(), self: self, incarnation: incarnation, byID: make(map[uint16]*peer, len(peers))}
	for id, state := range peers {
		if id == 0 || id == self {
			panic("seal: a peer needs an id of its own")
		}
		p := &peer{id: id, state: state}
		o.derive(p)
		o.byID[id] = p
		o.byHint[id&hintMask] = append(o.byHint[id&hintMask], p)
	}
	for _, c := range o.byHint { // a map has no order: equal input must give equal results
		slices.SortFunc(c, func(a, b *peer) int { return int(a.id) - int(b.id) })
	}
	return o
}

// Add adds a peer of which nothing is known except the state that Remove kept. id must be neither self nor known.
func (o *Opener) Add(id uint16) {
	if id == 0 || id == o.self || o.byID[id] != nil {
		panic("seal: a peer needs an id of its own")
	}
	p := o.away[id]
	if p == nil {
		p = &peer{id: id}
	}
	delete(o.away, id)
	o.derive(p)
	o.byID[id] = p
	c := append(o.byHint[id&hintMask], p)
	slices.SortFunc(c, func(a, b *peer) int { return int(a.id) - int(b.id) })
	o.byHint[id&hintMask] = c
}

// Remove stops opening a peer's datagrams. The state that refuses its old datagrams is kept in case it is added again.
func (o *Opener) Remove(id uint16) {
	p := o.byID[id]
	if o.away == nil {
		o.away = map[uint16]*peer{}
	}
	o.away[id] = p
	delete(o.byID, id)
	o.byHint[id&hintMask] = slices.DeleteFunc(slices.Clone(o.byHint[id&hintMask]), func(is *peer) bool { return is == p })
}

// derive makes the keys of a peer's known starts.
func (o *Opener) derive(p *peer) {
	p.keys, p.beforeKeys, p.heardKeys = nil, nil, nil
	if p.state.Incarnation != 0 {
		p.keys = o.openings(p.id, Incarnation{p.state.Incarnation, p.state.Salt})
	}
	if p.state.before.Number != 0 {
		p.beforeKeys = o.openings(p.id, p.state.before)
	}
	if p.heard.Number != 0 {
		p.heardKeys = o.openings(p.id, p.heard)
	}
}

func (o *Opener) openings(from uint16, incarnation Incarnation) []opening {
	return o.ring.openings(o.self, from, incarnation)
}

// Rekey opens with other keys from now on. The state of peers stays.
func (o *Opener) Rekey(keys Keys) {
	o.ring = keys.ring()
	if o.forward != nil {
		o.forward.rekey(o.ring)
	}
	for _, p := range o.byID {
		o.derive(p)
	}
}

// Forward opens short datagrams with keys that both ends wipe, if there are such keys.
func (o *Opener) Forward(f *Forward) { o.forward = f }

// openForward opens a short datagram with a key of this start and the peer's. The error is ErrGone.
func (o *Opener) openForward(p *peer, datagram []byte, info *OpenInfo) (body []byte, ok bool, err error) {
	sealed := datagram[shortLen:]
	n := nonce(info.Counter)
	var adBuf [longLen + 4]byte
	for _, key := range o.forward.incoming(p.id, info.Incarnation) {
		if key == nil {
			continue
		}
		o.scratch = slices.Grow(o.scratch[:0], len(sealed))
		body = o.scratch[:len(sealed)-tagLen]
		if decrypt(body, sealed, appendAD(adBuf[:0], datagram[:shortLen], p.id, o.self), &n, key) {
			if o.forward.opened(p.id, key) {
				return nil, false, ErrGone
			}
			info.Forward = true
			return body, true, nil
		}
	}
	return nil, false, nil
}

// Mute ignores datagrams for all in a node's name, or stops ignoring them.
func (o *Opener) Mute(id uint16, on bool) {
	if o.muted == nil {
		o.muted = map[uint16]bool{}
	}
	o.muted[id] = on
}

// State is the present state of a peer; the zero PeerState for one that is not configured.
func (o *Opener) State(id uint16) PeerState {
	if p := o.byID[id]; p != nil {
		return p.state
	}
	return PeerState{}
}

// OpenInfo says more about an authentic datagram.
type OpenInfo struct {
	Newest         bool        // no datagram of the peer with a higher counter was received: its source address is the latest
	NewIncarnation bool        // the first datagram of a start of the peer not heard of before
	Long           bool        // long form
	Epoch          uint32      // of the roster, for a datagram to all; 0: all share a key
	Proofs         int         // octets of the proofs after the body
	Group          bool        // for the whole network, not for this node alone
	Forward        bool        // sealed with a key that both ends wipe
	Incarnation    Incarnation // the peer's
	Counter        uint32      // the whole counter
	// Alive, with ErrStaleIncarnation: this is no replay. The sender uses this counter for the first time, so it is still running.
	Alive bool
}

// Open returns the sender and the body of a datagram that is authentic, for this node or the network, and new. The body is
// the caller's. With ErrUnproven and the errors listed after it, from and info are valid too, and the state of the peer is
// unchanged. With the other errors from is 0, except that ErrUnknownIncarnation names the peer when only one can be meant,
// ErrForged the peer in whose name it was, and ErrGone the sender. ErrUnproven and ErrStaleIncarnation come with a body,
// for what it says of its sender; its messages must not be accepted.
func (o *Opener) Open(datagram []byte) (from uint16, body []byte, info OpenInfo, err error) {
	if len(datagram) < OverheadShort {
		return 0, nil, info, ErrShort
	}
	if datagram[0]&^(flagLong|hintMask) != version {
		return 0, nil, info, ErrVersion
	}
	candidates := o.byHint[datagram[0]&hintMask]
	if datagram[0]&flagLong != 0 {
		if len(datagram) < OverheadLong {
			return 0, nil, info, ErrShort
		}
		return o.openLong(candidates, datagram)
	}
	return o.openShort(candidates, datagram)
}

func (o *Opener) openShort(candidates []*peer, datagram []byte) (uint16, []byte, OpenInfo, error) {
	low := binary.BigEndian.Uint16(datagram[1:])
	var unknown []*peer
	for _, p := range candidates {
		if p.state.Incarnation == 0 {
			unknown = append(unknown, p)
			continue
		}
		c := p.state.expand(low)
		if c == 0 {
			continue
		}
		info := OpenInfo{Incarnation: Incarnation{p.state.Incarnation, p.state.Salt}, Counter: c}
		if body, ok, err := o.openForward(p, datagram, &info); err != nil {
			return p.id, nil, info, err
		} else if ok {
			return p.accept(body, info)
		}
		body, ok, err := o.decrypt(datagram, shortLen, p.id, &info, p.keys)
		switch {
		case err != nil:
			return p.id, nil, info, err
		case ok:
			return p.accept(body, info)
		}
	}
	for _, p := range unknown {
		if body, info, ok, err := o.openHeard(p, datagram, low); ok || err != nil {
			return p.id, body, info, cmp.Or(err, ErrUnproven)
		}
	}
	for _, p := range candidates {
		if p.state.before.Number == 0 {
			continue
		}
		before := window{highest: p.state.beforeHighest}
		c := before.expand(low)
		if c == 0 {
			continue
		}
		info := OpenInfo{Incarnation: p.state.before, Counter: c}
		if body, ok, err := o.openForward(p, datagram, &info); ok && err == nil {
			info.Alive = p.isAlive(c)
			return p.id, slices.Clone(body), info, ErrStaleIncarnation
		}
		body, ok, err := o.decrypt(datagram, shortLen, p.id, &info, p.beforeKeys)
		switch {
		case err != nil:
			return p.id, nil, info, err
		case ok:
			info.Alive = p.isAlive(c)
			return p.id, slices.Clone(body), info, ErrStaleIncarnation
		}
	}
	switch {
	case len(candidates) == 0:
		return 0, nil, OpenInfo{}, ErrUnknownPeer
	case len(unknown) == 1:
		return unknown[0].id, nil, OpenInfo{}, ErrUnknownIncarnation
	case len(unknown) > 1:
		return 0, nil, OpenInfo{}, ErrUnknownIncarnation
	}
	return 0, nil, OpenInfo{}, ErrAuth
}

func (o *Opener) openLong(candidates []*peer, datagram []byte) (uint16, []byte, OpenInfo, error) {
	incarnation := Incarnation{binary.BigEndian.Uint32(datagram[1:]), binary.BigEndian.Uint16(datagram[5:])}
	c := binary.BigEndian.Uint32(datagram[7:])
	own := datagram[0]&hintMask == byte(o.self)&hintMask
	if len(candidates) == 0 && !own {
		return 0, nil, OpenInfo{}, ErrUnknownPeer
	}
	if incarnation.Number == 0 || c == 0 { // no Sealer makes these
		return 0, nil, OpenInfo{}, ErrAuth
	}
	info := OpenInfo{Long: true, Incarnation: incarnation, Counter: c}
	for _, p := range candidates {
		known := Incarnation{p.state.Incarnation, p.state.Salt}
		keys := p.keys
		if incarnation != known {
			keys = o.openings(p.id, incarnation)
		}
		body, ok, err := o.decrypt(datagram, longLen, p.id, &info, keys)
		if err != nil {
			return p.id, nil, info, err
		}
		if !ok {
			continue
		}
		switch {
		case incarnation.Number < known.Number:
			info.Alive = incarnation == p.state.before && p.isAlive(c)
			return p.id, slices.Clone(body), info, ErrStaleIncarnation
		case incarnation.Number == known.Number && incarnation.Salt != known.Salt:
			return p.id, nil, info, ErrTwin
		case incarnation.Number > known.Number && o.far(p, incarnation.Number):
			return p.id, nil, info, ErrFarIncarnation
		case known.Number == 0 && o.strict:
			info.NewIncarnation, info.Newest = p.hear(incarnation, c, keys)
			return p.id, slices.Clone(body), info, ErrUnproven
		case incarnation.Number > known.Number:
			info.NewIncarnation = true
			p.state = PeerState{Incarnation: incarnation.Number, Salt: incarnation.Salt, before: known, beforeHighest: p.state.highest}
			p.keys, p.beforeKeys, p.ranOn = keys, p.keys, 0
			o.forward.begin(p.id)
		}
		return p.accept(body, info)
	}
	if own {
		_, ok, err := o.decrypt(datagram, longLen, o.self, &info, o.openings(o.self, incarnation))
		switch {
		case err != nil:
			return o.self, nil, info, err
		case ok && (incarnation == o.incarnation || info.Group && incarnation.Number < o.incarnation.Number):
			return o.self, nil, info, ErrReplay // this node's own, sent back to it: of this start, or for the network and of an earlier start
		case ok:
			return o.self, nil, info, ErrOwnID
		}
	}
	return 0, nil, OpenInfo{}, ErrAuth
}

// isAlive records a counter of the start before, and says whether it is beyond all earlier ones.
func (p *peer) isAlive(counter uint32) bool {
	if counter <= max(p.state.beforeHighest, p.ranOn) {
		return false
	}
	p.ranOn = counter
	return true
}

// accept applies the replay window to an authentic datagram.
func (p *peer) accept(body []byte, info OpenInfo) (uint16, []byte, OpenInfo, error) {
	if err := p.state.check(info.Counter); err != nil {
		return p.id, nil, info, err
	}
	info.Newest = info.Counter > p.state.highest
	p.state.mark(info.Counter)
	return p.id, slices.Clone(body), info, nil
}

// decrypt tries the ways in which node from may have sealed datagram: for this node first, then for the network. It records
// in info which way it was. The body is only valid until the next call. The error says that the sender is not the one it
// seems.
func (o *Opener) decrypt(datagram []byte, headLen int, from uint16, info *OpenInfo, keys []opening) (body []byte, ok bool, err error) {
	sealed := datagram[headLen:]
	// One octet more than needed: C wants a valid address even for an empty body.
	o.scratch = slices.Grow(o.scratch[:0], len(sealed))
	body = o.scratch[:len(sealed)-tagLen]
	n := nonce(info.Counter)
	var adBuf [longLen + 4]byte
	for i := range keys {
		k := &keys[i]
		if k.to == Group && o.muted[from] {
			continue
		}
		ad := appendAD(adBuf[:0], datagram[:headLen], from, k.to)
		if !decrypt(body, sealed, ad, &n, &k.key) {
			continue
		}
		info.Group, info.Proofs, info.Epoch = k.to == Group, k.tail, k.epoch
		if body, ok = k.proves(from, info.Incarnation, &n, ad, body); !ok {
			return nil, false, ErrForged
		}
		if k.gone {
			return nil, false, ErrGone
		}
		return body, true, nil
	}
	return nil, false, nil
}
