package entropy

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"aldis/internal/link/hearing"
)

// Tag is the short name of a group on the link; never 0.
type Tag uint16

// TagOf is the tag of a group's name.
func TagOf(name string) Tag {
	h := sha256.Sum256([]byte("aldis group " + name))
	return max(1, Tag(binary.BigEndian.Uint16(h[:])))
}

// Name identifies a message of a group: its origin, and its number there, of 48 bits. The upper 32 bits are the epoch: an
// origin that has lost its numbers begins a later epoch.
type Name struct {
	Origin uint16
	Number uint64
}

// FirstNumber is the first number of an epoch.
func FirstNumber(epoch uint32) uint64 { return uint64(epoch)<<epochShift | 1 }

const epochShift = 16

// Item is a message of a group.
type Item struct {
	Tag Tag
	Name
	Life    uint8 // its whole lifetime, coded, as its origin has signed it
	Body    []byte
	Hops    uint8     // how often it may still be passed on
	Expires time.Time // no later than Life allows
	About   uint8     // what the node that made or read it in this run counts its octets as; it does not cross
	Names   bool      // later messages refer to what it names: it is held until Until. Its origin has signed that, too.
	spoken  time.Time // when it last went over a port, as far as this node knows
}

// beyond is how long a message is held after its lifetime for those that refer to it.
func (it *Item) beyond() time.Duration {
	if !it.Names {
		return 0
	}
	return min(max(LifeOf(it.Life), time.Hour), MostLife/2)
}

// Until is when a message is dropped.
func (it *Item) Until() time.Time { return it.Expires.Add(it.beyond()) }

// mostBehind bounds how many numbers before a message the one lies that it refers to: a node that lacks that one asks for it
// with the others that it lacks.
const mostBehind = back / 2

// Covers says whether a later message of the same origin may refer to this one: no node holds it for less time than that
// message. Half of its lifetime is taken off because each of MostHops nodes may round it down by a twelfth.
func (it *Item) Covers(later *Item) bool {
	return it.Names && later.Number-it.Number <= mostBehind && it.Hops >= later.Hops && !later.Expires.After(it.Until().Add(-LifeOf(it.Life)/2))
}

// Bounds.
const (
	MostGroups = 64             // that a node is in
	MostLife   = 24 * time.Hour // of a message
	MostHops   = 8
	MostBody   = 1 << 12 // octets

	mostOrigins = 256  // of a group
	mostQueue   = 1024 // of a port
	mostTags    = 64   // groups that one neighbour is known to be in
)

// Verdict is the result of Config.Verify.
type Verdict int

// Verdicts.
const (
	Genuine  Verdict = iota
	Forged           // the origin has not sent this message
	Stranger         // the origin is not known
)

// Config is the configuration of an Engine.
type Config struct {
	Self   uint16
	Start  uint32 // number of this start of the node: it has used no later epoch, but for the next one where an epoch was full; 0: not known
	Most   int    // octets of messages that are held
	Verify func(*Item) Verdict
	// Keep makes a record durable, or removes it (nil).
	Keep func(key, value []byte)
	Rand *rand.Rand
	// Hearing records who hears whom, by the numbers of channels that ports have. The caller updates it; nil: nothing is known.
	Hearing *hearing.Net
}

// Engine is the groups of one node. It is not for concurrent use.
type Engine struct {
	cfg     Config
	groups  map[Tag]*group
	tags    []Tag // of groups, in order
	ports   []*port
	members map[uint16]map[Tag]bool // by neighbour, the groups that it is known to be in
	forgers map[uint16]*forger
	octets  int
	expires time.Time // when the first message expires
	drops   []string  // reasons of this call
}

// Result is the result of a call.
type Result struct {
	New     []Item   // for local members
	Dropped []string // reasons, for counters
}

