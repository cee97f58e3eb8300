package jxtabridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
)

// Multicast is one more way into the gateway (wire 2.7): a peer sends a message there to everybody. A peer with a lease and a connection
// also sends all such messages over its connection, so its datagrams are copies, true or forged, and are dropped.
// Others are strangers: they are answered by multicast, within a rate, and their messages are taken in within bounds.

// Shout is one multicast datagram to send: a message of Message octets and its trailer.
type Shout struct {
	Body    []byte
	Message int
}

const (
	elHeaderSrc = "EndpointHeaderSrcPeer" // peer URN of the sender of a datagram
	worldGroup  = "jxta-WorldGroup"

	strangerStays = 5 * time.Minute // after its last datagram
	maxStrangers  = 256
	everyStranger = "strangers" // all strangers count as one peer: ids by multicast cost nothing
	maxOverheard  = 1024        // message ids heard by multicast; adverts taken from strangers
	// Datagrams a second, and at once. JXTA peers ask every 15 s; fifty that start together get their answers within 2 s.
	shoutRate, shoutBurst         = 20, 40
	strangerRate, strangerBurst   = 5, 20 // of these, answers to one stranger
	strangerCarries, carriesBurst = 5, 20 // messages and advertisements of strangers that may cross the link, a second
)

// multicast is the gateway's side of multicast.
type multicast struct {
	*step
	outlets   *outlets
	ghosts    *ghosts
	conn      *conn // for complaints
	strangers map[string]*stranger
	seen      *due.Recent[string] // propagation MessageIds, wire MsgIds, index values asked for
	overheard *due.Recent[string]
	adverts   map[string]bool // items taken from strangers
	shouts    due.Bucket
	carries   due.Bucket
}

// stranger is a peer that was heard by multicast and has no lease.
type stranger struct {
	groups map[string]time.Time // last datagram
	shouts due.Bucket
}

func newEther(s *step, o *outlets, g *ghosts) *multicast {
	return &multicast{step: s, outlets: o, ghosts: g, conn: &conn{scheme: "mcast"}, strangers: map[string]*stranger{},
		seen: due.NewRecent[string](8192), overheard: due.NewRecent[string](maxOverheard), adverts: map[string]bool{}}
}

func (b *Bridge) heard(ev Heard) {
	if b.cfg.Multicast == "" {
		return
	}
	b.stats.MulticastHeard++
	c := b.multicast.conn
	c.remote, c.unique, c.peer = ev.Remote, "", nil
	m, rest, err := jxta.ParseMessage(ev.Body, jxta.DefaultLimits)
	if err != nil {
		b.stats.BadMessages++
		b.complain(c, "multicast_message", err)
		return
	}
	src, err := emitter(m)
	if err != nil {
		b.complain(c, "multicast_source", err)
		return
	}
	if src == b.me {
		return // our own
	}
	c.unique = src
	known := b.outlets.peers[src]
	if err := authentic(src, known, ev.Body[:len(ev.Body)-len(rest)], rest); err != nil {
		b.complain(c, "multicast_forged", err)
		return
	}
	if m.Find("jxta", elRouter) != nil { // no datagram has one; the sender of this one pretends to be another peer
		b.complain(c, "multicast_forged", errForeign)
		return
	}
	c.peer = &peer{id: src, stranger: true}
	in, err := b.open(c, m)
	if err != nil {
		b.complain(c, "multicast_address", err)
		return
	}
	switch {
	case in.param == worldGroup: // for the platform below the net peer group: a gateway has nothing to do there
	case known != nil && len(known.conns) > 0 && known.leases[in.group] != nil:
		b.stats.MulticastCopies++
	case !b.multicast.meet(src, in.group):
		b.stats.Refused["multicast_strangers"]++
	case in.service == svcPeerView:
		b.leases.peerView(in)
	case in.service == svcPropagate:
		b.propagated(in)
	default:
		b.stats.Refused["multicast_service"]++
	}
}

// emitter is the peer that claims to have sent a datagram.
func emitter(m jxta.Message) (string, error) {
	e := m.Find("jxta", elHeaderSrc)
	if e == nil {
		return "", &jxta.ParseError{What: "datagram", Field: elHeaderSrc, Err: jxta.ErrMissing}
	}
	src, err := jxta.ParseURN(strings.TrimSpace(string(e.Data)))
	if err == nil && jxta.IDKind(src) != jxta.KindPeer {
		err = &jxta.ParseError{What: "datagram", Field: elHeaderSrc, Err: jxta.ErrMismatch}
	}
	return src, err
}

// authentic makes the possible checks: a trailer must be the claimed peer's, and an id that is made of a certificate
// must be made of this one (wire 1.3, 2.5); a peer that signs over TCP must sign here, too.
func authentic(src string, known *peer, message, trailer []byte) error {
	if len(trailer) == 0 {
		if known != nil && (known.identity.signs || known.known && known.signed) {
			return &jxta.ParseError{What: "datagram", Field: "trailer", Err: jxta.ErrMissing}
		}
		return nil
	}
	t, err := jxta.ParseTrailer(trailer)
	if err == nil {
		err = t.Verify(message)
	}
	if err != nil {
		return err
	}
	if t.Source != jxta.URN(src) {
		return errForeign
	}
	if made, err := jxta.CertPeer(t.Cert); err != nil || strings.HasPrefix(src, "cbid-") && made != src {
		return errForeign
	}
	return nil
}

