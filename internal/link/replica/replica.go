// Package replica keeps the copies of this site's state at the other gateways up to date, and sends only what has
// changed. It knows which items the site has, which of them each peer has acknowledged, and which are under way. After
// an outage or a lost store, a digest of four octets tells whether the copies agree; a list of hashes repairs them if
// they do not (design 1).
//
// The package is pure: callers pass the time. An item's lifetime travels as an absolute expiry, at which both ends
// remove the item without a message. Read replica.go first, then renewals.go (extended lifetimes) and calendar.go
// (expiry).
package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"aldis/internal/link/envelope"
	"aldis/internal/site"
)

// HashOf names the version of an item. The lifetime is not part of it: a refreshed item is the same item.
func HashOf(it site.Item) envelope.Hash {
	h := sha256.New()
	key := it.Key()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(key))))
	h.Write([]byte(key))
	if it.Variant {
		h.Write([]byte{1})
	} else {
		h.Write([]byte{0})
	}
	h.Write(it.Doc)
	return envelope.Hash(h.Sum(nil)[:4])
}

// Version is the version of an item that a peer holds.
type Version struct {
	Hash    envelope.Hash
	Expires time.Time // zero: until withdrawn
}

// versionOf is the version of an item.
func versionOf(it site.Item) Version { return Version{HashOf(it), it.Expires} }

type view struct {
	held   map[string]Version     // acknowledged
	flying map[string]uint64      // key -> the message that carries its newest version
	sent   map[uint64][]site.Item // message -> the items that it carries
	queue  []string               // keys that may be dirty, oldest change first; none that is under way
	queued map[string]bool
	renew  renewals // keys of which only the lifetime differs, until renewing it is worth the air
	ends   Calendar // of held
}

// Replica is one site's state and the copies that its peers hold.
type Replica struct {
	own   map[string]site.Item
	deny  map[string][]uint16 // peers that must not have an own item
	peers map[uint16]*view
	ends  Calendar // of own
}

// New begins with peers that hold nothing.
func New(peers []uint16) *Replica {
	r := &Replica{own: map[string]site.Item{}, deny: map[string][]uint16{}, peers: map[uint16]*view{}}
	for _, p := range peers {
		r.peers[p] = newView()
	}
	return r
}

// Join adds a new peer, which holds nothing.
func (r *Replica) Join(peer uint16) {
	v := newView()
	r.peers[peer] = v
	for _, key := range slices.Sorted(maps.Keys(r.own)) {
		v.enqueue(key)
	}
}

// Leave forgets a peer, and returns the keys of the items that it was known to hold.
func (r *Replica) Leave(peer uint16) (held []string) {
	held = slices.Sorted(maps.Keys(r.peers[peer].held))
	delete(r.peers, peer)
	return held
}

func newView() *view {
	return &view{held: map[string]Version{}, flying: map[string]uint64{}, sent: map[uint64][]site.Item{},
		queued: map[string]bool{}, renew: renewals{at: map[string]time.Time{}}}
}

// Put applies a change of the site's own state; Gone withdraws. Peers in deny must not have the item, and lose the copy
// that they had. Put says whether anything but a lifetime has changed.
func (r *Replica) Put(it site.Item, deny ...uint16) bool {
	key := it.Key()
	old, known := r.own[key]
	delete(r.deny, key)
	if it.Gone {
		delete(r.own, key)
	} else {
		r.own[key] = it
		if !known || !it.Expires.Equal(old.Expires) {
			r.ends.Add(it.Expires, key)
		}
		if len(deny) > 0 {
			r.deny[key] = deny
		}
	}
	for _, v := range r.peers {
		v.enqueue(key)
	}
	return known == it.Gone || !it.Gone && HashOf(old) != HashOf(it)
}

// Own returns the site's items, in no order.
func (r *Replica) Own() map[string]site.Item { return r.own }

