package mail

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"aldis/internal/link/compact"
	"aldis/internal/link/envelope"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// SharedHistory is for the peers that read the same numbers of ours: one peer, or all members of a group. It has the numbers of flows, knows
// after which messages later ones may be coded, and which is the newest of a key. docs/decisions/flows.md.
type SharedHistory struct {
	Next uint32 // number of the next flow

	services Services
	policy   Policy
	flows    map[envelope.Flow]*Flow
	latest   map[string]*Message // by last-value key

	// Where order is kept: held has the messages that the peer is known to hold, without a gap.
	held    envelope.Histories
	bulk    envelope.Histories       // likewise of the queue of long messages, which are held once they are acknowledged
	settled map[uint64]*site.Message // acknowledged, while one before them is not
	from    uint64                   // the first number of this run: some messages before it are no longer known
}

// Policy is how shared histories differ.
type Policy struct {
	// Ordered: messages are read in the order of their numbers. So the first of a flow spells it out in each of its
	// transmissions, and no other needs to; and a message is held once it and all before it are acknowledged. Where messages may
	// overtake each other, they spell a flow out until all recipients have acknowledged one that did so, or some that do are
	// under way; and those are held that each recipient has acknowledged, as far as none that may have arrived stands between.
	Ordered bool
	// Alike: a message takes the place of an older one of the same recipients and precedence alone.
	Alike  bool
	Bucket string // of the journal
	Prefix []byte // of its keys
}

// Flow is a number for the parts that messages have in common.
type Flow struct {
	Number uint32

	definer   uint64          // ordered: the message that spells it out; 0: none has been sent yet
	long      uint64          // the same in the bulk queue, in this run
	known     map[uint16]bool // else: the peers that have acknowledged a message that spelt it out
	definedIn definedIn       // else: the messages under way that spell it out
	sent      []*learnable    // in this run, the newest last
}

// learnable is a message of a flow: its recipients, and those of them that have acknowledged it.
type learnable struct {
	number  uint64
	to, has map[uint16]bool
	octets  int
	payload *site.Message
}

// How far back a message may be after which another is coded, where messages overtake each other.
const (
	back       = 128 // messages of the flow
	backOctets = 32 << 10
)

// NewAudience makes a SharedHistory that knows no flow yet.
func NewAudience(services Services, policy Policy) *SharedHistory {
	return &SharedHistory{Next: 1, services: services, policy: policy, flows: map[envelope.Flow]*Flow{}, latest: map[string]*Message{},
		settled: map[uint64]*site.Message{}, from: 1, bulk: envelope.Histories{Long: true}}
}

// Since says which number is the first of this run.
func (a *SharedHistory) Since(number uint64) { a.from = number }

// Flow is the number of a payload's flow, a new one where it has none; nil without a payload.
func (a *SharedHistory) Flow(p *site.Message) *Flow {
	if p == nil {
		return nil
	}
	name := envelope.FlowOf(p)
	f := a.flows[name]
	if f == nil {
		f = &Flow{Number: a.Next, known: map[uint16]bool{}}
		a.Next++
		a.flows[name] = f
		if !a.policy.Ordered { // otherwise once it has its definer
			a.record(name, f)
		}
	}
	return f
}

// Spells says whether message number of a flow has to spell it out to these peers. One that is urgent is read before those that
// went earlier.
func (a *SharedHistory) Spells(f *Flow, number uint64, urgent bool, to ...*Peer) bool {
	if a.policy.Ordered {
		return f.definer == 0 || f.definer == number
	}
	return slices.ContainsFunc(to, func(p *Peer) bool {
		return !f.known[p.ID] && (urgent || f.definedIn.to(p.ID, number) < spellings)
	})
}

// spellings is how many messages under way spell a flow out to a peer that does not know it. They are read in their order, so one
// would do; of several that expire, or are cancelled, one is left.
const spellings = 3

// definedIn is the peers to which messages under way spell a flow out.
type definedIn map[uint64][]uint16

// to is how many messages, but for one, spell it out to a peer.
func (s definedIn) to(peer uint16, but uint64) (n int) {
	for number, peers := range s {
		if number != but && slices.Contains(peers, peer) {
			n++
		}
	}
	return n
}

