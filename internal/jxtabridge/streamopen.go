package jxtabridge

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge/reliable"
	"aldis/internal/site"
)

// handle takes messages of streams out of the traffic to a ghost; it reports whether in was one.
func (ss *streams) handle(in inbound, far uint16) bool {
	if in.service != svcPipe {
		return false
	}
	if st := ss.at[streamAddr{in.from.id, in.dest, in.param}]; st != nil {
		ss.fromEdge(st, in)
		return true
	}
	m := jxta.Message{Elements: in.elements}
	switch {
	case is(m.Find("JXTABIP", "reliable"), "true") && m.Find("JXTABIP", "reqPipe") != nil:
		ss.open(in, far, streamBiDi)
		return true
	case is(m.Find("JXTASOC", "stream"), "true") && m.Find("JXTASOC", "reqPipe") != nil && m.Find("JXTASOC", "symmetricKey") == nil:
		ss.open(in, far, streamSocket)
		return true
	}
	for _, e := range in.elements {
		if e.Namespace == nsRel { // of a stream that has ended, or never existed
			ss.stats.Refused["stream_unknown"]++
			return true
		}
	}
	return false
}

func is(e *jxta.Element, value string) bool {
	return e != nil && strings.EqualFold(strings.TrimSpace(string(e.Data)), value)
}

// open accepts in the server's place, at once, and tells the far gateway (ghosts 6.4, local accept).
func (ss *streams) open(in inbound, far uint16, kind streamKind) {
	m := jxta.Message{Elements: in.elements}
	urn, id, name, err := parsePipeDoc(m.Find(kind.namespace(), "reqPipe").Data)
	if err != nil {
		ss.complain(in.conn, "stream_open", err)
		return
	}
	if !ss.rules.mayOpen(site.Out, far, in.group, in.from.id, in.param) {
		ss.stats.Refused["stream_filter"]++
		return
	}
	from := madeUpPipe(ss.me, id, in.from.id, in.dest)
	addr := streamAddr{in.from.id, in.dest, jxta.URN(from)}
	if st := ss.at[addr]; st != nil { // the client has asked twice
		ss.acceptLocally(st)
		return
	}
	if ss.talks.full(in.from.id) {
		ss.complain(in.conn, "streams", errStreams)
		return
	}
	ss.number++
	st := &stream{conversation: conversation{group: in.group, local: in.from.id, remote: in.dest, to: urn}, kind: kind,
		key: streamKey{far, true, ss.number}, server: in.param, name: name, from: addr.pipe, toID: id}
	ss.add(st, reliable.State{})
	ss.outlets.hush(st)
	ss.stats.Streams++
	ss.record(memStreamNext, strconv.AppendUint(nil, ss.number, 10))
	ss.save(st)
	ss.acceptLocally(st)

	data := st.key.head(headOpen)
	var more []jxta.Element
	var digest []byte
	flags := byte(0)
	if kind == streamBiDi {
		flags |= openBiDi
	}
	if cred := m.Find(kind.namespace(), "Cred"); cred != nil {
		flags |= openCredential
		sum := sha256.Sum256(cred.Data)
		digest = sum[:8]
		if ss.credentials.crosses(credentialKey{far, in.from.id}, digest) {
			more = append(more, keep([]jxta.Element{*cred})...)
		}
	}
	if e := m.Find(kind.namespace(), "connectionproperties"); e != nil {
		more = append(more, keep([]jxta.Element{*e})...)
	}
	data = append(data, flags)
	data = appendPacked(data, id, urn, in.param)
	data = appendText(data, name)
	data = append(data, digest...)
	key := st.key
	ss.give(far, streamMessage(site.Message{Scope: st.group, From: st.local, To: st.remote, Param: st.server}, data, more),
		func(refused bool) { ss.carried(key, 0, refused) })
}

func (ss *streams) add(st *stream, s reliable.State) {
	ss.talks.begin(&st.conversation, &ss.layers[st.kind], s)
	ss.of[st.key] = st
	ss.at[streamAddr{st.local, st.remote, st.from}] = st
}

