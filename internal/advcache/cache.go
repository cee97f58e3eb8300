package advcache

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
)

// Key names one advertisement of one origin. The cache may have the same advertisement once from here and once from every
// far site; Find returns it once.
type Key struct {
	Group string // unique value
	Type  uint8  // jxta.TypePeer, TypeGroup, TypeAdv
	ID    string // unique value or "h-<hex>"
	Site  uint16 // 0: published by a local peer
}

// Entry is one advertisement. The cache keeps Doc and Index as they are; nobody changes them afterwards.
type Entry struct {
	Key
	Peer    string // unique value of the publisher, "" if not known
	Doc     []byte
	Index   []jxta.Field
	Expires time.Time
	Signed  bool // Doc carries an XMLSignature
}

// overhead is about the memory that an entry takes besides its document, in octets.
const overhead = 512

// Cache holds entries up to its bounds. The zero value is not usable; see New.
type Cache struct {
	maxCount, maxOctets int
	octets              int
	count               int
	arrivals            uint64
	shelves             map[list]*shelf
	bySite              map[uint16]int // entries
	queue               due.Heap[*item]
	stats               Stats
}

type list struct {
	group string
	kind  uint8
}

type item struct {
	Entry
	arrival       uint64
	place         int   // in the queue
	before, after *item // in order of arrival
	twin          *item // a further copy of the same id
}

// Stats count since the start.
type Stats struct {
	Evicted uint64 // dropped before they expired because the cache was full
	Refused uint64 // larger than the whole cache
	Expired uint64
}

// New makes a cache of at most count entries, with at most so many octets in all.
func New(count, octets int) *Cache {
	return &Cache{maxCount: count, maxOctets: octets, shelves: map[list]*shelf{}, bySite: map[uint16]int{}}
}

// Len is the number of entries, Octets the octets that they occupy.
func (c *Cache) Len() int { return c.count }

// Octets is how many octets the entries occupy.
func (c *Cache) Octets() int { return c.octets }

// Stats counts the entries that the cache has dropped or refused since the start.
func (c *Cache) Stats() Stats { return c.stats }

// LenOf is the number of entries of one site.
func (c *Cache) LenOf(site uint16) int { return c.bySite[site] }

