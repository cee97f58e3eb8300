package xmpplan_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// zeroSide is a gateway for two domains of hq.example towards a server of ship.example that is the test itself.
type zeroSide struct {
	*xmpplan.LAN
	t      *testing.T
	events chan site.Event
	reg    *prometheus.Registry
	log    strings.Builder
	at     string       // where the gateway listens
	far    net.Listener // where it calls
	conns  map[string]site.ConnID
}

func newZero(t *testing.T, calls, listens bool, p xmpplan.Peers) *zeroSide {
	t.Helper()
	c := check.Fatal(t)
	s := &zeroSide{t: t, events: make(chan site.Event, 100), reg: prometheus.NewRegistry(), conns: map[string]site.ConnID{}}
	p.Domain, p.Services, p.Zero, p.LoginIn = "ship.example", []string{"conference.ship.example"}, true, time.Second
	cfg := xmpplan.Config{Domains: []string{"hq.example", "conference.hq.example"}, ReadStall: time.Second, Peers: &p}
	var err error
	if calls {
		s.far, err = net.Listen("tcp", "127.0.0.1:0")
		check.NoError(c, err)
		cfg.Server = netip.MustParseAddrPort(s.far.Addr().String())
		t.Cleanup(func() { s.far.Close() })
	}
	s.LAN = xmpplan.New(cfg, func(ev site.Event) { s.events <- ev }, s.reg, slog.New(slog.NewTextHandler(&s.log, nil)))
	if listens {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		check.NoError(c, err)
		s.at = ln.Addr().String()
		go s.ServePeers(ln)
		t.Cleanup(func() { ln.Close() })
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	return s
}

func (s *zeroSide) next(what string) site.Event {
	s.t.Helper()
	select {
	case ev := <-s.events:
		if got := fmt.Sprintf("%T", ev); got != what {
			s.t.Fatalf("%s, want %s", got, what)
		}
		if o, ok := ev.(xmpp.Opened); ok {
			s.conns[o.Domain] = o.Conn
		}
		return ev
	case <-time.After(wait):
		s.t.Fatalf("no %s: %s", what, s.log.String())
	}
	return nil
}

// heard is the event in which the adapter hears from somebody for a domain, on the connection on which it answers.
func (s *zeroSide) heard(from, domain string) {
	s.t.Helper()
	h := s.next("xmpp.Heard").(xmpp.Heard)
	check.Equal(s.t, "the sender", h.Element.Get("from"), from)
	check.Equal(s.t, "the connection", h.Conn, s.conns[domain])
	check.Equal(s.t, "the namespace", h.Element.Space, "jabber:component:accept")
}

func (s *zeroSide) opened() {
	s.t.Helper()
	s.next("xmpp.Opened")
	s.next("xmpp.Opened")
}

func (s *zeroSide) closed() {
	s.t.Helper()
	s.next("xmpp.Closed")
	s.next("xmpp.Closed")
}

// zeroPeer is a connection of the test's server.
type zeroPeer struct {
	net.Conn
	read *bufio.Reader
}

func peerOn(c net.Conn, err error) *zeroPeer {
	if err != nil {
		panic(err)
	}
	c.SetDeadline(time.Now().Add(wait))
	return &zeroPeer{c, bufio.NewReader(c)}
}

// says checks that the next octets are a text.
func (p *zeroPeer) says(t *testing.T, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(p.read, got); err != nil || string(got) != text {
		t.Errorf("the gateway says %q, %v, want %q", got[:n], err, text)
	}
}

const (
	toBert = "<message from='anna@ship.example/x' to='bert@hq.example'><body>hi</body></message>"
	toRoom = "<presence from='conference.ship.example' to='ops@conference.hq.example'/>"
	toAnna = "<message from='bert@hq.example' to='anna@ship.example'><body>hello</body></message>"
	byHQ   = "<presence from='ops@conference.hq.example' to='anna@ship.example'/>"
)

// Zero handshake (XEP-0361): the first octet of a connection belongs to a stanza, one connection carries all domains of both sides, and
// each side may call.
func TestZeroHandshake(t *testing.T) {
	t.Run("both call", func(t *testing.T) {
		s := newZero(t, true, true, xmpplan.Peers{From: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		theirs := peerOn(s.far.Accept())
		s.opened()
		ours := peerOn(net.Dial("tcp", s.at))
		io.WriteString(ours, toBert+" \n"+toRoom)
		s.heard("anna@ship.example/x", "hq.example")
		s.heard("conference.ship.example", "conference.hq.example")
		s.Do(xmpp.Send{Conn: s.conns["hq.example"], XML: []byte(toAnna)})
		s.Do(xmpp.Send{Conn: s.conns["conference.hq.example"], XML: []byte(byHQ)})
		theirs.says(t, toAnna+byHQ) // on the connection that the gateway has made, and no octets before it
		io.WriteString(theirs, toBert)
		s.heard("anna@ship.example/x", "hq.example")
		io.WriteString(theirs, "</stream:stream>")
		theirs.says(t, "</stream:stream>")
		s.closed()
		again := peerOn(s.far.Accept())
		s.opened()
		s.Do(xmpp.Send{Conn: s.conns["hq.example"], XML: []byte(toAnna)})
		again.says(t, toAnna)
		s.Shutdown()
		s.closed()
		again.says(t, "</stream:stream>")
		ours.says(t, "</stream:stream>")
	})
	t.Run("the server alone calls", func(t *testing.T) {
		s := newZero(t, false, true, xmpplan.Peers{From: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
		first := peerOn(net.Dial("tcp", s.at))
		s.opened()
		second := peerOn(net.Dial("tcp", s.at)) // the server has come back, and the gateway has not noticed that the first one is dead
		s.closed()
		s.opened()
		s.Do(xmpp.Send{Conn: s.conns["hq.example"], XML: []byte(toAnna)})
		second.says(t, toAnna)
		io.WriteString(first, toBert)
		s.heard("anna@ship.example/x", "hq.example")
		second.Close()
		s.closed()
		s.opened()
		s.Do(xmpp.Send{Conn: s.conns["hq.example"], XML: []byte(toAnna)})
		first.says(t, toAnna)
		first.Close()
		s.closed()
	})
	t.Run("the gateway alone calls, with certificates", func(t *testing.T) {
		ca, hq := peerKeys(t, "", "hq.example,conference.hq.example")
		_, ship := peerKeys(t, ca, "ship.example") // not its rooms
		s := newZero(t, true, false, xmpplan.Peers{Keys: hq})
		c, err := s.far.Accept()
		theirs := peerOn(tls.Server(c, ship), err)
		go theirs.Conn.(*tls.Conn).Handshake()
		s.opened()
		s.Do(xmpp.Send{Conn: s.conns["hq.example"], XML: []byte(toAnna)})
		theirs.says(t, toAnna)
		io.WriteString(theirs, toBert+toRoom)
		s.heard("anna@ship.example/x", "hq.example")
		theirs.says(t, "<stream:error><invalid-from xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>")
		s.closed()
		check.Until(t, wait, "it is counted", func() bool { return counted(t, s.reg, "foreign") == 1 })
	})
}

func counted(t *testing.T, reg *prometheus.Registry, reason string) float64 {
	all, err := reg.Gather()
	check.NoError(check.Fatal(t), err)
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Nobody but the configured server is heard, and that server only until it breaks a bound. Each reason is logged in one line.
func TestZeroHandshakeOfStrangers(t *testing.T) {
	ca, hq := peerKeys(t, "", "hq.example,conference.hq.example")
	_, ship := peerKeys(t, ca, "ship.example")
	_, third := peerKeys(t, ca, "evil.example")
	_, forged := peerKeys(t, "", "ship.example")
	open := newZero(t, true, true, xmpplan.Peers{From: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	other := newZero(t, false, true, xmpplan.Peers{From: []netip.Addr{netip.MustParseAddr("127.0.0.2")}})
	proved := newZero(t, true, true, xmpplan.Peers{Keys: hq})
	plain := peerOn(open.far.Accept())
	defer plain.Close()
	open.opened()
	c, err := proved.far.Accept()
	check.NoError(check.Fatal(t), err)
	defer c.Close()
	go tls.Server(c, ship).Handshake()
	proved.opened()
	for name, c := range map[string]struct {
		s      *zeroSide
		reason string
		keys   *tls.Config
		said   string
	}{
		"another address":                    {other, "stranger", nil, toBert},
		"a stanza without TLS":               {proved, "certificate", nil, toBert},
		"no certificate":                     {proved, "certificate", &tls.Config{InsecureSkipVerify: true}, toBert},
		"a certificate of another domain":    {proved, "certificate", third, toBert},
		"a certificate of another authority": {proved, "certificate", forged, toBert},
		"a stanza of an unproved domain":     {proved, "foreign", ship, toRoom},
		"nothing instead of TLS":             {proved, "certificate", nil, ""},
		"a stanza of a third":                {open, "foreign", nil, strings.Replace(toBert, "ship.example", "evil.example", 1)},
		"a stanza of nobody":                 {open, "foreign", nil, "<message to='bert@hq.example'/>"},
		"a stanza to a third":                {open, "foreign", nil, strings.Replace(toBert, "hq.example", "evil.example", 1)},
		"a stanza to nobody":                 {open, "foreign", nil, "<message from='anna@ship.example'/>"},
		"a handshake":                        {open, "syntax", nil, "<?xml version='1.0'?>" + toHQ},
		"a head without end":                 {open, "stalled", nil, toHQ},
		"no stanza":                          {open, "syntax", nil, "<features/>"},
		"no XML":                             {open, "syntax", nil, "GET / HTTP/1.1\r\n\r\n"},
		"a document type":                    {open, "doctype", nil, "<!DOCTYPE x [<!ENTITY a 'b'>]>"},
		"half a stanza":                      {open, "stalled", nil, "<message from='anna@ship.example'><body>"},
		"a long tag":                         {open, "too_long", nil, "<message from='" + strings.Repeat("x", 20_000)},
	} {
		before := counted(t, c.s.reg, "peer_"+c.reason)
		conn, err := net.Dial("tcp", c.s.at)
		check.NoError(check.Fatal(t), err)
		conn.SetDeadline(time.Now().Add(wait))
		if c.keys != nil {
			conn = tls.Client(conn, c.keys)
		}
		io.WriteString(conn, c.said)
		io.Copy(io.Discard, conn) // until the gateway closes it
		conn.Close()
		check.Until(t, wait, name+" is counted as "+c.reason, func() bool { return counted(t, c.s.reg, "peer_"+c.reason) == before+1 })
	}
	for _, s := range []*zeroSide{open, other, proved} {
		select {
		case ev := <-s.events:
			t.Errorf("the adapter hears %+v", ev)
		default:
		}
	}
	long := peerOn(net.Dial("tcp", open.at))
	fmt.Fprintf(long, "<message from='anna@ship.example' to='bert@hq.example' id='long'><body>%s</body></message>%s", strings.Repeat("x", 600_000), toBert)
	skipped := open.next("xmpp.Skipped").(xmpp.Skipped)
	check.Equal(t, "the stanza that is too long", skipped.Element.Get("id"), "long")
	open.heard("anna@ship.example/x", "hq.example")
	for _, s := range []*zeroSide{open, proved} {
		s.Shutdown()
		for _, reason := range []string{"foreign", "syntax", "stalled", "certificate"} {
			want := 1
			if counted(t, s.reg, "peer_"+reason) == 0 {
				want = 0
			}
			check.Equal(t, "lines of the log with "+reason, strings.Count(s.log.String(), "a connection of a server was refused\" address=127.0.0.1 reason="+reason+" "), want)
		}
	}
}