// overKey names a stream in over. A site that lost its store counts from 1 again.
func (ss *streams) overKey(k streamKey) string {
	return fmt.Sprint(ss.epochs[k.site], " ", k.memory())
}

// madeUpPipe is the server's pipe that the client is shown: always the same for the same client pipe.
func madeUpPipe(me, client, local, remote string) string {
	sum := sha256.Sum256([]byte("aldis stream\x00" + me + "\x00" + client + "\x00" + local + "\x00" + remote))
	p, ok := jxta.SplitID(client)
	if !ok {
		p = jxta.IDParts{Group: jxta.NetUUID}
	}
	p.CBID, p.Kind = false, jxta.KindPipe
	copy(p.UUID[:], sum[:])
	p.UUID[15] |= 1 // zeros at the end would be cut off (ghosts 2)
	return p.Unique()
}

func pipeDoc(urn, name string) []byte {
	n := jxta.El("jxta:PipeAdvertisement", jxta.Leaf("Id", urn), jxta.Leaf("Type", jxta.PipeTypeUnicast), jxta.Leaf("Name", name))
	n.Attr = []jxta.Attr{{Name: "xml:space", Value: "preserve"}, {Name: "xmlns:jxta", Value: "http://jxta.org"}}
	return jxta.AppendDocument(nil, n)
}

// parsePipeDoc returns the pipe's URN in its owner's spelling, its unique value, and its name.
func parsePipeDoc(doc []byte) (urn, id, name string, err error) {
	n, err := jxta.ParseXML(doc, jxta.DefaultXML)
	if err != nil {
		return "", "", "", err
	}
	urn = strings.TrimSpace(n.KidValue("Id"))
	id, err = jxta.ParseURN(urn)
	if err == nil && (jxta.IDKind(id) != jxta.KindPipe || strings.TrimSpace(n.KidValue("Type")) != jxta.PipeTypeUnicast) {
		err = &jxta.ParseError{What: "pipe advertisement", Field: "Type", Err: jxta.ErrMismatch}
	}
	name = n.KidValue("Name")
	if len(name) > maxStreamName {
		name = ""
	}
	return urn, id, name, err
}

const maxStreamName = 512

// acceptLocally is the server's answer, made here. No credential is needed (ghosts 6.4).
func (ss *streams) acceptLocally(st *stream) {
	k := st.kind
	doc, err := ss.ghosts.ghostPeerDoc(ss.far.peerDoc(st.remote, st.group))
	if err != nil {
		ss.note("error", "a far peer's advertisement cannot be rebuilt", "peer", st.remote, "error", err)
		return
	}
	pipe, peer := k.document("remPipe", pipeDoc(st.from, st.name)), k.document("remPeer", doc)
	if k == streamBiDi {
		ss.talks.toEdge(&st.conversation, k.word("direct", "false"), pipe, peer)
	} else {
		ss.talks.toEdge(&st.conversation, pipe, peer, k.word("stream", "true"), k.word("encrypt", "false"))
	}
}

