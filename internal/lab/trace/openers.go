package trace

import (
	"errors"
	"slices"

	"aldis/internal/link/seal"
)

const (
	maxSearch = 1 << 16 // datagrams tried in vain while looking for node ids
	smallIDs  = 256     // ids that are tried for a node that has sent nothing
	idStep    = 16      // ids that share the hint in a datagram
)

const longForm = 1 << 4 // of a datagram's first octet

var (
	errSearch    = errors.New("no node ids fit")
	errForgotten = errors.New("forward secret: both ends have forgotten the key")
)

// open opens a datagram with an opener that has opened one of its way before, or looks for the two node ids.
func (l *linkAnalyser) open(w, back *way, data []byte) (*direction, []byte, seal.OpenInfo, error) {
	last := errSearch
	try := func(p nodePair) (*direction, []byte, seal.OpenInfo, bool) {
		o := l.openers[p]
		fresh := o == nil
		if fresh {
			o = l.newOpener(p)
		}
		_, body, info, err := o.Open(data)
		if err != nil {
			if !errors.Is(err, seal.ErrAuth) && !errors.Is(err, seal.ErrUnknownPeer) && (!fresh || !errors.Is(err, seal.ErrUnknownIncarnation) || last == errSearch) {
				last = err
			}
			return nil, nil, info, false
		}
		l.openers[p] = o
		if info.NewIncarnation {
			l.booted(p.from, o.State(p.from))
		}
		if info.Group {
			p.to = seal.Group
		}
		d := l.dirs[p]
		if d == nil {
			d = newDirection(p, &l.line)
			l.dirs[p] = d
		}
		return d, body, info, true
	}
	for _, p := range w.pairs {
		if l.a.opt.Ring != nil && p.from != l.a.opt.Self && p.to != l.a.opt.Self {
			continue
		}
		if d, body, info, ok := try(p); ok {
			return d, body, info, nil
		}
	}
	if len(w.pairs) > 0 && l.a.opt.Ring != nil && last == errSearch && data[0]&longForm == 0 {
		return nil, nil, seal.OpenInfo{}, errForgotten
	}
	if len(w.pairs) > 0 && last != errSearch { // from a known pair: a repeat, or from an unknown start
		return nil, nil, seal.OpenInfo{}, last
	}
	if l.search > maxSearch {
		return nil, nil, seal.OpenInfo{}, l.vain
	}
	// Small ids first, in squares that grow: the search is as quick as the larger of the two ids allows.
	senders, receivers := slices.Collect(l.candidates(w)), slices.Collect(l.candidates(back))
	for done, size := 0, 4; done < max(len(senders), len(receivers)); done, size = size, 2*size {
		for i, from := range senders[:min(size, len(senders))] {
			for j, to := range receivers[:min(size, len(receivers))] {
				p := nodePair{from, to}
				if i < done && j < done || from == to || slices.Contains(w.pairs, p) || l.a.opt.Ring != nil && from != l.a.opt.Self && to != l.a.opt.Self {
					continue
				}
				l.search++
				if l.search > maxSearch {
					l.vain = last
					return nil, nil, seal.OpenInfo{}, last
				}
				if d, body, info, ok := try(p); ok {
					w.pairs = append(w.pairs, p)
					return d, body, info, nil
				}
			}
		}
	}
	return nil, nil, seal.OpenInfo{}, last
}

// newOpener makes an opener for datagrams of one node to another, with the known state of the first. Its own incarnation is never
// compared with one on the air.
func (l *linkAnalyser) newOpener(p nodePair) *seal.Opener {
	var keys seal.Keys = l.key
	if bearer := l.a.opt.Bearer; bearer != "" && l.a.opt.Ring == nil {
		keys = l.key.On(seal.BearerNumber(bearer))
	}
	if ring := l.a.opt.Ring; ring != nil {
		ring = ring.On(seal.BearerNumber(l.a.opt.Bearer))
		keys = ring
		if p.to != l.a.opt.Self {
			keys = ring.Between(p.to)
		}
	}
	return seal.NewOpener(keys, p.to, seal.Incarnation{Number: 1}, map[uint16]seal.PeerState{p.from: l.incarnations[p.from]})
}

// booted gives a node's new start to the other openers of its datagrams, because its long forms may have gone to one receiver alone.
func (l *linkAnalyser) booted(from uint16, state seal.PeerState) {
	l.incarnations[from] = seal.PeerState{Incarnation: state.Incarnation, Salt: state.Salt}
	for p, o := range l.openers {
		if s := o.State(from); p.from == from && (s.Incarnation != state.Incarnation || s.Salt != state.Salt) {
			l.openers[p] = l.newOpener(p)
		}
	}
}

// candidates are the node ids that the sender of a way may have, small ones first. For a way that was not seen yet only ids below 256 are
// tried.
func (l *linkAnalyser) candidates(w *way) func(yield func(uint16) bool) {
	return func(yield func(uint16) bool) {
		if len(l.nodes) > 0 {
			for _, id := range l.nodes {
				if (w == nil || !w.seen || byte(id%idStep) == w.hint) && !yield(id) {
					return
				}
			}
			return
		}
		if w == nil || !w.seen {
			for id := uint16(1); id < smallIDs; id++ {
				if !yield(id) {
					return
				}
			}
			return
		}
		for id := int(w.hint); id <= 0xffff; id += idStep {
			if id != 0 && !yield(uint16(id)) {
				return
			}
		}
	}
}

func reason(err error) string {
	switch {
	case errors.Is(err, seal.ErrUnknownIncarnation):
		return "before the first that tells the sender's incarnation"
	case errors.Is(err, seal.ErrReplay), errors.Is(err, seal.ErrTooOld), errors.Is(err, seal.ErrStaleIncarnation):
		return "captured twice, or sent again by a stranger"
	case errors.Is(err, seal.ErrAuth), errors.Is(err, seal.ErrUnknownPeer), errors.Is(err, errSearch):
		return "not of this key"
	case errors.Is(err, seal.ErrForged), errors.Is(err, seal.ErrGone):
		return "in the name of another, or of a node that the roster does not name"
	}
	return err.Error()
}
