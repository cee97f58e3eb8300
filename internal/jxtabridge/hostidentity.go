package jxtabridge

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
)

// A welcome line and the path of a poll name a peer and prove nothing. Only a connection with standing gets messages
// for the peer, and only its messages count as the peer's (docs/decisions/who-is-who.md):
//
//   - A peer whose id is made of a certificate, and that has been seen to sign with it, is known by its signature. A
//     connection has standing when such a signature came over it.
//   - For others the first address counts. A connection from a second address has standing when the first is closed,
//     or when the first does not answer a question in time. Meanwhile messages from and to both wait, and none is lost.
//
// The second rule also holds for peers that sign: two machines with one key are still two. It does not hold where a peer that
// has signed connects by another machine of this site: unmodified peers connect to each of their seeds.
const (
	answerWithin = 5 * time.Second  // time for the first address to answer a question of the gateway
	askAgain     = 10 * time.Second // least time between two questions to the first address about the same second one
	sayAgain     = time.Hour        // least time between two log lines about the same two addresses
	proveFirst   = 5 * time.Second  // after which a connection without a proof is asked again
	proveMost    = time.Minute
	maxSeconds   = 16 // second addresses of a peer that are remembered
	maxOutside   = 32 // connections of a peer without standing

	// Most octets of messages that are kept for connections without standing while the gateway finds out: of one, of all together.
	maxHeard, maxHeardAll = 128 << 10, 8 << 20
)

var (
	errUnsigned = errors.New("this peer signs with the key that its id is made of, and the message is not signed")
	errSigner   = errors.New("the peer id is made of another certificate than the one that signs")
)

// hostIdentity decides which connections speak for a peer.
type hostIdentity struct {
	*step
	outlets *outlets
	ghosts  *ghosts
	leases  *leases
	streams *streams
	secure  *secure
	handle  func(c *conn, body []byte) // for messages that came before the connection had standing
	open    []*peer                    // peers with connections without standing, in order
	heard   int                        // octets
}

// standing is the right of a connection to speak for its peer, and the state on the way to it.
type standing struct {
	line   jxta.Welcome
	stands bool
	proven bool     // a signature came over it, made with the key that the peer's id is made of
	waits  bool     // the first address has been asked on its behalf
	heard  [][]byte // messages meanwhile
	size   int      // of heard
}

// identity is what the gateway knows of a peer's identity.
type identity struct {
	signs   bool    // its id is made of a certificate with which it has signed
	host    string  // address from which it was here last
	outside []*conn // without standing, oldest first
	until   time.Time
	prove   time.Time // when connections that have proven nothing are asked next; zero: there are none
	proofs  int       // how often they were asked
	seconds map[string]second
	left    time.Time // when its last connection went
}

// second is another address at which a peer's id was seen.
type second struct{ until, said time.Time }

// hostOf is the address without its port.
func hostOf(remote string) string {
	if at, err := netip.ParseAddrPort(remote); err == nil {
		return at.Addr().Unmap().WithZone("").String()
	}
	if i := strings.LastIndexByte(remote, ':'); i >= 0 {
		return remote[:i]
	}
	return remote
}

// arrived finds out whether a connection that names a peer has standing.
func (w *hostIdentity) arrived(c *conn, line jxta.Welcome) {
	c.line = line
	if w.unproven(c) {
		w.putOutside(c)
		if len(c.peer.conns) == 0 {
			w.poke(c)
		}
		return
	}
	w.try(c)
}

// unproven reports whether a connection still has to show that it is the peer's.
func (w *hostIdentity) unproven(c *conn) bool {
	if !c.peer.identity.signs || c.proven {
		return false
	}
	// Over HTTP each message is a request of its own, so a proof on one poll of a peer holds for its other polls.
	kin := func(x *conn) bool {
		return x.proven && x.scheme == "http" && c.scheme == "http" && hostOf(x.remote) == hostOf(c.remote)
	}
	return !slices.ContainsFunc(c.peer.conns, kin) && !slices.ContainsFunc(c.peer.identity.outside, kin)
}

