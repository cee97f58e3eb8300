package pmul

import (
	"encoding/binary"
	"math"
	"time"

	"aldis/internal/ground/due"
)

// A coded message has two to codedMost fragments, in the compact coding. On a shared channel its turns are planned: shards
// go out with the first pass, every PDU says how many follow, and no node answers before all have come. Then the nodes that
// lack something transmit, those that lack most first, and each sends one number. A node that hears a number as large as
// its own stays quiet. Nodes that have all acknowledge in the order in which the Address_PDU names them, if no repair has
// come. docs/decisions/pmul-parity.md has the reasons.

// plans tells whether the turns of coded messages are planned on this link.
func (c *Config) plans() bool { return c.waitsForPause() && c.Parity }

// codes tells whether a message is coded.
func (c *Config) codes(m *content) bool {
	k := len(m.fragments)
	return c.Coding == Compact && c.Parity && k >= 2 && k <= codedMost && (k <= smallMost || m.size%2 == 0) &&
		m.size+shardHeader(m.id, k) <= c.most(m.batch)
}

// plansFor tells whether the turns of a message are planned: they are once shards of it have gone out. A message without
// loss needs no Plan.
func (c *Config) plansFor(m *outgoing) bool { return c.plans() && m.plan }

// shardHeader is the longest header of a ParityPDU from its own sender.
func shardHeader(id MessageID, fragments int) int {
	n := 1 + len(binary.AppendUvarint(nil, uint64(id)))
	if fragments <= smallMost {
		return n + 2 + 1
	}
	return n + 3 + 2
}

// cutOf is the size of the fragments of a message of so many octets: a shard of it fills a datagram.
func (c *Config) cutOf(id MessageID, octets, datagram int) int {
	size := c.fragment(datagram)
	if c.Coding == Compact && c.Parity && octets > smallMost*size {
		return min(size, datagram-shardHeader(id, smallMost+1)) &^ 1
	}
	return size
}

// unaskedMore is how much more than the mean loss is expected, in standard deviations for one receiver of e.
const unaskedMore = 1

// unasked is how many shards go with the first pass: as many as the worst of the receivers is likely to lose. A single
// receiver gets none before it has lost something.
func (s *Sender) unasked(m *outgoing) int {
	if !s.cfg.plans() || !s.cfg.codes(&m.content) {
		return 0
	}
	nodes, loss := m.dests.active(), 0.0
	for _, d := range m.dests {
		switch {
		case !d.answers():
		case d.peer.measured:
			loss = max(loss, d.peer.loss)
		case nodes > 1:
			loss = max(loss, s.cfg.Loss)
		}
	}
	if nodes == 0 || loss == 0 {
		return 0
	}
	// So many losses begin among all nodes. If answers and repair cost less than one shard, the sender waits for them.
	begun := float64(nodes) * loss * (1 + float64(len(m.fragments)-1)/max(s.cfg.Burst, 1))
	if time.Duration((1-math.Exp(-begun))*float64(s.cfg.repairHeard())) < s.cfg.fullAir() {
		return 0
	}
	mean := loss * float64(len(m.fragments))
	if s.floor.shared() { // further losses are repaired in the next turn, at the cost of no extra turn
		return min(int(mean), len(m.fragments))
	}
	spread := math.Sqrt(mean * (1 - loss) * (2*max(s.cfg.Burst, 1) - 1))
	return min(int(mean+unaskedMore*math.Sqrt(2*math.Log(float64(nodes)))*spread), len(m.fragments))
}

// measure learns a node's loss from its first answer to a first pass: it lacks so many fragments, or none.
func (d *destination) measure(c *Config, m *outgoing, lacks int) {
	if m.rounds > 0 || d.missing != nil || !m.idle() || m.frames < len(m.fragments) || m.total() < 2 {
		return
	}
	p, frames := d.peer, float64(m.frames)
	weight := min(frames/64, 0.5)
	if lacks == 0 { // it lost no more than the shards replaced
		p.loss -= p.loss * weight / 4
		return
	}
	lacks = min(lacks, len(m.fragments))
	loss := (float64(lacks) + frames - float64(len(m.fragments))) / frames
	if !p.measured {
		p.measured, p.loss = true, c.Loss
	}
	p.loss += (loss - p.loss) * weight
}

// all are the numbers of all fragments.
func (c *content) all() []uint16 {
	all := make([]uint16, len(c.fragments))
	for i := range all {
		all[i] = uint16(i + 1)
	}
	return all
}

