package jxtabridge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// svcStream is the service of payloads that bridges send each other about streams. No peer has one of that name.
const svcStream = "jxtarel"

// First octet of the first element of such a payload; with headYours the stream's number is the receiver's.
// The number follows, then what the lines say; sizes and numbers are uvarints.
const (
	headOpen    = 1 + iota // flags, pipe id, name, digest of the credential
	headBlock              // block number, octets of the block
	headMessage            // block number; the block is a message of the further elements
	headClose              // number of the last block: the edge has closed
	headReset              // the stream is void
	headHold               // send no more for now
	headGo                 // send again
	headYours   = 0x80
)

const (
	openBiDi = 1 << iota
	openCredential
)

var (
	errJump       = errors.New("number out of order")
	errStreamHead = errors.New("head of a stream's payload")
	errStreams    = errors.New("too many streams")
)

// carryStream gives a payload of a stream to the gateway. Flows are named by sender, receiver, service and shape, so that
// all streams of two peers share them (internal/link/envelope).
func (b *Bridge) carryStream(st *stream, head byte, number uint64, more []jxta.Element, octets int) {
	data := st.key.head(head)
	switch head {
	case headBlock: // its only element is the block
		data = append(binary.AppendUvarint(data, number), more[0].Data...)
		more = nil
	case headMessage, headClose:
		data = binary.AppendUvarint(data, number)
	}
	if octets > 0 {
		st.up.Give(octets)
	}
	key := st.key
	b.give(key.site, streamMessage(site.Message{Scope: st.group, From: st.local, To: st.remote}, data, more),
		func(refused bool) { b.streamFate(key, octets, refused) })
}

func (k streamKey) head(head byte) []byte {
	if !k.mine {
		head |= headYours
	}
	return binary.AppendUvarint([]byte{head}, k.number)
}

// streamMessage completes what bridges say to each other about a stream.
func streamMessage(m site.Message, data []byte, more []jxta.Element) site.Message {
	m.Service = svcStream
	m.Parts = append([]jxta.Element{{Namespace: nsRel, Data: data}}, more...)
	return m
}

// upward turns a block of the edge into what crosses the link. A BiDi block is a whole message: its signature stays
// here, its elements travel as elements, so that their names are in the flow and not in every block.
func (b *Bridge) upward(st *stream, in inbound, data []byte) (upward, error) {
	up := upward{head: headBlock, octets: max(1, len(data))}
	if st.kind == streamSocket {
		up.elements = []jxta.Element{{Data: slices.Clone(data)}}
		return up, nil
	}
	m, rest, err := jxta.ParseMessage(data, jxta.DefaultLimits)
	if err != nil {
		return up, err
	}
	bare := data[:len(data)-len(rest)]
	if len(rest) > 0 {
		t, err := jxta.ParseTrailer(rest)
		if err == nil {
			err = t.Verify(bare)
		}
		if src, e := jxta.ParseURN(t.Source); err == nil && (e != nil || src != in.from.id) {
			err = errForeign
		}
		if err != nil {
			return up, err
		}
	}
	up.octets = max(1, len(bare))
	up.closes = m.Find("JXTABIP", "close") != nil
	if again, err := jxta.AppendMessage(nil, m); err == nil && m.Version == 0 && bytes.Equal(again, bare) && utf8Names(m.Elements) {
		up.head, up.elements = headMessage, keep(m.Elements)
		return up, nil
	}
	up.elements = []jxta.Element{{Data: slices.Clone(bare)}}
	return up, nil
}

// utf8Names says whether every text can travel in an envelope.
func utf8Names(elements []jxta.Element) bool {
	for i := range elements {
		for e := &elements[i]; e != nil; e = e.Signature {
			if !utf8.ValidString(e.Namespace) || !utf8.ValidString(e.Name) || !utf8.ValidString(e.Type) || !utf8.ValidString(e.Encoding) {
				return false
			}
		}
	}
	return true
}

