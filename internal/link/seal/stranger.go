package seal

import "encoding/binary"

// stranger is the state of a peer of which nothing is known: of a new one, or after this node's store was lost. A replay of
// yesterday's datagrams looks the same, so nothing of it counts until Confirm.
type stranger struct {
	heard          Incarnation // the greatest start heard
	highest        uint32
	heardKeys      []opening
	past           []PeerState // states of this run before the peer was forgotten: their counters must not count again
	times          int         // how often it was forgotten
	anyIncarnation bool        // the operator accepts the next start whatever its number is
}

// ForgetMost is how often a peer can be forgotten in one run. It bounds the states kept of it.
const ForgetMost = 16

// farAhead is how far a start may be ahead of a known one that is beyond the bound already, in seconds and starts.
const farAhead = 24 * 60 * 60

// Strict makes strangers prove themselves: Open answers ErrUnproven for a peer without state, until Confirm.
func (o *Opener) Strict() { o.strict = true }

// Bound refuses, from now on, starts of peers with a number above most. 0: none is refused. A start that is known stays.
func (o *Opener) Bound(most uint32) { o.bound = most }

// far says whether a start of p is beyond the bound, and beyond what the operator has allowed.
func (o *Opener) far(p *peer, incarnation uint32) bool {
	if o.bound == 0 || incarnation <= o.bound || p.anyIncarnation {
		return false
	}
	known := p.state.Incarnation
	return known <= o.bound || incarnation-known > farAhead
}

// hear notes a stranger's start and counter, and says whether the start is greater than all before, and the counter further on.
func (s *stranger) hear(incarnation Incarnation, counter uint32, keys []opening) (greater, further bool) {
	switch {
	case incarnation.Number > s.heard.Number:
		s.heard, s.highest, s.heardKeys = incarnation, counter, keys
		return true, true
	case incarnation == s.heard && counter > s.highest:
		s.highest = counter
		return false, true
	}
	return false, false
}

// openHeard opens a short datagram of a stranger whose start was heard.
func (o *Opener) openHeard(p *peer, datagram []byte, low uint16) (body []byte, info OpenInfo, ok bool, err error) {
	if p.heard.Number == 0 {
		return nil, info, false, nil
	}
	w := window{highest: p.highest}
	c := w.expand(low)
	if c == 0 {
		return nil, info, false, nil
	}
	info = OpenInfo{Incarnation: p.heard, Counter: c}
	if body, ok, err = o.decrypt(datagram, shortLen, p.id, &info, p.heardKeys); !ok {
		return nil, info, false, err
	}
	_, info.Newest = p.hear(p.heard, c, p.heardKeys)
	return append([]byte(nil), body...), info, true, nil
}

// HeardIncarnation is the number of the peer's known start, or else of the greatest start heard; 0: none.
func (o *Opener) HeardIncarnation(id uint16) uint32 {
	p := o.byID[id]
	switch {
	case p == nil:
		return 0
	case p.state.Incarnation != 0:
		return p.state.Incarnation
	}
	return p.heard.Number
}

// Confirm says that a datagram which Open answered with ErrUnproven cannot be of yesterday, because it answers this start
// of this node. It and later datagrams of that start count from now on; earlier ones do not. The error is ErrReplay or
// ErrTooOld if that very datagram had counted before the peer was forgotten.
func (o *Opener) Confirm(id uint16, info OpenInfo) error {
	p := o.byID[id]
	state := PeerState{Incarnation: info.Incarnation.Number, Salt: info.Incarnation.Salt, window: full(info.Counter)}
	for _, s := range p.past {
		if s.Incarnation != state.Incarnation || s.Salt != state.Salt {
			continue
		}
		state = s
		if err := state.check(info.Counter); err != nil {
			return err
		}
		state.mark(info.Counter)
	}
	p.state, p.ranOn = state, 0
	p.heard, p.highest, p.anyIncarnation = Incarnation{}, 0, false
	o.forward.begin(id)
	o.derive(p)
	return nil
}

// Close says that datagrams of a peer's present start which were sealed before its newest one do not count any more.
func (o *Opener) Close(id uint16) {
	p := o.byID[id]
	p.state.window = full(p.state.highest)
}

// Forget makes a stranger of a peer. With anyIncarnation, the next of its starts that is confirmed may have any number. It
// returns false for a peer that is not configured, or was forgotten too often in this run.
func (o *Opener) Forget(id uint16, anyIncarnation bool) bool {
	p := o.byID[id]
	if p == nil || p.times == ForgetMost {
		return false
	}
	if p.state.Incarnation != 0 {
		p.past = append(p.past, p.state)
	}
	p.times++
	p.state = PeerState{}
	p.heard, p.highest, p.anyIncarnation = Incarnation{}, 0, anyIncarnation
	o.forward.begin(id)
	return true
}

// Claims reads the unencrypted part of a datagram: whether peer id may have sent it, and its incarnation number, 0 in the
// short form. Nothing of it is authentic.
func Claims(datagram []byte, id uint16) (fits bool, incarnation uint32) {
	if len(datagram) < OverheadShort || datagram[0]&hintMask != byte(id)&hintMask {
		return false, 0
	}
	if datagram[0]&flagLong != 0 && len(datagram) >= OverheadLong {
		incarnation = binary.BigEndian.Uint32(datagram[1:])
	}
	return true, incarnation
}
