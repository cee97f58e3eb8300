package jxtabridge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/site"
)

// The reliability layer under JxtaUnicastSecure (TLS over the endpoint, ghosts 7) ends here between a peer of this site
// and one of another, as that of streams does (reliable.go): a block is acknowledged at once in the far peer's name,
// crosses once, and is delivered with its own number, repeats being this gateway's business. Two peers have one TLS
// connection at a time for all their secure pipes, so that the pair is the key. What is inside a block is theirs.
const (
	svcTLS       = "jxtatls" // of payloads between bridges; no peer has a service of that name
	svcTransport = "TlsTransport"
	nsTLS        = "jxtatls"
	tlsAck       = "TLSACK"
	mimeTLSBlock = "application/x-jxta-tls-block"
	mimeTLSAck   = "application/x-jxta-tls-ack"
)

const (
	tlsBlock   = 64 << 10 // most octets of a block; a TLS record has 16 KiB and a little
	tlsReorder = 32       // blocks beyond a gap that are kept
	tlsAhead   = 1024     // a number further ahead is no gap but a mistake
	tlsWindow  = 16       // blocks towards the edge without an acknowledgement
	tlsQueue   = 4 << 20  // octets that wait for one edge
	tlsForget  = time.Hour
	tlsGiveUp  = 5 * time.Minute // JXSE closes a connection that acknowledges nothing for four
)

// tlsKey is a local and a far peer.
type tlsKey struct{ local, remote string }

func (k tlsKey) memory() string { return memTLS + k.local + "/" + k.remote }

const (
	memTLS       = "tls/"
	tlsMemVoid   = 1
	tlsMemServer = 2
)

// tlsID tells one connection of a pair from the next on the link: the beginning of its first block's hash.
type tlsID [3]byte

// tlsPair is what is known of the blocks of two peers; "up" is from the edge to the link.
type tlsPair struct {
	tlsKey
	group, param string
	used         time.Time

	// up
	first   [8]byte // hash of the first block; zero: none yet
	base    uint32  // number before the first block that was seen: 0 but for a connection older than our memory
	recv    uint32  // highest block that was taken, all before it too
	early   map[uint32][]byte
	waiting int // octets and blocks that the far site does not have yet
	blocks  int

	// down
	id     tlsID
	before [4]tlsID // connections before
	void   bool     // what still comes of id is dropped
	server bool     // the far peer has opened it: the edge answers
	acked  uint32
	sent   uint32
	queue  map[uint32]*downward // beyond acked
	octets int
	extra  uint32 // let through beyond the window: 2.7 does not answer a repeat that it has already
	rto    time.Duration
	due    time.Time // of the next repeat
	stuck  time.Time // since when the edge has acknowledged nothing that it was sent

	tlsCross
}

type tlsCarrying struct {
	pair   tlsKey
	octets int
}

// tlsState is the bridge's part for secure pipes.
type tlsState struct {
	tlsPairs    map[tlsKey]*tlsPair
	tlsCarrying map[uint64]tlsCarrying
	tlsWake     time.Time // when the first pair has something to do
}

func newTLSState() tlsState {
	return tlsState{tlsPairs: map[tlsKey]*tlsPair{}, tlsCarrying: map[uint64]tlsCarrying{}}
}

// tls takes blocks and acknowledgements of secure pipes out of the traffic to a ghost; it reports whether it did.
func (b *Bridge) tls(in inbound, far uint16) bool {
	if in.service != svcTransport {
		return false
	}
	known := false
	for i := range in.elements {
		e := &in.elements[i]
		switch {
		case e.Namespace != nsTLS:
		case e.Name == tlsAck:
			known = true
			b.tlsAcked(in, e.Data)
		case e.Type == mimeTLSBlock:
			known = true
			b.tlsBlock(in, far, e)
		} // "MARKRetr" only marks a repeated block
	}
	if !known {
		b.complain(in.conn, "tls_block", nil)
	}
	return true
}