// farStream handles what the far gateway says about a stream.
func (b *Bridge) farStream(ev site.FarMessage) {
	head, key, rest, err := parseStreamHead(ev)
	if err != nil {
		b.stats.Refused["stream_head"]++
		b.done(ev.Token)
		return
	}
	if head == headOpen {
		if key.mine {
			b.done(ev.Token)
			return
		}
		b.openFar(ev, key, rest)
		return
	}
	st := b.streams[key]
	switch {
	case st == nil && b.streamsOver.in[b.overKey(key)]:
	case st == nil && key.mine:
		if head != headReset {
			b.answerReset(key, ev.Message)
		}
	case st == nil:
		b.stray(ev, key, head)
		return
	case st.local != ev.Message.To || st.remote != ev.Message.From || st.ended:
	case head == headBlock || head == headMessage:
		b.farBlock(st, ev, head, rest)
		return
	case head == headClose:
		if n, w := binary.Uvarint(rest); w > 0 && n < 1<<31 && uint32(n) >= st.down.Acked {
			st.because("closed_there")
			st.closing.begun, st.closing.final, st.down.Stuck = true, uint32(n), b.now
			b.rememberStream(st)
			b.pumpStream(st)
		}
	case head == headReset:
		st.because("reset_there")
		b.note("info", "stream ended by the far side", "peer", st.local, "far_peer", st.remote)
		b.closeDown(st)
	case head == headHold || head == headGo:
		st.held = head == headHold
		b.rememberStream(st)
		b.roomAgain(st)
	}
	b.done(ev.Token)
}

// farBlock puts a block in its place; long ones may come behind short ones that were sent later.
func (b *Bridge) farBlock(st *stream, ev site.FarMessage, head byte, rest []byte) {
	n64, w := binary.Uvarint(rest)
	d := &reliable.Block{Token: ev.Token}
	var err error
	switch {
	case w <= 0 || n64 == 0 || n64 > 1<<31-2:
		err = errStreamHead
	case head == headMessage:
		m := jxta.Message{Elements: ev.Message.Parts[1:]}
		d.Closes = m.Find("JXTABIP", "close") != nil
		d.Data, err = jxta.AppendMessage(nil, m)
	default:
		d.Data = slices.Clone(rest[w:])
	}
	if err != nil {
		b.stats.Refused["stream_head"]++
		b.done(ev.Token)
		return
	}
	n := uint32(n64)
	old := st.down.Block(n)
	switch {
	case n <= st.down.Acked || st.closing.begun && n > st.closing.final || old != nil && old.Token != ev.Token:
		b.stats.StreamDuplicates++
		b.done(ev.Token)
		return
	case old != nil: // handed in again
		return
	}
	if st.down.Octets+len(d.Data) > maxStreamOctets || st.down.Len() >= maxStreamBlocks {
		b.done(ev.Token)
		b.reset(st, "overflow")
		return
	}
	st.down.Put(n, d)
	b.pumpStream(st)
	if !st.holding && (st.down.Len() >= 2*b.cfg.StreamBlocks || st.down.Octets >= 4*b.cfg.StreamOctets) {
		st.holding = true
		b.rememberStream(st)
		b.carryStream(st, headHold, 0, nil, 0)
	}
}

// Bounds of what waits for one edge, far above what a gateway that obeys headHold sends.
const (
	maxStreamOctets = 16 << 20
	maxStreamBlocks = 4096
	maxStrayOctets  = 4 << 20
	maxStrays       = 256
	maxCredentials  = 512
	maxCredential   = 16 << 10
)

// stray keeps what came before its stream's opening.
func (b *Bridge) stray(ev site.FarMessage, key streamKey, head byte) {
	size := sizeOf(ev.Message.Parts)
	s := b.strays[key]
	switch {
	case head == headHold || head == headGo || head == headReset:
		b.done(ev.Token)
		return
	case b.strayOctets+size > maxStrayOctets || s == nil && len(b.strays) >= maxStrays:
		b.done(ev.Token)
		b.stats.Refused["stream_stray"]++
		if s != nil {
			b.dropStray(key, s)
		}
		b.answerReset(key, ev.Message)
		return
	case s == nil:
		s = &strays{until: b.now.Add(streamStray)}
		b.strays[key] = s
		b.until(s.until)
	}
	s.payloads = append(s.payloads, ev)
	s.octets += size
	b.strayOctets += size
}

func (b *Bridge) dropStray(key streamKey, s *strays) {
	delete(b.strays, key)
	b.strayOctets -= s.octets
	for _, f := range s.payloads {
		b.done(f.Token)
	}
}

func (b *Bridge) sortedStrays() []streamKey {
	return slices.SortedFunc(maps.Keys(b.strays), streamKey.compare)
}

// answerReset tells the far gateway, once, that there is no such stream here.
func (b *Bridge) answerReset(key streamKey, m site.Message) {
	if b.streamsOver.add(b.overKey(key)) {
		b.carry([]uint16{key.site}, streamMessage(site.Message{Scope: m.Scope, From: m.To, To: m.From}, key.head(headReset), nil))
	}
}