// openFar opens a stream for a far client at the local server.
func (ss *streams) openFar(ev site.FarMessage, key streamKey, rest []byte) {
	m := ev.Message
	if st := ss.of[key]; st != nil { // handed in again
		if st.opening.token == 0 && !st.Ended() && st.to == "" {
			st.opening.token = ev.Token
		} else if st.opening.token != ev.Token {
			ss.done(ev.Token)
		}
		return
	}
	flags, urn, name, digest, err := parseOpen(rest, m.Param)
	p := ss.outlets.peers[m.To]
	refuse := ""
	switch {
	case ss.over.Has(ss.overKey(key)):
		ss.done(ev.Token)
		return
	case err != nil:
		refuse = "malformed"
	case p == nil || len(p.leases) == 0:
		refuse = "no_peer"
	case ss.talks.full(m.To):
		refuse = "streams"
	default:
		if id, err := jxta.ParseURN(m.Param); err != nil {
			refuse = "malformed"
		} else if _, open := p.pipes[pipeKey{m.Scope, id}]; !open {
			refuse = "no_pipe"
		}
	}
	if refuse == "" && !ss.rules.mayOpen(site.In, ev.Site, m.Scope, m.From, m.Param) {
		refuse = "filter"
	}
	if refuse != "" {
		ss.stats.Refused["stream_"+refuse]++
		undelivered(ss.step, ev.Token, site.Broken, m.To)
		ss.answerReset(key, m)
		return
	}
	kind := streamSocket
	if flags&openBiDi != 0 {
		kind = streamBiDi
	}
	st := &stream{conversation: conversation{group: m.Scope, local: m.To, remote: m.From}, kind: kind,
		key: key, server: m.Param, name: name, from: urn, opening: opening{ev.Token, ss.now.Add(streamAccept)}}
	ss.talks.wakeBy(st.opening.until)
	ss.add(st, reliable.State{})
	ss.stats.Streams++
	ss.save(st)
	ss.offer(st, p, flags, digest, m.Parts[1:])
	for _, f := range ss.strays.remove(key) {
		ss.hear(f)
	}
}

// offer sends the server the client's request as JXSE writes it.
func (ss *streams) offer(st *stream, p *peer, flags byte, digest []byte, more []jxta.Element) {
	k := st.kind
	m := jxta.Message{Elements: more}
	var all []jxta.Element
	if flags&openCredential != 0 {
		key := credentialKey{st.key.site, st.remote}
		if e := m.Find(k.namespace(), "Cred"); e != nil {
			ss.credentials.learn(key, e.Data)
		}
		if doc := ss.credentials.docs[key]; doc != nil {
			if sum := sha256.Sum256(doc); bytes.Equal(sum[:8], digest) {
				all = append(all, k.document("Cred", doc))
			}
		}
	}
	all = append(all, k.document("reqPipe", pipeDoc(st.from, st.name)))
	var peer []jxta.Element
	if doc, err := ss.ghosts.ghostPeerDoc(ss.far.peerDoc(st.remote, st.group)); err == nil {
		peer = append(peer, k.document("remPeer", doc))
	}
	if k == streamBiDi {
		all = append(all, k.word("reliable", "true"), k.word("direct", "false"))
		if e := m.Find(k.namespace(), "connectionproperties"); e != nil {
			all = append(all, *e)
		}
		all = append(all, peer...)
	} else {
		all = append(append(all, peer...), k.word("stream", "true"))
	}
	ss.outlets.enqueue(p, ss.ghosts.routedAnyGroup(p, st.remote, st.group, svcPipe, st.server, all))
}

// accepted keeps the server's real answer: the blocks that were held so far go to its pipe.
func (ss *streams) accepted(st *stream, in inbound, doc []byte) {
	if st.key.mine {
		return
	}
	urn, id, _, err := parsePipeDoc(doc)
	if err != nil {
		ss.complain(in.conn, "stream_accept", err)
		return
	}
	m := jxta.Message{Elements: in.elements}
	late := st.Ended() && st.to == ""
	if st.to == "" {
		st.to, st.toID = urn, id
		st.Open()
		ss.outlets.hush(st)
	}
	switch {
	case late && st.kind == streamSocket: // already refused: the server is told now
		ss.talks.toEdge(&st.conversation, st.kind.word("close", "close"))
		return
	case late:
		ss.talks.send(&st.conversation, reliable.Send{Number: 1, Data: closeBlock()})
		return
	case st.Ended() || st.toID != id:
		return
	case is(m.Find(st.kind.namespace(), "encrypt"), "true"):
		// The client was accepted without a key: the server's octets would be noise to it.
		ss.reset(st, "encrypted")
		return
	}
	st.opening.until = time.Time{}
	if st.opening.token != 0 {
		ss.done(st.opening.token)
		st.opening.token = 0
	}
	ss.save(st)
	ss.sent(st, st.Pump(ss.now))
}