// try gives a connection standing if nothing speaks against it. Otherwise the first address is asked.
func (w *hostIdentity) try(c *conn) bool {
	p := c.peer
	host := hostOf(c.remote)
	switch {
	case len(p.conns) == 0:
	case hostOf(p.conns[0].remote) == host:
		w.answered(p) // the first address is there, and has connected again
	case c.proven && (slices.Contains(w.cfg.Beside, host) || slices.Contains(w.cfg.Beside, hostOf(p.conns[0].remote))):
		// One of both comes by another machine of the site, and has that machine's address.
	default:
		w.putOutside(c)
		if !w.now.Before(p.identity.seconds[host].until) {
			c.waits = true
			w.ask(p)
		}
		return false
	}
	w.admit(c)
	return true
}

// admit gives a connection standing.
func (w *hostIdentity) admit(c *conn) {
	p := c.peer
	w.takeInside(c)
	c.stands, c.waits = true, false
	p.identity.host = hostOf(c.remote)
	w.outlets.arrivals.redialled(p)
	p.conns = append(p.conns, c)
	w.outlets.learnAddress(c, c.line)
	if len(p.leases) == 0 && p.nudge.IsZero() {
		p.nudge = w.now.Add(firstNudge)
		w.outlets.peerAt(p, p.nudge)
	}
	if a, err := jxta.ParseAddress(c.line.Dest); err == nil {
		if _, service, param := jxta.Demangle(a.Service, a.Param); serviceIs(service, jxta.ClassRelay) {
			w.leases.relayRequest(c, param, true) // the request is part of the address dialled (wire 10)
		}
	}
	w.outlets.pump(p)
	w.streams.talks.edgeIsBack(p)
	w.secure.talks.edgeIsBack(p)
	heard := w.forget(c)
	for _, body := range heard {
		w.handle(c, body)
	}
}

// believes reports whether a message comes from the peer that its connection names. maker is the id that the certificate of
// its trailer makes; "" if it has no trailer.
func (w *hostIdentity) believes(c *conn, maker string, body []byte) bool {
	p := c.peer
	switch {
	case maker == c.unique:
		w.prove(c)
	case maker != "" && strings.HasPrefix(c.unique, "cbid-"):
		w.complain(c, "signer", errSigner)
		return false
	case p.identity.signs:
		w.complain(c, "unsigned", errUnsigned)
		return false
	}
	if c.stands {
		w.answered(p)
		return true
	}
	if !c.waits && w.try(c) {
		return true
	}
	if c.waits && c.size+len(body) <= maxHeard && w.heard+len(body) <= maxHeardAll {
		c.heard = append(c.heard, slices.Clone(body))
		c.size += len(body)
		w.heard += len(body)
	} else {
		w.stats.Refused["second_address"]++
	}
	return false
}

// prove takes in that a signature came over a connection, made with the key that the peer's id is made of.
func (w *hostIdentity) prove(c *conn) {
	p := c.peer
	first := !c.proven
	c.proven = true
	if !p.identity.signs {
		p.identity.signs = true
		w.outlets.rememberPeer(p)
		for _, x := range slices.Clone(p.conns) {
			if !w.unproven(x) {
				continue
			}
			if hostOf(x.remote) != hostOf(c.remote) { // x has spoken in the name of another peer
				w.complain(x, "unsigned", errUnsigned)
			}
			w.dismiss(x)
		}
		if len(p.conns) == 0 { // no connection is left that could answer
			p.identity.until = time.Time{}
			for _, x := range p.identity.outside {
				x.waits = false
				w.forget(x)
			}
		}
	}
	if !first || c.scheme != "http" {
		return
	}
	for _, x := range slices.Clone(p.identity.outside) {
		if x != c && !x.waits && !w.unproven(x) {
			w.try(x)
		}
	}
}

// dismiss takes a connection's standing away. Messages that it has not written go out on another.
func (w *hostIdentity) dismiss(c *conn) {
	p := c.peer
	c.stands = false
	p.conns = slices.DeleteFunc(p.conns, func(x *conn) bool { return x == c })
	p.unwritten(c)
	w.outlets.unfeed(c)
	w.putOutside(c)
}

