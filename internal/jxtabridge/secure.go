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
	"aldis/internal/jxtabridge/reliable"
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
	tlsWindow  = 16       // blocks towards the edge without an acknowledgement
	tlsQueue   = 4 << 20  // octets that wait for one edge
	all        = 1 << 30  // blocks of one repeat
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

	// From the edge to the link.
	first [8]byte // hash of the first block; zero: none yet
	base  uint32  // number before the first block that was seen: 0 but for a connection older than our memory
	up    reliable.Up[[]byte]

	// From the link to the edge.
	id     tlsID
	before [4]tlsID // connections before
	void   bool     // what still comes of id is dropped
	server bool     // the far peer has opened it: the edge answers
	down   reliable.Down

	cross tlsCross
}

// tlsState is the bridge's part for secure pipes.
type tlsState struct {
	tlsPairs map[tlsKey]*tlsPair
	tlsWake  time.Time // when the first pair has something to do
}

func newTLSState() tlsState {
	return tlsState{tlsPairs: map[tlsKey]*tlsPair{}}
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
		t = &tlsPair{tlsKey: k, down: reliable.New(0)}
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
	n, err := blockNumber(e)
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
	switch place := t.up.Look(n); {
	case begins:
	case place == reliable.Wrong:
		b.complain(in.conn, "tls_block", errJump)
		return
	case place == reliable.Taken:
		b.stats.SecureDuplicates++
		b.tlsAcknowledge(t)
		return
	case place == reliable.Kept:
		b.stats.SecureDuplicates++
		return
	}
	if t.up.Full(b.cfg.StreamOctets, b.cfg.StreamBlocks) {
		b.stats.Refused["tls_full"]++ // not acknowledged: the edge keeps it and sends it again
		return
	}
	if begins {
		if !b.mayOpen(site.Out, far, in.group, in.from.id, in.param) {
			b.stats.Refused["tls_filter"]++
			return
		}
		t.first, t.base = first, n-1
		t.up.Restart(n - 1)
		b.stats.SecureConnections++
		hello := n == 1 && clientHello(e.Data)
		// What is left of the connection before would garble the new one; but when both open at once, each has to see that.
		if hello && (!t.server || t.down.Acked > 1) {
			b.tlsVoid(t)
		}
		b.tlsBegins(t, hello)
	}
	if t.up.Look(n) == reliable.Early {
		if t.up.Early() >= tlsReorder {
			b.stats.Refused["tls_full"]++
			return
		}
		t.up.Keep(n, slices.Clone(e.Data))
		return
	}
	t.up.Take(e.Data, func(block []byte) bool {
		b.tlsTake(t, far, block)
		return true
	})
	b.rememberTLS(t)
	b.tlsAcknowledge(t)
}

// clientHello says whether a first block opens a connection, and does not answer one.
func clientHello(data []byte) bool { return len(data) > 5 && data[0] == 22 && data[5] == 1 }

// tlsTake gives the next block to the gateway: the connection, the number before its first block, the block's own, and
// the block.
func (b *Bridge) tlsTake(t *tlsPair, far uint16, block []byte) {
	if t.cross.mute {
		return
	}
	b.stats.SecureBlocks++
	data := append(make([]byte, 0, 16+len(block)), t.first[:len(tlsID{})]...)
	data = binary.AppendUvarint(data, uint64(t.base))
	data = append(binary.AppendUvarint(data, uint64(t.up.Taken)), block...)
	key, octets := t.tlsKey, len(block)
	t.up.Give(octets)
	b.give(far, site.Message{Scope: t.group, From: t.local, To: t.remote,
		Service: svcTLS, Param: t.param, Parts: []jxta.Element{{Namespace: nsTLS, Data: data}}}, func(refused bool) {
		if refused {
			b.stats.Refused["tls_refused"]++
		}
		if t := b.tlsPairs[key]; t != nil {
			t.up.Stored(octets)
		}
	})
}

// tlsAcknowledge answers the edge as the ghost.
func (b *Bridge) tlsAcknowledge(t *tlsPair) {
	m := b.tlsMessage(t, jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: binary.BigEndian.AppendUint32(nil, t.up.Taken)})
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
			t.down.Restart(base)
			b.rememberTLS(t)
		}
	}
	if refuse == "" {
		old := t.down.Block(n)
		switch {
		case old != nil && old.Token == ev.Token:
			return // handed in again
		case t.void:
			refuse = "tls_late"
		case n <= t.down.Acked || old != nil:
			b.stats.SecureDuplicates++
			b.done(ev.Token)
			return
		case n > t.down.Acked+maxStreamBlocks || t.down.Octets+len(block) > tlsQueue:
			refuse = "tls_full"
			b.tlsVoid(t) // without this block the connection is dead
		}
	}
	if refuse != "" {
		b.stats.Refused[refuse]++
		b.done(ev.Token)
		return
	}
	t.down.Put(n, &reliable.Block{Token: ev.Token, Data: slices.Clone(block)})
	t.server = t.server || n == 1 && clientHello(block)
	switch {
	case t.cross.yielding && n == 1:
		t.down.Stuck = b.now
		b.tlsYield(t)
	case !t.cross.alert:
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
	b.drop(t.down.Clear()...)
	t.void, t.cross.alert, t.cross.yields = true, false, 0
}

