package gateway

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/unicast"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// replaced is what orders have replaced in this run, and what none can replace.
type replaced struct {
	rulesReplaced uint64
	linkReplaced  uint64
	left          []uint16 // ids of peers that are configured no more, and of which the journal tells
	// away are peers that an order of this run has taken out. Their numbers are kept, and those that their messages have here, which
	// may wait for local peers: one may come back.
	away map[uint16]*peer
}

// obey takes what of the link may be another while it works.
func (e NewLink) obey(g *Gateway, now time.Time) {
	for _, p := range slices.Clone(g.peers) {
		if !slices.ContainsFunc(e.Peers, func(pc PeerConfig) bool { return pc.ID == p.ID }) {
			leave(g, now, p)
		}
	}
	for _, pc := range e.Peers {
		switch p := g.byID[pc.ID]; {
		case p != nil:
			p.rename(g, pc.Name)
			unicast.Readdress(g.byID[pc.ID].bearer.lines, p.Peer, pc.Addr)
		case pc.ID == 0 || pc.ID == g.cfg.ID || !joins(g, pc.ID):
			g.Note("warn", "a new peer was not taken: it needs a restart", "id", pc.ID)
		default:
			join(g, now, pc)
		}
	}
	g.cfg.Profile.Tariff = e.Tariff
	for _, b := range g.bearers {
		b.profile.Tariff, b.lines.Keepalive = e.Tariff, e.Keepalive
	}
	if !reflect.DeepEqual(g.silence.list, e.Windows) {
		g.silence.set(e.Windows, g.silence.wall(now))
	}
	g.linkReplaced++
}

// rename gives a peer another name for people.
func (p *peer) rename(g *Gateway, name string) {
	if p.Name != name {
		g.Note("info", "a peer has another name", "id", p.ID, "name", name, "before", p.Name)
		p.Name = name
	}
}

// joins says whether a peer can come while the gateway runs: it can where each has a link of its own, and the journal has
// nothing of one with this id.
func joins(g *Gateway, id uint16) bool {
	return g.cfg.Profile.Transport != profile.PMul && !slices.Contains(g.left, id)
}

// join takes a new peer in, of which nothing is known.
func join(g *Gateway, now time.Time, pc PeerConfig) {
	b := g.bearers[0]
	p := g.away[pc.ID]
	if p == nil {
		p = newPeer(g, pc)
	}
	p.Name = pc.Name
	p.Paths.Write(pc.Addr)
	if err := unicast.Join(now, b.lines, p.Peer); err != nil {
		g.Note("warn", "a new peer was not taken: it needs a restart", "peer", pc.Name, "error", err)
		return
	}
	p.bearer = b
	delete(g.away, p.ID)
	g.byID[p.ID] = p
	at, _ := slices.BinarySearchFunc(g.peers, p.ID, func(q *peer, id uint16) int { return cmp.Compare(q.ID, id) })
	g.peers = slices.Insert(g.peers, at, p)
	g.keys.Join(p.Peer)
	g.replica.Join(p.ID)
	g.part(now)
	judgeOwn(g, now) // the rules may keep some of it from this one
	g.Note("info", "a new peer", "peer", p.Name, "id", p.ID)
}

// leave takes a peer out. What waits for it ends as withdrawn, its site is lost, and nothing of it is heard any more.
func leave(g *Gateway, now time.Time, p *peer) {
	if p.bearer.carrier().Orders().Together() {
		g.Note("warn", "a peer was not taken out: it needs a restart", "peer", p.Name, "id", p.ID)
		return
	}
	waiting, underWay, _ := p.Box.Held(frame.Direct, frame.Bulk)
	newsWaiting, newsUnderWay, _ := p.Box.News()
	p.bearer.surveys.left(g, now, p)
	learned := p.Paths // for when it comes back in this run
	g.estrange(now, p, false)
	p.Paths = mail.NewPaths(netip.AddrPort{})
	p.bearer.lines.RecordPaths(p.Peer)
	p.Paths = learned
	unicast.Leave(now, p.bearer.lines, p.Peer, "the site was taken out of the configuration")
	for _, key := range g.replica.Leave(p.ID) {
		g.Record(bucketCopy, peerKey(p.ID, []byte(key)), nil)
	}
	p.far.clear()
	g.keys.Leave(p.ID)
	g.limited.lost(p.ID)
	delete(g.byID, p.ID)
	g.peers = slices.DeleteFunc(g.peers, func(is *peer) bool { return is == p })
	if g.away == nil {
		g.away = map[uint16]*peer{}
	}
	g.away[p.ID] = p
	p.link, p.differs, p.late = linkState{}, differs{}, foreseen{}
	g.siteLost(now, p.ID)
	g.TellFates(now)
	g.Note("info", "a peer was taken out: nothing goes there any more, and what waited for it is withdrawn", "peer", p.Name, "id", p.ID, "messages", waiting+underWay-newsWaiting-newsUnderWay)
}

// senderOf is the peer of a message that waits here for local peers, also one that was taken out; nil: there is none.
func senderOf(g *Gateway, token uint64) *peer {
	id := uint16(token >> 48)
	if p := g.byID[id]; p != nil {
		return p
	}
	return g.away[id]
}

// newPeer is a sister gateway of which nothing is known yet, and no bearer.
func newPeer(g *Gateway, pc PeerConfig) *peer {
	p := &peer{Peer: mail.NewPeer(pc.ID, pc.Name, pc.Addr, g, g.cfg.Profile.Transport == profile.PMul)}
	p.far = newFarCopy(p.ID, g)
	p.ends = newEndings(p, g)
	return p
}

// leftBehind are the ids of peers that are not configured, and of which records of the journal tell.
func leftBehind(records []api.Record, known map[uint16]*peer) (ids []uint16) {
	for _, r := range records {
		switch r.Bucket {
		case keys.BucketSeal, bucketCopy, bucketFar, bucketStored, "peer", "to", "path", "first", "early", "cut", "piece", "flow", "inflow", "before":
			if len(r.Key) >= 2 {
				if id := binary.BigEndian.Uint16(r.Key); known[id] == nil {
					ids = append(ids, id)
				}
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
