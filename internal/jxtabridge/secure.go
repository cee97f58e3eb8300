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

	"aldis/internal/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// The reliability layer under JxtaUnicastSecure (TLS over the endpoint, ghosts 7) ends here between a peer of this site
// and one of another, as that of streams does (streams.go). Two peers have one TLS connection at a time for all their
// secure pipes, so the pair of peers names it. The gateway does not read what is inside a block.
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
	tlsAll     = 1 << 30  // a repeat sends all blocks under way
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

// tlsPair is the connection of a local and a far peer.
type tlsPair struct {
	tlsKey
	group, param string
	used         time.Time

	// From the edge to the link.
	first [8]byte // hash of the first block; zero: none yet
	base  uint32  // number before the first block seen; not 0 if the connection is older than our memory
	up    reliable.Up[[]byte]

	// From the link to the edge.
	id     tlsID
	before [4]tlsID // earlier connections: their late blocks are dropped
	void   bool     // what still comes of id is dropped
	server bool     // the far peer has opened it: the edge answers
	down   reliable.Down

	cross tlsCross
}

// secure holds the secure pipes between local and far peers.
type secure struct {
	*step
	outlets *outlets
	ghosts  *ghosts
	rules   *rules
	pairs   map[tlsKey]*tlsPair
	wakeAt  time.Time // when the first pair has something to do
}

// take takes blocks and acknowledgements of secure pipes out of the traffic to a ghost; it reports whether it did.
func (sec *secure) take(in inbound, far uint16) bool {
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
			sec.edgeAck(in, e.Data)
		case e.Type == mimeTLSBlock:
			known = true
			sec.edgeBlock(in, far, e)
		} // "MARKRetr" only marks a repeated block
	}
	if !known {
		sec.complain(in.conn, "tls_block", nil)
	}
	return true
}

// pair finds or makes what is kept of a pair; nil: too many.
func (sec *secure) pair(k tlsKey, group, param string) *tlsPair {
	t := sec.pairs[k]
	if t == nil {
		if own, all := sec.count(k.local); own >= max(1, sec.cfg.MaxStreams/4) || all >= sec.cfg.MaxStreams {
			return nil
		}
		t = &tlsPair{tlsKey: k, down: reliable.New(0)}
		sec.pairs[k] = t
	}
	t.group, t.param, t.used = group, param, sec.now
	sec.at(sec.now.Add(tlsForget))
	return t
}

// count counts pairs, those of one peer and all.
func (sec *secure) count(local string) (own, all int) {
	for k := range sec.pairs {
		if k.local == local {
			own++
		}
	}
	return own, len(sec.pairs)
}

// edgeBlock takes a block of the edge: in order, once, acknowledged at once, and given to the gateway in the same Step.
func (sec *secure) edgeBlock(in inbound, far uint16, e *jxta.Element) {
	n, err := blockNumber(e)
	if err == nil && (n == 0 || len(e.Data) == 0 || len(e.Data) > tlsBlock) {
		err = errJump
	}
	if err != nil {
		sec.complain(in.conn, "tls_block", err)
		return
	}
	t := sec.pair(tlsKey{in.from.id, in.dest}, in.group, in.param)
	if t == nil {
		sec.complain(in.conn, "tls_pairs", errStreams)
		return
	}
	sum := sha256.Sum256(e.Data)
	first := [8]byte(sum[:8])
	begins := t.first == [8]byte{} || n == 1 && (first != t.first || t.base > 0)
	switch place := t.up.Look(n); {
	case begins:
	case place == reliable.Wrong:
		sec.complain(in.conn, "tls_block", errJump)
		return
	case place == reliable.Taken:
		sec.stats.SecureDuplicates++
		sec.acknowledge(t)
		return
	case place == reliable.Kept:
		sec.stats.SecureDuplicates++
		return
	}
	if t.up.Full(sec.cfg.StreamOctets, sec.cfg.StreamBlocks) {
		sec.stats.Refused["tls_full"]++ // the edge gets no acknowledgement and sends the block again
		return
	}
	if begins {
		if !sec.rules.mayOpen(site.Out, far, in.group, in.from.id, in.param) {
			sec.stats.Refused["tls_filter"]++
			return
		}
		t.first, t.base = first, n-1
		t.up.Restart(n - 1)
		sec.stats.SecureConnections++
		hello := n == 1 && clientHello(e.Data)
		// Blocks of the connection before would garble the new one. When both peers open at once, each has to see the
		// other's ClientHello, so that one stays.
		if hello && (!t.server || t.down.Acked > 1) {
			sec.void(t)
		}
		sec.begins(t, hello)
	}
	if t.up.Look(n) == reliable.Early {
		if t.up.Early() >= tlsReorder {
			sec.stats.Refused["tls_full"]++
			return
		}
		t.up.Keep(n, slices.Clone(e.Data))
		return
	}
	t.up.Take(e.Data, func(block []byte) bool {
		sec.say(t, far, block)
		return true
	})
	sec.save(t)
	sec.acknowledge(t)
}

// clientHello reports whether a first block opens a connection; otherwise it answers one.
func clientHello(data []byte) bool { return len(data) > 5 && data[0] == 22 && data[5] == 1 }

