package jxtabridge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// svcStream is the service of messages between bridges about streams. No peer has a service of that name.
const svcStream = "jxtarel"

// First octet of the first element of such a message; with headYours the stream's number was drawn by the receiver.
// The number follows, then the fields in the comments; sizes and numbers are uvarints.
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

// carryPart gives a payload of a stream to the gateway. Flows are named by sender, receiver, service and shape, so that
// all streams of two peers share them (internal/link/envelope).
func (ss *streams) carryPart(st *stream, head byte, number uint32, more []jxta.Element, octets int) {
	data := st.key.head(head)
	switch head {
	case headBlock: // its only element is the block
		data = append(binary.AppendUvarint(data, uint64(number)), more[0].Data...)
		more = nil
	case headMessage, headClose:
		data = binary.AppendUvarint(data, uint64(number))
	}
	if octets > 0 {
		st.gave(octets)
	}
	key := st.key
	ss.give(key.site, streamMessage(site.Message{Scope: st.group, From: st.local, To: st.remote}, data, more),
		func(refused bool) { ss.carried(key, octets, refused) })
}

func (k streamKey) head(head byte) []byte {
	if !k.mine {
		head |= headYours
	}
	return binary.AppendUvarint([]byte{head}, k.number)
}

// streamMessage completes a message between bridges about a stream.
func streamMessage(m site.Message, data []byte, more []jxta.Element) site.Message {
	m.Service = svcStream
	m.Parts = append([]jxta.Element{{Namespace: nsRel, Data: data}}, more...)
	return m
}

// readStreamBlock turns a block of the edge into the form that crosses the link. A BiDi block is a whole message: its signature stays
// here, its elements travel as elements, so that their names are in the flow and not in every block.
func readStreamBlock(st *stream, in inbound, data []byte) (upward, error) {
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

// utf8Names says whether all names and types can travel in an envelope.
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

// hear handles a message of the far gateway about a stream.
func (ss *streams) hear(ev site.FarMessage) {
	head, key, rest, err := parseStreamHead(ev)
	if err != nil {
		ss.stats.Refused["stream_head"]++
		ss.done(ev.Token)
		return
	}
	if head == headOpen {
		if key.mine {
			ss.done(ev.Token)
			return
		}
		ss.openFar(ev, key, rest)
		return
	}
	st := ss.of[key]
	switch {
	case st == nil && ss.over.Has(ss.overKey(key)):
	case st == nil && key.mine:
		if head != headReset {
			ss.answerReset(key, ev.Message)
		}
	case st == nil:
		ss.stray(ev, key, head)
		return
	case st.local != ev.Message.To || st.remote != ev.Message.From || st.Ended():
	case head == headBlock || head == headMessage:
		ss.farBlock(st, ev, head, rest)
		return
	case head == headClose:
		n, w := binary.Uvarint(rest)
		if _, acked := st.Position(); w > 0 && n < 1<<31 && uint32(n) >= acked {
			st.because("closed_there")
			ss.sent(st, st.Close(ss.now, uint32(n)))
			ss.save(st)
		}
	case head == headReset:
		st.because("reset_there")
		ss.note("info", "stream ended by the far side", "peer", st.local, "far_peer", st.remote)
		ss.closeDown(st)
	case head == headHold || head == headGo:
		out := st.Hold(ss.now, head == headHold)
		ss.save(st)
		ss.talks.settle(&st.conversation, out)
	}
	ss.done(ev.Token)
}

// farBlock puts a block in its place; long ones may come after short ones that were sent later.
func (ss *streams) farBlock(st *stream, ev site.FarMessage, head byte, rest []byte) {
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
		ss.stats.Refused["stream_head"]++
		undelivered(ss.step, ev.Token, site.Unfit, st.local)
		return
	}
	switch st.Put(uint32(n64), d) {
	case reliable.Taken:
		ss.stats.Stream.Duplicates++
		ss.done(ev.Token)
	case reliable.Full:
		undelivered(ss.step, ev.Token, site.Broken, st.local)
		ss.reset(st, "overflow")
	case reliable.Next:
		ss.sent(st, st.Pump(ss.now))
	}
}

