package advcache

import (
	"bytes"
	"container/heap"
	"slices"
	"strings"
	"time"

	"aldis/internal/jxta"
)

// Key names one advertisement of one origin. The same advertisement may be there once from here and once from every
// far site; Find shows it once.
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

// overhead is what an entry costs beside its document, in octets, about.
const overhead = 512

// Cache holds entries up to its bounds. The zero value is not usable; see New.
type Cache struct {
	maxCount, maxOctets int
	octets              int
	items               map[Key]*item
	lists               map[list][]*item // in order of arrival
	queue               queue            // by expiry
	stats               Stats
}

type list struct {
	group string
	kind  uint8
}

type item struct {
	Entry
	place int // in queue
}

// Stats count since the start.
type Stats struct {
	Evicted uint64 // put out before their time because the cache was full
	Refused uint64 // larger than the whole cache
	Expired uint64
}

// New makes a cache of at most count entries and octets in all.
func New(count, octets int) *Cache {
	return &Cache{maxCount: count, maxOctets: octets, items: map[Key]*item{}, lists: map[list][]*item{}}
}

// Len is the number of entries, Octets what they occupy.
func (c *Cache) Len() int     { return len(c.items) }
func (c *Cache) Octets() int  { return c.octets }
func (c *Cache) Stats() Stats { return c.stats }

func cost(e *Entry) int {
	n := overhead + len(e.Doc)
	for _, f := range e.Index {
		n += len(f.Name) + len(f.Value)
	}
	return n
}

// Put stores e, in place of an older one with the same Key. changed reports new content (not merely a new expiry);
// put reports keys that had to leave for it. An entry that is dead already removes the older one.
func (c *Cache) Put(now time.Time, e Entry) (changed bool, put []Key) {
	old := c.items[e.Key]
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
		c.octets += size - cost(&old.Entry)
		old.Entry = e
		heap.Fix(&c.queue, old.place)
	} else {
		it := &item{Entry: e}
		c.items[e.Key] = it
		l := list{e.Group, e.Type}
		c.lists[l] = append(c.lists[l], it)
		heap.Push(&c.queue, it)
		c.octets += size
	}
	for len(c.items) > c.maxCount || c.octets > c.maxOctets {
		victim := c.queue[0]
		if victim.Key == e.Key { // what has just come stays
			victim = c.queue.second()
		}
		put = append(put, victim.Key)
		c.Remove(victim.Key)
		c.stats.Evicted++
	}
	return changed, put
}

// Get answers the entry of that key, nil if there is none or it is dead.
func (c *Cache) Get(now time.Time, k Key) *Entry {
	it := c.items[k]
	if it == nil || !now.Before(it.Expires) {
		return nil
	}
	return &it.Entry
}

// Remove forgets an entry and reports whether it was there.
func (c *Cache) Remove(k Key) bool {
	it := c.items[k]
	if it == nil {
		return false
	}
	delete(c.items, k)
	heap.Remove(&c.queue, it.place)
	c.octets -= cost(&it.Entry)
	l := list{k.Group, k.Type}
	rest := slices.DeleteFunc(c.lists[l], func(x *item) bool { return x == it })
	if len(rest) == 0 {
		delete(c.lists, l)
	} else {
		c.lists[l] = rest
	}
	return true
}

// RemoveSite forgets all that came from a far site.
func (c *Cache) RemoveSite(site uint16) {
	for k := range c.items {
		if k.Site == site {
			c.Remove(k)
		}
	}
}

// Question is what a discovery query asks.
type Question struct {
	Group       string
	Type        uint8
	Attr, Value string // both empty: anything
	Peer        string // not empty: only what this peer published
}

// Matches reports whether an entry answers the question, its age aside.
func (q Question) Matches(e *Entry) bool {
	if e.Group != q.Group || e.Type != q.Type || q.Peer != "" && e.Peer != q.Peer {
		return false
	}
	if q.Attr == "" {
		return true
	}
	for _, f := range e.Index {
		if f.Name == q.Attr && (jxta.Match(q.Value, f.Value) || sameURN(q.Value, f.Value)) {
			return true
		}
	}
	return false
}

// sameURN lets the upper-cased ids of 2.2 (baseline 6) find theirs.
func sameURN(a, b string) bool {
	return len(a) == len(b) && len(a) > 9 && strings.EqualFold(a[:9], "urn:jxta:") && strings.EqualFold(a, b)
}

// Find answers up to limit entries that live and match, each id once: what is local wins, then what lives longest.
func (c *Cache) Find(now time.Time, q Question, limit int) []*Entry {
	var out []*Entry
	var at map[string]int
	for _, it := range c.lists[list{q.Group, q.Type}] {
		if !now.Before(it.Expires) || !q.Matches(&it.Entry) {
			continue
		}
		if i, ok := at[it.ID]; ok {
			if was := out[i]; was.Site != 0 && (it.Site == 0 || it.Expires.After(was.Expires)) {
				out[i] = &it.Entry
			}
			continue
		}
		if len(out) >= limit {
			continue // an id already shown may still have a better copy
		}
		if at == nil {
			at = map[string]int{}
		}
		at[it.ID] = len(out)
		out = append(out, &it.Entry)
	}
	return out
}

// All calls f for every entry, in no order.
func (c *Cache) All(f func(*Entry)) {
	for _, it := range c.items {
		f(&it.Entry)
	}
}

// Expire removes what is dead and answers its keys.
func (c *Cache) Expire(now time.Time) []Key {
	var gone []Key
	for len(c.queue) > 0 && !now.Before(c.queue[0].Expires) {
		gone = append(gone, c.queue[0].Key)
		c.Remove(c.queue[0].Key)
		c.stats.Expired++
	}
	return gone
}

// Deadline is when the next entry dies; zero when there is none.
func (c *Cache) Deadline() time.Time {
	if len(c.queue) == 0 {
		return time.Time{}
	}
	return c.queue[0].Expires
}

// queue is a heap by expiry.
type queue []*item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].Expires.Before(q[j].Expires) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *queue) Push(x any) {
	it := x.(*item)
	it.place = len(*q)
	*q = append(*q, it)
}
func (q *queue) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return it
}

// second is the one that dies next after the first; there is one whenever the bounds are passed.
func (q queue) second() *item {
	if len(q) > 2 && q.Less(2, 1) {
		return q[2]
	}
	return q[1]
}
