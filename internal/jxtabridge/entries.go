package jxtabridge

import (
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// EntryKeys are the keys of all advertisements in the cache, in no order.
func (b *Bridge) EntryKeys() []site.EntryKey {
	keys := make([]site.EntryKey, 0, b.directory.cache.Len())
	b.directory.cache.All(func(e *advcache.Entry) {
		keys = append(keys, site.EntryKey{Scope: e.Group, Type: e.Type, ID: e.ID, Site: e.Site})
	})
	return keys
}

// Entries describes the advertisements of keys that are still in the cache.
func (b *Bridge) Entries(now time.Time, keys []site.EntryKey) []site.Entry {
	out := make([]site.Entry, 0, len(keys))
	for _, k := range keys {
		e := b.directory.cache.Get(now, advcache.Key{Group: k.Scope, Type: k.Type, ID: k.ID, Site: k.Site})
		if e == nil {
			continue
		}
		a := site.Entry{EntryKey: k, Expires: e.Expires, Signed: e.Signed}
		if n, err := jxta.ParseXML(e.Doc, jxta.DefaultXML); err == nil {
			a.Subject = Describe(n, len(e.Doc))
		}
		a.Subject.Scope, a.Subject.Owner = k.Scope, e.Peer
		if k.Site == 0 {
			a.Item = b.directory.item(e)
		}
		out = append(out, a)
	}
	return out
}