// tlsPump sends the edge what its window allows, in order.
func (b *Bridge) tlsPump(t *tlsPair) {
	waits := !t.down.Due.IsZero()
	t.down.Pump(b.now, tlsWindow, nil, b.tlsSender(t))
	if !waits && !t.down.Due.IsZero() {
		b.tlsDue(t)
	}
}

// tlsDue plans the next repeat.
func (b *Bridge) tlsDue(t *tlsPair) {
	t.down.Due = b.now.Add(t.again())
	b.tlsAt(t.down.Due)
}

// tlsSender hands blocks to the edge.
func (b *Bridge) tlsSender(t *tlsPair) reliable.Send {
	return func(n uint32, d *reliable.Block) {
		elements := []jxta.Element{{Namespace: nsTLS, Name: strconv.FormatUint(uint64(n), 10), Type: mimeTLSBlock, Data: d.Data}}
		if d.Sent > 1 {
			b.stats.SecureRepeats++
			elements = append(elements, jxta.Element{Namespace: nsTLS, Name: "MARKRetr", Type: mimeText, Data: []byte("TLSRET")})
		}
		if m := b.tlsMessage(t, elements...); m != nil {
			b.enqueue(b.peers[t.local], m)
		}
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
	if t == nil || b.tlsYielded(t, n) || n <= t.down.Acked {
		return
	}
	if !t.down.Ack(b.now, n, func(d *reliable.Block) {
		b.stats.SecureDelivered++
		b.drop(d)
	}) {
		b.stats.Refused["tls_ack"]++ // of a connection that is over, or made up
		return
	}
	t.used, t.cross.yielding, t.cross.yields = b.now, false, 0
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
		case p == nil && t.down.Len() > 0:
			b.tlsVoid(t)
		case t.down.Len() == 0 && !b.now.Before(t.used.Add(tlsForget)):
			delete(b.tlsPairs, t.tlsKey)
			b.forget(t.memory())
			continue
		}
		if !t.down.Due.IsZero() && !b.now.Before(t.down.Due) {
			b.tlsRepeat(t, here)
		}
		if !t.down.Due.IsZero() {
			b.tlsAt(t.down.Due)
		}
		b.tlsAt(later(t.used.Add(tlsForget), b.now.Add(time.Minute)))
	}
}

func (b *Bridge) tlsRepeat(t *tlsPair, here bool) {
	switch {
	case !here:
		t.down.Absent(b.now)
	case b.now.Sub(t.down.Stuck) >= tlsGiveUp:
		b.stats.Refused["tls_not_taken"]++
		b.tlsVoid(t)
	case t.cross.alert:
		t.down.Wait = min(2*t.down.Wait, reliable.LastRepeat)
		b.tlsYield(t)
	case t.cross.yields > 0:
		t.cross.yields--
		t.down.Resend(b.now, tlsWindow, all, b.tlsSender(t))
		b.tlsDue(t)
	default: // it may have the first, which it does not say again, and not the others
		t.down.Repeat(b.now, tlsWindow, all, b.tlsSender(t))
	}
}

// tlsEdgeIsBack sends a peer that has dialled in again what it may have lost.
func (b *Bridge) tlsEdgeIsBack(p *peer) {
	for _, t := range b.tlsPairs {
		if t.local == p.id && t.down.Return(b.now.Add(streamReopen/5)) {
			b.tlsAt(t.down.Due)
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
	for _, n := range [...]uint32{t.base, t.up.Taken, t.down.Acked} {
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
	b.record(t.memory(), v)
}

// recallTLS restores one pair; it reports whether m is of one.
func (b *Bridge) recallTLS(m site.Memory) bool {
	s, ok := strings.CutPrefix(m.Key, memTLS)
	if !ok {
		return false
	}
	local, remote, ok := strings.Cut(s, "/")
	t := &tlsPair{tlsKey: tlsKey{local, remote}, group: jxta.NetGroup}
	var taken, acked uint32
	r := bytes.NewReader(m.Value)
	r.Read(t.first[:])
	r.Read(t.id[:])
	for i := range t.before {
		r.Read(t.before[i][:])
	}
	for _, n := range [...]*uint32{&t.base, &taken, &acked} {
		v, err := binary.ReadUvarint(r)
		ok = ok && err == nil && v < 1<<31
		*n = uint32(v)
	}
	flags, err := r.ReadByte()
	t.void, t.server, t.down = flags&tlsMemVoid != 0, flags&tlsMemServer != 0, reliable.New(acked)
	t.up.Restart(taken)
	if ok && err == nil {
		b.tlsPairs[t.tlsKey] = t
		b.tlsAt(time.Unix(0, 0)) // as soon as there is a time
	}
	return true
}