func (w *hostIdentity) putOutside(c *conn) {
	p := c.peer
	if slices.Contains(p.identity.outside, c) {
		return
	}
	if len(p.identity.outside) >= maxOutside {
		w.thin(p)
	}
	p.identity.outside = append(p.identity.outside, c)
	w.watch(p)
	if w.unproven(c) && p.identity.prove.IsZero() && len(p.conns) == 0 {
		p.identity.proofs, p.identity.prove = 0, w.now.Add(proveFirst)
		w.until(p.identity.prove)
	}
}

// thin closes the oldest of a peer's connections without standing, of the address that has most of them. Those of the
// address where the peer was last are spared.
func (w *hostIdentity) thin(p *peer) {
	of := map[string]int{}
	for _, c := range p.identity.outside {
		of[hostOf(c.remote)]++
	}
	delete(of, p.identity.host)
	victim := p.identity.outside[0]
	for _, c := range p.identity.outside {
		if of[hostOf(c.remote)] > of[hostOf(victim.remote)] {
			victim = c
		}
	}
	w.stats.Refused["second_address"]++
	w.expel(victim)
}

// expel ends a connection without standing.
func (w *hostIdentity) expel(c *conn) {
	w.forget(c)
	w.takeInside(c)
	c.peer = nil
	w.post(Close{c.id})
}

func (w *hostIdentity) takeInside(c *conn) {
	p := c.peer
	p.identity.outside = slices.DeleteFunc(p.identity.outside, func(x *conn) bool { return x == c })
	w.unwatch(p)
}

func (w *hostIdentity) watch(p *peer) {
	if _, there := slices.BinarySearchFunc(w.open, p.id, byID); !there {
		w.open = insertPeer(w.open, p)
	}
}

func (w *hostIdentity) unwatch(p *peer) {
	if len(p.identity.outside) == 0 {
		p.identity.prove = time.Time{}
		w.open = deletePeer(w.open, p)
	}
}

// forget gives up the messages kept for a connection without standing.
func (w *hostIdentity) forget(c *conn) [][]byte {
	heard := c.heard
	w.heard -= c.size
	c.heard, c.size = nil, 0
	return heard
}

// contested reports whether the gateway is finding out where the peer is. Messages for it wait.
func (p *peer) contested() bool { return !p.identity.until.IsZero() }

// ask asks the first address to show that it is there.
func (w *hostIdentity) ask(p *peer) {
	if p.contested() {
		return
	}
	p.identity.until = w.now.Add(answerWithin)
	w.until(p.identity.until)
	if c := p.newest(); c != nil {
		w.poke(c)
	}
}

// poke asks a connection for the peer's own advertisement, which every JXTA peer answers (wire 7). The question discloses nothing.
func (w *hostIdentity) poke(c *conn) {
	if c.quiet {
		return
	}
	w.token++
	q := jxta.DiscoveryQuery{Type: jxta.TypePeer, Attr: "PID", Value: jxta.URN(c.unique), Threshold: 1}
	rq := jxta.ResolverQuery{Handler: jxta.HandlerDiscovery, QueryID: int(w.token & 0x7fffffff), Src: w.me,
		Route: w.ghosts.ownRoute(), Query: string(q.Append(nil))}
	m := w.ghosts.routedHere(c.peer, jxta.NetGroup, jxta.URN(jxta.ClassResolver), jxta.NetGroup+"ORes",
		[]jxta.Element{xmlElement(jxta.NetGroup+"ORes", rq.Append(nil))})
	m.size = sizeOf(m.elements)
	w.outlets.transmit(c, m, false)
}

// answered ends the question: the first address is there, and others get nothing.
func (w *hostIdentity) answered(p *peer) {
	if !p.contested() {
		return
	}
	p.identity.until = time.Time{}
	for _, c := range p.identity.outside {
		if !c.waits {
			continue
		}
		c.waits = false
		w.stats.Refused["second_address"] += uint64(max(1, len(w.forget(c))))
		w.deny(p, c)
	}
	w.outlets.pump(p)
}