// New makes an Engine that is in no group.
func New(cfg Config) *Engine {
	if cfg.Hearing == nil {
		cfg.Hearing = hearing.New(hearing.Name{ID: cfg.Self})
	}
	return &Engine{cfg: cfg, groups: map[Tag]*group{}, members: map[uint16]map[Tag]bool{}, forgers: map[uint16]*forger{}}
}

// Join enters a group; false: the node is in MostGroups already.
func (e *Engine) Join(now time.Time, tag Tag) bool {
	if e.groups[tag] != nil {
		return true
	}
	if len(e.groups) >= MostGroups {
		return false
	}
	e.groups[tag] = newGroup(tag)
	e.tags = append(e.tags, tag)
	slices.Sort(e.tags)
	for _, p := range e.ports {
		p.talk(e, now, tag).at = now
	}
	return true
}

// Leave tells the neighbours that this node is not in a group any more, and forgets its messages. known: the neighbours
// know already; then the many neighbours of a shared channel are not told again.
func (e *Engine) Leave(now time.Time, tag Tag, known bool) {
	g := e.groups[tag]
	if g == nil {
		return
	}
	for _, id := range slices.Clone(g.ids) {
		e.forgetOrigin(g, id)
	}
	delete(e.groups, tag)
	e.tags = slices.DeleteFunc(e.tags, func(t Tag) bool { return t == tag })
	for _, p := range e.ports {
		if p.forget(tag); known && p.crowded() {
			continue
		}
		p.queue = append(p.queue, want{kind: sayDigest, tag: tag, at: now, parting: true})
	}
}

// In says whether this node is in a group.
func (e *Engine) In(tag Tag) bool { return e.groups[tag] != nil }

