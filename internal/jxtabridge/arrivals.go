package jxtabridge

import (
	"fmt"
	"slices"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// arrivals hands messages of far sites to their local receivers, and reports how each has ended. A message for a
// peer that is away waits for it (away.go); docs/decisions/waiting.md.
type arrivals struct {
	*step
	outlets     *outlets
	ghosts      *ghosts
	propagation *propagation
	away        away
	count       uint64               // of messages, in the order of their arrival
	ends        due.Heap[*delivery]  // deliveries that have not ended, by their ends
	left        map[uint64][]string  // by token: peers that a message from before a restart is still for, until the core hands it in again
	recalled    time.Time            // when messages in left that were not handed in are forgotten
	tallies     map[string]*endTally // counts for the log, by local peer
}

// delivery is a FarMessage on its way to one or more local peers.
type delivery struct {
	token   uint64
	message site.Message
	octets  int
	order   uint64            // of arrival
	life    time.Time         // until when it is useful
	ends    time.Time         // when it ends for the peers that it has not reached: its life, or earlier
	waiting int               // number of peers that it has not reached
	queues  []*peer           // peers into whose queues it was put
	parked  []*parked         // for peers that are away
	noted   bool              // the memory names the peers that do not have it yet
	lost    *site.Undelivered // the first peer that will not get it; nil: none yet
	all     []jxta.Element    // elements of a propagated message for every peer, while it is handed out

	place, rank int // positions in the heaps of ends and of what to give up first, from 1; 0: not in it
}

// Before and Placed are for the heap of deliveries by their ends.
func (d *delivery) Before(o *delivery) bool { return d.ends.Before(o.ends) }
func (d *delivery) Placed(place int)        { d.place = place }

// less orders deliveries by which is given up first: the least urgent, and of these the oldest.
func (d *delivery) less(o *delivery) bool {
	if a, b := d.message.Precedence.Rank(), o.message.Precedence.Rank(); a != b {
		return a < b
	}
	return d.order < o.order
}

// hear re-creates a far peer's message for its local receivers.
func (ar *arrivals) hear(ev site.FarMessage) {
	ar.count++
	d := &delivery{token: ev.Token, message: ev.Message, octets: sizeOf(ev.Message.Parts), order: ar.count,
		life: ev.Until, waiting: 1} // so that it does not end before all receivers are known
	m := &d.message
	if d.life.IsZero() {
		d.life = ar.now.Add(ar.cfg.Wait)
	}
	d.ends = d.life
	if m.ID == "" {
		m.ID = fmt.Sprintf("%08x-%04x-4000-8000-%012x", ev.Token>>32, ev.Site, ev.Token&0xffffffff)
	}
	ar.outlets.waiting[d.token] = d
	ids, again := ar.left[d.token]
	if again {
		delete(ar.left, d.token)
		d.noted = true
	} else {
		ids = ar.wantedBy(m)
	}
	if len(ids) == 0 {
		ids = []string{nobody}
		d.ends = due.Earliest(d.ends, ar.now.Add(ar.cfg.Hold))
	}
	for _, id := range ids {
		ar.give(d, id)
	}
	if m.Published && !again {
		w, h := wireOf(m)
		ar.propagation.shoutPropagated(m.Scope, m.Parts, w, h)
	}
	d.all = nil
	ar.ends.Push(d)
	ar.until(d.ends)
	ar.settle(d)
}

// nobody stands for the receiver of a message without a known receiver.
const nobody = ""

// wantedBy are the receivers of a message, here and away, in order.
func (ar *arrivals) wantedBy(m *site.Message) (ids []string) {
	if !m.Published && m.To != "" {
		if p := ar.outlets.peers[m.To]; p != nil && len(p.leases) > 0 || ar.away.knows(m.To) {
			return []string{m.To}
		}
		return nil
	}
	k := pipeKey{m.Scope, m.Topic}
	for _, p := range ar.outlets.membersOf(m.Scope) {
		if _, open := p.pipes[k]; open || !m.Published {
			ids = append(ids, p.id)
		}
	}
	return append(ids, ar.away.listeners(m.Published, k)...)
}

// pipeOf is the pipe to which a message goes, if any.
func pipeOf(m *site.Message) (k pipeKey, ok bool) {
	if m.Published {
		return pipeKey{m.Scope, m.Topic}, true
	}
	if m.Service != svcPipe {
		return k, false
	}
	id, err := jxta.ParseURN(m.Param)
	return pipeKey{m.Scope, id}, err == nil
}

// takes reports whether a peer can be handed a message now. A unicast message does not wait for a pipe of which nothing is
// known.
func (ar *arrivals) takes(p *peer, d *delivery) bool {
	m := &d.message
	k, piped := pipeOf(m)
	_, open := p.pipes[k]
	switch {
	case piped && p.gap.pipes[k]:
		return false
	case m.Published:
		return open && p.leases[m.Scope] != nil
	case m.To == "":
		return p.leases[m.Scope] != nil
	case len(p.leases) == 0:
		return false
	}
	return open || !piped || !ar.away.listened(p.id, k)
}

// give counts one more receiver of a message, and hands it to that peer or lets it wait.
func (ar *arrivals) give(d *delivery, id string) {
	d.waiting++
	if p := ar.outlets.peers[id]; p != nil && ar.takes(p, d) && !ar.away.behind(id) {
		ar.send(p, d)
		return
	}
	ar.park(d, id)
}

// park lets a message wait for a peer that is away.
func (ar *arrivals) park(d *delivery, id string) {
	a := ar.away.park(d, id)
	p := ar.outlets.peers[id]
	back := p != nil && ar.takes(p, d)
	if back { // it gets the waiting messages in order
		a.ready = append(a.ready, d.parked[len(d.parked)-1])
	}
	for w := ar.away.tooMuch(a); w != nil; w = ar.away.tooMuch(a) {
		ar.release(w, site.NoRoom)
	}
	if back {
		ar.feed(p)
	}
}

// release gives up a message that waits for a peer that is away.
func (ar *arrivals) release(w *parked, why site.Why) {
	ar.away.unpark(w)
	ar.failed(w.delivery, w.of.id, why)
}

// send puts a message into a peer's queue.
func (ar *arrivals) send(p *peer, d *delivery) {
	d.queues = append(d.queues, p)
	msg := ar.compose(p, d)
	msg.delivery = d
	ar.outlets.enqueue(p, msg)
}

// compose makes the message for a peer.
func (ar *arrivals) compose(p *peer, d *delivery) *message {
	m := &d.message
	if !m.Published && m.To != "" {
		return ar.ghosts.routedAnyGroup(p, m.From, m.Scope, m.Service, m.Param, ar.ghosts.inward(m.From, m.Parts))
	}
	if d.all == nil {
		w, h := wireOf(m)
		parts := m.Parts
		if !m.Published {
			parts = ar.ghosts.inward(m.From, parts)
		}
		d.all = ar.propagation.propagatedElements(m.Scope, parts, w, h)
	}
	return ar.ghosts.routed(p, ar.me, m.Scope, svcPropagate, m.Scope, d.all)
}

// wireOf makes the headers of a propagated message; w is nil if it is for no pipe.
func wireOf(m *site.Message) (w *jxta.WireHeader, h jxta.Propagate) {
	if !m.Published {
		return nil, jxta.Propagate{MessageID: m.ID, Service: m.Service, Param: m.Param}
	}
	return &jxta.WireHeader{Src: m.From, Pipe: m.Topic, MsgID: m.ID, TTL: 200},
		jxta.Propagate{MessageID: m.ID, Service: svcWire, Param: m.Scope}
}

// finish counts off one receiver of a far message that has received it.
func (o *outlets) finish(m *message) {
	o.local.release(m)
	if d := m.delivery; d != nil {
		m.delivery = nil
		o.arrivals.settle(d)
	}
}

// giveUp counts off one receiver of a far message that will not get it.
func (o *outlets) giveUp(p *peer, m *message, why site.Why) {
	o.local.release(m)
	if d := m.delivery; d != nil {
		m.delivery = nil
		o.arrivals.failed(d, p.id, why)
	}
}

// failed counts off one receiver of a message that will not get it.
func (ar *arrivals) failed(d *delivery, id string, why site.Why) {
	if id == nobody {
		why = site.Nobody
	}
	if d.lost == nil {
		d.lost = &site.Undelivered{Token: d.token, Why: why, For: id}
	}
	ar.report(d, id, why)
	ar.settle(d)
}

// settle counts off one receiver of a message. The message ends with the last receiver. While it is only for peers that are
// away, the memory names them.
func (ar *arrivals) settle(d *delivery) {
	d.waiting--
	key := leftKey(d.token)
	switch {
	case d.waiting == 0:
		delete(ar.outlets.waiting, d.token)
		ar.ends.Remove(d.place)
		if d.noted {
			ar.forget(key)
		}
		if d.lost == nil {
			ar.done(d.token)
			break
		}
		undelivered(ar.step, d.token, d.lost.Why, d.lost.For)
	case d.waiting == len(d.parked):
		var ids []string
		for _, w := range d.parked {
			if w.of.id != nobody {
				ids = append(ids, w.of.id)
			}
		}
		if len(ids) > 0 {
			d.noted = true
			ar.remember(key, ids)
		}
	}
}

// leave parks messages in a peer's queue that cannot be handed to it any more, because its lease or a pipe has ended.
func (ar *arrivals) leave(p *peer) {
	var gone []*message
	p.queue = slices.DeleteFunc(p.queue, func(m *message) bool {
		if m.delivery == nil || ar.takes(p, m.delivery) {
			return false
		}
		gone = append(gone, m)
		p.queued -= m.size
		return true
	})
	for _, m := range gone {
		d := m.delivery
		m.delivery = nil
		d.queues = slices.DeleteFunc(d.queues, func(q *peer) bool { return q == p })
		if !ar.now.Before(d.ends) {
			ar.failed(d, p.id, site.LifeOver)
			continue
		}
		d.waiting++ // so that settle only notes its receivers
		ar.park(d, p.id)
		ar.settle(d)
	}
}

// groupLeft notes that a peer has no lease in a group any more; its pipes there were closed before.
func (ar *arrivals) groupLeft(p *peer, group string) {
	ar.leave(p)
	ar.away.left(p.id, group)
}

// pipeLeft notes that a peer has closed a pipe that far sites knew.
func (ar *arrivals) pipeLeft(p *peer, k pipeKey) {
	ar.away.closed(p.id, k)
	ar.leave(p)
}

// back notes that a peer has a lease in a group, or has opened a pipe of it, and hands it the messages that have waited for the
// lease or the pipe.
func (ar *arrivals) back(p *peer, k pipeKey) {
	delete(p.gap.pipes, k)
	if k.pipe == "" {
		ar.away.returned(p.id, k.group)
	} else {
		ar.away.opened(p.id, k)
	}
	if n := ar.away.of[nobody]; n != nil {
		for _, w := range inOrder(n.waiting) {
			d := w.delivery
			if m := &d.message; (m.To == "" || m.To == p.id) && ar.takes(p, d) {
				d.ends = d.life
				ar.ends.Set(d, d.place)
				ar.away.unpark(w)
				ar.send(p, d)
			}
		}
	}
	ar.catchUp(p)
}

// catchUp hands a peer the messages that have waited for it and can be handed over now.
func (ar *arrivals) catchUp(p *peer) {
	a := ar.away.of[p.id]
	if a == nil || len(a.waiting) == 0 {
		return
	}
	a.ready = slices.DeleteFunc(inOrder(a.waiting), func(w *parked) bool { return !ar.takes(p, w.delivery) })
	ar.feed(p)
}

// gap is a time without a connection, as far as this run knows. A peer that comes back after one, within its lease, may be
// another process with the same id that has not opened its pipes yet. Messages for a pipe wait until the peer announces the pipe again,
// or for a while.
type gap struct {
	since time.Time        // the end of the last connection
	until time.Time        // when all pipes are trusted again; zero: they are trusted now
	pipes map[pipeKey]bool // pipes that it has not announced again
}

const (
	gapFrom  = 5 * time.Second // no machine starts a process and its JXTA sooner; a peer that is called back comes within two
	gapTrust = 5 * time.Second // a choice: the old process waits that long, and a new process opens its pipes in that time
)

// redialled notes that a peer without a connection has dialled in.
func (ar *arrivals) redialled(p *peer) {
	if len(p.conns) > 0 || p.gap.since.IsZero() || ar.now.Before(p.gap.since.Add(gapFrom)) {
		return
	}
	p.gap = gap{pipes: map[pipeKey]bool{}}
	for k := range p.pipes {
		p.gap.pipes[k] = true
	}
	if len(p.gap.pipes) > 0 {
		p.gap.until = ar.now.Add(gapTrust)
		ar.outlets.peerAt(p, p.gap.until)
		ar.leave(p)
	}
}

// confirmed notes that a peer has announced a pipe again.
func (ar *arrivals) confirmed(p *peer, k pipeKey) {
	if p.gap.pipes[k] {
		delete(p.gap.pipes, k)
		ar.catchUp(p)
	}
}

// trust assumes that a peer has the pipes that it had before.
func (ar *arrivals) trust(p *peer) {
	if due.Reached(ar.now, p.gap.until) {
		p.gap.until, p.gap.pipes = time.Time{}, nil
		ar.catchUp(p)
	}
}

// feedMost and feedOctets bound the messages that have waited for a peer and stand in its queue at once.
const (
	feedMost   = 256
	feedOctets = 1 << 20
)

// feed moves messages that have waited for a peer that is back into its queue, as far as there is room.
func (ar *arrivals) feed(p *peer) {
	a := ar.away.of[p.id]
	if a == nil || a.feeding {
		return
	}
	a.feeding = true
	for len(a.ready) > 0 && len(p.queue) < min(feedMost, ar.cfg.MaxQueue/2) && p.queued < min(feedOctets, ar.cfg.MaxQueueOctets/2) {
		w := a.ready[0]
		a.ready = a.ready[1:]
		if w.place == 0 { // it has ended
			continue
		}
		ar.away.unpark(w)
		ar.send(p, w.delivery)
		w.delivery.all = nil
	}
	a.feeding = false
	ar.away.tidy(a)
}

// sweep ends messages that have waited for their life, and forgets peers that are away for longer.
func (ar *arrivals) sweep() {
	for len(ar.ends) > 0 && !ar.now.Before(ar.ends[0].ends) {
		ar.over(ar.ends.Pop())
	}
	if due.Reached(ar.now, ar.recalled) {
		ar.recalled = time.Time{}
		for _, token := range inKeyOrder(ar.left) {
			ar.forget(leftKey(token))
		}
		clear(ar.left)
	}
	ar.away.sweep()
	ar.sweepTallies()
}

// over ends a message for all peers that it has not reached. A copy that was already given to a socket still goes out.
func (ar *arrivals) over(d *delivery) {
	d.waiting++
	for _, w := range slices.Clone(d.parked) {
		ar.release(w, site.LifeOver)
	}
	for _, p := range d.queues {
		i := slices.IndexFunc(p.queue, func(m *message) bool { return m.delivery == d })
		if i < 0 {
			continue
		}
		m := p.queue[i]
		p.queued -= m.size
		p.queue = slices.Delete(p.queue, i, i+1)
		ar.outlets.giveUp(p, m, site.LifeOver)
	}
	ar.settle(d)
}

// rearm asks to be woken.
func (ar *arrivals) rearm() {
	if len(ar.ends) > 0 {
		ar.until(ar.ends[0].ends)
	}
	ar.until(ar.recalled)
	ar.until(ar.away.purge)
	for _, t := range ar.tallies {
		ar.until(t.said.Add(tallyEvery))
	}
}

// tallyEvery is the shortest time between two log lines about messages for one local peer that have ended.
const tallyEvery = time.Minute

// endTally counts messages for a local peer that have ended since the last log line about them.
type endTally struct {
	n    int
	said time.Time
	why  site.Why
	pipe string // pipe of the last message, or its service
}

// report lets the log say that a message has ended for a peer that did not get it.
func (ar *arrivals) report(d *delivery, id string, why site.Why) {
	t := ar.tallies[id]
	if t == nil {
		t = &endTally{}
		ar.tallies[id] = t
	}
	t.n++
	t.why, t.pipe = why, d.message.Topic
	if !d.message.Published {
		t.pipe = d.message.Service + " " + d.message.Param
	}
	ar.logUndeliverable(id, t)
	ar.until(t.said.Add(tallyEvery))
}

func (ar *arrivals) logUndeliverable(id string, t *endTally) {
	if ar.now.Before(t.said.Add(tallyEvery)) {
		return
	}
	ar.note("warn", "messages from far sites are undeliverable", "for", id, "messages", t.n, "reason", t.why, "pipe", t.pipe)
	t.n, t.said = 0, ar.now
}

func (ar *arrivals) sweepTallies() {
	for _, id := range inKeyOrder(ar.tallies) {
		t := ar.tallies[id]
		switch {
		case ar.now.Before(t.said.Add(tallyEvery)):
		case t.n > 0:
			ar.logUndeliverable(id, t)
		default:
			delete(ar.tallies, id)
		}
	}
}