// Bounds of octets that wait for one edge, far above the octets that a gateway that obeys headHold sends, and of messages that
// wait for openings.
const (
	maxStreamOctets = 16 << 20
	maxStrayOctets  = 4 << 20
	maxStrays       = 256
)

// stray keeps a message that came before its stream's opening.
func (ss *streams) stray(ev site.FarMessage, key streamKey, head byte) {
	size := sizeOf(ev.Message.Parts)
	switch {
	case head == headHold || head == headGo || head == headReset:
		ss.done(ev.Token)
	case ss.strays.octets+size > maxStrayOctets || ss.strays.of[key] == nil && len(ss.strays.of) >= maxStrays:
		undelivered(ss.step, ev.Token, site.Broken, ev.Message.To)
		ss.stats.Refused["stream_stray"]++
		ss.dropStray(key)
		ss.answerReset(key, ev.Message)
	default:
		ss.talks.wakeBy(ss.strays.add(key, ev, size, ss.now.Add(streamStray)))
	}
}

func (ss *streams) dropStray(key streamKey) {
	for _, f := range ss.strays.remove(key) {
		undelivered(ss.step, f.Token, site.Broken, f.Message.To)
	}
}

// strays are the messages that came before their stream's opening.
type strays struct {
	of     map[streamKey]*stray
	octets int
}

type stray struct {
	until    time.Time
	octets   int
	messages []site.FarMessage
}

// add keeps a message of a stream, and returns until when the opening has to come.
func (x *strays) add(key streamKey, ev site.FarMessage, size int, until time.Time) time.Time {
	s := x.of[key]
	if s == nil {
		s = &stray{until: until}
		x.of[key] = s
	}
	s.messages = append(s.messages, ev)
	s.octets += size
	x.octets += size
	return s.until
}

// remove takes out the messages of a stream.
func (x *strays) remove(key streamKey) []site.FarMessage {
	s := x.of[key]
	if s == nil {
		return nil
	}
	delete(x.of, key)
	x.octets -= s.octets
	return s.messages
}

func (x *strays) sorted() []streamKey { return slices.SortedFunc(maps.Keys(x.of), streamKey.compare) }

// answerReset tells the far gateway, once, that there is no such stream here.
func (ss *streams) answerReset(key streamKey, m site.Message) {
	if ss.over.Add(ss.overKey(key)) {
		ss.carry([]uint16{key.site}, streamMessage(site.Message{Scope: m.Scope, From: m.To, To: m.From}, key.head(headReset), nil))
	}
}

// siteLost ends the streams with a site that has forgotten them. Their numbers may come again.
func (ss *streams) siteLost(siteID uint16) {
	ss.epochs[siteID]++
	for _, st := range ss.sorted() {
		if st.key.site != siteID {
			continue
		}
		ss.erase(st)
		delete(ss.of, st.key)
		ss.given++
		st.key.number = 1<<62 | ss.given
		ss.of[st.key] = st
		if !st.Ended() {
			ss.closeDown(st)
		}
	}
	for _, key := range ss.strays.sorted() {
		if key.site == siteID {
			ss.dropStray(key)
		}
	}
	ss.credentials.siteLost(siteID)
}

func parseStreamHead(ev site.FarMessage) (head byte, key streamKey, rest []byte, err error) {
	m := &ev.Message
	if len(m.Parts) == 0 || m.Parts[0].Namespace != nsRel || len(m.Parts[0].Data) == 0 {
		return 0, key, nil, errStreamHead
	}
	data := m.Parts[0].Data
	head = data[0]
	n, w := binary.Uvarint(data[1:])
	if w <= 0 {
		return 0, key, nil, errStreamHead
	}
	key = streamKey{ev.Site, head&headYours != 0, n}
	head &^= headYours
	if head < headOpen || head > headGo {
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
