package gateway

import (
	"bytes"
	"slices"
	"time"

	"aldis/internal/link/envelope"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// farCopy is what we hold of a peer's site, as it told us, also in the journal.
type farCopy struct {
	peer  uint16
	road  journal
	items map[string]site.Item
	ends  replica.Calendar
}

func newFarCopy(peer uint16, road journal) farCopy {
	return farCopy{peer: peer, road: road, items: map[string]site.Item{}}
}

// put keeps an item that the journal has.
func (f *farCopy) put(it site.Item) {
	key := it.Key()
	f.items[key] = it
	f.ends.Add(it.Expires, key)
}

// keep is put for one that the journal has not.
func (f *farCopy) keep(it site.Item) {
	f.put(it)
	value, err := encodeItem(it)
	if err != nil { // it came in an envelope
		panic("gateway: " + err.Error())
	}
	f.road.Record(bucketFar, peerKey(f.peer, []byte(it.Key())), value)
}

// drop forgets an item; false: there was none.
func (f *farCopy) drop(key string) bool {
	if _, had := f.items[key]; !had {
		return false
	}
	delete(f.items, key)
	f.road.Record(bucketFar, peerKey(f.peer, []byte(key)), nil)
	return true
}

// clear forgets all.
func (f *farCopy) clear() {
	for key := range f.items {
		f.drop(key)
	}
}

// purge forgets what has expired, at most so many; more: there may be more.
func (f *farCopy) purge(now time.Time, most int) (more bool) {
	due := f.ends.Due(now, most)
	for _, key := range due {
		switch it, known := f.items[key]; {
		case !known || it.Expires.IsZero():
		case !now.Before(it.Expires):
			f.drop(key)
		case it.Expires.Sub(now) < time.Minute:
			f.ends.Add(it.Expires, key)
		}
	}
	return len(due) == most
}

// have lists what lives, as a question to the peer does, and sums it up.
func (f *farCopy) have(now time.Time) (have []envelope.Hash, d *replica.Digest) {
	d = replica.NewDigest()
	for _, it := range f.items {
		if it.Expires.IsZero() || now.Before(it.Expires) {
			h := replica.HashOf(it)
			have = append(have, h)
			d.Add(h)
		}
	}
	slices.SortFunc(have, func(a, b envelope.Hash) int { return bytes.Compare(a[:], b[:]) })
	return have, d
}

// differs holds the peer's digest against what is here.
func (f *farCopy) differs(now time.Time, digest uint32) bool {
	_, d := f.have(now)
	return d.Sum() != digest
}

// keys are the names of items by their hashes.
func (f *farCopy) keys() map[envelope.Hash]string {
	keys := map[envelope.Hash]string{}
	for key, it := range f.items {
		keys[replica.HashOf(it)] = key
	}
	return keys
}
