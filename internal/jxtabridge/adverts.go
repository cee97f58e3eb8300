package jxtabridge

import (
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/rules/filter"
)

// AdvertKey names an advertisement of the cache.
type AdvertKey = advcache.Key

// AdvertKeys are the keys of the whole cache, in no order.
func (b *Bridge) AdvertKeys() []AdvertKey {
	keys := make([]AdvertKey, 0, b.cache.Len())
	b.cache.All(func(e *advcache.Entry) { keys = append(keys, e.Key) })
	return keys
}

// Advert is one advertisement of the cache, for people.
type Advert struct {
	AdvertKey
	Subject filter.Subject // direction and site are not set
	Expires time.Time
	Signed  bool
	Item    Item // as far sites are told of it, when it is a local peer's
}

// Adverts describes those of keys that are still there.
func (b *Bridge) Adverts(now time.Time, keys []AdvertKey) []Advert {
	out := make([]Advert, 0, len(keys))
	for _, k := range keys {
		e := b.cache.Get(now, k)
		if e == nil {
			continue
		}
		a := Advert{AdvertKey: k, Expires: e.Expires, Signed: e.Signed}
		if n, err := jxta.ParseXML(e.Doc, jxta.DefaultXML); err == nil {
			a.Subject = filter.Describe(n, len(e.Doc))
		}
		a.Subject.Group, a.Subject.Peer = k.Group, e.Peer
		if k.Site == 0 {
			a.Item = b.advItem(e)
		}
		out = append(out, a)
	}
	return out
}
