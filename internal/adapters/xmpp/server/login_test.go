package server_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdg-go/scram"

	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/adapters/xmpp/stanza"
	"aldis/internal/lab/check"
)

var annaKeys = func() server.Keys {
	k, err := server.NewKeys("secret", []byte("0123456789abcdef"))
	if err != nil {
		panic(err)
	}
	return k
}()

func host() *server.Host {
	n := 0
	return &server.Host{Domain: "ship.example", Secret: []byte("of this process"), Fresh: func() []byte { n++; return fmt.Appendf(nil, "%016d", n) },
		Users: func(name string) (server.Keys, bool) { return annaKeys, name == "anna" }}
}

const (
	header = "<?xml version='1.0'?><stream:stream to='ship.example' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
	opened = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='ship.example' version='1.0'/>"
	sasl   = " xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
)

// feed feeds a Login, which must give no stanza to do before somebody has logged in.
func feed(t *testing.T, l *server.Login, text string) (string, error) {
	t.Helper()
	reply, err := l.Feed([]byte(text), func(e *stanza.Element, f *stanza.Fault) {
		if l.User() == "" {
			t.Errorf("a stanza before the login: %v", e)
		}
	})
	return string(bytes.Join(reply, nil)), err
}

// login plays a client's side of SCRAM. It returns the server's last element.
func login(t *testing.T, l *server.Login, mechanism, name, password string) (string, error) {
	t.Helper()
	c, err := scram.SHA256.NewClient(name, password, "")
	check.NoError(check.Fatal(t), err)
	conv := c.NewConversation()
	if strings.HasSuffix(mechanism, "-PLUS") {
		conv = c.NewConversationWithChannelBinding(scram.ChannelBinding{Type: "tls-exporter", Data: l.Binding})
	}
	text, err := conv.Step("")
	check.NoError(check.Fatal(t), err)
	said, err := feed(t, l, fmt.Sprintf("<auth%s mechanism='%s'>%s</auth>", sasl, mechanism, base64.StdEncoding.EncodeToString([]byte(text))))
	for err == nil && strings.HasPrefix(said, "<challenge") {
		_, inside, _ := strings.Cut(said, ">")
		inside, _, _ = strings.Cut(inside, "<")
		asked, _ := base64.StdEncoding.DecodeString(inside)
		text, bad := conv.Step(string(asked))
		check.NoError(check.Fatal(t), bad)
		said, err = feed(t, l, fmt.Sprintf("<response%s>%s</response>", sasl, base64.StdEncoding.EncodeToString([]byte(text))))
	}
	return said, err
}

