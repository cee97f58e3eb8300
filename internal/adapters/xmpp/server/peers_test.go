package server_test

import (
	"errors"
	"testing"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

// called are two servers, one of which connects to the other. proves: it has a certificate of ship.example.
func called(proves bool) (d *server.Dialling, a *server.Accepting, secured func() []byte) {
	d = &server.Dialling{From: "ship.example", To: "hq.example"}
	a = &server.Accepting{Peers: []string{"ship.example"}, Here: []string{"hq.example"}, ID: func() string { return "1" }}
	return d, a, func() []byte {
		a.Secured(func(domain string) bool { return proves && domain == "ship.example" })
		return d.Secured()
	}
}

// Two servers get to exchange stanzas, in whatever parts their octets come; a server without a certificate of its domain does not.
func TestServersProveTheirDomains(t *testing.T) {
	for _, part := range []int{1, 7, 1 << 20} {
		d, a, secured := called(true)
		heard := 0
		pass := func(b []byte, feed func([]byte) ([]byte, error)) (all []byte) {
			for len(b) > 0 {
				reply, err := feed(b[:min(part, len(b))])
				check.NoError(check.Fatal(t), err)
				b = b[min(part, len(b)):]
				all = append(all, reply...)
			}
			return all
		}
		toA := func(b []byte) ([]byte, error) {
			return a.Feed(b, func(to string, e *stanza.Element, f *stanza.Fault) {
				heard++
				check.Equal(t, "the domain", to, "hq.example")
				check.Equal(t, "the stanza", string(e.Append(nil, stanza.Component)), "<message from='anna@ship.example/x' to='bert@hq.example'><body>hi</body></message>")
			})
		}
		for said := d.Hello(); len(said) > 0; {
			said = pass(pass(said, toA), func(b []byte) ([]byte, error) { return d.Feed(b, nil) })
			if d.WantsTLS() {
				said = secured()
			}
		}
		check.True(t, "both are ready", d.Ready() && a.From() == "ship.example" && !a.Open() && !d.Open())
		pass([]byte("<message from='anna@ship.example/x' to='bert@hq.example'><body>hi</body></message>"), toA)
		check.Equal(t, "stanzas", heard, 1)
	}
	d, a, secured := called(false)
	reply, err := a.Feed(d.Hello(), nil)
	check.NoError(check.Fatal(t), err)
	reply, err = d.Feed(reply, nil)
	check.NoError(check.Fatal(t), err)
	_, err = a.Feed(reply, nil)
	check.NoError(check.Fatal(t), err)
	_, err = a.Feed(secured(), nil)
	check.True(t, "a server without a certificate is refused", errors.Is(err, server.ErrCertificate))
}

func FuzzServers(f *testing.F) {
	const stream = "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' from='ship.example' to='hq.example' version='1.0'>"
	f.Add([]byte(stream+"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"), uint8(9))
	f.Add([]byte(stream+"<auth"+sasl+" mechanism='EXTERNAL'>=</auth>"+stream+"<message from='anna@ship.example' to='hq.example'/>"), uint8(200))
	f.Add([]byte(stream+"<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features><proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"), uint8(1))
	f.Add([]byte(stream+"<stream:features><mechanisms"+sasl+"><mechanism>EXTERNAL</mechanism></mechanisms></stream:features><success"+sasl+"/>"), uint8(30))
	f.Add([]byte("<message from='anna@ship.example' to='hq.example'/></stream:stream>"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, part uint8) {
		for _, way := range []string{"strangers", "TLS", "zero handshake"} {
			secure := way != "strangers"
			d, a, secured := called(secure)
			switch way {
			case "TLS":
				secured()
			case "zero handshake":
				d, _, _ = called(false)
				a.Trust("ship.example")
			}
			feed := func(what func([]byte) ([]byte, error)) {
				for rest := b; len(rest) > 0; {
					next := rest[:min(max(1, int(part)), len(rest))]
					rest = rest[len(next):]
					reply, err := what(next)
					if len(reply) > 4096+len(next)*1024 {
						t.Errorf("%d octets for %d", len(reply), len(next))
					}
					if err != nil {
						return
					}
				}
			}
			feed(func(b []byte) ([]byte, error) {
				return a.Feed(b, func(to string, e *stanza.Element, _ *stanza.Fault) {
					_, from, _, _ := stanza.CutAddress(e.Get("from"))
					if !secure || from != "ship.example" || to != "hq.example" {
						t.Errorf("heard from %q to %q, secure: %v", from, to, secure)
					}
				})
			})
			feed(func(b []byte) ([]byte, error) { return d.Feed(b, nil) })
			check.True(t, "nothing is ready without TLS", way == "TLS" || !d.Ready() && (a.From() == "") == !secure)
		}
	})
}