// tlsPair finds or makes what is kept of a pair; nil: too many.
func (b *Bridge) tlsPair(k tlsKey, group, param string) *tlsPair {
	t := b.tlsPairs[k]
	if t == nil {
		if own, all := b.tlsRoom(k.local); own >= max(1, b.cfg.MaxStreams/4) || all >= b.cfg.MaxStreams {
			return nil
		}
		t = &tlsPair{tlsKey: k, queue: map[uint32]*downward{}, rto: streamRTO}
		b.tlsPairs[k] = t
	}
	t.group, t.param, t.used = group, param, b.now
	b.tlsAt(b.now.Add(tlsForget))
	return t
}

// tlsRoom counts pairs, those of one peer and all.
func (b *Bridge) tlsRoom(local string) (own, all int) {
	for k := range b.tlsPairs {
		if k.local == local {
			own++
		}
	}
	return own, len(b.tlsPairs)
}

// tlsBlock takes a block of the edge: in order, once, acknowledged at once, and given to the gateway in the same Step.
func (b *Bridge) tlsBlock(in inbound, far uint16, e *jxta.Element) {
	n64, err := strconv.ParseUint(e.Name, 10, 31)
	n := uint32(n64)
	if err == nil && (n == 0 || len(e.Data) == 0 || len(e.Data) > tlsBlock) {
		err = errJump
	}
	if err != nil {
		b.complain(in.conn, "tls_block", err)
		return
	}
	t := b.tlsPair(tlsKey{in.from.id, in.dest}, in.group, in.param)
	if t == nil {
		b.complain(in.conn, "tls_pairs", errStreams)
		return
	}
	sum := sha256.Sum256(e.Data)
	first := [8]byte(sum[:8])
	begins := t.first == [8]byte{} || n == 1 && (first != t.first || t.base > 0)
	switch {
	case begins:
	case n > t.recv+tlsAhead:
		b.complain(in.conn, "tls_block", errJump)
		return
	case n <= t.recv || t.early[n] != nil:
		b.stats.SecureDuplicates++
		if n <= t.recv {
			b.tlsAcknowledge(t)
		}
		return
	}
	if t.waiting >= b.cfg.StreamOctets || t.blocks >= b.cfg.StreamBlocks {
		b.stats.Refused["tls_full"]++ // not acknowledged: the edge keeps it and sends it again
		return
	}
	if begins {
		if !b.mayOpen(site.Out, far, in.group, in.from.id, in.param) {
			b.stats.Refused["tls_filter"]++
			return
		}
		t.first, t.base, t.recv, t.early = first, n-1, n-1, nil
		b.stats.SecureConnections++
		hello := n == 1 && clientHello(e.Data)
		// What is left of the connection before would garble the new one; but when both open at once, each has to see that.
		if hello && (!t.server || t.acked > 1) {
			b.tlsVoid(t)
		}
		b.tlsBegins(t, hello)
	}
	if n > t.recv+1 {
		if len(t.early) >= tlsReorder {
			b.stats.Refused["tls_full"]++
			return
		}
		if t.early == nil {
			t.early = map[uint32][]byte{}
		}
		t.early[n] = slices.Clone(e.Data)
		return
	}
	b.tlsTake(t, far, e.Data)
	for data := t.early[t.recv+1]; data != nil; data = t.early[t.recv+1] {
		delete(t.early, t.recv+1)
		b.tlsTake(t, far, data)
	}
	b.rememberTLS(t)
	b.tlsAcknowledge(t)
}

// clientHello says whether a first block opens a connection, and does not answer one.
func clientHello(data []byte) bool { return len(data) > 5 && data[0] == 22 && data[5] == 1 }

// tlsTake gives the next block to the gateway: the connection, the number before its first block, the block's own, and
// the block.
func (b *Bridge) tlsTake(t *tlsPair, far uint16, block []byte) {
	t.recv++
	if t.mute {
		return
	}
	t.waiting += len(block)
	t.blocks++
	b.stats.SecureBlocks++
	data := append(make([]byte, 0, 16+len(block)), t.first[:len(tlsID{})]...)
	data = binary.AppendUvarint(data, uint64(t.base))
	data = append(binary.AppendUvarint(data, uint64(t.recv)), block...)
	b.carryToken++
	b.tlsCarrying[b.carryToken] = tlsCarrying{t.tlsKey, len(block)}
	b.stats.Carried++
	b.out.Carry = append(b.out.Carry, site.Carry{Sites: []uint16{far}, Message: site.Message{Scope: t.group, From: t.local, To: t.remote,
		Service: svcTLS, Param: t.param, Parts: []jxta.Element{{Namespace: nsTLS, Data: data}}, Token: b.carryToken}})
}

