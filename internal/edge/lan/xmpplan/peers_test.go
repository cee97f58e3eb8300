package xmpplan_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/edge/keyfile"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/lab/check"
	"aldis/internal/site"
)

// peerKeys makes a certificate for domains. from is a directory with the authority that signs it; "": a new one.
func peerKeys(t *testing.T, from, domains string) (string, *tls.Config) {
	t.Helper()
	dir, c := t.TempDir(), check.Fatal(t)
	for _, name := range []string{"ca.pem", "ca.key"} {
		if from != "" {
			text, err := os.ReadFile(from + "/" + name)
			check.NoError(c, err)
			check.NoError(c, os.WriteFile(dir+"/"+name, text, 0o600))
		}
	}
	_, err := keyfile.NewTAKKeys(dir, domains, nil, time.Now())
	check.NoError(c, err)
	keys, err := keyfile.PeerTLS(dir)
	check.NoError(c, err)
	return dir, keys
}

const (
	toHQ   = "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' from='ship.example' to='hq.example' version='1.0'>"
	useTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
	proves = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>"
)

// Two gateways connect as servers do, with certificates of one authority. A server that cannot prove the other's domain, speaks for another
// one, or breaks a bound is refused and counted, and none of its stanzas are heard. The log names each reason once.
func TestServersMeet(t *testing.T) {
	ca, ship := peerKeys(t, "", "ship.example,conference.ship.example")
	_, hq := peerKeys(t, ca, "hq.example")
	_, third := peerKeys(t, ca, "evil.example")
	_, forged := peerKeys(t, "", "ship.example")
	type side struct {
		*xmpplan.LAN
		events chan site.Event
		reg    *prometheus.Registry
		log    strings.Builder
		at     netip.AddrPort
		ln     net.Listener
	}
	sides := map[string]*side{}
	for _, domain := range []string{"hq.example", "ship.example"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		check.NoError(check.Fatal(t), err)
		sides[domain] = &side{events: make(chan site.Event, 100), reg: prometheus.NewRegistry(), ln: ln, at: netip.MustParseAddrPort(ln.Addr().String())}
	}
	begin := func(domain, other string, keys *tls.Config) *side {
		s := sides[domain]
		cfg := xmpplan.Config{Server: sides[other].at, Domains: []string{domain}, ReadStall: time.Second,
			Peers: &xmpplan.Peers{Domain: other, Services: []string{"conference." + other}, Keys: keys, LoginIn: time.Second}}
		s.LAN = xmpplan.New(cfg, func(ev site.Event) { s.events <- ev }, s.reg, slog.New(slog.NewTextHandler(&s.log, nil)))
		go s.ServePeers(s.ln)
		s.Start()
		return s
	}
	a, b := begin("hq.example", "ship.example", hq), begin("ship.example", "hq.example", ship)
	next := func(s *side, what string) site.Event {
		t.Helper()
		select {
		case ev := <-s.events:
			if got := fmt.Sprintf("%T", ev); got != what {
				t.Fatalf("%s, want %s", got, what)
			}
			return ev
		case <-time.After(wait):
			t.Fatalf("no %s", what)
		}
		return nil
	}
	toB := next(a, "xmpp.Opened").(xmpp.Opened).Conn
	toA := next(b, "xmpp.Opened").(xmpp.Opened).Conn
	a.Do(xmpp.Send{Conn: toB, XML: []byte("<message from='bert@hq.example' to='anna@ship.example'><body>hello</body></message>")})
	heard := next(b, "xmpp.Heard").(xmpp.Heard)
	check.Equal(t, "the connection by which the adapter answers", heard.Conn, toA)
	check.Equal(t, "its namespace", heard.Element.Space, "jabber:component:accept")
	check.Equal(t, "its sender", heard.Element.Get("from"), "bert@hq.example")

	// attack sends parts to hq.example, each after the answer to the one before; TLS begins after <starttls/>.
	attack := func(keys *tls.Config, parts ...string) {
		t.Helper()
		c, err := net.Dial("tcp", a.at.String())
		check.NoError(check.Fatal(t), err)
		defer c.Close()
		c.SetDeadline(time.Now().Add(wait))
		for _, part := range parts {
			if _, err := io.WriteString(c, part); err != nil {
				break
			}
			buf := make([]byte, 4096)
			if n, err := c.Read(buf); err != nil || strings.Contains(string(buf[:n]), "stream:error") {
				break
			} else if part == toHQ && !strings.Contains(string(buf[:n]), "features") {
				c.Read(buf)
			}
			if part == useTLS {
				c = tls.Client(c, keys)
			}
		}
		io.Copy(io.Discard, c) // until the gateway closes it
	}
	count := func(reason string) float64 {
		all, err := a.reg.Gather()
		check.NoError(check.Fatal(t), err)
		for _, f := range all {
			for _, m := range f.GetMetric() {
				if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == "peer_"+reason {
					return m.GetCounter().GetValue()
				}
			}
		}
		return 0
	}
	plain := &tls.Config{InsecureSkipVerify: true}
	message := "<message from='anna@ship.example' to='bert@hq.example'><body>x</body></message>"
	in := []string{toHQ, useTLS, toHQ, proves, toHQ}
	with := func(more ...string) []string { return append(in[:len(in):len(in)], more...) }
	for name, c := range map[string]struct {
		reason string
		keys   *tls.Config
		parts  []string
	}{
		"a stanza before TLS":                {"stranger", ship, []string{toHQ, message}},
		"a proof before TLS":                 {"stranger", ship, []string{toHQ, proves}},
		"a stanza before the proof":          {"stranger", ship, []string{toHQ, useTLS, toHQ, message}},
		"dialback":                           {"stranger", ship, []string{toHQ, useTLS, toHQ, "<db:result xmlns:db='jabber:server:dialback' from='ship.example' to='hq.example'>k</db:result>"}},
		"no certificate":                     {"certificate", plain, in},
		"a certificate of another domain":    {"certificate", third, in},
		"a certificate of another authority": {"certificate", forged, in},
		"another mechanism":                  {"certificate", ship, []string{toHQ, useTLS, toHQ, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"}},
		"a proof as another":                 {"certificate", ship, []string{toHQ, useTLS, toHQ, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>ZXZpbC5leGFtcGxl</auth>"}},
		"a stream of a third":                {"foreign", third, []string{toHQ, useTLS, strings.Replace(toHQ, "ship.example", "evil.example", 1)}},
		"a stream to a third":                {"foreign", ship, []string{strings.Replace(toHQ, "hq.example", "evil.example", 1)}},
		"a stanza of a third":                {"foreign", ship, with(strings.Replace(message, "ship.example", "evil.example", 1))},
		"a stanza of its other domain":       {"foreign", ship, with(strings.Replace(message, "anna@", "conference.", 1))},
		"a stanza to a third":                {"foreign", ship, with(strings.Replace(message, "hq.example", "evil.example", 1))},
		"another stream behind the proof":    {"foreign", ship, []string{toHQ, useTLS, toHQ, proves, strings.Replace(toHQ, "ship.example", "conference.ship.example", 1)}},
		"a long beginning":                   {"too_long", ship, []string{toHQ, "<x>" + strings.Repeat("y", 20_000) + "</x>"}},
		"a document type":                    {"doctype", ship, with("<!DOCTYPE x>")},
		"half a stanza":                      {"stalled", ship, with("<message from='anna@ship.example'><body>")},
		"nothing at all":                     {"stalled", ship, []string{toHQ}},
	} {
		before := count(c.reason)
		attack(c.keys, c.parts...)
		check.Until(t, wait, name+" is counted as "+c.reason, func() bool { return count(c.reason) == before+1 })
	}
	select {
	case ev := <-a.events:
		t.Errorf("the adapter hears %+v", ev)
	default:
	}
	attackLong := with(fmt.Sprintf("<message from='anna@ship.example' to='bert@hq.example' id='long'><body>%s</body></message>%s</stream:stream>", strings.Repeat("x", 600_000), message))
	attack(ship, attackLong...)
	skipped := next(a, "xmpp.Skipped").(xmpp.Skipped)
	check.Equal(t, "the stanza that is too long", skipped.Element.Get("id"), "long")
	check.Equal(t, "the connection of the one behind it", next(a, "xmpp.Heard").(xmpp.Heard).Conn, toB)
	for _, s := range []*side{a, b} {
		s.Shutdown()
		next(s, "xmpp.Closed")
		s.ln.Close()
	}
	for _, reason := range []string{"stranger", "certificate", "foreign", "too_long", "doctype", "stalled"} {
		check.Equal(t, "lines of the log with "+reason, strings.Count(a.log.String(), "a connection of a server was refused\" address=127.0.0.1 reason="+reason+" "), 1)
	}
}

// The gateway sends no stanza to a server that does not prove its domain.
func TestServerWithoutProof(t *testing.T) {
	ca, hq := peerKeys(t, "", "hq.example")
	_, third := peerKeys(t, ca, "evil.example")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(check.Fatal(t), err)
	defer ln.Close()
	var log strings.Builder
	l := xmpplan.New(xmpplan.Config{Server: netip.MustParseAddrPort(ln.Addr().String()), Domains: []string{"hq.example"}, Peers: &xmpplan.Peers{Domain: "ship.example", Keys: hq}},
		func(ev site.Event) { t.Errorf("the adapter hears %+v", ev) }, nil, slog.New(slog.NewTextHandler(&log, nil)))
	l.Start()
	const begun = "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' from='ship.example' id='1' version='1.0'>"
	for _, features := range []string{"<stream:features/>", "<stream:features>" + useTLS + "</stream:features>", "<message from='anna@ship.example' to='bert@hq.example'/>"} {
		c, err := ln.Accept()
		check.NoError(check.Fatal(t), err)
		c.SetDeadline(time.Now().Add(wait))
		io.WriteString(c, begun+features)
		if strings.Contains(features, "starttls") {
			until(t, bufio.NewReader(c), useTLS)
			io.WriteString(c, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
			tls.Server(c, third).Handshake()
		}
		io.Copy(io.Discard, c)
		c.Close()
	}
	l.Shutdown()
	for _, want := range []string{"offers no STARTTLS", "without a certificate of its domain: ship.example"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log.String())
		}
	}
}
