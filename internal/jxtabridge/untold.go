package jxtabridge

import (
	"cmp"
	"slices"
	"time"
)

// JXSE opens an input pipe of its own for each end of a BiDi pipe or socket and announces it like any other, some
// milliseconds before it is named in an opening or an answer. Nobody resolves such a pipe: far sites are told of a unicast
// pipe only when it has been open for a moment without becoming a stream's end.
const pipeSettles = 500 * time.Millisecond

type untoldPipe struct {
	peer string
	pipeKey
}

// tellPipe tells far sites of an open pipe, a unicast one a moment later.
func (b *Bridge) tellPipe(p *peer, k pipeKey, kind uint8) {
	if kind != PipeUnicast {
		b.tell(pipeItem(p.id, k, kind))
		return
	}
	u := untoldPipe{p.id, k}
	if b.endsStream(u) {
		b.untold[u] = time.Time{}
		return
	}
	b.untold[u] = b.now.Add(pipeSettles)
	b.until(b.untold[u])
}

func (b *Bridge) endsStream(u untoldPipe) bool {
	for _, st := range b.streams {
		if st.local == u.peer && st.group == u.group && st.toID == u.pipe {
			return true
		}
	}
	return false
}

// hush keeps a stream's own pipe from far sites, if they were not told yet.
func (b *Bridge) hush(st *stream) {
	u := untoldPipe{st.local, pipeKey{st.group, st.toID}}
	if _, ok := b.untold[u]; ok {
		b.untold[u] = time.Time{}
	}
}

// withdrawPipe tells far sites that a pipe is closed, if they know it.
func (b *Bridge) withdrawPipe(p *peer, k pipeKey, kind uint8) {
	u := untoldPipe{p.id, k}
	if _, ok := b.untold[u]; ok {
		delete(b.untold, u)
		return
	}
	it := pipeItem(p.id, k, kind)
	it.Gone = true
	b.tell(it)
}

// sweepUntold tells of the pipes that turned out to be ordinary ones.
func (b *Bridge) sweepUntold() {
	var due []untoldPipe
	for u, t := range b.untold {
		if !t.IsZero() && !b.now.Before(t) {
			due = append(due, u)
		}
	}
	slices.SortFunc(due, func(x, y untoldPipe) int {
		return cmp.Or(cmp.Compare(x.peer, y.peer), cmp.Compare(x.group, y.group), cmp.Compare(x.pipe, y.pipe))
	})
	for _, u := range due {
		delete(b.untold, u)
		if p := b.peers[u.peer]; p != nil {
			if kind, open := p.pipes[u.pipeKey]; open {
				b.tell(pipeItem(u.peer, u.pipeKey, kind))
				b.rememberPeer(p)
			}
		}
	}
}
