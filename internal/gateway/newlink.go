package gateway

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/forecast"
	"aldis/internal/gateway/keys"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/link/frame"
)

// roll is how orders of this run have changed the peers.
type roll struct {
	replaced uint64   // how often orders have replaced the peers
	serial   uint32   // of the roster whose peers are taken in
	left     []uint16 // ids of peers that are no longer configured, but have records in the journal
	// away are peers that an order of this run has taken out. Their numbers are kept, and so are the tokens of their messages, which
	// may wait for local peers: a peer may come back.
	away map[uint16]*peer
}

// newLink takes those changes to the link that are possible while it works.
func (g *Gateway) newLink(now time.Time, e NewLink) {
	for _, p := range slices.Clone(g.peers) {
		if !p.Enrolled && !slices.ContainsFunc(e.Peers, func(pc PeerConfig) bool { return pc.ID == p.ID }) && !enrolls(g, p) {
			g.leave(now, p)
		}
	}
	for _, pc := range e.Peers {
		switch p := g.byID[pc.ID]; {
		case p != nil:
			rename(g, p, pc.Name)
			p.Link.Readdress(pc.Addr)
			p.via = pc.Via
			if p.Ashore = pc.Shore; p.Ashore && p.Handshake.Unmet {
				p.Handshake.Owe(now)
			}
		case pc.ID == 0 || pc.ID == g.cfg.ID || slices.Contains(g.roll.left, pc.ID): // the journal has records of one with this id
			g.Note("warn", "a new peer was not added; restart the gateway to add it", "id", pc.ID)
		default:
			g.join(now, pc, e.reached(pc))
		}
	}
	g.bearers[0].Profile.Tariff, g.bearers[0].Keepalive = e.Tariff, e.Keepalive
	all := []*silence{&g.silence}
	for _, b := range g.bearers {
		if b.silence.name != "" {
			all = append(all, b.silence)
		}
	}
	for _, s := range all {
		if list := e.Windows.On(s.name); !slices.Equal(s.list, list) {
			s.set(list, s.wall(now))
		}
	}
	g.roll.replaced++
}

func rename(g *Gateway, p *peer, name string) {
	if p.Name != name {
		g.Note("info", "a peer has another name", "id", p.ID, "name", name, "before", p.Name)
		p.Name = name
	}
}

// join adds a new peer, of which nothing is known. on has its addresses on the bearers that reach it, by their place in the list.
func (g *Gateway) join(now time.Time, pc PeerConfig, on map[int]netip.AddrPort) {
	p := g.roll.away[pc.ID]
	if p == nil {
		p = newPeer(pc, g.bearers[0], &g.mail.Lives, len(g.bearers[0].Channels) > 0)
		for i, b := range g.bearers {
			addr, is := on[i]
			b.leg(p, addr, is || b.Relay != nil, len(b.Channels) > 0)
		}
	}
	p.Name, p.Ashore, p.via = pc.Name, pc.Shore, pc.Via
	for i, addr := range on {
		if p.legs[i] != nil {
			p.legs[i].Paths.Write(addr)
		}
	}
	for l := range legsTo(p) {
		l.bearer.lines.join(l)
		for _, c := range l.bearer.Members {
			if err := c.Join(now, l.Peer); err != nil {
				g.Note("warn", "a new peer was not added; restart the gateway to add it", "peer", pc.Name, "error", err)
				return
			}
		}
		l.bearer.keys.Join(l.Peer)
	}
	delete(g.roll.away, p.ID)
	g.byID[p.ID] = p
	at, _ := slices.BinarySearchFunc(g.peers, p.ID, func(q *peer, id uint16) int { return cmp.Compare(q.ID, id) })
	g.peers = slices.Insert(g.peers, at, p)
	g.replica.Join(p.ID)
	g.part(now)
	g.crossing.join(p.ID)
	g.crossing.judgeOwn(now) // the rules may keep some items from this peer
	g.Note("info", "a new peer", "peer", p.Name, "id", p.ID)
	tellJoined(g, now, p)
}

// leave takes a peer out. Messages that wait for it are cancelled, its site is lost, and the gateway no longer hears it.
func (g *Gateway) leave(now time.Time, p *peer) {
	waiting, underWay, _ := p.Box.Held(frame.Direct, frame.Bulk)
	newsWaiting, newsUnderWay, _ := p.Box.News()
	for l := range legsTo(p) {
		l.bearer.linkProbes.left(now, l)
	}
	learned := p.Paths // for when it comes back in this run
	g.estrange(now, p, false)
	p.Paths = mail.NewPaths(netip.AddrPort{})
	p.Link.RecordPaths()
	p.Paths = learned
	for l := range legsTo(p) {
		for _, c := range slices.Backward(l.bearer.Members) {
			c.Leave(now, l.Peer, "the site was taken out of the configuration")
		}
		l.bearer.keys.Leave(p.ID)
	}
	for _, key := range g.replica.Leave(p.ID) {
		g.Record(bucketCopy, peerKey(p.ID, []byte(key)), nil)
	}
	p.far.clear()
	g.crossing.leave(p.ID)
	delete(g.byID, p.ID)
	g.peers = slices.DeleteFunc(g.peers, func(is *peer) bool { return is == p })
	if g.roll.away == nil {
		g.roll.away = map[uint16]*peer{}
	}
	g.roll.away[p.ID] = p
	p.link, p.differs, p.late = linkState{}, differs{}, forecast.Late{}
	g.siteLost(now, p.ID)
	g.TellFates(now)
	g.Note("info", "a peer was removed; messages that waited for it were cancelled", "peer", p.Name, "id", p.ID, "messages", waiting+underWay-newsWaiting-newsUnderWay)
}

// reached are the addresses of a peer of the order, by the bearers that reach it.
func (e *NewLink) reached(pc PeerConfig) map[int]netip.AddrPort {
	on := map[int]netip.AddrPort{0: pc.Addr}
	for i, peers := range e.More {
		if addr, is := peers[pc.ID]; is {
			on[i+1] = addr
		}
	}
	return on
}

// known is the peer with this id, also one that was taken out; nil: there is none.
func (g *Gateway) known(id uint16) *peer {
	if p := g.byID[id]; p != nil {
		return p
	}
	return g.roll.away[id]
}

// newPeer is a sister gateway of which nothing is known yet, not even its bearers.
func newPeer(pc PeerConfig, b *bearer, lives *history.Lives, late bool) *peer {
	services := b.road.g
	p := &peer{leg: &leg{Peer: mail.NewPeer(pc.ID, pc.Name, pc.Addr, b.road, late)}}
	p.of = p
	p.Ashore, p.via, p.Later, p.Enrolled = pc.Shore, pc.Via, pc.later, pc.enrolled
	p.far = newFarCopy(p.ID, services)
	p.ends = newOutcomes(p.Peer, services, lives)
	p.ends.on = func(mark uint8) *mail.Peer {
		if l := p.at(mark); l != nil {
			return l.Peer
		}
		return nil
	}
	return p
}

// leftBehind are the ids of peers that are not configured, but have records in the journal.
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