// Members are the neighbours known to be in a group, and the origins of its messages held here, by id.
func (e *Engine) Members(tag Tag) (ids []uint16) {
	for id, in := range e.members {
		if in[tag] {
			ids = append(ids, id)
		}
	}
	if g := e.groups[tag]; g != nil {
		for _, id := range g.ids {
			if id != e.cfg.Self && len(g.origins[id].items) > 0 {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Tags are the groups that this node is in, in order.
func (e *Engine) Tags() []Tag { return slices.Clone(e.tags) }

// Item is a message held here; false: it is not held.
func (e *Engine) Item(tag Tag, n Name) (it Item, held bool) {
	if is := e.groups[tag].item(n); is != nil {
		return *is, true
	}
	return it, false
}

// Named are the messages held of a group that name something for later ones, in no order.
func (e *Engine) Named(tag Tag) (list []Item) {
	for _, o := range e.groups[tag].origins {
		for _, it := range o.items {
			if it.Names {
				list = append(list, *it)
			}
		}
	}
	return list
}

// item is a message held; nil: it is not held.
func (g *group) item(n Name) *Item {
	if g != nil && g.origins[n.Origin] != nil {
		return g.origins[n.Origin].items[n.Number]
	}
	return nil
}

// Held is how many messages of a group are held, and their octets.
func (e *Engine) Held(tag Tag) (messages, octets int) {
	if g := e.groups[tag]; g != nil {
		for _, o := range g.origins {
			messages, octets = messages+len(o.items), octets+o.octets
		}
	}
	return messages, octets
}

// NextNumber is the number of the next message of this node in a group; 0: no earlier one is known.
func (e *Engine) NextNumber(tag Tag) uint64 {
	if g := e.groups[tag]; g != nil && g.origins[e.cfg.Self] != nil {
		return g.origins[e.cfg.Self].top + 1
	}
	return 0
}

// Say gives a message of this node to its group. The caller has numbered and signed it.
func (e *Engine) Say(now time.Time, it Item) {
	g := e.groups[it.Tag]
	if g == nil || !e.hold(now, g, it) {
		return
	}
	e.pass(now, nil, it, e.cfg.Self)
}

// Receive takes the body of a frame of a neighbour.
func (e *Engine) Receive(now time.Time, id PortID, from uint16, body []byte) (r Result) {
	p := e.port(id)
	if p == nil {
		return Result{Dropped: []string{"group_port"}}
	}
	e.drops = nil
	place := byte(0)
	for len(body) > 0 {
		kind := body[0] & kindMask
		flags := body[0] &^ kindMask
		var err error
		switch kind {
		case kindItem, kindYoung:
			var it Item
			if it, body, err = parseItem(now, body[0], body[1:]); err == nil {
				if e.heard(now, p, from, it, place) {
					r.New = append(append(r.New, it), e.restore(now, p, e.groups[it.Tag], it.Origin)...)
				}
				place = 0
			}
		case kindFull:
			var f full
			if f, body, err = parseFull(flags, body[1:]); err == nil {
				e.compare(now, p, from, &f)
			}
		case kindAsk:
			var a asked
			if a, body, err = parseAsk(body[1:]); err == nil {
				e.give(now, p, from, &a)
			}
		case kindPlace:
			place, body = flags, body[1:]
		case kindParity:
			var c parity
			if c, body, err = parseParity(flags, body[1:]); err == nil {
				r.New = append(r.New, e.coded(now, p, from, c)...)
			}
		default:
			err = ErrFormat
		}
		if err != nil {
			e.drop("group_malformed")
			break
		}
	}
	r.Dropped = e.drops
	return r
}

func (e *Engine) drop(reason string) { e.drops = append(e.drops, reason) }

// forgetAfter is the number of a neighbour's forgeries in a minute after which its messages are ignored: docs/decisions/trust.md.
const forgetAfter = 64

type forger struct {
	since time.Time
	count int
}

// forges counts a forgery from a neighbour. ignored says that the neighbour's messages are ignored for the rest of the minute.
func (e *Engine) forges(now time.Time, from uint16) {
	f := e.forgers[from]
	if f == nil || now.Sub(f.since) >= time.Minute {
		f = &forger{since: now}
		e.forgers[from] = f
	}
	f.count++
}

func (e *Engine) ignored(now time.Time, from uint16) bool {
	f := e.forgers[from]
	return f != nil && f.count >= forgetAfter && now.Sub(f.since) < time.Minute
}

// heard takes a message that a neighbour has passed on, with its place in a block; true: it is new here.
func (e *Engine) heard(now time.Time, p *port, from uint16, it Item, place byte) bool {
	g := e.groups[it.Tag]
	if g == nil {
		e.drop("group_unknown")
		return false
	}
	e.member(from, it.Tag)
	it.Hops, it.spoken = max(it.Hops, 1)-1, now
	if o := g.origins[it.Origin]; o != nil && o.received(it.Number) {
		h := o.items[it.Number]
		if h != nil && string(h.Body) != string(it.Body) {
			e.forges(now, from)
			e.drop("group_changed")
		} else {
			if h != nil {
				h.spoken = now
			}
			e.spoken(now, p, it.Tag, it.Name, from)
			e.drop("group_again")
		}
		return false
	}
	if e.ignored(now, from) {
		e.drop("group_ignored")
		return false
	}
	if !it.Until().After(now) || it.Origin == e.cfg.Self {
		e.drop("group_late")
		return false
	}
	switch e.cfg.Verify(&it) {
	case Forged:
		e.forges(now, from)
		e.drop("group_forged")
		return false
	case Stranger:
		e.drop("group_stranger")
		return false
	}
	top := uint64(0)
	if o := g.origins[it.Origin]; o != nil {
		top = o.top
	}
	if !e.hold(now, g, it) {
		return false
	}
	if from == it.Origin && p.Shared {
		e.promise(now, p, g, &it, place)
	}
	if it.Number > top+1 {
		e.missed(now, p, g, from, &it, top)
	}
	delete(p.blame, from) // it has given one
	e.pass(now, p, it, from)
	return true
}

// member notes that a neighbour is in a group.
func (e *Engine) member(id uint16, tag Tag) {
	in := e.members[id]
	if in == nil {
		in = map[Tag]bool{}
		e.members[id] = in
	}
	if len(in) < mostTags {
		in[tag] = true
	}
}