// Ended: a message of this payload has not reached a peer, and will not.
func (a *SharedHistory) Ended(number uint64, payload *site.Message) {
	if payload == nil {
		return
	}
	if f := a.flows[envelope.FlowOf(payload)]; f != nil {
		delete(f.definedIn, number)
	}
}

// Knows says whether later messages of a payload's flow need not spell it out, where order is kept.
func (a *SharedHistory) Knows(p *site.Message) bool {
	if p == nil {
		return false
	}
	f := a.flows[envelope.FlowOf(p)]
	return f != nil && f.definer != 0
}

// Encode lets texts code message number of a flow after messages that all these peers hold. Where messages overtake each other, those of
// other flows with numbers from oldest on may wait for a message that is missing, and do not count.
func (a *SharedHistory) Encode(texts *envelope.Texts, f *Flow, number uint64, oldest func() uint64, payload *site.Message, to ...*Peer) {
	if texts == nil {
		return
	}
	if a.policy.Ordered {
		a.held.Encode(texts, f.Number, number)
		return
	}
	list, from := f.learned(number, to), f
	if len(list) == 0 {
		list, from = a.kin(f, payload, min(number, oldest()), to)
		if len(list) == 0 {
			return
		}
	}
	held := envelope.Histories{Complete: true, Long: true}
	for _, m := range list {
		held.Add(from.Number, m.number, m.payload)
	}
	for _, m := range from.sent { // of long messages the far ends keep a few: those under way count
		if byNumber(m, list[len(list)-1].number) > 0 && byNumber(m, number) < 0 {
			held.Sent(from.Number, m.number, m.payload)
		}
	}
	held.Encode(texts, f.Number, number)
}

// learned are the messages that message number may be coded after: one that has taken an older one's place is not coded after later ones.
func (f *Flow) learned(number uint64, to []*Peer) []*learnable {
	return slices.DeleteFunc(f.before(to), func(m *learnable) bool { return int32(uint32(m.number)-uint32(number)) >= 0 })
}

// kin are the messages before number that the first message of a flow may be coded after: those of the flow whose newest one is most like
// it.
func (a *SharedHistory) kin(f *Flow, payload *site.Message, number uint64, to []*Peer) (list []*learnable, from *Flow) {
	like := map[int]compact.Likeness{}
	envelope.Elements(1, payload, func(element int, data []byte) { like[element] = compact.LikenessOf(data) })
	most := 0
	for _, other := range a.flows {
		if other == f || len(other.sent) == 0 {
			continue
		}
		held := other.learned(number, to)
		if len(held) == 0 {
			continue
		}
		n := 0
		envelope.Elements(other.Number, held[len(held)-1].payload, func(element int, data []byte) { n += like[element].With(data) })
		if n > most || n == most && n > 0 && other.Number < from.Number {
			list, from, most = held, other, n
		}
	}
	return list, from
}

// Sent notes that a message of a flow has its number and is on its way to some peers.
func (a *SharedHistory) Sent(f *Flow, number uint64, m *Message) {
	payload := m.Content.Payload
	if a.policy.Ordered {
		a.held.Sent(f.Number, number, payload)
		if f.definer == 0 {
			f.definer = number
			a.record(envelope.FlowOf(payload), f)
		}
		return
	}
	if m.Defines {
		if f.definedIn == nil {
			f.definedIn = definedIn{}
		}
		f.definedIn[number] = slices.Sorted(maps.Keys(m.to))
	}
	if f.Number > envelope.HistoryFlows {
		return
	}
	l := &learnable{number: number, to: map[uint16]bool{}, has: map[uint16]bool{}, payload: payload}
	for id := range m.to {
		l.to[id] = true
	}
	envelope.Elements(f.Number, payload, func(_ int, data []byte) {
		if len(data) <= compact.MaxLearned { // of longer ones histories keep a few, whatever is between
			l.octets = max(l.octets, len(data))
		}
	})
	at, _ := slices.BinarySearchFunc(f.sent, number, byNumber) // at the end, but for one that has taken an older one's place
	f.sent = slices.Insert(f.sent, at, l)
	octets := 0
	for i := len(f.sent) - 1; i >= 0; i-- {
		octets += f.sent[i].octets
		if octets > backOctets || len(f.sent)-i > back {
			f.sent = slices.Delete(f.sent, 0, i+1)
			break
		}
	}
}