// RestoreHeld sets, at start, an item that a peer holds.
func (r *Replica) RestoreHeld(peer uint16, key string, held Version) {
	if v := r.peers[peer]; v != nil {
		v.hold(key, held)
		v.enqueue(key)
	}
}

// hold records an item that the peer holds.
func (v *view) hold(key string, held Version) {
	if old, has := v.held[key]; !has || !old.Expires.Equal(held.Expires) {
		v.ends.Add(held.Expires, key)
	}
	v.held[key] = held
}

func (v *view) enqueue(key string) {
	if !v.queued[key] {
		v.queued[key] = true
		v.queue = append(v.queue, key)
	}
}

// Next returns up to n items that the peer lacks, or holds in another version; withdrawn ones with Gone set. The caller
// reports with Sent that they go. An item that is under way in an older version waits until that one has arrived.
func (r *Replica) Next(now time.Time, peer uint16, n int) (items []site.Item) {
	v := r.peers[peer]
	if v == nil {
		return nil
	}
	for key := v.renew.next(now); key != ""; key = v.renew.next(now) {
		v.enqueue(key)
	}
	seen, keep := 0, 0 // of the queue; keys that stay move to its head
	for seen < len(v.queue) && len(items) < n {
		key := v.queue[seen]
		seen++
		it, dirty, renew := r.dirty(now, peer, v, key)
		if dirty {
			items = append(items, it)
			v.queue[keep] = key
			keep++
			continue
		}
		delete(v.queued, key)
		if !renew.IsZero() {
			v.renew.add(renew, key)
		}
	}
	copy(v.queue[seen-keep:seen], v.queue[:keep])
	clear(v.queue[:seen-keep])
	v.queue = v.queue[seen-keep:]
	return items
}

// dirty says whether key must be sent to the peer now; if not, renew is when its lifetime alone will be worth sending
// (zero: never). A key that is under way is looked at again when it has arrived.
func (r *Replica) dirty(now time.Time, peer uint16, v *view, key string) (it site.Item, dirty bool, renew time.Time) {
	if _, flies := v.flying[key]; flies {
		return it, false, renew
	}
	it, own := r.own[key]
	own = own && !slices.Contains(r.deny[key], peer)
	held, has := v.held[key]
	switch {
	case own && it.Home && !has && !slices.Contains(it.To, peer):
		return it, false, renew
	case own && !it.Expires.IsZero() && !now.Before(it.Expires):
		return it, false, renew
	case !own && !has:
		return it, false, renew
	case !own:
		if !held.Expires.IsZero() && !now.Before(held.Expires) {
			return it, false, renew // it has expired there too
		}
		return site.WithdrawalOf(key), true, renew
	case !has || held.Hash != HashOf(it):
		return it, true, renew
	case it.Expires.Equal(held.Expires):
		return it, false, renew
	case it.Expires.IsZero() || held.Expires.IsZero() || held.Expires.Sub(now) < it.Expires.Sub(now)/2:
		return it, true, renew // only the lifetime differs, and it is worth the air now
	}
	// At the time returned, the peer's copy has less than half of the item's lifetime left.
	return it, false, held.Expires.Add(-it.Expires.Sub(held.Expires)).Add(2)
}

// Joins says that a peer may be told all of these items, and lacks one of them.
func (r *Replica) Joins(now time.Time, peer uint16, items []site.Item) (lacks bool) {
	v := r.peers[peer]
	if v == nil {
		return false
	}
	for _, it := range items {
		key := it.Key()
		own, is := r.own[key]
		_, has := v.held[key]
		_, flies := v.flying[key]
		if flies || it.Gone == is || slices.Contains(r.deny[key], peer) || is && own.Home && !has && !slices.Contains(own.To, peer) {
			return false
		}
		_, dirty, _ := r.dirty(now, peer, v, key)
		lacks = lacks || dirty
	}
	return lacks
}

// Lacking is the item with this key, if it must be sent to the peer now.
func (r *Replica) Lacking(now time.Time, peer uint16, key string) (it site.Item, lacks bool) {
	if v := r.peers[peer]; v != nil {
		it, lacks, _ = r.dirty(now, peer, v, key)
	}
	return it, lacks
}

