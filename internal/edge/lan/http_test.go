package lan

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/jxta"
	"aldis/internal/jxtabridge"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const (
	ownUnique  = "uuid-59616261646162614A78746150325033000000000000000000000000000000AA03"
	peerUnique = "uuid-59616261646162614A787461503250336D05A710FF3CF2DBFB25ADEC2FEE183803"
	otherPeer  = "cbid-59616261646162614A787461503250336D05A710FF3CF2DBFB25ADEC2FEE184403"
	relayDest  = "http://127.0.0.1:9700/EndpointService:jxta-NetGroup/uuid-DEADBEEFDEAFBABAFEEDBABE0000000F05/connect,3600000,keep,true"
)

// startHTTP is start with the polling transport.
func startHTTP(t *testing.T, cfg Config) *world {
	cfg.Peer = ownUnique
	w := &world{T: t, changed: make(chan struct{}), reg: prometheus.NewRegistry()}
	w.lan = New(cfg, w.post, w.reg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ln, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = ln.Addr().String()
	served := make(chan error)
	go func() { served <- w.lan.ServePolling(ln) }()
	t.Cleanup(func() {
		w.lan.Shutdown()
		if err := <-served; err != nil {
			t.Errorf("ServePolling = %v", err)
		}
		w.consistent()
		for _, m := range []string{"aldis_lan_connections", "aldis_lan_polls"} {
			if n := w.metric(m, ""); n != 0 {
				t.Errorf("%s is %v at the end", m, n)
			}
		}
		if n := w.lan.room.held; n != 0 {
			t.Errorf("%d octets of reading not given back", n)
		}
	})
	return w
}

// consistent checks the order of events of each connection.
func (w *world) consistent() {
	w.Helper()
	const opened, welcomed, quiet, closed = 1, 2, 4, 8
	state := map[site.ConnID]int{}
	step := func(id site.ConnID, allowed bool, set int, ev site.Event) {
		if !allowed {
			w.Errorf("%T of connection %d in state %d", ev, id, state[id])
		}
		state[id] |= set
	}
	for _, ev := range w.all() {
		switch ev := ev.(type) {
		case jxtabridge.Opened:
			step(ev.Conn, state[ev.Conn] == 0 && ev.HTTP, opened, ev)
		case jxtabridge.Welcomed:
			step(ev.Conn, state[ev.Conn]&^quiet == opened, welcomed, ev)
		case jxtabridge.Received:
			step(ev.Conn, state[ev.Conn]&^quiet == opened|welcomed, 0, ev)
		case jxtabridge.Written:
			step(ev.Conn, state[ev.Conn] == opened|welcomed, 0, ev)
		case jxtabridge.Quiet:
			step(ev.Conn, state[ev.Conn]&(quiet|closed) == 0 && state[ev.Conn] != 0, quiet, ev)
		case jxtabridge.Closed:
			step(ev.Conn, state[ev.Conn]&^quiet == opened|welcomed, closed, ev)
		}
	}
	for id, s := range state {
		if s&closed == 0 {
			w.Errorf("connection %d was never closed", id)
		}
	}
}

// pollRaw sends a poll over a new connection.
func (w *world) pollRaw(unique, query string) (net.Conn, *bufio.Reader) {
	w.Helper()
	c := w.dial()
	w.say(c, []byte("GET /"+unique+"?"+query+" HTTP/1.1\r\nHost: "+w.addr+"\r\nUser-Agent: Java/17\r\n\r\n"))
	return c, bufio.NewReader(c)
}

// opened waits for the nth poll and returns its connection.
func (w *world) opened(n int) (id site.ConnID) {
	w.Helper()
	w.await("Welcomed", func(e []site.Event) bool {
		seen := 0
		for _, ev := range e {
			if h, ok := ev.(jxtabridge.Welcomed); ok {
				if seen++; seen == n {
					id = h.Conn
				}
			}
		}
		return seen >= n
	})
	return id
}

// from is a message of a peer, with or without a router message.
func from(unique, last string, n int) []byte {
	m := jxta.Message{Elements: []jxta.Element{{Namespace: "trk", Name: "body", Data: body(n)}}}
	if unique != "" {
		m.Elements = append(m.Elements, jxta.Element{Namespace: "jxta", Name: "EndpointSourceAddress", Data: []byte("jxta://" + unique)})
	}
	if last != "" {
		r := jxta.RouterMessage{Src: last, Dest: jxta.Address{Scheme: "jxta", Host: ownUnique, Service: "x"}, Last: last}
		m.Elements = append(m.Elements, jxta.Element{Namespace: "jxta", Name: "EndpointRouterMsg", Data: r.Append(nil)})
	}
	b, err := jxta.AppendMessage(nil, m)
	if err != nil {
		panic(err)
	}
	return b
}

func postHead(n int) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-jxta-msg\r\nContent-Length: %d\r\n\r\n", n)
}

