package jxtabridge

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"aldis/internal/jxta"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

func rel(name, mime string, data []byte) jxta.Element {
	return jxta.Element{Namespace: nsRel, Name: name, Type: mime, Data: data}
}

func TestHostileStream(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := meet(w, streamBiDi, true)
	w.pass(5 * time.Second)
	n := w.nodes[1]
	good := client.block("x")
	foreign := (&edge{fake: server.fake, kind: streamBiDi}).block("x")
	unsigned := (&edge{fake: &fake{n: n, id: client.id, signed: true}, kind: streamBiDi}).block("x")
	unsigned[20] ^= 1 // in the signed octets
	ack := binary.BigEndian.AppendUint32(nil, 7)
	for _, tt := range []struct {
		what   string
		e      jxta.Element
		reason string
	}{
		{"number 0", rel("0", mimeBlock, good), "stream_block"},
		{"no number", rel("one", mimeBlock, good), "stream_block"},
		{"negative", rel("-1", mimeBlock, good), "stream_block"},
		{"too large", rel("4294967297", mimeBlock, good), "stream_block"},
		{"a jump", rel("5000", mimeBlock, good), "stream_block"},
		{"no message", rel("1", mimeBlock, []byte("jxmg")), "stream_block"},
		{"another's signature", rel("1", mimeBlock, foreign), "stream_block"},
		{"a changed message", rel("1", mimeBlock, unsigned), "stream_block"},
		{"acknowledges what was not sent", rel(relAck, mimeAck, ack), "stream_ack"},
		{"short acknowledgement", rel(relAck, mimeAck, ack[:3]), "stream_ack"},
		{"empty acknowledgement", rel(relAck, mimeAck, nil), "stream_ack"},
	} {
		before, acks, crossed := n.b.Stats().Refused[tt.reason], client.acks, len(w.crossed)
		client.tell(tt.e)
		w.settle()
		if got := n.b.Stats().Refused[tt.reason]; got != before+1 || client.acks != acks || len(w.crossed) != crossed {
			t.Errorf("%s: refused %d times, %d acknowledgements, %d payloads", tt.what, got-before, client.acks-acks, len(w.crossed)-crossed)
		}
	}
	// Far ahead, but within a possible window: kept, to a bound, and not acknowledged.
	for i := range 200 {
		client.tell(rel(strconv.Itoa(2+i), mimeBlock, good))
	}
	w.settle()
	if full := n.b.Stats().Refused["stream_full"]; client.acks != 0 || full != 200-streamReorder {
		t.Errorf("%d acknowledgements, %d blocks kept", client.acks, 200-full)
	}
	// Messages that belong to no stream end here.
	crossed := len(w.crossed)
	client.say(server.id, jxta.NetGroup, svcPipe, pipeURN(5), rel("1", mimeBlock, good))
	client.say(server.id, jxta.NetGroup, svcPipe, pipeURN(5), rel(relAck, mimeAck, ack))
	w.settle()
	if len(w.crossed) != crossed || n.b.Stats().Refused["stream_unknown"] != 2 {
		t.Error("blocks of no stream cross")
	}
	// The stream itself has not suffered.
	client.write("c 1")
	w.pass(5 * time.Second)
	if len(server.read) == 0 || server.read[0] != "c 1" {
		t.Errorf("server has read %q", server.read)
	}
}

// Blocks that wait for a missing one have as many octets as may be under way to the far site. An edge sends the others again.
func TestEarlyBlocksAreBounded(t *testing.T) {
	w := newStrait(t, time.Second)
	_, client := meet(w, streamSocket, true)
	w.pass(5 * time.Second)
	n := w.nodes[1]
	block := client.block(strings.Repeat("x", n.b.cfg.StreamOctets/4))
	for i := range 20 {
		client.tell(rel(strconv.Itoa(2+i), mimeBlock, block))
	}
	w.settle()
	check.Equal(t, "blocks refused", n.b.Stats().Refused["stream_full"], 16)
}