// say gives the next block to the gateway: the connection, the number before its first block, the block's own, and
// the block.
func (sec *secure) say(t *tlsPair, far uint16, block []byte) {
	if t.cross.mute {
		return
	}
	sec.stats.SecureBlocks++
	data := append(make([]byte, 0, 16+len(block)), t.first[:len(tlsID{})]...)
	data = binary.AppendUvarint(data, uint64(t.base))
	data = append(binary.AppendUvarint(data, uint64(t.up.Taken)), block...)
	key, octets := t.tlsKey, len(block)
	t.up.Give(octets)
	sec.give(far, site.Message{Scope: t.group, From: t.local, To: t.remote,
		Service: svcTLS, Param: t.param, Parts: []jxta.Element{{Namespace: nsTLS, Data: data}}}, func(refused bool) {
		if refused {
			sec.stats.Refused["tls_refused"]++
		}
		if t := sec.pairs[key]; t != nil {
			t.up.Stored(octets)
		}
	})
}

// acknowledge answers the edge as the ghost.
func (sec *secure) acknowledge(t *tlsPair) {
	m := sec.message(t, jxta.Element{Namespace: nsTLS, Name: tlsAck, Type: mimeTLSAck, Data: binary.BigEndian.AppendUint32(nil, t.up.Taken)})
	if m != nil {
		m.confirms = true
		sec.outlets.enqueue(sec.outlets.peers[t.local], m)
	}
}

// message is for the edge, from the ghost; nil: the edge is gone.
func (sec *secure) message(t *tlsPair, elements ...jxta.Element) *message {
	p := sec.outlets.peers[t.local]
	if p == nil || len(p.leases) == 0 && len(p.conns) == 0 {
		return nil
	}
	if len(p.leases) == 0 {
		return sec.ghosts.routed(p, t.remote, t.group, svcTransport, t.param, elements)
	}
	return sec.ghosts.said(p, t.remote, t.group, svcTransport, t.param, elements)
}

// hear takes a block of a far peer.
func (sec *secure) hear(ev site.FarMessage) {
	m := &ev.Message
	id, base, n, block, err := parseTLS(m)
	p := sec.outlets.peers[m.To]
	refuse := ""
	var t *tlsPair
	switch {
	case err != nil:
		refuse = "tls_head"
	case p == nil || len(p.leases) == 0:
		refuse = "tls_no_peer"
	default:
		if t = sec.pair(tlsKey{m.To, m.From}, m.Scope, m.Param); t == nil {
			refuse = "tls_pairs"
		}
	}
	if t != nil && id != t.id {
		switch {
		case slices.Contains(t.before[:], id):
			refuse = "tls_late"
		case !sec.rules.mayOpen(site.In, ev.Site, m.Scope, m.From, m.Param):
			refuse = "tls_filter"
		case sec.crosses(t, id, n == 1 && clientHello(block)):
			refuse = "tls_crossed"
			sec.save(t)
		default:
			sec.void(t)
			t.past(t.id)
			t.id, t.void, t.server = id, false, false
			t.down.Restart(base)
			sec.save(t)
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
			sec.stats.SecureDuplicates++
			sec.done(ev.Token)
			return
		case n > t.down.Acked+maxStreamBlocks || t.down.Octets+len(block) > tlsQueue:
			refuse = "tls_full"
			lose(sec.step, site.NoRoom, t.local, t.down.Clear()...)
			sec.void(t) // without this block the connection is dead
		}
	}
	if refuse != "" {
		sec.stats.Refused[refuse]++
		switch refuse {
		case "tls_no_peer":
			undelivered(sec.step, ev.Token, site.Nobody, m.To)
		case "tls_pairs", "tls_full":
			undelivered(sec.step, ev.Token, site.NoRoom, m.To)
		case "tls_head":
			undelivered(sec.step, ev.Token, site.Unfit, m.To)
		default: // of a connection that is over, or that the rules refuse
			sec.done(ev.Token)
		}
		return
	}
	t.down.Put(n, &reliable.Block{Token: ev.Token, Data: slices.Clone(block)})
	t.server = t.server || n == 1 && clientHello(block)
	switch {
	case t.cross.yielding && n == 1:
		t.down.Stuck = sec.now
		sec.yield(t)
	case !t.cross.alert:
		sec.pump(t)
	}
}