// A client gets TLS, then a login, then a stream of its own; also with a login that is bound to the TLS connection, and over WebSocket.
func TestLogin(t *testing.T) {
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"} {
		l := &server.Login{Host: host()}
		said, err := feed(t, l, header)
		check.NoError(t, err)
		if !strings.Contains(said, "<required/>") || strings.Contains(said, "mechanism") {
			t.Errorf("before TLS the server offers %s", said)
		}
		said, err = feed(t, l, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><iq id='injected'/>")
		check.NoError(t, err)
		check.Equal(t, "answer", said, "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
		check.True(t, "TLS begins", l.WantsTLS())
		l.Secured([]byte("of this connection"))
		said, err = feed(t, l, header)
		check.NoError(t, err)
		check.True(t, "the mechanism is offered", strings.Contains(said, "<mechanism>"+mechanism+"</mechanism>"))
		said, err = login(t, l, mechanism, "anna", "secret")
		check.NoError(t, err)
		check.True(t, "success: "+said, strings.HasPrefix(said, "<success"))
		check.Equal(t, "user before the stream", l.User(), "")
		said, err = feed(t, l, header)
		check.NoError(t, err)
		check.True(t, "resources may be bound", strings.Contains(said, "xmpp-bind"))
		check.Equal(t, "user", l.User(), "anna")
		_, err = feed(t, l, "</stream:stream>")
		check.True(t, "the stream ends", errors.Is(err, stanza.ErrEnded) && l.Ended())
	}
	l := &server.Login{Host: host(), Framed: true, Secure: true}
	said, err := feed(t, l, opened)
	check.NoError(t, err)
	check.True(t, "a stream over WebSocket", strings.HasPrefix(said, "<open ") && strings.Contains(said, "SCRAM-SHA-256"))
	_, err = login(t, l, "SCRAM-SHA-256", "ANNA", "secret")
	check.NoError(t, err)
	_, err = feed(t, l, opened)
	check.NoError(t, err)
	check.Equal(t, "user", l.User(), "anna")
}

// Nobody logs in as another user, whatever the password.
func TestOtherName(t *testing.T) {
	for authzid, want := range map[string]string{"anna@ship.example": "<success", "Anna@ship.example": "<success", "alma@ship.example": "<failure", "anna@hq.example": "<failure", "anna": "<failure"} {
		l := &server.Login{Host: host(), Secure: true}
		feed(t, l, header)
		c, err := scram.SHA256.NewClient("anna", "secret", authzid)
		check.NoError(check.Fatal(t), err)
		conv, said, name := c.NewConversation(), "", "auth"
		for range 2 {
			_, inside, _ := strings.Cut(said, ">")
			inside, _, _ = strings.Cut(inside, "<")
			asked, _ := base64.StdEncoding.DecodeString(inside)
			text, err := conv.Step(string(asked))
			check.NoError(check.Fatal(t), err)
			said, err = feed(t, l, fmt.Sprintf("<%s%s mechanism='SCRAM-SHA-256'>%s</%s>", name, sasl, base64.StdEncoding.EncodeToString([]byte(text)), name))
			check.NoError(t, err)
			name = "response"
		}
		check.True(t, authzid+": "+said, strings.HasPrefix(said, want))
	}
}

// A wrong password and an unknown user look alike; after three tries the connection ends.
func TestWrongPassword(t *testing.T) {
	challenge := func(name string) string {
		l := &server.Login{Host: host(), Secure: true}
		feed(t, l, header)
		said, _ := feed(t, l, fmt.Sprintf("<auth%s mechanism='SCRAM-SHA-256'>%s</auth>", sasl, base64.StdEncoding.EncodeToString([]byte("n,,n="+name+",r=abc"))))
		_, inside, _ := strings.Cut(said, ">")
		inside, _, _ = strings.Cut(inside, "<")
		text, _ := base64.StdEncoding.DecodeString(inside)
		return string(text)
	}
	check.Equal(t, "the same stranger twice", challenge("nobody"), challenge("nobody"))
	check.Equal(t, "how long it is", len(challenge("nobody")), len(challenge("anna")))
	for _, name := range []string{"anna", "nobody", "a@b"} {
		l := &server.Login{Host: host(), Secure: true}
		feed(t, l, header)
		for i := range 3 {
			said, err := login(t, l, "SCRAM-SHA-256", name, "guess")
			check.True(t, name+" fails: "+said, strings.HasPrefix(said, "<failure") && strings.Contains(said, "not-authorized"))
			check.Equal(t, "the last try", errors.Is(err, server.ErrLogin), i == 2)
		}
		check.Equal(t, "tries", l.Tries(), 3)
	}
}

// Before the login, a client may only send the login, and not much of it.
func TestStrangers(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{header + "<message to='alma@ship.example'><body>hi</body></message>", "not-authorized"},
		{header + "<auth" + sasl + " mechanism='SCRAM-SHA-256'>biwsbj1h</auth>", "not-authorized"}, // without TLS
		{header + "<iq type='set'><query xmlns='jabber:iq:register'/></iq>", "not-authorized"},
		{header + strings.TrimPrefix(header, "<?xml version='1.0'?>") + "</stream:stream>", "not-authorized"},
		{strings.Replace(header, "ship.example", "sea.example", 1), "host-unknown"},
		{header + "<auth" + sasl + ">" + strings.Repeat("x", 20_000) + "</auth>", "policy-violation"},
		{header + "<!DOCTYPE x [<!ENTITY a 'aaaa'>]>", "restricted-xml"},
		{header + strings.Repeat("<a>", 10_000), ""},
		{"GET / HTTP/1.1\r\n\r\n", "not-well-formed"},
		{strings.Repeat("<", 100), "not-well-formed"},
	} {
		l := &server.Login{Host: host()}
		said, err := feed(t, l, tt.text)
		if tt.want != "" && (err == nil || !strings.Contains(said, tt.want)) {
			t.Errorf("%.80q: %v, %s, want %s", tt.text, err, said, tt.want)
		}
		check.Equal(t, "user", l.User(), "")
	}
	l := &server.Login{Host: host(), Secure: true}
	feed(t, l, header)
	said, _ := feed(t, l, "<auth"+sasl+" mechanism='PLAIN'>AGFubmEAc2VjcmV0</auth>")
	check.True(t, "no PLAIN", strings.Contains(said, "invalid-mechanism"))
	l = &server.Login{Host: host(), Secure: true, Framed: true}
	for _, text := range []string{"", "<open", opened + opened, "</stream:stream>"} {
		if _, err := feed(t, l, text); err == nil {
			t.Errorf("%q is a message", text)
		}
	}
}