func (w *world) mail(b []byte) *http.Response {
	w.Helper()
	resp, err := http.Post("http://"+w.addr+"/", jxta.MessageType, bytes.NewReader(b))
	if err != nil {
		w.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

func TestPing(t *testing.T) {
	w := startHTTP(t, Config{})
	resp, err := http.Get("http://" + w.addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "resp.StatusCode", resp.StatusCode, 200)
	check.Equal(t, "string(b)", string(b), ownUnique)
	check.Equal(t, "resp.ContentLength", resp.ContentLength, 71)
	check.Prefix(t, `resp.Header.Get("Content-Type")`, resp.Header.Get("Content-Type"), "text/plain")
	if len(w.all()) != 0 {
		t.Errorf("a ping made %+v", w.all())
	}
}

func TestPollAndPost(t *testing.T) {
	w := startHTTP(t, Config{})
	c, r := w.pollRaw(peerUnique, "120000,120000,"+relayDest)
	id := w.opened(1)
	ev := w.all()
	if o := ev[0].(jxtabridge.Opened); o.Remote != c.LocalAddr().String() || !o.HTTP {
		t.Errorf("%+v", o)
	}
	if h := ev[1].(jxtabridge.Welcomed); h.Welcome.Peer != jxta.URN(peerUnique) || h.Welcome.Dest != relayDest {
		t.Errorf("%+v", h)
	}
	w.lan.Send(jxtabridge.Send{Conn: id, Body: body(1000), Token: 1})
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != jxta.MessageType || !slices.Equal(resp.TransferEncoding, []string{"chunked"}) {
		t.Errorf("poll: %+v", resp)
	}
	got := make([]byte, 1000)
	if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, body(1000)) {
		t.Fatalf("first message %q, %v", got, err)
	}
	big := bytes.Repeat([]byte("0123456789"), 30_000)
	w.lan.Send(jxtabridge.Send{Conn: id, Body: big, Token: 2})
	got = make([]byte, len(big))
	if _, err := io.ReadFull(resp.Body, got); err != nil || !bytes.Equal(got, big) {
		t.Fatalf("second message: %d octets, %v", len(got), err)
	}
	w.await("Written", func(e []site.Event) bool { return count[jxtabridge.Written](e) == 2 })
	// Three ways to say who sends; the router message's Last wins.
	for _, m := range [][]byte{from(peerUnique, "", 10), from("", peerUnique, 200_000), from(otherPeer, peerUnique, 30)} {
		if resp := w.mail(m); resp.StatusCode != 200 || resp.ContentLength != 0 {
			t.Errorf("POST: %+v", resp)
		}
	}
	var bodies [][]byte
	for _, ev := range w.all() {
		if r, ok := ev.(jxtabridge.Received); ok {
			if r.Conn != id {
				t.Errorf("received on %d, want the poll %d", r.Conn, id)
			}
			bodies = append(bodies, r.Body)
		}
	}
	if len(bodies) != 3 || !bytes.Equal(bodies[1], from("", peerUnique, 200_000)) {
		t.Errorf("%d messages", len(bodies))
	}
	w.lan.Close(id)
	if rest, err := io.ReadAll(resp.Body); len(rest) != 0 || err != nil {
		t.Errorf("after the end %q, %v", rest, err)
	}
	w.closed(1)
	if n := count[jxtabridge.Quiet](w.all()); n != 0 {
		t.Error("closed by the bridge, and quiet instead")
	}
	if in, out := w.metric("aldis_lan_messages_total", "in"), w.metric("aldis_lan_messages_total", "out"); in != 3 || out != 2 {
		t.Errorf("%v in, %v out", in, out)
	}
}

// Two polls are both kept. Between polls the peer is still present, and a new poll takes over. After a while without polls the
// peer is gone.
func TestPollsComeAndGo(t *testing.T) {
	w := startHTTP(t, Config{PollLinger: 300 * time.Millisecond})
	_, r1 := w.pollRaw(peerUnique, "120000,120000,"+relayDest)
	first := w.opened(1)
	c2, _ := w.pollRaw(peerUnique, "120000,120000,http://x:1")
	second := w.opened(2)
	if w.metric("aldis_lan_polls", "") != 2 {
		t.Error("not two polls")
	}
	w.mail(from(peerUnique, "", 1))
	c2.Close() // the peer hangs up the newer
	w.closed(1)
	w.mail(from(peerUnique, "", 2))
	w.lan.Send(jxtabridge.Send{Conn: first, Body: body(9)})
	resp, err := http.ReadResponse(r1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 9)); err != nil {
		t.Fatal(err)
	}
	w.lan.mu.Lock()
	n := w.lan.conns[first]
	w.lan.mu.Unlock()
	n.finish() // as when its time is over
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("end of a poll: %v", err)
	}
	w.await("Quiet", func(e []site.Event) bool { return count[jxtabridge.Quiet](e) == 1 })
	w.lan.Send(jxtabridge.Send{Conn: first, Body: body(9)}) // dropped
	w.mail(from(peerUnique, "", 3))
	c3, _ := w.pollRaw(peerUnique, "120000,120000,"+relayDest)
	third := w.opened(3)
	w.closed(2)
	w.mail(from(peerUnique, "", 4))
	c3.Close()
	w.await("the session's end", func(e []site.Event) bool { return count[jxtabridge.Closed](e) == 3 })
	var heard []site.ConnID
	for _, ev := range w.all() {
		if r, ok := ev.(jxtabridge.Received); ok {
			heard = append(heard, r.Conn)
		}
	}
	if want := []site.ConnID{second, first, first, third}; !slices.Equal(heard, want) {
		t.Errorf("received on %v, want %v", heard, want)
	}
	w.until("nothing of the session is left", func() bool { // it goes just after Closed is told
		w.lan.mu.Lock()
		defer w.lan.mu.Unlock()
		return len(w.lan.sessions)+len(w.lan.owners)+len(w.lan.callers) == 0
	})
}