// deny remembers a second address and names it in the log.
func (w *hostIdentity) deny(p *peer, c *conn) {
	host := hostOf(c.remote)
	if p.identity.seconds == nil || len(p.identity.seconds) >= maxSeconds {
		p.identity.seconds = map[string]second{}
	}
	s := p.identity.seconds[host]
	s.until = w.now.Add(askAgain)
	if s.said.IsZero() || !w.now.Before(s.said.Add(sayAgain)) {
		s.said = w.now
		w.note("warn", "a JXTA peer id is used at two addresses; the second gets nothing while the first answers", "peer", p.id,
			"first", p.conns[0].remote, "second", c.remote, "way_out", "if two machines share a copied JXTA home, delete it on one of them: it makes a new id")
	}
	p.identity.seconds[host] = s
}

// moved ends the question: the first address has not answered.
func (w *hostIdentity) moved(p *peer) {
	p.identity.until = time.Time{}
	w.note("info", "a JXTA peer has moved to another address; the first no longer answers", "peer", p.id, "first", p.conns[0].remote)
	for _, c := range slices.Clone(p.conns) {
		w.dismiss(c)
		w.expel(c)
	}
	w.heir(p)
}

// heir gives standing to the connection that has waited longest.
func (w *hostIdentity) heir(p *peer) {
	for _, c := range slices.Clone(p.identity.outside) {
		if !w.unproven(c) && (c.waits || len(p.conns) == 0) {
			c.waits = false
			w.try(c)
		}
	}
	w.outlets.pump(p)
}

// left forgets a connection that has closed and is not among those with standing any more.
func (w *hostIdentity) left(c *conn) {
	p := c.peer
	w.forget(c)
	w.takeInside(c)
	waits := slices.ContainsFunc(p.identity.outside, func(x *conn) bool { return x.waits })
	switch {
	case len(p.conns) == 0:
		if c.stands {
			p.identity.left = w.now
		}
		p.identity.until, p.identity.proofs = time.Time{}, 0
		w.heir(p)
		w.press(p)
	case !waits && p.contested():
		p.identity.until = time.Time{}
		w.outlets.pump(p)
	}
}

// sweep ends waits whose time is over.
func (w *hostIdentity) sweep() {
	for _, p := range slices.Clone(w.open) {
		if p.contested() && due.Reached(w.now, p.identity.until) && len(p.conns) > 0 {
			w.moved(p)
		}
		if due.Reached(w.now, p.identity.prove) {
			w.press(p)
		}
	}
}

// press asks the connections that have proven nothing for a sign, as long as no other serves the peer.
func (w *hostIdentity) press(p *peer) {
	p.identity.prove = time.Time{}
	if len(p.conns) > 0 {
		return
	}
	for _, c := range p.identity.outside {
		if w.unproven(c) {
			w.poke(c)
			p.identity.prove = w.now.Add(min(proveFirst<<min(p.identity.proofs, 8), proveMost))
			w.until(p.identity.prove)
		}
	}
	p.identity.proofs++
}

func (w *hostIdentity) rearm() {
	for _, p := range w.open {
		w.until(p.identity.until)
		w.until(p.identity.prove)
	}
}

// room makes room for a peer that was not here before. It returns why there is none; "" if there is.
func (w *hostIdentity) room(c *conn) (reason string) {
	host := hostOf(c.remote)
	away := 0
	for _, p := range w.outlets.sortedPeers() {
		if p.identity.host == host && p.away() {
			away++
		}
	}
	if away >= w.cfg.MaxAway && !w.evict(host) {
		return "peers_per_address"
	}
	if len(w.outlets.peers) >= w.cfg.MaxPeers && !w.evict("") {
		return "peers"
	}
	return ""
}

// away reports whether no connection names the peer.
func (p *peer) away() bool { return len(p.conns) == 0 && len(p.identity.outside) == 0 }

// evict forgets the peer that has been away longest, among those of one address or, with host "", among all. It spares a peer for
// which a message of another site waits.
func (w *hostIdentity) evict(host string) bool {
	var victim *peer
	for _, p := range w.outlets.sortedPeers() {
		switch {
		case host != "" && p.identity.host != host, !p.away():
		case victim != nil && !p.identity.left.Before(victim.identity.left):
		case slices.ContainsFunc(p.queue, func(m *message) bool { return m.delivery != nil }):
		default:
			victim = p
		}
	}
	if victim == nil {
		return false
	}
	w.stats.Refused["evicted"]++
	w.leases.endAll(victim)
	return true
}
