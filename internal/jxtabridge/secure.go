package jxtabridge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// The reliability layer under JxtaUnicastSecure (TLS over the endpoint, ghosts 7) ends here between a peer of this site
// and a peer of another site, like that of streams (streams.go). Two peers have one TLS connection at a time for all their
// secure pipes, so the pair of peers names it. The gateway does not read the content of a block.
const (
	svcTLS       = "jxtatls" // of payloads between bridges; no peer has a service of that name
	svcTransport = "TlsTransport"
	nsTLS        = "jxtatls"
	tlsAck       = "TLSACK"
	mimeTLSBlock = "application/x-jxta-tls-block"
	mimeTLSAck   = "application/x-jxta-tls-ack"
)

const (
	tlsBlock   = 64 << 10 // most octets of a block; a TLS record has a little more than 16 KiB
	tlsReorder = 32       // blocks beyond a gap that are kept
	tlsQueue   = 4 << 20  // octets that wait for one edge
	tlsForget  = time.Hour
	tlsGiveUp  = 5 * time.Minute // JXSE closes a connection that acknowledges nothing for four
)

// tlsKey is a local and a far peer.
type tlsKey struct{ local, remote string }

func (t *tlsPair) key() tlsKey { return tlsKey{t.local, t.remote} }

func (t *tlsPair) memory() string { return memTLS + t.local + "/" + t.remote }

const (
	memTLS       = "tls/"
	tlsMemVoid   = 1
	tlsMemServer = 2
)

// tlsID tells one connection of a pair from the next on the link: the beginning of its first block's hash.
type tlsID [3]byte

// tlsPair is the connection of a local and a far peer.
type tlsPair struct {
	conversation
	used time.Time

	// From the edge to the link.
	first [8]byte // hash of the first block; zero: none yet
	base  uint32  // number before the first block seen; not 0 if the connection is older than our memory of it

	// From the link to the edge.
	id     tlsID
	before [4]tlsID // earlier connections: their late blocks are dropped
	void   bool     // blocks of id that still come are dropped
	server bool     // the far peer has opened the connection: the edge answers

	cross tlsCross
}

// secure holds the secure pipes between local and far peers.
type secure struct {
	*step
	outlets *outlets
	talks   *conversations
	rules   *rules
	layer   layer
	pairs   map[tlsKey]*tlsPair
}

// handle takes blocks and acknowledgements of secure pipes out of the traffic to a ghost; it reports whether in was one.
func (sec *secure) handle(in inbound, far uint16) bool {
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
			sec.tlsBlock(in, far, e)
		} // "MARKRetr" only marks a repeated block
	}
	if !known {
		sec.complain(in.conn, "tls_block", nil)
	}
	return true
}

// pair finds or makes the state of a pair; nil: there are too many.
func (sec *secure) pair(k tlsKey, group, param string) *tlsPair {
	t := sec.pairs[k]
	if t == nil && sec.talks.full(k.local) {
		return nil
	}
	if t == nil {
		t = sec.add(k)
	}
	t.group, t.to, t.used = group, param, sec.now
	sec.talks.wakeBy(sec.now.Add(tlsForget))
	return t
}

func (sec *secure) add(k tlsKey) *tlsPair {
	t := &tlsPair{conversation: conversation{group: jxta.NetGroup, local: k.local, remote: k.remote}}
	sec.talks.begin(&t.conversation, &sec.layer, reliable.State{})
	sec.pairs[k] = t
	return t
}