// Unsent: a message that was noted never goes.
func (a *SharedHistory) Unsent(number uint64, payload *site.Message) {
	if f := a.flows[envelope.FlowOf(payload)]; f != nil {
		f.sent = slices.DeleteFunc(f.sent, func(m *learnable) bool { return m.number == number })
		delete(f.definedIn, number)
	}
}

// Holds notes that a peer holds a message; oldest is the first number that it has not acknowledged.
func (a *SharedHistory) Holds(p *Peer, number uint64, m *Message, oldest uint64) {
	payload := m.Content.Payload
	if a.policy.Ordered {
		a.settle(number, payload, oldest)
		return
	}
	if payload == nil {
		return
	}
	name := envelope.FlowOf(payload)
	f := a.flows[name]
	if f == nil {
		return
	}
	if m.Defines && !f.known[p.ID] {
		f.known[p.ID] = true
		a.record(name, f)
	}
	if peers, ok := f.definedIn[number]; ok {
		f.definedIn[number] = slices.DeleteFunc(peers, func(id uint16) bool { return id == p.ID })
		if len(f.definedIn[number]) == 0 {
			delete(f.definedIn, number)
		}
	}
	if i, ok := slices.BinarySearchFunc(f.sent, number, byNumber); ok {
		f.sent[i].has[p.ID] = true
	}
}

// settle lets later messages be coded after all that the peer holds without a gap.
func (a *SharedHistory) settle(number uint64, payload *site.Message, oldest uint64) {
	a.settled[number] = payload
	for _, number := range slices.Sorted(maps.Keys(a.settled)) {
		if number >= oldest {
			return
		}
		if payload := a.settled[number]; payload != nil && number >= a.from {
			if f := a.flows[envelope.FlowOf(payload)]; f != nil {
				a.held.Add(f.Number, number, payload)
			}
		}
		delete(a.settled, number)
	}
}

// Unlearn: a peer can no longer read messages coded after those that it held; next is the next number towards it.
func (a *SharedHistory) Unlearn(p *Peer, next uint64) {
	a.held, a.bulk, a.from = envelope.Histories{}, envelope.Histories{Long: true}, next
	for _, f := range a.flows {
		f.unlearn(p)
		f.definer, f.long = 0, 0 // it may have forgotten the flow too: the next message spells it out
	}
}

// Misread: a peer has acknowledged a message of this flow that it cannot read.
func (a *SharedHistory) Misread(p *Peer, payload *site.Message) {
	name := envelope.FlowOf(payload)
	if f := a.flows[name]; f != nil {
		f.unlearn(p)
		f.definedIn = nil // those under way came too late, or do not help
		if f.known[p.ID] {
			delete(f.known, p.ID)
			a.record(name, f)
		}
	}
}

// Forget: a peer has a new store and knows no number of ours.
func (a *SharedHistory) Forget(p *Peer) {
	if a.policy.Ordered {
		for _, f := range a.flows {
			if f.definer != 0 || f.long != 0 {
				a.services.Record(a.policy.Bucket, a.key(f), nil)
			}
		}
		*a = *NewAudience(a.services, a.policy)
		return
	}
	a.Unlearn(p, 0)
	for _, name := range slices.Sorted(maps.Keys(a.flows)) {
		a.flows[name].definedIn = nil
		if f := a.flows[name]; f.known[p.ID] {
			delete(f.known, p.ID)
			a.record(name, f)
		}
	}
}

func (f *Flow) unlearn(p *Peer) {
	for _, m := range f.sent {
		delete(m.has, p.ID)
	}
}

func byNumber(m *learnable, number uint64) int { return int(int32(uint32(m.number) - uint32(number))) }

// before are the messages that all these peers hold, newest last, and that follow each other at every one of them.
func (f *Flow) before(to []*Peer) (list []*learnable) {
back:
	for _, m := range slices.Backward(f.sent) {
		sent, held := 0, 0
		for _, p := range to {
			if m.to[p.ID] {
				sent++
			}
			if m.has[p.ID] {
				held++
			}
		}
		switch {
		case sent == 0: // none of them has heard of it
		case held == len(to):
			list = append(list, m)
			if len(list) == compact.MostBefore {
				break back
			}
		case len(list) > 0: // some may have it, and then it stands between
			break back
		}
	}
	slices.Reverse(list)
	return list
}