func (b *Bridge) learnCredential(key credentialKey, doc []byte) {
	if len(doc) > maxCredential || bytes.Equal(b.credentials[key], doc) {
		return
	}
	if len(b.credentials) >= maxCredentials {
		for k := range b.credentials {
			b.forget(k.memory())
		}
		clear(b.credentials)
	}
	b.credentials[key] = slices.Clone(doc)
	b.record(key.memory(), b.credentials[key])
}

// siteLostStreams ends the streams with a site that has forgotten them. Their numbers may come again.
func (b *Bridge) siteLostStreams(siteID uint16) {
	b.siteEpochs[siteID]++
	for _, st := range b.sortedStreams() {
		if st.key.site != siteID {
			continue
		}
		b.forgetStream(st)
		delete(b.streams, st.key)
		b.given++
		st.key.number = 1<<62 | b.given
		b.streams[st.key] = st
		if !st.ended {
			b.closeDown(st)
		}
	}
	for _, key := range b.sortedStrays() {
		if key.site == siteID {
			b.dropStray(key, b.strays[key])
		}
	}
	for k := range b.credentialsTold {
		if k.site == siteID {
			delete(b.credentialsTold, k)
		}
	}
}

func parseStreamHead(ev site.FarMessage) (head byte, key streamKey, rest []byte, err error) {
	pl := &ev.Message
	if len(pl.Parts) == 0 || pl.Parts[0].Namespace != nsRel || len(pl.Parts[0].Data) == 0 {
		return 0, key, nil, errStreamHead
	}
	data := pl.Parts[0].Data
	head = data[0]
	n, w := binary.Uvarint(data[1:])
	if w <= 0 {
		return 0, key, nil, errStreamHead
	}
	key = streamKey{ev.Site, head&headYours != 0, n}
	if head &^= headYours; head < headOpen || head > headGo {
		return 0, key, nil, errStreamHead
	}
	return head, key, data[1+w:], nil
}

func parseOpen(b []byte, server string) (flags byte, urn, name string, digest []byte, err error) {
	if len(b) < 1 {
		return 0, "", "", nil, errStreamHead
	}
	flags = b[0]
	urn, b, err = parsePacked(b[1:], server)
	if err == nil {
		name, b, err = parseText(b)
	}
	if err == nil && flags&openCredential != 0 {
		if len(b) < 8 {
			return 0, "", "", nil, errStreamHead
		}
		digest, b = b[:8], b[8:]
	}
	if err == nil && len(b) > 0 {
		err = errStreamHead
	}
	return flags, urn, name, digest, err
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func parseText(b []byte) (string, []byte, error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > maxStreamName || uint64(len(b)-w) < n {
		return "", nil, errStreamHead
	}
	return string(b[w : w+int(n)]), b[w+int(n):], nil
}

// appendPacked writes a pipe's URN: a uuid id of the server pipe's group in 17 octets, any other as text.
func appendPacked(b []byte, id, urn, server string) []byte {
	p, ok := jxta.SplitID(id)
	if s, err := jxta.ParseURN(server); ok && err == nil && !p.CBID && p.Kind == jxta.KindPipe && urn == jxta.URN(p.Unique()) {
		if q, ok := jxta.SplitID(s); ok && q.Group == p.Group {
			return append(append(b, 0), p.UUID[:]...)
		}
	}
	return appendText(append(b, 1), urn)
}

func parsePacked(b []byte, server string) (string, []byte, error) {
	switch {
	case len(b) >= 17 && b[0] == 0:
		s, err := jxta.ParseURN(server)
		if err != nil {
			return "", nil, err
		}
		p, ok := jxta.SplitID(s)
		if !ok {
			return "", nil, errStreamHead
		}
		p.CBID, p.Kind, p.UUID = false, jxta.KindPipe, [16]byte(b[1:17])
		return jxta.URN(p.Unique()), b[17:], nil
	case len(b) > 0 && b[0] == 1:
		urn, rest, err := parseText(b[1:])
		if err == nil {
			_, err = jxta.ParseURN(urn)
		}
		return urn, rest, err
	}
	return "", nil, errStreamHead
}

// toEdge sends to the edge as the ghost.
func (b *Bridge) toEdge(st *stream, p *peer, elements ...jxta.Element) {
	b.enqueue(p, b.edgeMessage(st, p, elements...))
}

func (b *Bridge) edgeMessage(st *stream, p *peer, elements ...jxta.Element) *message {
	m := b.routed(p, st.remote, st.group, svcPipe, st.to, elements)
	if p.leases[st.group] == nil {
		m.group = p.anyGroup()
	}
	return m
}