// tlsBlock takes a block of the edge. A first block begins a connection.
func (sec *secure) tlsBlock(in inbound, far uint16, e *jxta.Element) {
	n := blockNumber(e)
	if n == 0 || len(e.Data) == 0 || len(e.Data) > tlsBlock {
		sec.complain(in.conn, "tls_block", errJump)
		return
	}
	t := sec.pair(tlsKey{in.from.id, in.dest}, in.group, in.param)
	if t == nil {
		sec.complain(in.conn, "tls_pairs", errStreams)
		return
	}
	sum := sha256.Sum256(e.Data)
	first := [8]byte(sum[:8])
	if t.first == [8]byte{} || n == 1 && (first != t.first || t.base > 0) {
		switch {
		case t.Full():
			sec.stats.Refused["tls_full"]++ // without an acknowledgement the edge sends the block again
			return
		case !sec.rules.mayOpen(site.Out, far, in.group, in.from.id, in.param):
			sec.stats.Refused["tls_filter"]++
			return
		}
		t.first, t.base = first, n-1
		t.Begin(n - 1)
		sec.begins(t, n == 1 && clientHello(e.Data))
	}
	read := func(data []byte) (upward, error) {
		return upward{elements: []jxta.Element{{Data: slices.Clone(data)}}, octets: len(data)}, nil
	}
	if sec.talks.edgeBlock(&t.conversation, in, e, read, func(up upward) bool {
		sec.carryBlock(t, far, up.elements[0].Data)
		return true
	}) {
		sec.save(t)
	}
}

// clientHello reports whether a first block opens a connection; otherwise it answers one.
func clientHello(data []byte) bool { return len(data) > 5 && data[0] == 22 && data[5] == 1 }

// carryBlock gives the next block to the gateway: the connection, the number before its first block, the block's own number, and
// the block.
func (sec *secure) carryBlock(t *tlsPair, far uint16, block []byte) {
	if t.cross.mute {
		return
	}
	taken, _ := t.Position()
	data := append(make([]byte, 0, 16+len(block)), t.first[:len(tlsID{})]...)
	data = binary.AppendUvarint(data, uint64(t.base))
	data = append(binary.AppendUvarint(data, uint64(taken)), block...)
	octets := len(block)
	t.gave(octets)
	sec.give(far, site.Message{Scope: t.group, From: t.local, To: t.remote,
		Service: svcTLS, Param: t.to, Parts: []jxta.Element{{Namespace: nsTLS, Data: data}}}, func(refused bool) {
		if refused {
			sec.stats.Refused["tls_refused"]++
		}
		sec.talks.settle(&t.conversation, t.Stored(sec.now, octets))
	})
}

// tlsLost has the reasons for which a block that the edge should have received is lost.
var tlsLost = map[string]site.Why{"tls_no_peer": site.Nobody, "tls_pairs": site.NoRoom, "tls_full": site.NoRoom, "tls_head": site.Unfit}

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
		t = sec.pair(tlsKey{m.To, m.From}, m.Scope, m.Param)
		if t == nil {
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
			sec.over(t)
			t.past(t.id)
			t.id, t.void, t.server = id, false, false
			t.Expect(base)
			sec.save(t)
		}
	}
	if refuse == "" && t.void {
		refuse = "tls_late"
	}
	if refuse == "" {
		switch t.Put(n, &reliable.Block{Token: ev.Token, Data: slices.Clone(block)}) {
		case reliable.Kept: // handed in again
			return
		case reliable.Taken:
			sec.stats.Secure.Duplicates++
			sec.done(ev.Token)
			return
		case reliable.Full: // without this block the connection is dead
			refuse = "tls_full"
			sec.end(t, site.NoRoom)
		}
	}
	if refuse != "" {
		sec.stats.Refused[refuse]++
		if why, ok := tlsLost[refuse]; ok {
			undelivered(sec.step, ev.Token, why, m.To)
		} else { // of a connection that has ended, or that the rules refuse
			sec.done(ev.Token)
		}
		return
	}
	t.server = t.server || n == 1 && clientHello(block)
	if t.cross.yielding && n == 1 {
		sec.yield(t)
		return
	}
	sec.talks.settle(&t.conversation, t.Pump(sec.now))
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

// over drops the blocks for the edge, and all further blocks of the connection.
func (sec *secure) over(t *tlsPair) {
	sec.talks.drop(t.Clear())
	t.void = true
}