// tlsCarried: the far site has a block, or will never get it.
func (b *Bridge) tlsCarried(ev site.Fate) {
	c, ok := b.tlsCarrying[ev.Token]
	if !ok {
		return
	}
	delete(b.tlsCarrying, ev.Token)
	if ev.Refused {
		b.stats.Refused["tls_refused"]++
	}
	if t := b.tlsPairs[c.pair]; t != nil {
		t.waiting = max(0, t.waiting-c.octets)
		t.blocks = max(0, t.blocks-1)
	}
}

// tlsAcknowledge answers the edge as the ghost.
func (b *Bridge) tlsAcknowledge(t *tlsPair) {
	m := b.tlsMessage(t, jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: binary.BigEndian.AppendUint32(nil, t.recv)})
	if m != nil {
		m.confirms = true
		b.enqueue(b.peers[t.local], m)
	}
}

// tlsMessage is for the edge, from the ghost; nil: the edge is gone.
func (b *Bridge) tlsMessage(t *tlsPair, elements ...jxta.Element) *message {
	p := b.peers[t.local]
	if p == nil || len(p.leases) == 0 && len(p.conns) == 0 {
		return nil
	}
	m := b.routed(p, t.remote, t.group, svcTransport, t.param, elements)
	if p.leases[t.group] == nil && len(p.leases) > 0 {
		m.group = p.anyGroup()
	}
	return m
}

// farTLS takes a block of a far peer.
func (b *Bridge) farTLS(ev site.FarMessage) {
	pl := &ev.Message
	id, base, n, block, err := parseTLS(pl)
	p := b.peers[pl.To]
	refuse := ""
	var t *tlsPair
	switch {
	case err != nil:
		refuse = "tls_head"
	case p == nil || len(p.leases) == 0:
		b.stats.FarUndeliverable++
		refuse = "tls_no_peer"
	default:
		if t = b.tlsPair(tlsKey{pl.To, pl.From}, pl.Scope, pl.Param); t == nil {
			refuse = "tls_pairs"
		}
	}
	if t != nil && id != t.id {
		switch {
		case slices.Contains(t.before[:], id):
			refuse = "tls_late"
		case !b.mayOpen(site.In, ev.Site, pl.Scope, pl.From, pl.Param):
			refuse = "tls_filter"
		case b.tlsCrosses(t, id, n == 1 && clientHello(block)):
			refuse = "tls_crossed"
			b.rememberTLS(t)
		default:
			b.tlsVoid(t)
			t.past(t.id)
			t.id, t.void, t.server = id, false, false
			t.acked, t.sent = base, base
			b.rememberTLS(t)
		}
	}
	if refuse == "" {
		old := t.queue[n]
		switch {
		case old != nil && old.token == ev.Token:
			return // handed in again
		case t.void:
			refuse = "tls_late"
		case n <= t.acked || old != nil:
			b.stats.SecureDuplicates++
			b.out.Done = append(b.out.Done, ev.Token)
			return
		case n > t.acked+maxStreamBlocks || t.octets+len(block) > tlsQueue:
			refuse = "tls_full"
			b.tlsVoid(t) // without this block the connection is dead
		}
	}
	if refuse != "" {
		b.stats.Refused[refuse]++
		b.out.Done = append(b.out.Done, ev.Token)
		return
	}
	t.queue[n] = &downward{token: ev.Token, data: slices.Clone(block)}
	t.octets += len(block)
	t.server = t.server || n == 1 && clientHello(block)
	switch {
	case t.yielding && n == 1:
		t.stuck = b.now
		b.tlsYield(t)
	case !t.alert:
		b.tlsPump(t)
	}
}

