package entropy

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// back is how far behind the highest number of an origin a number is still accepted. Older numbers count as received.
const back = 2048

// group is the state of one group at a node.
type group struct {
	tag     Tag
	origins map[uint16]*origin
	ids     []uint16 // of origins, in order
	sum     uint64   // of the marks of all messages held
	asks    map[Name]*ask
	turn    int              // the origin with which the next full form begins
	agreed  time.Time        // when a neighbour last said that it holds no message that this node lacks
	shown   time.Time        // when this node, or a neighbour that held the same, last said a digest
	doubts  map[uint16]doubt // by neighbour
}

func newGroup(tag Tag) *group {
	return &group{tag: tag, origins: map[uint16]*origin{}, asks: map[Name]*ask{}, doubts: map[uint16]doubt{}}
}

// origin is the numbers and messages received from one origin.
type origin struct {
	top    uint64 // the highest number
	seen   [back / 64]uint64
	items  map[uint64]*Item
	octets int
	parity *parity   // of the last block that lacks more than one message; nil: none
	block  uint64    // the first number of the last block that was heard of
	due    time.Time // when its parity is here at the latest
}

func (o *origin) bit(n uint64) (word *uint64, mask uint64) {
	return &o.seen[n%back/64], 1 << (n % 64)
}

// received says that a number has been received, or is too old to be.
func (o *origin) received(n uint64) bool {
	if n > o.top {
		return false
	}
	if n+back <= o.top {
		return true
	}
	word, mask := o.bit(n)
	return *word&mask != 0
}

// note notes a number as received.
func (o *origin) note(n uint64) {
	if n > o.top {
		if n-o.top >= back {
			o.seen = [back / 64]uint64{}
			// There is nothing before the first number of an epoch.
			for before := n &^ (1<<epochShift - 1); before+back > n && before < n; before-- {
				word, mask := o.bit(before)
				*word |= mask
			}
		} else {
			for at := o.top + 1; at <= n; at++ {
				word, mask := o.bit(at)
				*word &^= mask
			}
		}
		o.top = n
	}
	word, mask := o.bit(n)
	*word |= mask
}

// listed says that a message may be passed on. One that may not is held for this node alone: it is in no digest, and
// nobody is given it.
func (it *Item) listed() bool { return it != nil && it.Hops > 0 }

// lowest is the lowest number held of such messages; 0: none is.
func (o *origin) lowest(which func(it *Item) bool) (low uint64) {
	for n, it := range o.items {
		if (low == 0 || n < low) && which(it) {
			low = n
		}
	}
	return low
}

// held is the highest number listed; 0: none is.
func (o *origin) held() (high uint64) {
	for n, it := range o.items {
		if it.listed() {
			high = max(high, n)
		}
	}
	return high
}

// mark is what a message adds to the sum of the messages listed.
func (it *Item) mark() uint64 {
	if !it.listed() {
		return 0
	}
	var b [10]byte
	binary.BigEndian.PutUint16(b[:], it.Origin)
	binary.BigEndian.PutUint64(b[2:], it.Number)
	h := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(h[:])
}

// digest is the hash that a node sends of the messages it holds; never 0. Nodes with equal messages send different hashes,
// so two states that look alike to one neighbour do not look alike to the next.
func (g *group) digest(by uint16) uint16 {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], g.sum)
	binary.BigEndian.PutUint16(b[8:], by)
	binary.BigEndian.PutUint16(b[10:], uint16(g.tag))
	h := sha256.Sum256(b[:])
	return max(1, binary.BigEndian.Uint16(h[:]))
}

// hold keeps a message that has not been received; false: there is no room for it.
func (e *Engine) hold(now time.Time, g *group, it Item) bool {
	o := g.origins[it.Origin]
	if o == nil {
		if len(g.ids) >= mostOrigins || len(it.Body) > e.cfg.Most {
			e.drop("group_full")
			return false
		}
		o = g.origin(it.Origin)
	}
	if o.received(it.Number) {
		return false
	}
	if o.top != 0 && it.Number-o.top >= back && it.Number > o.top { // nobody requests messages so far behind
		for n := range o.items {
			e.forget(g, o, Name{it.Origin, n})
		}
	}
	o.note(it.Number)
	delete(g.asks, it.key())
	o.items[it.Number] = &it
	o.octets += len(it.Body)
	e.octets += len(it.Body)
	g.sum += it.mark()
	e.expires = due.Earliest(e.expires, it.Until())
	e.cfg.Keep(itemKey(it.Tag, it.Name), encodeItem(&it))
	e.recordOrigin(g, it.Origin)
	for e.octets > e.cfg.Most {
		e.squeeze()
	}
	for _, p := range e.ports {
		if it.listed() {
			p.changed(e, now, g.tag)
		}
	}
	return true
}