// meet notes that a stranger is there; false: there are too many strangers.
func (eth *multicast) meet(id, group string) bool {
	s := eth.strangers[id]
	if s == nil {
		if len(eth.strangers) >= maxStrangers {
			maps.DeleteFunc(eth.strangers, func(_ string, s *stranger) bool { return !s.in("", eth.now) })
		}
		if len(eth.strangers) >= maxStrangers {
			return false
		}
		s = &stranger{groups: map[string]time.Time{}}
		eth.strangers[id] = s
	}
	if _, ok := s.groups[group]; !ok && len(s.groups) >= eth.cfg.MaxGroups {
		clear(s.groups)
	}
	s.groups[group] = eth.now
	return true
}

// in reports whether the stranger was heard lately in a group, or in any when group is "".
func (s *stranger) in(group string, now time.Time) bool {
	for g, at := range s.groups {
		if (group == "" || g == group) && now.Before(at.Add(strangerStays)) {
			return true
		}
	}
	return false
}

// listened reports whether a propagated message of a group has to go out by multicast too: some peer there has no lease.
func (eth *multicast) listened(group string) bool {
	for id, s := range eth.strangers {
		if p := eth.outlets.peers[id]; s.in(group, eth.now) && (p == nil || p.leases[group] == nil) {
			return true
		}
	}
	return false
}

// fresh reports whether a propagated message is new. If it came by multicast and over a connection of the same
// peer, it is one message; a stranger that uses another peer's name cannot make that peer's message look old.
func (eth *multicast) fresh(from *peer, key string) bool {
	if eth.cfg.Multicast == "" {
		return eth.seen.Add(key)
	}
	if from.stranger {
		return !eth.seen.Has(key) && eth.overheard.Add(from.id+" "+key)
	}
	return eth.seen.Add(key) && !eth.overheard.Has(from.id+" "+key)
}

// mayCarry reports whether a message of this peer may cross the link: the air is not a stranger's to spend.
func (eth *multicast) mayCarry(from *peer) bool {
	if !from.stranger || eth.carries.Allow(eth.now, strangerCarries, carriesBurst) {
		return true
	}
	eth.stats.Refused["multicast_rate"]++
	return false
}

// mayPublish reports whether an advertisement of this peer is taken in. A stranger's is taken in unless a peer that is no
// stranger has one with its key.
func (eth *multicast) mayPublish(from *peer, key string, there bool) bool {
	own := eth.adverts[key]
	if !from.stranger {
		delete(eth.adverts, key)
		return true
	}
	if there && !own || !own && len(eth.adverts) >= maxOverheard {
		eth.stats.Refused["multicast_state"]++
		return false
	}
	if !eth.mayCarry(from) {
		return false
	}
	eth.adverts[key] = true
	return true
}

// shoutAnswer sends an answer to a stranger by multicast, within the stranger's share.
func (eth *multicast) shoutAnswer(to, group, service, param string, elements []jxta.Element) {
	s := eth.strangers[to]
	if s == nil || !s.shouts.Allow(eth.now, strangerRate, strangerBurst) {
		eth.stats.MulticastWithheld++
		return
	}
	eth.shout(group, service, param, elements)
}

// respond sends a resolver response to a local peer, from the gateway or as a ghost.
func (eth *multicast) respond(p *peer, src, group string, r jxta.ResolverResponse) {
	if p.stranger {
		eth.shoutResponse(p.id, group, r)
		return
	}
	e := []jxta.Element{xmlElement(group+"IRes", r.Append(nil))}
	eth.outlets.enqueue(p, eth.ghosts.routed(p, src, group, jxta.URN(jxta.ClassResolver), group+"IRes", e))
}

// shoutResponse is respond by multicast: a propagated message, in the way in which a peer without a rendezvous publishes remotely.
func (eth *multicast) shoutResponse(to, group string, r jxta.ResolverResponse) {
	h := eth.ownHeader(jxta.URN(jxta.ClassResolver), group+"IRes")
	eth.shoutAnswer(to, group, svcPropagate, group, []jxta.Element{
		xmlElement(group+"IRes", r.Append(nil)), xmlElement(elPropagate+group, h.Append(nil))})
}

// ownHeader is the propagation header of a message that the gateway itself starts.
func (eth *multicast) ownHeader(service, param string) jxta.Propagate {
	eth.token++
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(eth.now.Unix()), eth.token&0xffffffffffff)
	return jxta.Propagate{MessageID: id, Service: service, Param: param, TTL: 1, Path: []string{eth.me}}
}

// shout writes a datagram in the form that all generations read: signed, because some demand it, with the length
// of the message without the trailer, so that the others stop before the trailer (wire 2.7).
func (eth *multicast) shout(group, service, param string, elements []jxta.Element) {
	if eth.cfg.Multicast == "" {
		return
	}
	if !eth.shouts.Allow(eth.now, shoutRate, shoutBurst) {
		eth.stats.MulticastWithheld++
		return
	}
	service, param = jxta.Mangle(group, service, param)
	dest := jxta.Address{Scheme: "mcast", Host: eth.cfg.Multicast, Service: service, Param: param}
	m := jxta.Message{Elements: append(slices.Clip(elements), text(elHeaderSrc, jxta.URN(eth.me)),
		text(elSource, jxta.PeerAddress(eth.me)), text(elDestination, dest.String()))}
	body, err := jxta.AppendMessage(nil, m)
	size := len(body)
	if err == nil {
		body, err = jxta.SignMessage(body, eth.cfg.Identity.Key, eth.cfg.Identity.Cert, jxta.URN(eth.me))
	}
	if err != nil || len(body)+128 > jxta.MaxDatagram {
		eth.stats.MulticastWithheld++
		return
	}
	eth.stats.MulticastSent++
	eth.post(Shout{body, size})
}
