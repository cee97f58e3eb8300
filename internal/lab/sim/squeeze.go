package sim

import (
	"slices"
	"time"

	"aldis/internal/gateway/api"
)

// arrived is an event that waits for the next turn of a node's loop.
type arrived struct {
	at time.Time // in the World's time
	ev api.Event
}

// squeezed keeps an event, or the fact that work is due, for the next turn, which is late.
func (w *World) squeezed(n *Node, ev api.Event) {
	if ev != nil {
		n.inbox = append(n.inbox, arrived{w.Now, ev})
	}
	n.due = time.Time{}
	if n.turning {
		return
	}
	n.turning = true
	w.At(w.cfg.Late(n), func() {
		n.turning = false
		w.lateTurn(n)
	})
}

// lateTurn steps a node through the events that have come, as internal/edge/daemon does: datagrams first, and the work that is due after
// all of them.
func (w *World) lateTurn(n *Node) {
	list := n.inbox
	n.inbox = nil
	isAir := func(a arrived) bool { _, ok := a.ev.(api.Datagram); return ok }
	slices.SortStableFunc(list, func(a, b arrived) int {
		switch {
		case isAir(a) == isAir(b):
			return 0
		case isAir(a):
			return -1
		}
		return 1
	})
	if len(list) == 0 {
		w.turn(n, nil)
	}
	for i, a := range list {
		if d, ok := a.ev.(api.Datagram); ok {
			d.Waited = w.Now.Sub(a.at)
			d.More = i+1 < len(list) && isAir(list[i+1])
			a.ev = d
		}
		w.turn(n, a.ev)
	}
}
