package jxtabridge

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/advcache"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// What a restarted gateway has to know: its peers with leases and pipes, and what they published. Far items come
// again from the gateway's own store.
const (
	memPeer = "peer/"
	memAdv  = "adv/"
)

type peerMemory struct {
	Signed bool          `json:"signed"`
	Known  bool          `json:"known"`
	Leases []leaseMemory `json:"leases"`
	Pipes  []pipeMemory  `json:"pipes"`
	At     string        `json:"at,omitempty"` // "ip:port" where it takes connections
}

type leaseMemory struct {
	Group   string    `json:"group"`
	Expires time.Time `json:"expires"`
	Doc     []byte    `json:"doc"`
}

type pipeMemory struct {
	Group string `json:"group"`
	Pipe  string `json:"pipe"`
	Kind  uint8  `json:"kind"`
	// Untold: far sites did not know of it yet.
	Untold bool `json:"untold,omitempty"`
}

type advMemory struct {
	Peer    string    `json:"peer"`
	Expires time.Time `json:"expires"`
	Doc     []byte    `json:"doc"`
}

func (b *Bridge) rememberPeer(p *peer) {
	if len(p.leases) == 0 {
		b.forget(memPeer + p.id)
		return
	}
	m := peerMemory{Signed: p.signed, Known: p.known, At: p.address}
	for _, g := range slices.Sorted(maps.Keys(p.leases)) {
		m.Leases = append(m.Leases, leaseMemory{g, p.leases[g].expires, p.leases[g].doc})
	}
	for _, k := range p.pipeKeys() {
		_, untold := b.untold[untoldPipe{p.id, k}]
		m.Pipes = append(m.Pipes, pipeMemory{k.group, k.pipe, p.pipes[k], untold})
	}
	b.remember(memPeer+p.id, m)
}

func advKey(k advcache.Key) string {
	return memAdv + string('0'+rune(k.Type)) + "/" + k.Group + "/" + k.ID
}

func (b *Bridge) rememberAdv(e *advcache.Entry) {
	b.remember(advKey(e.Key), advMemory{e.Peer, e.Expires, e.Doc})
}

func (b *Bridge) forgetAdv(k advcache.Key) {
	b.forget(advKey(k))
}

// recall restores one memory; what is not understood is left out.
func (b *Bridge) recall(m site.Memory) {
	if id, ok := strings.CutPrefix(m.Key, memPeer); ok {
		var pm peerMemory
		if json.Unmarshal(m.Value, &pm) != nil || len(pm.Leases) == 0 {
			return
		}
		p := &peer{id: id, signed: pm.Signed, known: pm.Known, address: pm.At, leases: map[string]*lease{}, pipes: map[pipeKey]uint8{}, told: map[string]time.Time{}}
		for _, l := range pm.Leases {
			b.grant(p, l.Group, &lease{l.Expires, l.Doc, indexOf(l.Doc)})
		}
		for _, k := range pm.Pipes {
			p.pipes[pipeKey{k.Group, k.Pipe}] = k.Kind
			b.openHere[k.Pipe]++
			if k.Untold {
				b.untold[untoldPipe{id, pipeKey{k.Group, k.Pipe}}] = time.Unix(0, 0)
			}
		}
		b.addPeer(p)
		b.peerAt(p, p.due(time.Time{}))
		return
	}
	rest, ok := strings.CutPrefix(m.Key, memAdv)
	f := strings.SplitN(rest, "/", 3)
	if !ok || len(f) != 3 || len(f[0]) != 1 {
		return
	}
	var am advMemory
	if json.Unmarshal(m.Value, &am) != nil {
		return
	}
	n, err := jxta.ParseXML(am.Doc, jxta.DefaultXML)
	if err != nil {
		return
	}
	d := jxta.Describe(n)
	e := advcache.Entry{Key: advcache.Key{Group: f[1], Type: f[0][0] - '0', ID: f[2]}, Peer: am.Peer, Doc: am.Doc,
		Index: d.Index, Expires: am.Expires, Signed: d.Signed}
	b.cache.Share(&e)
	b.cache.Put(time.Time{}, e)
	b.usedBy(n, &e)
	b.sent[e.Key] = told{e.Expires, e.Peer}
}

// Items is the local site's whole state, for a gateway that lost its own copy or compares digests.
func (b *Bridge) Items() []site.Item {
	var out []site.Item
	for _, p := range b.sortedPeers() {
		for _, g := range slices.Sorted(maps.Keys(p.leases)) {
			out = append(out, b.peerItem(p, g))
		}
		for _, k := range p.pipeKeys() {
			if _, untold := b.untold[untoldPipe{p.id, k}]; !untold {
				out = append(out, pipeItem(p.id, k, p.pipes[k]))
			}
		}
	}
	first := len(out)
	b.cache.All(func(e *advcache.Entry) {
		if e.Site == 0 {
			out = append(out, b.advItem(e))
		}
	})
	slices.SortFunc(out[first:], func(a, c site.Item) int { return strings.Compare(a.Key(), c.Key()) })
	return out
}