func (g *group) origin(id uint16) *origin {
	o := g.origins[id]
	if o == nil {
		o = &origin{items: map[uint64]*Item{}}
		g.origins[id] = o
		g.ids = append(g.ids, id)
		slices.Sort(g.ids)
	}
	return o
}

// squeeze drops the oldest message of the origin that takes most room, those that others refer to last: an origin that
// floods loses its own messages.
func (e *Engine) squeeze() {
	var most *origin
	var of *group
	var id uint16
	for _, tag := range e.tags {
		g := e.groups[tag]
		for _, each := range g.ids {
			if o := g.origins[each]; most == nil || o.octets > most.octets {
				most, of, id = o, g, each
			}
		}
	}
	low := most.lowest(func(it *Item) bool { return !it.Names })
	if low == 0 {
		low = most.lowest(func(*Item) bool { return true })
	}
	e.forget(of, most, Name{id, low})
	e.drop("group_full")
}

// forget drops a message; its number stays known.
func (e *Engine) forget(g *group, o *origin, n Name) {
	it := o.items[n.Number]
	if it == nil {
		return
	}
	delete(o.items, n.Number)
	o.octets -= len(it.Body)
	e.octets -= len(it.Body)
	g.sum -= it.mark()
	e.cfg.Keep(itemKey(g.tag, n), nil)
}

func (e *Engine) forgetOrigin(g *group, id uint16) {
	o := g.origins[id]
	for n := range o.items {
		e.forget(g, o, Name{id, n})
	}
	delete(g.origins, id)
	g.ids = slices.DeleteFunc(g.ids, func(other uint16) bool { return other == id })
	e.cfg.Keep(originKey(g.tag, id), nil)
}

// expire drops messages whose lifetime is over.
func (e *Engine) expire(now time.Time) {
	if !due.Reached(now, e.expires) {
		return
	}
	e.expires = time.Time{}
	for _, tag := range e.tags {
		g := e.groups[tag]
		for _, id := range g.ids {
			o := g.origins[id]
			for n, it := range o.items {
				if !it.Until().After(now) {
					e.forget(g, o, Name{id, n})
				} else {
					e.expires = due.Earliest(e.expires, it.Until())
				}
			}
		}
	}
}

// Keys and values of records.
const (
	recordItem   = 'i' // tag, origin, number -> expiry (Unix seconds), hops and recordNames, life, body
	recordOrigin = 'o' // tag, origin -> top, bits

	recordNames = 1 << 7
)

func itemKey(tag Tag, n Name) []byte {
	b := binary.BigEndian.AppendUint16([]byte{recordItem}, uint16(tag))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(b, n.Origin), n.Number)
}

func originKey(tag Tag, id uint16) []byte {
	b := binary.BigEndian.AppendUint16([]byte{recordOrigin}, uint16(tag))
	return binary.BigEndian.AppendUint16(b, id)
}

func encodeItem(it *Item) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(it.Expires.Unix()))
	hops := it.Hops
	if it.Names {
		hops |= recordNames
	}
	return append(append(b, hops, it.Life), it.Body...)
}

func (e *Engine) recordOrigin(g *group, id uint16) {
	o := g.origins[id]
	b := binary.BigEndian.AppendUint64(nil, o.top)
	for _, word := range o.seen {
		b = binary.BigEndian.AppendUint64(b, word)
	}
	e.cfg.Keep(originKey(g.tag, id), b)
}

// ErrRecord says that a record is not of this package.
var ErrRecord = errors.New("entropy: not a record of a group's messages")

// Restore takes a record that was kept, of a group that this node is in. Records of other groups are removed.
func (e *Engine) Restore(key, value []byte) error {
	if len(key) < 5 {
		return ErrRecord
	}
	g, id := e.groups[Tag(binary.BigEndian.Uint16(key[1:]))], binary.BigEndian.Uint16(key[3:])
	switch {
	case key[0] == recordItem && len(key) == 13 && len(value) >= 10:
		if g == nil {
			e.cfg.Keep(key, nil)
			return nil
		}
		it := Item{Tag: g.tag, Name: Name{id, binary.BigEndian.Uint64(key[5:])}, Hops: value[8] &^ recordNames, Names: value[8]&recordNames != 0, Life: value[9],
			Expires: time.Unix(int64(binary.BigEndian.Uint64(value)), 0), Body: slices.Clone(value[10:])}
		o := g.origin(id)
		o.items[it.Number] = &it
		e.expires = due.Earliest(e.expires, it.Until())
		o.octets += len(it.Body)
		e.octets += len(it.Body)
		g.sum += it.mark()
	case key[0] == recordOrigin && len(key) == 5 && len(value) == 8+back/8:
		if g == nil {
			e.cfg.Keep(key, nil)
			return nil
		}
		o := g.origin(id)
		o.top = binary.BigEndian.Uint64(value)
		for i := range o.seen {
			o.seen[i] = binary.BigEndian.Uint64(value[8+8*i:])
		}
	default:
		return ErrRecord
	}
	return nil
}