// A message without a poll, as after a restart of this gateway, is received; nothing is ever sent on that connection.
func TestPostBeforePoll(t *testing.T) {
	w := startHTTP(t, Config{})
	if resp := w.mail(from(peerUnique, "", 5)); resp.StatusCode != 200 {
		t.Errorf("%+v", resp)
	}
	e := w.all()
	check.Equal(check.Fatal(t), "len(e)", len(e), 4)
	check.Equal(t, "count[jxtabridge.Quiet](e[:2])", count[jxtabridge.Quiet](e[:2]), 1)
	check.Equal(t, "count[jxtabridge.Welcomed](e[:3])", count[jxtabridge.Welcomed](e[:3]), 1)
	check.Equal(t, "count[jxtabridge.Received](e)", count[jxtabridge.Received](e), 1)
	id := e[0].(jxtabridge.Opened).Conn
	w.lan.Send(jxtabridge.Send{Conn: id, Body: body(1)})
	w.lan.Close(id) // the bridge closes the connection of this peer
	w.closed(1)
}

func TestTerms(t *testing.T) {
	const s = time.Second
	tests := []struct {
		query string
		want  terms
		bad   bool
	}{
		{"", terms{first: 120 * s, more: 120 * s}, false},
		{"0,0,http://a:1", terms{first: 120 * s, more: 120 * s, dest: "http://a:1"}, false},
		{"5000,1000,http://a:1/x/connect,1,keep,true", terms{first: 5 * s, more: s, dest: "http://a:1/x/connect,1,keep,true"}, false},
		{"99999999999,-1", terms{first: 120 * s, more: -1}, false},
		{"-1", terms{first: 120 * s, more: 120 * s, none: true}, false},
		{",,http%3A//a", terms{first: 120 * s, more: 120 * s, dest: "http://a"}, false},
		{"x", terms{}, true},
		{"1,1,http://a%0d%0ab", terms{}, true},
		{"1,1,%zz", terms{}, true},
		{"99999999999999999999", terms{}, true},
	}
	for _, tt := range tests {
		got, err := parseTerms(tt.query, 120*s)
		if (err != nil) != tt.bad || !tt.bad && got != tt.want {
			t.Errorf("parseTerms(%q) = %+v, %v; want %+v", tt.query, got, err, tt.want)
		}
	}
}