// Accounts are read as they were written, and nothing else.
func TestAccounts(t *testing.T) {
	all := server.Accounts{"anna": annaKeys, "ärne": annaKeys}
	text := all.Append(nil)
	if bytes.Contains(text, []byte("secret")) {
		t.Errorf("the password is in %s", text)
	}
	again, err := server.ParseAccounts(append([]byte("# users\n\n"), text...))
	check.NoError(check.Fatal(t), err)
	check.Equal(t, "text", string(again.Append(nil)), string(text))
	line := strings.TrimSpace(strings.SplitN(string(text), "\n", 2)[0])
	for _, bad := range []string{"anna", "anna secret", "a b " + line, line + "\n" + line, strings.Replace(line, "10000", "1", 1), strings.Replace(line, "anna", "Anna", 1), line + "x"} {
		if _, err := server.ParseAccounts([]byte(bad)); err == nil {
			t.Errorf("accounts of %q", bad)
		}
	}
	for _, password := range []string{"", "\x00", strings.Repeat("x", 2000)} {
		if _, err := server.NewKeys(password, []byte("salt")); !errors.Is(err, server.ErrPassword) {
			t.Errorf("keys of %.20q: %v", password, err)
		}
	}
}

// A message of WebSocket stands alone.
func TestFrame(t *testing.T) {
	for xml, want := range map[string]string{
		"<message id='1'/>":          "<message xmlns='jabber:client' id='1'/>",
		"<iq/>":                      "<iq xmlns='jabber:client'/>",
		"<stream:error><x/>":         "<stream:error xmlns:stream='http://etherx.jabber.org/streams'><x/>",
		"<r xmlns='urn:xmpp:sm:3'/>": "<r xmlns='urn:xmpp:sm:3'/>",
		"":                           "",
	} {
		check.Equal(t, xml, string(server.Frame([]byte(xml))), want)
	}
}

func FuzzLogin(f *testing.F) {
	f.Add([]byte(header+"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"), uint8(3), false, true)
	f.Add([]byte(header+"<auth"+sasl+" mechanism='SCRAM-SHA-256'>biwsbj1hbm5hLHI9YWJj</auth>"), uint8(7), true, false)
	f.Add([]byte(opened), uint8(200), true, true)
	f.Fuzz(func(t *testing.T, b []byte, part uint8, secure, framed bool) {
		l := &server.Login{Host: host(), Secure: secure, Framed: framed}
		for n := max(1, int(part)); len(b) > 0; {
			next := b[:min(n, len(b))]
			b = b[len(next):]
			reply, err := l.Feed(next, func(*stanza.Element, *stanza.Fault) { t.Error("a stanza before the login") })
			if len(bytes.Join(reply, nil)) > 4096+len(next)*1024 {
				t.Errorf("%d octets for %d", len(bytes.Join(reply, nil)), len(next))
			}
			if err != nil {
				break
			}
			if l.WantsTLS() {
				l.Secured([]byte("x"))
			}
		}
	})
}

func FuzzAccounts(f *testing.F) {
	f.Add(server.Accounts{"anna": annaKeys}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := server.ParseAccounts(b)
		if err != nil {
			return
		}
		text := all.Append(nil)
		again, err := server.ParseAccounts(text)
		check.NoError(check.Fatal(t), err)
		check.Equal(t, "accounts", string(again.Append(nil)), string(text))
	})
}