// end is over for a connection whose blocks the edge should have received.
func (sec *secure) end(t *tlsPair, why site.Why) {
	sec.talks.lose(why, &t.conversation, t.Clear())
	t.void = true
}

// edgeAck frees the blocks that the edge has.
func (sec *secure) edgeAck(in inbound, data []byte) {
	n, ok := sec.talks.ackNumber(&sec.layer, in, data)
	t := sec.pairs[tlsKey{in.from.id, in.dest}]
	if !ok || t == nil {
		return
	}
	place, out := t.Ack(sec.now, n)
	sec.talks.settle(&t.conversation, out)
	switch place {
	case reliable.Wrong:
		sec.stats.Refused["tls_ack"]++ // of a connection that has ended, or is made up
	case reliable.Next:
		t.used, t.cross.yielding = sec.now, false
		sec.save(t)
	}
}

func (sec *secure) sorted() []*tlsPair {
	return slices.SortedFunc(maps.Values(sec.pairs), func(x, y *tlsPair) int {
		return cmp.Or(cmp.Compare(x.local, y.local), cmp.Compare(x.remote, y.remote))
	})
}

// sweep repeats blocks that are due and forgets pairs that are no longer used.
func (sec *secure) sweep() {
	if !sec.talks.due() {
		return
	}
	for _, t := range sec.sorted() {
		switch {
		case t.used.IsZero(): // recalled
			t.used = sec.now
		case sec.outlets.peers[t.local] == nil && !t.Idle():
			sec.end(t, site.LifeOver)
		case t.Idle() && !sec.now.Before(t.used.Add(tlsForget)):
			delete(sec.talks.all, &t.conversation)
			delete(sec.pairs, t.key())
			sec.forget(t.memory())
			continue
		}
		out := t.Tick(sec.now, sec.talks.here(t.local))
		sec.talks.settle(&t.conversation, out)
		switch {
		case out.GaveUp:
			sec.stats.Refused["tls_not_taken"]++
			sec.end(t, site.LifeOver)
		case out.Interrupted:
			sec.alert(t)
		}
		sec.talks.wakeBy(due.Latest(t.used.Add(tlsForget), sec.now.Add(time.Minute)))
	}
}

// save keeps both positions of a pair, in the transaction that in any case stores or deletes a block.
func (sec *secure) save(t *tlsPair) {
	v := append(make([]byte, 0, 40), t.first[:]...)
	v = append(v, t.id[:]...)
	for _, id := range t.before {
		v = append(v, id[:]...)
	}
	taken, acked := t.Position()
	for _, n := range [...]uint32{t.base, taken, acked} {
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

// recall restores one pair; it reports whether m is the memory of one.
func (sec *secure) recall(m site.Memory) bool {
	s, ok := strings.CutPrefix(m.Key, memTLS)
	if !ok {
		return false
	}
	local, remote, ok := strings.Cut(s, "/")
	var first [8]byte
	var ids [5]tlsID
	var numbers [3]uint32 // base, taken, acknowledged
	r := bytes.NewReader(m.Value)
	r.Read(first[:])
	for i := range ids {
		r.Read(ids[i][:])
	}
	for i := range numbers {
		v, err := binary.ReadUvarint(r)
		ok = ok && err == nil && v < 1<<31
		numbers[i] = uint32(v)
	}
	flags, err := r.ReadByte()
	if !ok || err != nil {
		return true
	}
	t := sec.add(tlsKey{local, remote})
	t.first, t.base, t.id, t.before = first, numbers[0], ids[0], [4]tlsID(ids[1:])
	t.void, t.server = flags&tlsMemVoid != 0, flags&tlsMemServer != 0
	t.Begin(numbers[1])
	t.Expect(numbers[2])
	sec.talks.wakeBy(time.Unix(0, 0)) // as soon as there is a time
	return true
}