// Unheld notes that a peer may not hold these items after all.
func (r *Replica) Unheld(peer uint16, keys []string) (changes []Held) {
	v := r.peers[peer]
	for _, key := range keys {
		if _, has := v.held[key]; has {
			delete(v.held, key)
			v.enqueue(key)
			changes = append(changes, Held{Key: key, Gone: true})
		}
	}
	return changes
}

// Holds is the version of an item that the peer is known to hold.
func (r *Replica) Holds(peer uint16, key string) (Version, bool) {
	if v := r.peers[peer]; v != nil {
		held, has := v.held[key]
		return held, has
	}
	return Version{}, false
}

// Sent notes that message carries items to the peer. It is also called at start for messages that were under way.
func (r *Replica) Sent(peer uint16, message uint64, items []site.Item) {
	v := r.peers[peer]
	if v == nil || len(items) == 0 {
		return
	}
	v.sent[message] = items
	for _, it := range items {
		v.flying[it.Key()] = message
	}
}

// Held is one change of a peer's copies, to be kept in the journal.
type Held struct {
	Key     string
	Gone    bool
	Version Version
}

// Acked notes that message has arrived, and returns the changes of the peer's copies.
func (r *Replica) Acked(peer uint16, message uint64) (changes []Held) {
	v := r.peers[peer]
	if v == nil {
		return nil
	}
	for _, it := range v.sent[message] {
		key := it.Key()
		if v.flying[key] == message {
			delete(v.flying, key)
		}
		if it.Gone {
			delete(v.held, key)
		} else {
			v.hold(key, versionOf(it))
		}
		v.enqueue(key)
		changes = append(changes, Held{key, it.Gone, v.held[key]})
	}
	delete(v.sent, message)
	return changes
}

// Unsent notes that message will not arrive: its items are to be sent again.
func (r *Replica) Unsent(peer uint16, message uint64) {
	v := r.peers[peer]
	if v == nil {
		return
	}
	for _, it := range v.sent[message] {
		if key := it.Key(); v.flying[key] == message {
			delete(v.flying, key)
			v.enqueue(key)
		}
	}
	delete(v.sent, message)
}

// Forget notes that the peer has a new store and holds nothing any more. All items are to be sent again.
func (r *Replica) Forget(peer uint16) {
	if r.peers[peer] == nil {
		return
	}
	r.peers[peer] = newView()
	for _, key := range sortedKeys(r.own) {
		r.peers[peer].enqueue(key)
	}
}

// Digest is the digest of the items that the peer is believed to hold; 0 while items are under way to it.
func (r *Replica) Digest(now time.Time, peer uint16) uint32 {
	v := r.peers[peer]
	if v == nil || len(v.flying) > 0 {
		return 0
	}
	d := NewDigest()
	for _, held := range v.held {
		if held.Expires.IsZero() || now.Before(held.Expires) {
			d.Add(held.Hash)
		}
	}
	return d.Sum()
}

// Mend applies a peer's list of all items that it holds of this site. Items that it lacks become dirty; void lists hashes
// that this site does not have.
func (r *Replica) Mend(now time.Time, peer uint16, have []envelope.Hash) (void []envelope.Hash, changes []Held) {
	v := r.peers[peer]
	if v == nil {
		return nil, nil
	}
	theirs := map[envelope.Hash]bool{}
	for _, h := range have {
		theirs[h] = true
	}
	known := map[envelope.Hash]bool{}
	for _, key := range sortedKeys(r.own) {
		it := r.own[key]
		hash := HashOf(it)
		known[hash] = true
		if theirs[hash] {
			if _, has := v.held[key]; !has {
				v.hold(key, versionOf(it))
				changes = append(changes, Held{key, false, v.held[key]})
			}
			continue
		}
		if _, has := v.held[key]; has {
			delete(v.held, key)
			changes = append(changes, Held{Key: key, Gone: true})
		}
		v.enqueue(key)
	}
	for _, key := range sortedKeys(v.held) {
		if _, own := r.own[key]; !own && !theirs[v.held[key].Hash] {
			delete(v.held, key) // withdrawn here, and gone there as well
			changes = append(changes, Held{Key: key, Gone: true})
		}
	}
	for _, h := range have {
		if !known[h] {
			void = append(void, h)
		}
	}
	return void, changes
}