func parseTLS(pl *site.Message) (id tlsID, base, n uint32, block []byte, err error) {
	if len(pl.Parts) != 1 || pl.Parts[0].Namespace != nsTLS || len(pl.Parts[0].Data) < len(id) {
		return id, 0, 0, nil, errStreamHead
	}
	rest := pl.Parts[0].Data[copy(id[:], pl.Parts[0].Data):]
	b64, w := binary.Uvarint(rest)
	if w <= 0 {
		return id, 0, 0, nil, errStreamHead
	}
	n64, w2 := binary.Uvarint(rest[w:])
	block = rest[w+max(w2, 0):]
	if w2 <= 0 || n64 > 1<<31-1 || b64 >= n64 || len(block) == 0 || len(block) > tlsBlock || id == (tlsID{}) {
		return id, 0, 0, nil, errStreamHead
	}
	return id, uint32(b64), uint32(n64), block, nil
}

// tlsVoid drops what is for the edge, and what still comes of the same connection.
func (b *Bridge) tlsVoid(t *tlsPair) {
	for _, n := range sortedNumbers(t.queue) {
		b.drop(t.queue[n])
	}
	clear(t.queue)
	t.void, t.octets, t.extra, t.rto, t.due = true, 0, 0, streamRTO, time.Time{}
	t.alert, t.yields = false, 0
}

// tlsPump sends the edge what its window allows, in order.
func (b *Bridge) tlsPump(t *tlsPair) {
	if t.sent == t.acked {
		t.rto, t.stuck = streamRTO, b.now
	}
	for t.sent < t.acked+tlsWindow+t.extra && t.queue[t.sent+1] != nil {
		t.sent++
		b.tlsSend(t, t.sent)
	}
	if t.due.IsZero() && t.sent > t.acked {
		t.due = b.now.Add(t.tlsAgain())
		b.tlsAt(t.due)
	}
}

func (b *Bridge) tlsSend(t *tlsPair, n uint32) {
	d := t.queue[n]
	if d == nil {
		return
	}
	elements := []jxta.Element{{Namespace: nsTLS, Name: strconv.FormatUint(uint64(n), 10), Type: mimeTLSBlock, Data: d.data}}
	if d.attempts++; d.attempts > 1 {
		b.stats.SecureRepeats++
		elements = append(elements, jxta.Element{Namespace: nsTLS, Name: "MARKRetr", Type: mimeText, Data: []byte("TLSRET")})
	}
	if m := b.tlsMessage(t, elements...); m != nil {
		b.enqueue(b.peers[t.local], m)
	}
}

// tlsAcked frees what the edge has. Its selective acknowledgements are of no use: what it has early it sorts itself.
func (b *Bridge) tlsAcked(in inbound, data []byte) {
	if len(data) < 4 || len(data)%4 != 0 {
		b.complain(in.conn, "tls_ack", nil)
		return
	}
	b.stats.SecureAcks++
	t, n := b.tlsPairs[tlsKey{in.from.id, in.dest}], binary.BigEndian.Uint32(data)
	if t == nil || b.tlsYielded(t, n) || n <= t.acked {
		return
	}
	for m := t.acked + 1; m <= n; m++ {
		if t.queue[m] == nil { // of a connection that is over, or made up
			b.stats.Refused["tls_ack"]++
			return
		}
	}
	for ; t.acked < n; t.acked++ {
		d := t.queue[t.acked+1]
		delete(t.queue, t.acked+1)
		t.octets -= len(d.data)
		b.stats.SecureDelivered++
		b.drop(d)
	}
	t.sent, t.used = max(t.sent, t.acked), b.now
	t.extra, t.rto, t.stuck, t.due = 0, streamRTO, b.now, time.Time{}
	t.yielding, t.yields = false, 0
	b.rememberTLS(t)
	b.tlsPump(t)
}

// tlsAt asks to be woken for the pairs.
func (b *Bridge) tlsAt(at time.Time) {
	if b.tlsWake.IsZero() || at.Before(b.tlsWake) {
		b.tlsWake = at
	}
	b.until(at)
}

func (b *Bridge) sortedTLS() []*tlsPair {
	return slices.SortedFunc(maps.Values(b.tlsPairs), func(x, y *tlsPair) int {
		return cmp.Or(cmp.Compare(x.local, y.local), cmp.Compare(x.remote, y.remote))
	})
}