// withPlan gives an Address_PDU its Plan when it goes out.
func (m *outgoing) withPlan(p AddressPDU) AddressPDU {
	if m.plan && len(p.Destinations) > 0 {
		p.Plan = &Plan{Last: uint16(len(m.fragments[len(m.fragments)-1])), Follow: uint16(len(m.numbers) + len(m.shards))}
	}
	return p
}

// leftOf is a number of shards, limited to the largest that a ParityPDU can hold.
func (c *content) leftOf(n int) uint16 {
	if len(c.fragments) <= smallMost {
		return uint16(min(n, 127))
	}
	return uint16(min(n, 1<<14-1))
}

// tail is the set of the n highest numbers.
func (c *content) tail(n int) set {
	all := newSet(len(c.fragments))
	for i := range min(max(n, 0), len(c.fragments)) {
		all.add(uint16(len(c.fragments) - i))
	}
	return all
}

// lacking takes an entry that says how many fragments a node lacks. If the entry cannot know of the pass under way, or of
// the last one, the node needs as many fewer.
func (s *Sender) lacking(now time.Time, m *outgoing, d *destination, e AckEntry) {
	n := e.count()
	if n > len(m.fragments) {
		s.stats.Illegal++
		n = len(m.fragments)
	}
	d.missing = m.tail(n)
	if !m.idle() || now.Before(m.passEnd.Add(2*s.cfg.Delay)) {
		n -= m.frames
	}
	d.lost = m.tail(n)
	d.dueAt = now.Add(s.cfg.repairWait(1))
}

// lengthen adds to the pass under way the shards for a node that did not know of the pass.
func (m *outgoing) lengthen() {
	most := 0
	for _, d := range m.dests {
		most = max(most, d.lost.count())
		d.lost = nil
	}
	if m.takeParity(most) {
		m.frames += most
	}
}

// The times of answers, as both Sender and Receivers compute them.

// some is the most nodes among which waiting to hear other nodes takes longer than their answers.
// Of 64, 22 instead of 64 speak after a fade over the sender, and 20 kB take 1.57 of their limit instead of 1.53.
const some = 16

// turn is how long one answer takes on a shared channel.
func (c *Config) turn() time.Duration { return c.Turnaround + c.ackAir() }

// hearing is how long it takes until all nodes have heard an answer.
func (c *Config) hearing() time.Duration { return c.turn() + c.oneWay() + c.slack() }

// classes of need have their slots one after the other; up to some nodes all transmit at once, because few of them lack anything.
func (c *Config) classes(nodes int) int {
	if nodes <= some {
		return 1
	}
	return 2
}

// quiet is how long no node acknowledges after a turn of the sender: in that time the nodes that lack something are heard,
// and the repair begins.
func (c *Config) quiet(nodes int) time.Duration {
	if nodes < 2 {
		return 0
	}
	return time.Duration(c.classes(nodes)-1)*c.hearing() + c.repairHeard()
}

// repairHeard is the time from the moment when a node sends its number to the first frame of the repair.
func (c *Config) repairHeard() time.Duration {
	return c.turn() + c.oneWay() + 2*c.ackAir() + c.Turnaround + c.largeAir() + c.oneWay() + c.slack()
}

// ackTurn is when a node acknowledges after a turn of the sender, by its place among so many; after a question there is no quiet.
func (c *Config) ackTurn(nodes, rank int, frames bool) time.Duration {
	wait := time.Duration(rank) * (c.turn() + c.slack())
	if frames {
		wait += max(c.AckHold, c.quiet(nodes))
	}
	return wait
}

// turnWait is the time from the end of a pass until such an answer must have come.
func (c *Config) turnWait(nodes, rank int, frames bool) time.Duration {
	return c.ackTurn(nodes, rank, frames) + 2*c.oneWay() + c.reorderWait() + c.largeAir() + 2*c.turn() + c.slack()
}

// through is when a receiver has heard so many frames that follow.
func (c *Config) through(now time.Time, left int, batch bool) time.Time {
	if left == 0 {
		return now.Add(c.reorderWait())
	}
	frame := c.air(c.most(batch))
	return now.Add(time.Duration(left)*frame + frame/2 + c.Jitter + c.slack())
}

// follow notes that so many frames of a planned message follow, and that this node says after them what it lacks.
func (r *Receiver) follow(now time.Time, m *incoming, left int) {
	m.left = left
	m.asked, m.nackAt, m.askAt = 0, time.Time{}, time.Time{}
	m.idleAt = r.cfg.through(now, left, m.batch).Add(r.slot(m))
}