func parseTLS(m *site.Message) (id tlsID, base, n uint32, block []byte, err error) {
	if len(m.Parts) != 1 || m.Parts[0].Namespace != nsTLS || len(m.Parts[0].Data) < len(id) {
		return id, 0, 0, nil, errStreamHead
	}
	rest := m.Parts[0].Data[copy(id[:], m.Parts[0].Data):]
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

// void drops what is for the edge, and what still comes of the same connection.
func (sec *secure) void(t *tlsPair) {
	sec.drop(t.down.Clear()...)
	t.void, t.cross.alert, t.cross.yields = true, false, 0
}

// pump sends the edge what its window allows, in order.
func (sec *secure) pump(t *tlsPair) {
	waits := !t.down.Due.IsZero()
	t.down.Pump(sec.now, tlsWindow, nil, sec.sender(t))
	if !waits && !t.down.Due.IsZero() {
		sec.plan(t)
	}
}

// plan plans the next repeat.
func (sec *secure) plan(t *tlsPair) {
	t.down.Due = sec.now.Add(t.again())
	sec.at(t.down.Due)
}

// sender hands blocks to the edge.
func (sec *secure) sender(t *tlsPair) reliable.Send {
	return func(n uint32, d *reliable.Block) {
		elements := []jxta.Element{{Namespace: nsTLS, Name: strconv.FormatUint(uint64(n), 10), Type: mimeTLSBlock, Data: d.Data}}
		if d.Sent > 1 {
			sec.stats.SecureRepeats++
			elements = append(elements, jxta.Element{Namespace: nsTLS, Name: "MARKRetr", Type: mimeText, Data: []byte("TLSRET")})
		}
		if m := sec.message(t, elements...); m != nil {
			sec.outlets.enqueue(sec.outlets.peers[t.local], m)
		}
	}
}

// edgeAck frees the blocks that the edge has. It ignores selective acknowledgements: the edge sorts early blocks itself.
func (sec *secure) edgeAck(in inbound, data []byte) {
	if len(data) < 4 || len(data)%4 != 0 {
		sec.complain(in.conn, "tls_ack", nil)
		return
	}
	sec.stats.SecureAcks++
	t, n := sec.pairs[tlsKey{in.from.id, in.dest}], binary.BigEndian.Uint32(data)
	if t == nil || sec.yielded(t, n) || n <= t.down.Acked {
		return
	}
	if !t.down.Ack(sec.now, n, func(d *reliable.Block) {
		sec.stats.SecureDelivered++
		sec.drop(d)
	}) {
		sec.stats.Refused["tls_ack"]++ // of a connection that is over, or made up
		return
	}
	t.used, t.cross.yielding, t.cross.yields = sec.now, false, 0
	sec.save(t)
	sec.pump(t)
}

// at asks to be woken for the pairs.
func (sec *secure) at(at time.Time) {
	sec.wakeAt = due.Earliest(sec.wakeAt, at)
	sec.until(at)
}

func (sec *secure) sorted() []*tlsPair {
	return slices.SortedFunc(maps.Values(sec.pairs), func(x, y *tlsPair) int {
		return cmp.Or(cmp.Compare(x.local, y.local), cmp.Compare(x.remote, y.remote))
	})
}

// sweep repeats what is due and forgets pairs that are no longer used.
func (sec *secure) sweep() {
	if !due.Reached(sec.now, sec.wakeAt) {
		return
	}
	sec.wakeAt = time.Time{}
	for _, t := range sec.sorted() {
		p := sec.outlets.peers[t.local]
		here := p != nil && len(p.conns) > 0
		switch {
		case t.used.IsZero(): // recalled
			t.used = sec.now
		case p == nil && t.down.Len() > 0:
			lose(sec.step, site.LifeOver, t.local, t.down.Clear()...)
			sec.void(t)
		case t.down.Len() == 0 && !sec.now.Before(t.used.Add(tlsForget)):
			delete(sec.pairs, t.tlsKey)
			sec.forget(t.memory())
			continue
		}
		if due.Reached(sec.now, t.down.Due) {
			sec.repeat(t, here)
		}
		sec.at(t.down.Due)
		sec.at(due.Latest(t.used.Add(tlsForget), sec.now.Add(time.Minute)))
	}
}

func (sec *secure) repeat(t *tlsPair, here bool) {
	switch {
	case !here:
		t.down.Absent(sec.now)
	case sec.now.Sub(t.down.Stuck) >= tlsGiveUp:
		sec.stats.Refused["tls_not_taken"]++
		lose(sec.step, site.LifeOver, t.local, t.down.Clear()...)
		sec.void(t)
	case t.cross.alert:
		t.down.Wait = min(2*t.down.Wait, reliable.LastRepeat)
		sec.yield(t)
	case t.cross.yields > 0:
		t.cross.yields--
		t.down.Resend(sec.now, tlsWindow, tlsAll, sec.sender(t))
		sec.plan(t)
	default: // all blocks: the edge does not acknowledge the first again if it has it
		t.down.Repeat(sec.now, tlsWindow, tlsAll, sec.sender(t))
	}
}

// edgeIsBack sends a peer that has dialled in again what it may have lost.
func (sec *secure) edgeIsBack(p *peer) {
	for _, t := range sec.pairs {
		if t.local == p.id && t.down.Return(sec.now.Add(streamReopen/5)) {
			sec.at(t.down.Due)
		}
	}
}

// save keeps both positions of a pair, in the transaction that keeps a block or lets it go anyway.
func (sec *secure) save(t *tlsPair) {
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
	sec.record(t.memory(), v)
}

// recall restores one pair; it reports whether m is of one.
func (sec *secure) recall(m site.Memory) bool {
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
		sec.pairs[t.tlsKey] = t
		sec.at(time.Unix(0, 0)) // as soon as there is a time
	}
	return true
}