// sweepTLS repeats what is due and forgets pairs that are no longer used.
func (b *Bridge) sweepTLS() {
	if b.tlsWake.IsZero() || b.now.Before(b.tlsWake) {
		return
	}
	b.tlsWake = time.Time{}
	for _, t := range b.sortedTLS() {
		p := b.peers[t.local]
		here := p != nil && len(p.conns) > 0
		switch {
		case t.used.IsZero(): // recalled
			t.used = b.now
		case p == nil && len(t.queue) > 0:
			b.tlsVoid(t)
		case len(t.queue) == 0 && !b.now.Before(t.used.Add(tlsForget)):
			delete(b.tlsPairs, t.tlsKey)
			b.out.Remember = append(b.out.Remember, site.Memory{Key: t.memory()})
			continue
		}
		if !t.due.IsZero() && !b.now.Before(t.due) {
			b.tlsRepeat(t, here)
		}
		if !t.due.IsZero() {
			b.tlsAt(t.due)
		}
		b.tlsAt(later(t.used.Add(tlsForget), b.now.Add(time.Minute)))
	}
}

func (b *Bridge) tlsRepeat(t *tlsPair, here bool) {
	if !here {
		t.stuck, t.due = b.now, b.now.Add(t.rto)
		return
	}
	if b.now.Sub(t.stuck) >= tlsGiveUp {
		b.stats.Refused["tls_not_taken"]++
		b.tlsVoid(t)
		return
	}
	if t.alert {
		t.rto = min(2*t.rto, streamRTOMax)
		b.tlsYield(t)
		return
	}
	if t.yields > 0 {
		t.yields--
	} else {
		t.extra++
		t.rto = min(2*t.rto, streamRTOMax)
	}
	for n := t.acked + 1; n <= t.sent; n++ { // it may have the first, which it does not say again, and not the others
		b.tlsSend(t, n)
	}
	t.due = b.now.Add(t.tlsAgain())
	b.tlsPump(t)
}

// tlsEdgeIsBack sends a peer that has dialled in again what it may have lost.
func (b *Bridge) tlsEdgeIsBack(p *peer) {
	for _, t := range b.tlsPairs {
		if t.local == p.id && t.sent > t.acked {
			t.due = b.now.Add(streamReopen / 5)
			b.tlsAt(t.due)
		}
	}
}

// rememberTLS keeps both positions of a pair, in the transaction that keeps a block or lets it go anyway.
func (b *Bridge) rememberTLS(t *tlsPair) {
	v := append(make([]byte, 0, 40), t.first[:]...)
	v = append(v, t.id[:]...)
	for _, id := range t.before {
		v = append(v, id[:]...)
	}
	for _, n := range [...]uint32{t.base, t.recv, t.acked} {
		v = binary.AppendUvarint(v, uint64(n))
	}
	flags := byte(0)
	if t.void {
		flags |= tlsMemVoid
	}
	if t.server {
		flags |= tlsMemServer
	}
	v = append(v, flags)
	b.out.Remember = append(b.out.Remember, site.Memory{Key: t.memory(), Value: v})
}

// recallTLS restores one pair; it reports whether m is of one.
func (b *Bridge) recallTLS(m site.Memory) bool {
	s, ok := strings.CutPrefix(m.Key, memTLS)
	if !ok {
		return false
	}
	local, remote, ok := strings.Cut(s, "/")
	t := &tlsPair{tlsKey: tlsKey{local, remote}, group: jxta.NetGroup, queue: map[uint32]*downward{}, rto: streamRTO}
	r := bytes.NewReader(m.Value)
	r.Read(t.first[:])
	r.Read(t.id[:])
	for i := range t.before {
		r.Read(t.before[i][:])
	}
	for _, n := range [...]*uint32{&t.base, &t.recv, &t.acked} {
		v, err := binary.ReadUvarint(r)
		ok = ok && err == nil && v < 1<<31
		*n = uint32(v)
	}
	flags, err := r.ReadByte()
	t.sent, t.void, t.server = t.acked, flags&tlsMemVoid != 0, flags&tlsMemServer != 0
	if ok && err == nil {
		b.tlsPairs[t.tlsKey] = t
		b.tlsAt(time.Unix(0, 0)) // as soon as there is a time
	}
	return true
}
