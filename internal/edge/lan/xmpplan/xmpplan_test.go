package xmpplan_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

const wait = 10 * time.Second

// accept accepts a connection, and reads up to the end of the component's first words.
func accept(t *testing.T, ln net.Listener) (net.Conn, *bufio.Reader) {
	t.Helper()
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(wait))
	c, err := ln.Accept()
	check.NoError(check.Fatal(t), err)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(wait))
	r := bufio.NewReader(c)
	until(t, r, "to='hq.example'>")
	fmt.Fprint(c, "<?xml version='1.0'?><stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:component:accept' id='1'>")
	return c, r
}

// until reads up to a text.
func until(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
		got.WriteByte(b)
	}
}

// A component is dialled again however its connection ended: closed by the server, refused, a broken stream, half a stanza. Events
// come in order, and written stanzas arrive.
func TestComponentOfServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	defer ln.Close()
	events := make(chan site.Event, 100)
	l := xmpplan.New(xmpplan.Config{Server: netip.MustParseAddrPort(ln.Addr().String()), Secret: "s", Domains: []string{"hq.example"}, ReadStall: time.Second},
		func(ev site.Event) { events <- ev }, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
	l.Start()
	next := func(what string) site.Event {
		t.Helper()
		select {
		case ev := <-events:
			if got := fmt.Sprintf("%T", ev); got != what {
				t.Fatalf("%s, want %s", got, what)
			}
			return ev
		case <-time.After(wait):
			t.Fatalf("no %s", what)
		}
		return nil
	}
	c, _ := accept(t, ln)
	fmt.Fprint(c, "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>") // nobody is told
	for _, end := range []string{"", "</stream:stream>", "<!DOCTYPE x>", "<message><body>half"} {
		c, r := accept(t, ln)
		until(t, r, "</handshake>")
		fmt.Fprint(c, "<handshake/><message id='1'/>")
		conn := next("xmpp.Opened").(xmpp.Opened).Conn
		heard := next("xmpp.Heard").(xmpp.Heard)
		check.Equal(t, "heard", heard.Element.Get("id"), "1")
		fmt.Fprintf(c, "<message id='2'><body>%s</body></message>", strings.Repeat("x", 600_000))
		skipped := next("xmpp.Skipped").(xmpp.Skipped)
		check.Equal(t, "skipped", skipped.Element.Get("id"), "2")
		l.Do(xmpp.Send{Conn: conn, XML: []byte("<presence/>")})
		l.Do(xmpp.Send{Conn: conn + 99, XML: []byte("<lost/>")})
		until(t, r, "<presence/>")
		if end == "" {
			c.Close()
		} else {
			fmt.Fprint(c, end)
		}
		check.Equal(t, "closed", next("xmpp.Closed").(xmpp.Closed).Conn, conn)
	}
	c, r := accept(t, ln)
	until(t, r, "</handshake>")
	fmt.Fprint(c, "<handshake/>")
	next("xmpp.Opened")
	l.Shutdown()
	next("xmpp.Closed")
}