func TestStreamTablesAreBounded(t *testing.T) {
	w := newStrait(t, time.Second)
	for _, n := range w.nodes {
		n.cfg.MaxStreams = 20
		n.b = New(n.cfg, nil)
	}
	server, client := w.edge(0, "S", streamSocket, false), w.edge(1, "C", streamSocket, false)
	pipe := server.listen()
	server.refuse, client.many = true, true
	w.settle()
	for i := range 50 {
		client.own = pipeURN(3000 + i)
		client.connectTo(server.id, pipe)
	}
	w.pass(5 * time.Second)
	for i, n := range w.nodes {
		if len(n.b.streams.of) != 5 {
			t.Errorf("%d streams at node %d, want a quarter of 20 for one peer", len(n.b.streams.of), i)
		}
	}
	// A far gateway gone mad.
	n := w.nodes[0]
	data := func(number, seq int) []byte {
		return append(binary.AppendUvarint(binary.AppendUvarint([]byte{headBlock}, uint64(number)), uint64(seq)), make([]byte, 20000)...)
	}
	token := uint64(1 << 32)
	send := func(d []byte) {
		token++
		w.pending[0][token] = site.FarMessage{}
		n.step(site.FarMessage{Site: 2, Token: token, Message: site.Message{Scope: jxta.NetGroup, From: client.id, To: server.id, Service: svcStream,
			Parts: []jxta.Element{{Namespace: nsRel, Data: d}}}})
	}
	for i := range 1000 {
		send(data(100+i%400, 1+i/400))
	}
	if len(n.b.streams.strays.of) > maxStrays || n.b.streams.strays.octets > maxStrayOctets {
		t.Errorf("%d strays, %d octets", len(n.b.streams.strays.of), n.b.streams.strays.octets)
	}
	for i := range 6000 {
		send(data(1, 2+i))
	}
	for _, st := range n.b.streams.of {
		if _, octets, _ := st.Waiting(); octets > maxStreamOctets {
			t.Errorf("%d octets wait", octets)
		}
	}
	for i := range maxCredentials + 10 {
		n.b.out = &site.Output{}
		n.b.streams.credentials.learn(credentialKey{2, fmt.Sprint(i)}, []byte("<c/>"))
	}
	if len(n.b.streams.credentials.docs) > maxCredentials {
		t.Errorf("%d credentials", len(n.b.streams.credentials.docs))
	}
	n.b.out = nil
	w.pass(20 * time.Minute)
	if len(n.b.streams.strays.of) != 0 || n.b.streams.strays.octets != 0 {
		t.Errorf("strays stay: %d, %d octets", len(n.b.streams.strays.of), n.b.streams.strays.octets)
	}
}

// Peers of one host have half of the streams together.
func TestStreamsOfOneHost(t *testing.T) {
	w := newStrait(t, time.Second)
	n := w.nodes[1]
	n.cfg.MaxStreams = 20
	n.b = New(n.cfg, nil)
	server := w.edge(0, "S", streamSocket, false)
	pipe := server.listen()
	server.refuse = true
	w.settle()
	for i := range 4 {
		client := w.edge(1, "C", streamSocket, false)
		client.many = true
		client.hangUp()
		client.addr = fmt.Sprintf("10.66.1.1:%d", 9000+i)
		client.redial("")
		for k := range 5 {
			client.own = pipeURN(3000 + 5*i + k)
			client.connectTo(server.id, pipe)
		}
	}
	check.Equal(t, "streams of one host", len(n.b.streams.of), 10)
}

// A credential crosses once, and is remembered across a restart.
func TestStreamCredentialCrossesOnce(t *testing.T) {
	w := newStrait(t, time.Second)
	server, client := w.edge(0, "S", streamSocket, true), w.edge(1, "C", streamSocket, true)
	pipe := server.listen()
	w.settle()
	creds := 0
	for i := range 3 {
		client.own, client.to = pipeURN(4000+i), ""
		client.connectTo(server.id, pipe)
		w.pass(5 * time.Second)
		client.shut()
		w.pass(5 * time.Minute)
		w.restart(0, time.Second)
		w.pass(5 * time.Second)
	}
	for _, pl := range w.crossed {
		for _, e := range pl.Parts {
			if e.Name == "Cred" {
				creds++
			}
		}
	}
	if creds != 1 { // edge.request checks that the server is shown it each time
		t.Errorf("the credential crosses %d times", creds)
	}
}

// Messages of a far gateway, whole and cut.
func FuzzFarStream(f *testing.F) {
	for _, seed := range [][]byte{{headOpen, 1, 0, 0}, {headBlock, 1, 1, 'x'}, {headMessage, 1, 1}, {headClose, 1, 0}, {headReset | headYours, 1}, {headHold, 1}, {headGo, 0xff, 0xff}} {
		f.Add(seed, "body")
	}
	f.Add(append(append([]byte{headOpen, 3, openBiDi | openCredential, 0}, make([]byte, 16)...), 1, 'n', 1, 2, 3, 4, 5, 6, 7, 8), "Cred")
	f.Fuzz(func(t *testing.T, head []byte, name string) {
		n := patient(t, 1)
		p := n.peer("A", "uuid")
		pipe := pipeURN(1)
		p.pipe(jxta.NetGroup, strings.TrimPrefix(pipe, "urn:jxta:"), jxta.PipeTypeUnicast, true)
		n.step(site.FarItem{Site: 2, Item: site.Item{Kind: site.Endpoint, Scope: jxta.NetGroup, Owner: peerName("uuid", 999), Doc: nil}})
		say := func(token uint64, data []byte) {
			n.step(site.FarMessage{Site: 2, Token: token, Message: site.Message{Scope: jxta.NetGroup, From: peerName("uuid", 999), To: p.id, Service: svcStream, Param: pipe,
				Parts: []jxta.Element{{Namespace: nsRel, Data: data}, {Namespace: "JXTABIP", Name: name, Data: []byte("<x/>")}}}})
		}
		say(1, append(append([]byte{headOpen, 1, openBiDi, 0}, make([]byte, 16)...), 0))
		say(2, head)
		say(3, head)
		n.pass(30 * time.Minute)
		done := map[uint64]bool{}
		for _, d := range n.ended {
			if done[d] {
				t.Errorf("token %d is done twice", d)
			}
			done[d] = true
		}
		if len(done) != 3 {
			t.Errorf("ended %v of 3 payloads", n.ended)
		}
	})
}