func cost(e *Entry) int {
	n := overhead + len(e.Doc)
	for _, f := range e.Index {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// Put stores e, in place of an older entry with the same Key. changed reports new content (not merely a new expiry);
// put reports the keys of entries that were dropped for it. An entry that has already expired removes the older one.
func (c *Cache) Put(now time.Time, e Entry) (changed bool, put []Key) {
	old := c.item(e.Key)
	if !now.Before(e.Expires) {
		c.Remove(e.Key)
		return old != nil, nil
	}
	size := cost(&e)
	if size > c.maxOctets || c.maxCount < 1 {
		c.stats.Refused++
		return false, []Key{e.Key}
	}
	changed = old == nil || !bytes.Equal(old.Doc, e.Doc)
	if old != nil {
		c.replace(old, e, changed)
	} else {
		c.add(e)
	}
	for c.count > c.maxCount || c.octets > c.maxOctets {
		victim := c.queue[0]
		if victim.Key == e.Key { // the new entry stays
			victim = second(c.queue)
		}
		put = append(put, victim.Key)
		c.Remove(victim.Key)
		c.stats.Evicted++
	}
	return changed, put
}

func (c *Cache) add(e Entry) {
	l := list{e.Group, e.Type}
	s := c.shelves[l]
	if s == nil {
		s = newShelf()
		c.shelves[l] = s
	}
	c.arrivals++
	it := &item{Entry: e, arrival: c.arrivals}
	s.add(it)
	c.queue.Push(it)
	c.octets += cost(&e)
	c.count++
	c.bySite[e.Site]++
}

// replace puts a new version in an item's place; parts that have not changed stay shared.
func (c *Cache) replace(it *item, e Entry, changed bool) {
	s := c.shelves[list{e.Group, e.Type}]
	again := changed || it.Peer != e.Peer || !slices.Equal(it.Index, e.Index)
	if !again {
		e.Key, e.Peer, e.Doc, e.Index = it.Key, it.Peer, it.Doc, it.Index
	} else {
		s.unindex(it)
		c.octets += cost(&e) - cost(&it.Entry)
		e.Key = it.Key
	}
	it.Entry = e
	if again {
		s.index(it)
	}
	c.queue.Set(it, it.place)
}

// Share makes an entry small before it is kept: group, field names and id take no octets of their own if the cache
// has them already, or if the entry itself has them twice.
func (c *Cache) Share(e *Entry) {
	s := c.shelves[list{e.Group, e.Type}]
	if s != nil {
		e.Group = s.first.Group
	}
	for i := range e.Index {
		f := &e.Index[i]
		if s != nil {
			if x := s.fields[f.Name]; x != nil {
				f.Name = x.name
			}
		}
		if len(f.Value) == len(urnPrefix)+len(e.ID) && strings.HasPrefix(f.Value, urnPrefix) && strings.HasSuffix(f.Value, e.ID) {
			e.ID = f.Value[len(urnPrefix):]
		}
	}
	e.Index = slices.Clip(e.Index)
	if cap(e.Doc) > len(e.Doc)+len(e.Doc)/8 {
		e.Doc = bytes.Clone(e.Doc)
	}
}

const urnPrefix = "urn:jxta:"

// item finds the item of a key; nil if there is none.
func (c *Cache) item(k Key) *item {
	s := c.shelves[list{k.Group, k.Type}]
	if s == nil {
		return nil
	}
	it := s.ids[k.ID]
	for it != nil && it.Site != k.Site {
		it = it.twin
	}
	return it
}

// Get returns the entry of a key, nil if there is none or it has expired.
func (c *Cache) Get(now time.Time, k Key) *Entry {
	it := c.item(k)
	if it == nil || !now.Before(it.Expires) {
		return nil
	}
	return &it.Entry
}

// Remove forgets an entry and reports whether it was there.
func (c *Cache) Remove(k Key) bool {
	it := c.item(k)
	if it == nil {
		return false
	}
	c.queue.Remove(it.place)
	c.octets -= cost(&it.Entry)
	c.count--
	c.bySite[k.Site]--
	if c.bySite[k.Site] == 0 {
		delete(c.bySite, k.Site)
	}
	l := list{k.Group, k.Type}
	s := c.shelves[l]
	s.remove(it)
	if s.first == nil {
		delete(c.shelves, l)
	}
	return true
}

// RemoveSite forgets all entries of a far site.
func (c *Cache) RemoveSite(site uint16) {
	for _, s := range c.shelves {
		for it := s.first; it != nil; {
			next := it.after
			if it.Site == site {
				c.Remove(it.Key)
			}
			it = next
		}
	}
}

// Question is the content of a discovery query.
type Question struct {
	Group       string
	Type        uint8
	Attr, Value string // both empty: anything
	Peer        string // not empty: only entries that this peer published
}

// Matches reports whether an entry answers the question, whatever its age.
func (q Question) Matches(e *Entry) bool {
	if e.Group != q.Group || e.Type != q.Type || q.Peer != "" && e.Peer != q.Peer {
		return false
	}
	return q.Attr == "" || q.field(e) >= 0
}

// field is the number of the first index field of an entry that answers the question; -1 if none does.
func (q Question) field(e *Entry) int {
	for i, f := range e.Index {
		if f.Name == q.Attr && (jxta.Match(q.Value, f.Value) || sameURN(q.Value, f.Value)) {
			return i
		}
	}
	return -1
}

// sameURN lets the upper-cased ids of 2.2 (baseline 6) match their originals.
func sameURN(a, b string) bool {
	return len(a) == len(b) && len(a) > 9 && strings.EqualFold(a[:len(urnPrefix)], urnPrefix) && strings.EqualFold(a, b)
}

// Find returns up to limit entries that match and have not expired, in order of arrival, each id once: a local entry wins, then the
// one that expires last.
func (c *Cache) Find(now time.Time, q Question, limit int) []*Entry {
	s := c.shelves[list{q.Group, q.Type}]
	if s == nil || limit <= 0 {
		return nil
	}
	var found []*item
	take := func(it *item) bool {
		if now.Before(it.Expires) && q.Matches(&it.Entry) && s.best(now, q, it) {
			found = append(found, it)
		}
		return len(found) < limit
	}
	switch {
	case q.Attr == "" && q.Peer == "":
		for it := s.first; it != nil && take(it); it = it.after {
		}
	case q.Attr == "":
		s.candidates(ownerField, q.Peer, func(r ref) bool { return take(r.it) })
	default:
		// An entry with several such fields is taken once, at the first that matches.
		s.candidates(q.Attr, q.Value, func(r ref) bool { return q.field(&r.it.Entry) != int(r.n) || take(r.it) })
	}
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b *item) int { return cmp.Compare(a.arrival, b.arrival) })
	out := make([]*Entry, len(found))
	for i, it := range found {
		out[i] = &it.Entry
	}
	return out
}

// best says whether it is the copy of its id that Find returns, among those that match and have not expired.
func (s *shelf) best(now time.Time, q Question, it *item) bool {
	for o := s.ids[it.ID]; o != nil; o = o.twin {
		if o == it || !now.Before(o.Expires) || !q.Matches(&o.Entry) {
			continue
		}
		switch {
		case o.Site == 0:
			return false
		case it.Site == 0:
		case o.Expires.After(it.Expires), o.Expires.Equal(it.Expires) && o.arrival < it.arrival:
			return false
		}
	}
	return true
}

// Has reports whether an entry, expired or not, has a value in a field, whatever the case of its letters.
func (c *Cache) Has(group string, kind uint8, attr, value string) bool {
	s := c.shelves[list{group, kind}]
	if s == nil || s.fields[attr] == nil {
		return false
	}
	has := false
	s.fields[attr].forward.each(value, compareForward, func(r ref) bool {
		has = compareForward(r.value(), value) == 0
		return false
	})
	return has
}

// All calls f for every entry, in no order.
func (c *Cache) All(f func(*Entry)) {
	for _, it := range c.queue {
		f(&it.Entry)
	}
}

// Expire removes up to most expired entries, and returns their keys.
func (c *Cache) Expire(now time.Time, most int) []Key {
	var gone []Key
	for len(c.queue) > 0 && len(gone) < most && !now.Before(c.queue[0].Expires) {
		gone = append(gone, c.queue[0].Key)
		c.Remove(c.queue[0].Key)
		c.stats.Expired++
	}
	return gone
}

// Deadline is when the next entry expires; zero if there is none.
func (c *Cache) Deadline() time.Time {
	if len(c.queue) == 0 {
		return time.Time{}
	}
	return c.queue[0].Expires
}

// Before puts the item that expires first in front of the queue.
func (it *item) Before(o *item) bool { return it.Expires.Before(o.Expires) }
func (it *item) Placed(n int)        { it.place = n }

// second is the item that expires next after the first; there is one whenever the cache exceeds its bounds.
func second(q due.Heap[*item]) *item {
	if len(q) > 2 && q[2].Before(q[1]) {
		return q[2]
	}
	return q[1]
}
