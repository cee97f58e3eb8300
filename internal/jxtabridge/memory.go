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

// Memories for a restarted gateway: its peers with leases and pipes, and their advertisements. Far items come
// again from the gateway's own store.
const (
	memPeer = "peer/"
	memAdv  = "adv/"
)

type peerMemory struct {
	Signed bool          `json:"signed"`
	Known  bool          `json:"known"`
	Proven bool          `json:"proven,omitempty"` // identity.signs
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
	// Untold: far sites do not know that this peer has the pipe open, or not yet.
	Untold bool `json:"untold,omitempty"`
}

type advMemory struct {
	Peer    string    `json:"peer"`
	Expires time.Time `json:"expires"`
	Doc     []byte    `json:"doc"`
	Indexed bool      `json:"indexed,omitempty"`
}

func (o *outlets) rememberPeer(p *peer) {
	if len(p.leases) == 0 {
		o.forget(memPeer + p.id)
		return
	}
	m := peerMemory{Signed: p.signed, Known: p.known, Proven: p.identity.signs, At: p.address}
	for _, g := range slices.Sorted(maps.Keys(p.leases)) {
		m.Leases = append(m.Leases, leaseMemory{g, p.leases[g].expires, p.leases[g].doc})
	}
	for _, k := range p.pipeKeys() {
		_, untold := o.untold[untoldPipe{p.id, k}]
		m.Pipes = append(m.Pipes, pipeMemory{k.group, k.pipe, p.pipes[k], untold || p.pipes[k] == PipePropagate})
	}
	o.remember(memPeer+p.id, m)
}

func advKey(k advcache.Key) string {
	return memAdv + string('0'+rune(k.Type)) + "/" + k.Group + "/" + k.ID
}

func (dir *directory) rememberAdv(e *advcache.Entry) {
	dir.remember(advKey(e.Key), advMemory{e.Peer, e.Expires, e.Doc, dir.index[e.Key]})
}

// recallPeer restores one memory of a peer, recallAdv one of an advertisement; unknown ones are left out.
func (o *outlets) recallPeer(id string, value []byte) {
	var pm peerMemory
	if json.Unmarshal(value, &pm) != nil || len(pm.Leases) == 0 {
		return
	}
	p := newPeer(id)
	p.recalled = true
	p.signed, p.known, p.address = pm.Signed, pm.Known, pm.At
	p.identity.signs, p.identity.host = pm.Proven, hostOf(pm.At)
	for _, l := range pm.Leases {
		o.grant(p, l.Group, &lease{expires: l.Expires, doc: l.Doc, index: indexOf(l.Doc)})
	}
	for _, k := range pm.Pipes {
		u := untoldPipe{id, pipeKey{k.Group, k.Pipe}}
		p.pipes[u.pipeKey] = k.Kind
		o.openHere[k.Pipe]++
		switch {
		case k.Kind == PipePropagate:
			o.listening.Change(k.Group, k.Pipe, false)
			if !k.Untold {
				o.named[u] = true
			}
		case k.Untold:
			o.untold[u] = time.Unix(0, 0)
		}
	}
	o.addPeer(p)
	o.peerAt(p, p.due(time.Time{}))
}

func (dir *directory) recallAdv(key string, value []byte) {
	var am advMemory
	f := strings.SplitN(key, "/", 3)
	if len(f) != 3 || len(f[0]) != 1 || json.Unmarshal(value, &am) != nil {
		return
	}
	n, err := jxta.ParseXML(am.Doc, jxta.DefaultXML)
	if err != nil {
		return
	}
	d := jxta.Describe(n)
	e := advcache.Entry{Key: advcache.Key{Group: f[1], Type: f[0][0] - '0', ID: f[2]}, Peer: am.Peer, Doc: am.Doc,
		Index: d.Index, Expires: am.Expires, Signed: d.Signed}
	dir.cache.Share(&e)
	dir.cache.Put(time.Time{}, e)
	if am.Indexed {
		dir.index[e.Key] = true
	} else {
		dir.assign(n, &e)
	}
	dir.sent[e.Key] = told{e.Expires, e.Peer}
}

// Items is the local site's whole state, for a gateway that lost its own copy or compares digests.
func (b *Bridge) Items() []site.Item {
	var out []site.Item
	for _, p := range b.outlets.sortedPeers() {
		for _, g := range slices.Sorted(maps.Keys(p.leases)) {
			out = append(out, b.outlets.peerItem(p, g))
		}
		for _, k := range p.pipeKeys() {
			if _, untold := b.outlets.untold[untoldPipe{p.id, k}]; !untold && p.pipes[k] != PipePropagate {
				out = append(out, pipeItem(p.id, k, p.pipes[k]))
			}
		}
	}
	first := len(out)
	for k := range b.outlets.listening {
		out = append(out, pipeItem("", k, PipePropagate))
	}
	b.directory.cache.All(func(e *advcache.Entry) {
		if e.Site == 0 && !b.directory.unasked(e.Key) {
			out = append(out, b.directory.item(e))
		}
	})
	slices.SortFunc(out[first:], func(a, c site.Item) int { return strings.Compare(a.Key(), c.Key()) })
	return out
}