// Newest notes the last message of a key.
func (a *SharedHistory) Newest(m *Message) {
	if key := m.supersedes(); key != "" {
		a.latest[key] = m
	}
}

// gone: a message cannot be replaced any more.
func (a *SharedHistory) gone(m *Message) {
	if key := m.supersedes(); a.latest[key] == m {
		delete(a.latest, key)
	}
}

// Older is the message that m, for these peers, would take the place of; nil: there is none.
func (a *SharedHistory) Older(m *Message, to []*Peer) *Message {
	old := a.latest[m.supersedes()]
	if old == nil || !a.policy.Alike {
		return old
	}
	if old.Content.Payload.Precedence != m.Content.Payload.Precedence || len(old.to) != len(to) {
		return nil
	}
	for _, p := range to {
		if old.to[p.ID] == nil {
			return nil
		}
	}
	return old
}

// older is Older for one peer.
func (a *SharedHistory) older(m *Message, p *Peer) *Entry {
	if old := a.Older(m, []*Peer{p}); old != nil {
		return old.to[p.ID]
	}
	return nil
}

func (a *SharedHistory) key(f *Flow) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(a.policy.Prefix), f.Number)
}

func (a *SharedHistory) record(name envelope.Flow, f *Flow) {
	var value []byte
	if a.policy.Ordered {
		value = binary.BigEndian.AppendUint64(nil, f.definer)
	} else {
		value = binary.BigEndian.AppendUint16(nil, uint16(len(f.known)))
		for _, id := range slices.Sorted(maps.Keys(f.known)) {
			value = binary.BigEndian.AppendUint16(value, id)
		}
	}
	a.services.Record(a.policy.Bucket, a.key(f), append(value, name...))
}

// Restore takes a record of the policy's bucket, its key without the prefix.
func (a *SharedHistory) Restore(key, value []byte) error {
	bad := fmt.Errorf("%w: %s %x", ErrRecord, a.policy.Bucket, key)
	if len(key) != 4 {
		return bad
	}
	f := &Flow{Number: binary.BigEndian.Uint32(key), known: map[uint16]bool{}}
	if a.policy.Ordered {
		if len(value) < 8 {
			return bad
		}
		f.definer, value = binary.BigEndian.Uint64(value), value[8:]
	} else {
		ids, rest, ok := CutPeers(value)
		if !ok {
			return bad
		}
		for _, id := range ids {
			f.known[id] = true
		}
		value = rest
	}
	a.Next = max(a.Next, f.Number+1)
	a.flows[envelope.Flow(value)] = f
	return nil
}

// Leaves notes that a message under way may never be read under its number: it goes on another bearer. If it spelt out its flow, the
// next of the flow does so, and no message is coded after it.
func (a *SharedHistory) Leaves(at TransmissionID, payload *site.Message) {
	if payload == nil {
		return
	}
	f := a.flows[envelope.FlowOf(payload)]
	switch {
	case f == nil:
	case at.Queue == frame.Direct && f.definer == at.Number:
		f.definer = 0
	case at.Queue == frame.Bulk && f.long == at.Number:
		f.long = 0
	default:
		a.Ended(at.Number, payload)
	}
}

// Resumed notes that message number is under way, as before a restart. Where the content of one that spelt a flow out is
// lost, the next of that flow spells it out.
func (a *SharedHistory) Resumed(number uint64, p *site.Message) {
	if p == nil {
		for _, f := range a.flows {
			if f.definer == number {
				f.definer = 0
			}
		}
		return
	}
	if name := envelope.FlowOf(p); a.flows[name] != nil && a.flows[name].definer == 0 {
		a.flows[name].definer = number
		a.record(name, a.flows[name])
	}
}

// CutPeers takes a list of peers off the front of a record: their number and their ids, two octets each.
func CutPeers(b []byte) (ids []uint16, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+2*int(binary.BigEndian.Uint16(b)) {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	for i := range n {
		ids = append(ids, binary.BigEndian.Uint16(b[2+2*i:]))
	}
	return ids, b[2+2*n:], true
}