// A poll ends when its time is over: empty, after the time for more, or after the one message that it asked for.
func TestPollEnds(t *testing.T) {
	w := startHTTP(t, Config{PollHold: 400 * time.Millisecond})
	tests := []struct {
		name, query string
		send        int
		length      int64 // -1: chunked
		want        int
	}{
		{"empty, own limit", "", 0, 0, 0},
		{"empty, peer's limit", "20,0,http://x:1", 0, 0, 0},
		{"no answer wanted", "-1,0,http://x:1", 0, 0, 0},
		{"one and no more", "0,-1,http://x:1", 3, 7, 7},
		{"time for more", "0,50,http://x:1", 3, -1, 21},
		{"nothing, no more", "50,-1,http://x:1", 0, 0, 0},
	}
	polls := 0
	for i, tt := range tests {
		unique := fmt.Sprintf("uuid-59616261646162614A78746150325033000000000000000000000000000A%02X0103", i)
		_, r := w.pollRaw(unique, tt.query)
		if !strings.HasPrefix(tt.query, "-1") {
			polls++
			id := w.opened(polls)
			for range tt.send {
				w.lan.Send(jxtabridge.Send{Conn: id, Body: body(7), Token: 1})
			}
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		b, err := io.ReadAll(resp.Body)
		in := check.In(t, tt.name)
		check.NoError(check.Fatal(in), err)
		check.Equal(in, "resp.StatusCode", resp.StatusCode, 200)
		check.Equal(in, "resp.ContentLength", resp.ContentLength, tt.length)
		chunks := tt.length < 0 && len(b)%7 == 0 && len(b) > 0
		check.True(in, "the octets wanted, or whole messages of 7", len(b) == tt.want || chunks, len(b))
	}
}

func TestHTTPRefusals(t *testing.T) {
	good := string(from(peerUnique, "", 20))
	get := "GET /" + peerUnique + "?0,0,http://x:1 HTTP/1.1\r\nHost: x\r\n"
	tests := []struct {
		name, say, reason, answer string
		hangup                    bool
	}{
		{"JXTA over TCP", hello1, "http_request", "400", false},
		{"zero octets", "\x00\x00\x00\x00\r\n\r\n", "http_request", "400", false},
		{"no host", "GET / HTTP/1.1\r\n\r\n", "http_request", "400", false},
		{"endless head", "GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 20), "http_request", "431", false},
		{"endless path", "GET /" + strings.Repeat("a", 20_000), "http_request", "431", false},
		{"slow head", "GET / HTTP/1.1\r\nHost:", "http_request", "", false},
		{"no peer", "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "http_path", "404", false},
		{"a group", "GET /uuid-0102030405060708090A0B0C0D0E0F1002?0,0,http://x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "http_path", "404", false},
		{"bad query", "GET /" + peerUnique + "?now HTTP/1.1\r\nHost: x\r\n\r\n", "http_query", "400", false},
		{"other method", "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "http_method", "405", false},
		{"poll with a body", get + "Content-Length: 30\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n", "http_body", "400", false},
		{"poll with chunks", get + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "http_body", "400", false},
		{"two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n" + good, "http_head", "400", false},
		{"one length twice", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\ncontent-length:5\r\n\r\nhello", "http_head", "400", false},
		{"a list of lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\nhello", "http_head", "400", false},
		{"length and chunks", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get + "\r\n", "http_head", "400", false},
		{"chunks and length", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get + "\r\n", "http_head", "400", false},
		{"length and odd coding", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n", "http_head", "400", false},
		{"odd coding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", "http_request", "501", false},
		{"bare LF", strings.ReplaceAll(get, "\r\n", "\n") + "\n", "http_head", "400", false},
		{"one bare LF", "GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", "http_head", "400", false},
		{"bare CR", "GET / HTTP/1.1\r\nHost: x\rContent-Length: 30\r\n\r\n", "http_head", "400", false},
		{"folded header", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 5\r\n\r\nhello", "http_head", "400", false},
		{"folded behind another", "POST / HTTP/1.1\r\nHost: x\r\n\tTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", "http_head", "400", false},
		{"blank before the colon", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello", "http_request", "400", false},
		{"endless chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("5\r\nhello\r\n", 1000), "http_length", "411", false},
		{"no length", "POST / HTTP/1.1\r\nHost: x\r\n\r\n" + good, "http_message", "400", false},
		{"negative length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", "http_head", "400", false},
		{"4 GiB announced", postHead(4 << 30), "body_too_long", "413", false},
		{"slow body", postHead(len(good)) + good[:20], "body_timeout", "408", false},
		{"hangs up in a body", postHead(len(good)) + good[:20], "body_cut", "400", true},
		{"no message", postHead(5) + "hello", "http_message", "400", false},
		{"nobody's message", postHead(len(from("", "", 5))) + string(from("", "", 5)), "http_sender", "400", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := startHTTP(t, Config{WelcomeTimeout: 200 * time.Millisecond, ReadStall: 200 * time.Millisecond})
			c := w.dial()
			if _, err := c.Write([]byte(tt.say)); err != nil && !errors.Is(err, net.ErrClosed) {
				t.Log(err) // disconnected while it was still sending
			}
			if tt.hangup {
				c.(*net.TCPConn).CloseWrite()
			}
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			var got []byte
			buf := make([]byte, 4096)
			for {
				n, err := c.Read(buf)
				got = append(got, buf[:n]...)
				if errors.Is(err, io.EOF) || err != nil && !errors.Is(err, io.EOF) {
					break
				}
			}
			if !strings.HasPrefix(strings.TrimPrefix(string(got), "HTTP/1.1 "), tt.answer) || strings.Count(string(got), "HTTP/1.1 ") > 1 {
				t.Errorf("answer %q, want one %s", got, tt.answer)
			}
			limit := time.After(time.Minute)
			for w.refused(tt.reason) != 1 {
				select {
				case <-time.After(5 * time.Millisecond):
				case <-limit:
					t.Fatalf("not counted as %s", tt.reason)
				}
			}
			if len(w.all()) != 0 {
				t.Errorf("the bridge heard %+v", w.all())
			}
		})
	}
}

func TestPollerThatNeverReads(t *testing.T) {
	w := startHTTP(t, Config{WriteStall: 300 * time.Millisecond, MaxQueue: 64 << 20, PollLinger: time.Millisecond})
	w.pollRaw(peerUnique, "0,0,"+relayDest)
	id := w.opened(1)
	for i := range 32 {
		w.lan.Send(jxtabridge.Send{Conn: id, Body: body(1 << 20), Token: uint64(i + 1)})
	}
	w.closed(1)
	if w.refused("never_reads") != 1 {
		t.Error("not counted")
	}
	if n := count[jxtabridge.Written](w.all()); n > 16 {
		t.Errorf("%d bodies of 1 MiB called written", n)
	}
}

func TestPollQueueIsBounded(t *testing.T) {
	w := startHTTP(t, Config{MaxQueue: 1 << 20, PollLinger: time.Millisecond})
	w.pollRaw(peerUnique, "0,0,"+relayDest)
	id := w.opened(1)
	for range 20 {
		w.lan.Send(jxtabridge.Send{Conn: id, Body: body(900 << 10)})
	}
	w.closed(1)
	if w.refused("queue_full") != 1 {
		t.Error("not counted")
	}
}

// room waits until the address may open one more connection. A refused request closes its connection, and the server counts
// that connection until its own end is closed; the next call must not be earlier.
func (w *world) room(host string) {
	w.Helper()
	check.Until(w, time.Minute, host+" has fewer connections than it may have", func() bool {
		w.lan.mu.Lock()
		defer w.lan.mu.Unlock()
		return w.lan.byAddress[host] < w.lan.cfg.MaxConnsPerAddress
	})
}

// Polls without end: of one peer the oldest are closed; the number of peers and connections is bounded.
func TestHTTPLimits(t *testing.T) {
	w := startHTTP(t, Config{MaxConns: 100, MaxConnsPerAddress: 12, PollLinger: time.Millisecond})
	var last net.Conn
	for i := range 10 {
		last, _ = w.pollRaw(peerUnique, "0,0,"+relayDest)
		w.opened(i + 1)
	}
	w.closed(6)
	w.lan.mu.Lock()
	n := len(w.lan.conns)
	w.lan.mu.Unlock()
	if n != maxPolls {
		t.Errorf("%d polls of one peer, want %d", n, maxPolls)
	}
	last.Close()
	w.closed(7)
	// Messages of many new peers from one address.
	refused := 0
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	w.lan.mu.Lock()
	w.lan.cfg.PollLinger = time.Minute
	w.lan.mu.Unlock()
	for i := range 40 {
		m := from(fmt.Sprintf("uuid-59616261646162614A78746150325033000000000000000000000000000B%02X0103", i), "", 10)
		req, err := http.NewRequest("POST", "http://"+w.addr+"/", bytes.NewReader(m))
		check.NoError(check.Fatal(t), err)
		req.Header.Set("Content-Type", jxta.MessageType)
		req.Header["Idempotency-Key"] = nil // not sent: the client may try again when the connection was closed behind an answer
		w.room("127.0.0.1")
		resp, err := client.Do(req)
		check.NoError(check.Fatal(t), err)
		resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 29 || w.refused("http_peers_per_address") != 29 {
		t.Errorf("%d of 40 refused, want 29: one address has 12 peers", refused)
	}
	for range 30 {
		w.dial()
	}
	w.await("refusals", func([]site.Event) bool { return true })
	limit := time.After(time.Minute)
	for w.refused("connections_per_address") == 0 {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-limit:
			t.Fatal("no connection was refused")
		}
	}
}

// A bridge that does not accept events holds back this peer's messages, and nobody else's.
func TestHTTPBackPressure(t *testing.T) {
	w := startHTTP(t, Config{})
	block := make(chan bool)
	w.mu.Lock()
	w.block = block
	w.mu.Unlock()
	c := w.dial()
	m := from(peerUnique, "", 10)
	w.say(c, []byte(postHead(len(m))), m)
	w.opened(1)
	c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("answered before the message was taken in")
	}
	close(block)
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%v %v", resp, err)
	}
}

func FuzzTerms(f *testing.F) {
	f.Add("120000,120000," + relayDest)
	f.Add("-1,-1,")
	f.Fuzz(func(t *testing.T, q string) {
		g, err := parseTerms(q, time.Minute)
		if err == nil {
			in := check.In(t, q)
			check.True(in, "g.first >= 0", g.first >= 0, g.first)
			check.True(in, "g.first <= time.Minute", g.first <= time.Minute, g.first)
			check.True(in, "g.more <= time.Minute", g.more <= time.Minute, g.more)
			check.True(in, `not strings.ContainsAny(g.dest, " \r\n")`, !strings.ContainsAny(g.dest, " \r\n"), g.dest)
		}
	})
}

func FuzzSender(f *testing.F) {
	f.Add(from(peerUnique, otherPeer, 3))
	f.Add(from("", "", 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := sender(b)
		if n, nerr := jxta.Normalize(u); err == nil && u != "" {
			check.True(t, "no nerr", nerr == nil, nerr)
			check.Equal(t, "n", n, u)
		}
	})
}
