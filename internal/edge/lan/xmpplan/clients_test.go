package xmpplan_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/keyfile"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/lab/check"
	"aldis/internal/lab/xmpppeer"
	"aldis/internal/site"
)

// serve serves clients over TCP, with TLS from the beginning and later, and over WebSocket.
func serve(t *testing.T, change func(*xmpplan.Clients)) (direct, starts, web string, events chan site.Event) {
	t.Helper()
	c, dir := check.Fatal(t), t.TempDir()
	_, err := keyfile.NewTAKKeys(dir, "ship.example", nil, time.Now())
	check.NoError(c, err)
	keys, err := keyfile.PairTLS(dir)
	check.NoError(c, err)
	cfg := &xmpplan.Clients{Domain: "ship.example", Keys: keys, File: dir + "/users", Accounts: server.Accounts{}}
	change(cfg)
	events = make(chan site.Event, 100)
	l := xmpplan.New(xmpplan.Config{Clients: cfg, ReadStall: 3 * time.Second}, func(ev site.Event) { events <- ev }, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	l.Start()
	t.Cleanup(l.Shutdown)
	listen := func(serve func(net.Listener) error) string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		check.NoError(c, err)
		go serve(ln)
		return ln.Addr().String()
	}
	return listen(func(ln net.Listener) error { return l.ServeClients(ln, true) }),
		listen(func(ln net.Listener) error { return l.ServeClients(ln, false) }), listen(l.ServeWeb), events
}

func dialTLS(t *testing.T, at string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(wait))
	s := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	return s, bufio.NewReader(s)
}

// rest is the text that a connection still sends before it closes.
func rest(r *bufio.Reader) string {
	text, _ := io.ReadAll(r)
	return string(text)
}

const stream = "<stream:stream to='ship.example' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"

// A stranger has little time, few connections and few tries; none of it reaches the loop.
func TestStrangers(t *testing.T) {
	tcp, _, web, events := serve(t, func(c *xmpplan.Clients) { c.LoginIn = 2 * time.Second })
	began := time.Now()
	_, r := dialTLS(t, tcp)
	c, half := dialTLS(t, tcp)
	fmt.Fprint(c, stream[:40])
	check.Equal(t, "a silent stranger hears", rest(r), "")
	check.Equal(t, "one with half a stream hears", rest(half), "")
	check.True(t, "it took as long as it may", time.Since(began) < wait/2)

	for range 7 { // three tries each
		c, r := dialTLS(t, tcp)
		fmt.Fprint(c, stream, strings.Repeat("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFubmEAc2VjcmV0</auth>", 3))
		check.True(t, "the stream ends", strings.HasSuffix(rest(r), "</stream:stream>"))
	}
	check.Until(t, wait, "the address has no more tries", func() bool {
		c, r := dialTLS(t, tcp)
		fmt.Fprint(c, stream)
		return rest(r) == ""
	})
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	sock, _, err := websocket.Dial(ctx, "wss://"+web+xmpplan.WebPath, &websocket.DialOptions{HTTPClient: &client, Subprotocols: []string{"xmpp"}})
	if err == nil {
		_, _, err = sock.Read(ctx)
	}
	check.True(t, "nor over WebSocket", websocket.CloseStatus(err) == websocket.StatusTryAgainLater)
	check.Equal(t, "events", len(events), 0)

	// Connections that do not become a WebSocket are bounded as well; when they are gone, a client gets in.
	_, _, web, _ = serve(t, func(*xmpplan.Clients) {})
	var all []net.Conn
	ended := make(chan error, 40)
	for range cap(ended) {
		c, err := net.Dial("tcp", web)
		check.NoError(check.Fatal(t), err)
		all = append(all, c)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
	}
	check.Until(t, wait, "eight connections end", func() bool { return len(ended) >= 8 })
	check.Equal(t, "connections that end", len(ended), 8)
	for _, c := range all {
		c.Close()
	}
	check.Until(t, wait, "a client gets in", func() bool {
		sock, _, err := websocket.Dial(ctx, "wss://"+web+xmpplan.WebPath, &websocket.DialOptions{HTTPClient: &client, Subprotocols: []string{"xmpp"}})
		if err == nil {
			sock.CloseNow()
		}
		return err == nil
	})
}