// Purge forgets expired items, up to most of each kind, and returns the keys of own items and of the peers' copies; more
// says that there are others.
func (r *Replica) Purge(now time.Time, most int) (own []string, held map[uint16][]string, more bool) {
	past := func(t time.Time) bool { return !t.IsZero() && !now.Before(t) }
	due := r.ends.Due(now, most)
	more = len(due) == most
	for _, key := range due {
		it, known := r.own[key]
		switch {
		case known && past(it.Expires):
			own = append(own, key)
			delete(r.own, key)
			delete(r.deny, key)
		case known && minuteOf(it.Expires) <= minuteOf(now):
			r.ends.Add(it.Expires, key)
		}
	}
	held = map[uint16][]string{}
	for peer, v := range r.peers {
		due := v.ends.Due(now, most)
		more = more || len(due) == most
		for _, key := range due {
			h, has := v.held[key]
			switch {
			case has && past(h.Expires):
				held[peer] = append(held[peer], key)
				delete(v.held, key)
			case has && minuteOf(h.Expires) <= minuteOf(now):
				v.ends.Add(h.Expires, key)
			}
		}
		slices.Sort(held[peer])
	}
	slices.Sort(own)
	return own, held, more
}

// HeldBy counts the items of this site that a peer holds.
func (r *Replica) HeldBy(peer uint16) int {
	if v := r.peers[peer]; v != nil {
		return len(v.held)
	}
	return 0
}

// Flying counts items under way to the peer.
func (r *Replica) Flying(peer uint16) int {
	if v := r.peers[peer]; v != nil {
		return len(v.flying)
	}
	return 0
}

// Place is how far an own item is on its way to a peer.
type Place uint8

const (
	Stays    Place = iota // only at home: the peer's site has not asked for it
	Denied                // it must not go there
	Waits                 // it will be sent when the link has room; an older version may be there
	UnderWay              // sent, not acknowledged
	There                 // held, in this version
)

// PlaceOf is the place of an own item on its way to a peer, and whether an older version is there.
func (r *Replica) PlaceOf(peer uint16, key string) (place Place, older bool) {
	v := r.peers[peer]
	it, own := r.own[key]
	if v == nil || !own {
		return Stays, false
	}
	held, has := v.held[key]
	older = has && held.Hash != HashOf(it)
	_, flies := v.flying[key]
	switch {
	case slices.Contains(r.deny[key], peer):
		return Denied, has
	case flies:
		return UnderWay, older
	case has && !older:
		return There, false
	case it.Home && !has && !slices.Contains(it.To, peer):
		return Stays, false
	}
	return Waits, older
}

// Lacks says that some peer must be sent this version of an own item.
func (r *Replica) Lacks(it site.Item, deny []uint16) bool {
	key, hash := it.Key(), HashOf(it)
	for peer, v := range r.peers {
		held, has := v.held[key]
		if (!has || held.Hash != hash) && !slices.Contains(deny, peer) && (has || !it.Home || slices.Contains(it.To, peer)) {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Digest of a set of items; the order of Add does not matter.
type Digest struct{ sum uint32 }

// NewDigest is the digest of no items.
func NewDigest() *Digest { return &Digest{0x9e3779b9} }

// Add adds an item.
func (d *Digest) Add(h envelope.Hash) { d.sum ^= binary.BigEndian.Uint32(h[:]) }

// Sum is never 0, which on the wire means that there is no digest.
func (d *Digest) Sum() uint32 {
	if d.sum == 0 {
		return 1
	}
	return d.sum
}
