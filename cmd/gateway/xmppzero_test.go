package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

// zeroServer is a server of ship.example that connects without a handshake (XEP-0361), which no server in Debian does. It sends the
// stanzas of the test, answers pings, and keeps the received stanzas.
type zeroServer struct {
	xmppClient
	t     *testing.T
	ln    net.Listener
	calls string // the address that it calls

	mu    sync.Mutex
	socks []net.Conn // it sends on the last one
}

func newZeroServer(t *testing.T, at, calls string) *zeroServer {
	ln, err := net.Listen("tcp", at)
	check.NoError(check.Fatal(t), err)
	z := &zeroServer{t: t, ln: ln, calls: calls}
	go func() {
		for {
			sock, err := ln.Accept()
			if err != nil {
				return
			}
			z.mu.Lock()
			z.socks = append([]net.Conn{sock}, z.socks...)
			z.mu.Unlock()
			go z.hears(sock)
		}
	}()
	t.Cleanup(z.stop)
	return z
}

// stop stops the server, and closes all its connections.
func (z *zeroServer) stop() {
	z.ln.Close()
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, sock := range z.socks {
		sock.Close()
	}
	z.socks = nil
}

// call makes the connection on which it sends.
func (z *zeroServer) call() {
	z.t.Helper()
	var sock net.Conn
	check.Until(z.t, patience, "the gateway is called", func() (ok bool) {
		var err error
		sock, err = net.Dial("tcp", z.calls)
		return err == nil
	})
	z.mu.Lock()
	z.socks = append(z.socks, sock)
	z.mu.Unlock()
	go z.hears(sock)
}

func (z *zeroServer) say(format string, args ...any) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if len(z.socks) > 0 {
		fmt.Fprintf(z.socks[len(z.socks)-1], format, args...)
	}
}

func (z *zeroServer) hears(sock net.Conn) {
	s := stanza.Within("jabber:server")
	buf := make([]byte, 4096)
	for {
		n, err := sock.Read(buf)
		err2 := s.Feed(buf[:n], func(e *stanza.Element, _ *stanza.Fault) {
			fmt.Fprintf(z, "%s\n", e.Append(nil, "jabber:server"))
			if e.Kid("urn:xmpp:ping", "ping") != nil {
				z.say("<iq type='result' id='%s' from='%s' to='%s'/>", e.Get("id"), e.Get("to"), e.Get("from"))
			}
		})
		if err2 != nil {
			fmt.Fprintln(z, err2)
		}
		if err != nil || err2 != nil {
			sock.Close()
			return
		}
	}
}

// The ship's server and its gateway begin with stanzas, without a handshake; ashore are Prosody and a client. Lines cross both ways with
// receipts, a message to nobody ends, and a room ashore has the ship's user. Waiting lines survive kill -9 of the gateway and the server's
// absence.
func TestXMPPZeroHandshake(t *testing.T) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	shore := newProsody(t, "hq.example", []string{"bert"}, "ship.example", "conference.ship.example", "pubsub.ship.example")
	hq := newSite(t, 1, "")
	ship := newSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.writeXMPP(t, shore, 2, "ship.example", "2 "+air.address(0, 1))
	at, theirs := check.FreeAddress(t, "tcp"), check.FreeAddress(t, "tcp")
	z := newZeroServer(t, theirs, at)
	ship.writeXMPP(t, newXMPPServer(t, "ship.example"), 1, "hq.example", "1 "+air.address(1, 0))
	c := check.Fatal(t)
	text, err := os.ReadFile(ship.file)
	check.NoError(c, err)
	before, _, _ := bytes.Cut(text, []byte("server = "))
	_, after, _ := bytes.Cut(text, []byte("secret_file = \"xmpp.secret\"\n"))
	text = append(fmt.Appendf(before[:len(before):len(before)], "s2s = %q\ns2s_server = %q\ns2s_zero = true\n", at, theirs), after...)
	check.NoError(c, os.WriteFile(ship.file, text, 0o644))
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, "other server to the server "+theirs+" of the domain ship.example, at "+at+", without handshake and TLS") {
		t.Fatal(out, errs)
	}
	shore.start(t)
	r1, r2 := hq.start(t), ship.start(t)
	ready := func(r *running) {
		t.Helper()
		r.until(t, "its server has all domains", func() bool { return strings.Count(r.logged(), "has taken the component") == 4 })
	}
	ready(r1)
	ready(r2)
	z.call()
	bert := shore.login(t, "bert")
	hears := func(texts ...string) func() bool {
		return func() bool { return z.count(texts...) == 1 }
	}
	z.say("<message from='anna@ship.example/x' to='bert@hq.example' type='chat' id='a1'><body>Good morning</body><request xmlns='urn:xmpp:receipts'/></message>")
	r1.until(t, "the line has crossed", func() bool { return bert.count("<body>Good morning</body>", "anna@ship.example") == 1 })
	bert.say(`<message to='anna@ship.example' type='chat' id='b1'><received xmlns='urn:xmpp:receipts' id='%s'/></message>`, bert.attribute("Good morning", "id"))
	r2.until(t, "the receipt has crossed", hears("received", "id='a1'", "from='bert@hq.example"))
	z.say("<message from='anna@ship.example/x' to='nobody@hq.example' type='chat' id='a2'><body>Anybody?</body></message>")
	r2.until(t, "the message to nobody ends", hears("id='a2'", "type='error'", "service-unavailable"))
	z.say("<presence from='anna@ship.example/x' to='ops@conference.hq.example/anna'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	r2.until(t, "she is in the room", hears("ops@conference.hq.example/anna", "status code='110'"))
	bert.say("<presence to='ops@conference.hq.example/bert'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	r1.until(t, "bert sees her there", func() bool { return bert.count("<presence", "ops@conference.hq.example/anna") > 0 })
	bert.say("<message to='ops@conference.hq.example' type='groupchat' id='g1'><body>All hands</body></message>")
	r2.until(t, "she has his line", hears("<message", "All hands", "to='anna@ship.example/x'"))

	air.setAway(1, true)
	r2.accepts(t, 3, func() {
		z.say("<message from='anna@ship.example/x' to='bert@hq.example' type='chat' id='a3'><body>Sent during the outage</body></message>")
	})
	r2.stop(t, syscall.SIGKILL)
	r2 = ship.start(t)
	ready(r2)
	z.stop()
	air.setAway(1, false)
	r1.until(t, "the line of the outage came", func() bool { return bert.count("Sent during the outage") == 1 })
	bert.say(`<message to='anna@ship.example' type='chat' id='b2'><body>Sent while the server is away</body></message>`)
	waits := func(n int) func() bool {
		return func() bool {
			_, metrics := r2.get("/metrics")
			return strings.Contains(metrics, fmt.Sprintf("aldis_xmpp_waiting %d\n", n))
		}
	}
	r2.until(t, "the line waits aboard", waits(1))
	r2.stop(t, syscall.SIGTERM)
	r2 = ship.start(t)
	r2.until(t, "the line waits aboard again", waits(1))
	z = newZeroServer(t, theirs, at)
	z.call()
	r2.until(t, "the server has confirmed it", waits(0))
	r2.until(t, "it came once", hears("Sent while the server is away"))
	_, metrics := r2.get("/metrics")
	agrees(t, metrics)
}