// slot is when nodes that lack as much as this one transmit: nodes that lack more go first. Among more than some nodes,
// about some go first, because a fade over the sender takes the same from all.
func (r *Receiver) slot(m *incoming) time.Duration {
	n := 0
	if r.cfg.classes(m.nodes) > 1 && m.need() <= 2 {
		n++
	}
	if m.nodes > some && r.cfg.Rand != nil && r.cfg.Rand.IntN(m.nodes) >= some {
		n++
	}
	return time.Duration(n) * r.cfg.hearing()
}

// noteAsked notes that this node has sent what it lacks; after several times it waits until the sender asks.
func (r *Receiver) noteAsked(now time.Time, m *incoming) {
	asked := m.asked
	r.hush(now, m)
	m.asked++
	if asked >= 4 {
		m.askAt = time.Time{}
	}
}

// hush keeps a node quiet because a number as large as its own is on its way to the sender. If no repair comes, the node
// sends its number again.
func (r *Receiver) hush(now time.Time, m *incoming) {
	m.nackAt, m.idleAt = time.Time{}, time.Time{}
	m.askAt = now.Add((r.cfg.repairHeard()+2*r.cfg.fullAir())<<min(max(m.asked-1, 0), 4) + r.slot(m))
}

// entry says how many fragments of a planned message are lacking, as a run of the highest numbers.
func (m *incoming) entry() AckEntry {
	e := AckEntry{Source: m.key.Source, Message: m.key.Message}
	if n := m.need(); n > 0 {
		e.Missing = []Run{{m.total - uint16(n) + 1, m.total}}
	}
	return e
}

// count is how many numbers an entry lists.
func (e *AckEntry) count() (n int) {
	for _, run := range e.Missing {
		n += int(run.To) - int(run.From) + 1
	}
	return n
}

// overhear takes another node's entries: a node that lacks no more stays quiet, and one that has all waits until the repair is over.
func (r *Receiver) overhear(now time.Time, p AckPDU) {
	for _, e := range p.Entries {
		n := e.count()
		if n == 0 {
			continue
		}
		key := Key{e.Source, e.Message}
		if m := r.in[key]; m != nil && r.planned(m.coded) && n >= m.need() && !(m.idleAt.IsZero() && m.askAt.IsZero()) {
			r.hush(now, m)
		}
		if f := r.done[key]; f != nil && r.planned(f.coded) && !f.ackAt.IsZero() {
			f.ackAt = due.Latest(f.ackAt, now.Add(r.cfg.repairHeard()+r.cfg.ackTurn(f.nodes, f.rank, true)))
		}
	}
}

// plan takes the Plan of an Address_PDU; true: it has news to be recorded.
func (m *incoming) plan(c *Config, p AddressPDU, mine int) (news bool) {
	if p.Plan.Last == 0 || m.total < 2 || m.total > codedMost {
		return false
	}
	news, m.coded = m.last == 0, true
	if news {
		m.last = int(p.Plan.Last)
	}
	if mine >= 0 {
		m.nodes, m.rank = len(p.Destinations), mine
		if p.MAP&NotFirst != 0 {
			m.rank += c.named()
		}
	}
	m.left = int(p.Plan.Follow)
	if m.left >= int(m.total) {
		m.extra = m.left - int(m.total)
	}
	return news
}

// after is how many frames follow a fragment: in the first pass all higher fragments and the shards.
func (c *coding) after(n, total uint16) int {
	if !c.coded {
		return 0
	}
	return max(int(total)-int(n)+c.extra, 0)
}

// replan makes the Ack of a complete message due at the time that the Address_PDU gives.
func (r *Receiver) replan(now time.Time, f *finished, p AddressPDU, mine int) {
	if mine >= 0 {
		f.nodes, f.coded, f.rank = len(p.Destinations), true, mine
		if p.MAP&NotFirst != 0 {
			f.rank += r.cfg.named()
		}
		r.owing[f.key] = f
	}
	if mine >= 0 || p.Plan.Follow > 0 { // a question to others takes one turn only
		r.turnOf(now, f, int(p.Plan.Follow), p.Plan.Follow > 0)
	}
}

// planned tells whether the answers to a message are sent in planned turns.
func (r *Receiver) planned(coded bool) bool { return coded && r.cfg.plans() }

// turnOf makes the Ack of a complete planned message due after so many frames that follow.
func (r *Receiver) turnOf(now time.Time, f *finished, left int, frames bool) {
	switch {
	case r.silent || f.ackAt.IsZero() && r.owing[f.key] == nil:
		return
	case !r.planned(f.coded):
		r.putOff(now, f)
		return
	}
	at := r.cfg.through(now, left, true).Add(r.cfg.ackTurn(f.nodes, f.rank, frames))
	f.ackAt = due.Latest(at, f.sent.Add(2*r.cfg.oneWay())) // a node that forges questions gets few answers
	r.owing[f.key] = f
}