// Over WebSocket each element is a message of its own; a message that is too long or not text closes the connection.
func TestWebSocket(t *testing.T) {
	_, _, web, events := serve(t, func(*xmpplan.Clients) {})
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	dial := func() *websocket.Conn {
		sock, _, err := websocket.Dial(ctx, "wss://"+web+xmpplan.WebPath, &websocket.DialOptions{HTTPClient: &client, Subprotocols: []string{"xmpp"}})
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "protocol", sock.Subprotocol(), "xmpp")
		return sock
	}
	sock := dial()
	check.NoError(t, sock.Write(ctx, websocket.MessageText, []byte("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='ship.example' version='1.0'/>")))
	for _, want := range []string{"<open ", "<stream:features xmlns:stream="} {
		_, got, err := sock.Read(ctx)
		check.NoError(check.Fatal(t), err)
		check.True(t, want+" in "+string(got), strings.HasPrefix(string(got), want))
	}
	for _, bad := range []struct {
		kind websocket.MessageType
		text string
	}{{websocket.MessageBinary, "<open/>"}, {websocket.MessageText, "<open/>"}, {websocket.MessageText, strings.Repeat("x", 600_000)}, {websocket.MessageText, "<a"}} {
		sock := dial()
		sock.Write(ctx, bad.kind, []byte(bad.text))
		var err error
		for err == nil {
			_, _, err = sock.Read(ctx)
		}
		check.True(t, "the connection ends: "+bad.text[:2], ctx.Err() == nil)
	}
	check.Equal(t, "events", len(events), 0)
}

// A client that has logged in may be odd: it gets an error for a stanza that is too long or too deep, and the stream goes on; half a stanza
// or a document type closes the stream.
func TestOddClients(t *testing.T) {
	keys, err := keyfile.NewAccount("secret")
	check.NoError(check.Fatal(t), err)
	_, tcp, _, events := serve(t, func(c *xmpplan.Clients) { c.Accounts["anna"] = keys })
	next := func(what string) site.Event {
		t.Helper()
		for {
			select {
			case ev := <-events:
				if got := fmt.Sprintf("%T", ev); got == what {
					return ev
				}
			case <-time.After(wait):
				t.Fatalf("no %s", what)
			}
		}
	}
	for _, end := range []string{"<message><body>half", "<!DOCTYPE x [<!ENTITY a 'aaaa'>]>", "</stream:stream>", "<message></presence>"} {
		c := make(chan error, 1)
		go func() {
			p, err := xmpppeer.Login(tcp, "127.0.0.1", "ship.example", "anna", "secret")
			if err == nil {
				fmt.Fprintf(p, "<message id='long'><body>%s</body></message>", strings.Repeat("x", 1_000_000))
				fmt.Fprintf(p, "<message id='deep'>%s%s</message>", strings.Repeat("<a>", 10_000), strings.Repeat("</a>", 10_000))
				fmt.Fprint(p, "<message id='odd'><body>\u0001</body></message><message id='good'/>", end)
				p.SetReadDeadline(time.Now().Add(wait))
				io.Copy(io.Discard, p)
			}
			c <- err
		}()
		came := next("server.Came").(server.Came)
		check.Equal(t, "user", came.User, "anna")
		for _, want := range []string{"too_long", "too_deep", "letters", ""} {
			said := next("server.Said").(server.Said)
			for said.Element.Name != "message" { // the binding and the first presence
				said = next("server.Said").(server.Said)
			}
			got := ""
			if said.Fault != nil {
				got = string(said.Fault.Reason)
			}
			check.Equal(t, "fault", got, want)
		}
		gone := next("server.Gone").(server.Gone)
		check.Equal(t, "the client has ended it", gone.Ended, strings.HasPrefix(end, "</stream"))
		check.NoError(t, <-c)
	}
}

// A client that always has a stanza in progress is not stalled as long as its stanzas are completed.
func TestBusyClient(t *testing.T) {
	keys, err := keyfile.NewAccount("secret")
	check.NoError(check.Fatal(t), err)
	_, tcp, _, events := serve(t, func(c *xmpplan.Clients) { c.Accounts["anna"] = keys })
	p, err := xmpppeer.Login(tcp, "127.0.0.1", "ship.example", "anna", "secret")
	check.NoError(check.Fatal(t), err)
	defer p.Close()
	fmt.Fprint(p, "<message><body>")
	ticks := time.NewTicker(200 * time.Millisecond)
	defer ticks.Stop()
	for range 20 { // longer than one stanza may take
		<-ticks.C
		fmt.Fprint(p, "x</body></message><message><body>")
	}
	said := 0
	for said < 20 {
		select {
		case ev := <-events:
			if s, ok := ev.(server.Said); ok && s.Element.Name == "message" {
				said++
			} else if _, ended := ev.(server.Gone); ended {
				t.Fatalf("the client is gone after %d stanzas", said)
			}
		case <-time.After(wait):
			t.Fatalf("%d stanzas came", said)
		}
	}
}
