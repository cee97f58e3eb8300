package gateway

import (
	"time"

	"aldis/internal/link/envelope"
	"aldis/internal/link/replica"
	"aldis/internal/site"
)

// stateMessage is what to tell a peer of items that it lacks or holds otherwise, and as what it will hold them. Where
// it holds the documents and only lifetimes have changed, those go in six octets each; else what is new goes first.
func (g *Gateway) stateMessage(now time.Time, p *peer, items []site.Item) (m envelope.Message, told []site.Item) {
	var renewed []site.Item
	var renewals []envelope.Renewal
	for _, it := range items {
		held, has := g.replica.Holds(p.ID, it.Key())
		expires := it.Expires.Truncate(time.Minute)
		if has && !it.Gone && !it.Expires.IsZero() && !held.Expires.IsZero() && held.Hash == replica.HashOf(it) &&
			held.Expires.After(now) && expires.After(held.Expires) && expires.Sub(now) <= envelope.RenewalMost {
			it.Expires = expires
			renewed = append(renewed, it)
			renewals = append(renewals, envelope.RenewalOf(held.Hash, expires))
			continue
		}
		told = append(told, it)
	}
	if len(told) > 0 {
		return envelope.Message{Items: told}, told
	}
	return envelope.Message{Renew: renewals}, renewed
}

// renew lets items of a peer live longer. What is not here is asked for.
func (g *Gateway) renew(now time.Time, p *peer, list []envelope.Renewal) {
	if len(list) == 0 {
		return
	}
	p.count.lastKind = kindState
	keys := map[envelope.Hash]string{}
	for key, it := range p.far {
		keys[replica.HashOf(it)] = key
	}
	lacking := false
	for _, r := range list {
		key, ok := keys[r.Hash]
		if !ok {
			lacking = true
			continue
		}
		it := p.far[key]
		if expires := r.Expires(now); !it.Expires.IsZero() && expires.After(it.Expires) {
			it.Expires = expires
			p.far[key] = it
			p.farEnds.Add(it.Expires, key)
			g.recordFar(p, key, it)
			g.farItem(now, p.ID, it, true)
		}
	}
	if lacking && !p.asking() {
		have, _ := g.have(now, p)
		g.ask(p, have)
	}
}
