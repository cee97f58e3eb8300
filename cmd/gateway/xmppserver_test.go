package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// writeXMPPServer is writeXMPP for a site without a server: the gateway itself serves users, whose password is "secret".
func (s *testSite) writeXMPPServer(t *testing.T, host string, users []string, sites string, peers ...string) *xmppServer {
	t.Helper()
	p := &xmppServer{dir: s.dir, host: host, c2s: check.FreeAddress(t, "tcp"), components: check.FreeAddress(t, "tcp"), authority: s.dir + "/xmpp/ca.pem"}
	s.write(t, s.dir+"/data", peers...)
	c := check.Fatal(t)
	if code, _, errs := run(t, "keys", "tak", "-o", s.dir+"/xmpp", host); code != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(s.file)
	check.NoError(c, err)
	text = bytes.Replace(text, fmt.Appendf(nil, "[lan]\ntcp = %q\n", s.lan), fmt.Appendf(nil,
		"[xmpp]\nlisten = %q\nwebsocket = %q\ntls_keys = \"xmpp\"\nusers = \"xmpp/users\"\ndomain = %q\nrooms = \"conference.%s\"\n%s", p.c2s, p.components, host, host, sites), 1)
	check.NoError(c, os.WriteFile(s.file, text, 0o644))
	check.NoError(c, os.WriteFile(s.dir+"/password", []byte("secret\n"), 0o600))
	for _, name := range users {
		s.user(t, "add", name)
	}
	return p
}

func (s *testSite) user(t *testing.T, verb, name string) {
	t.Helper()
	args := []string{"xmpp", "user", verb, name, "-c", s.file}
	if verb != "remove" {
		args = append(args, "--password-file", s.dir+"/password")
	}
	if code, _, errs := run(t, args...); code != 0 {
		t.Fatal(errs)
	}
}

// A ship without a server, a Prosody ashore, and unmodified clients. Over TLS and SCRAM they log in to the gateway, chat with each other
// and with a user ashore, and meet in rooms of either site. Waiting lines survive kill -9 of the gateway: the sessions are resumed.
func TestXMPPOwnServer(t *testing.T) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	shore := newProsody(t, "hq.example", []string{"bert"}, "ship.example", "conference.ship.example", "pubsub.ship.example")
	shore.start(t)
	hq := newSite(t, 1, "")
	ship := newSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.writeXMPP(t, shore, 2, "ship.example", "2 "+air.address(0, 1))
	aboard := ship.writeXMPPServer(t, "ship.example", []string{"anna", "alma"}, "[[xmpp.site]]\nsite = \"1\"\ndomain = \"hq.example\"\nrooms = \"conference.hq.example\"\n", "1 "+air.address(1, 0))
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, "server of the domain ship.example") {
		t.Fatal(out, errs)
	}
	r1, r2 := hq.start(t), ship.start(t)
	r1.until(t, "the shore's server is connected", func() bool { return strings.Count(r1.logged(), "has taken the component") == 4 })
	anna, alma, bert := aboard.login(t, "anna"), aboard.login(t, "alma"), shore.login(t, "bert")
	anna.say(`<message to='alma@ship.example' type='chat' id='a1'><body>Good morning aboard</body></message>`)
	r2.until(t, "a line aboard", func() bool { return alma.count("<body>Good morning aboard</body>", "anna@ship.example") == 1 })
	anna.say(`<message to='bert@hq.example' type='chat' id='a2'><body>Good morning ashore</body><request xmlns='urn:xmpp:receipts'/></message>`)
	r1.until(t, "a line to the shore", func() bool { return bert.count("<body>Good morning ashore</body>", "anna@ship.example") == 1 })
	bert.say(`<message to='anna@ship.example' type='chat' id='b1'><body>Welcome</body></message>`)
	r2.until(t, "a line from the shore", func() bool { return anna.count("<body>Welcome</body>", "bert@hq.example") == 1 })
	anna.say(`<message to='nobody@hq.example' type='chat' id='a3'><body>Anybody?</body></message>`)
	r2.until(t, "the message to nobody ends", func() bool { return anna.count(`id="a3"`, `type="error"`, "service-unavailable") == 1 })
	bert.say(`<message to='nobody@ship.example' type='chat' id='b2'><body>Anybody?</body></message>`)
	r1.until(t, "so does the one to nobody aboard", func() bool { return bert.count(`id="b2"`, `type="error"`, "service-unavailable") == 1 })

	// Presence ashore and on the ship.
	for _, c := range []struct {
		from, to *xmppClient
		jid      string
		who      string
	}{{anna, bert, "bert@hq.example", "anna@ship.example"}, {bert, anna, "anna@ship.example", "bert@hq.example"}, {anna, alma, "alma@ship.example", "anna@ship.example"}} {
		c.from.say("<presence to='%s' type='subscribe'/>", c.jid)
		r1.until(t, "the request of "+c.who, func() bool { return c.to.count("<presence", `type="subscribe"`, c.who) >= 1 })
		c.to.say("<presence to='%s' type='subscribed'/>", c.who)
		r1.until(t, "the consent of "+c.jid, func() bool { return c.from.count("<presence", `type="subscribed"`, c.jid) == 1 })
	}
	anna.say("<presence><show>dnd</show><status>on watch</status></presence>")
	r1.until(t, "the status ashore", func() bool { return bert.count("<presence", "on watch", "anna@ship.example") >= 1 })

	// Rooms of both sites.
	for _, room := range []string{"ops@conference.hq.example", "mess@conference.ship.example"} {
		for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma, "bert": bert} {
			c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", room, name)
		}
		for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma, "bert": bert} {
			r1.until(t, name+" sees all in "+room, func() bool {
				return c.count("<presence", room+"/anna") > 0 && c.count("<presence", room+"/alma") > 0 && c.count("<presence", room+"/bert") > 0
			})
		}
		for name, c := range map[string]*xmppClient{"anna": anna, "bert": bert} {
			c.say("<message to='%s' type='groupchat' id='g-%s'><body>%s speaks in %s</body></message>", room, name, name, room)
		}
		for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma, "bert": bert} {
			r1.until(t, name+" hears both in "+room, func() bool {
				return c.count("<message", "anna speaks in "+room) == 1 && c.count("<message", "bert speaks in "+room) == 1
			})
		}
	}

	// kill -9 of the gateway while lines are in transit.
	for i := range 50 {
		anna.say("<message to='bert@hq.example' type='chat' id='k%d'><body>anna tells one number %03d.</body></message>", i, i)
		alma.say("<message to='anna@ship.example' type='chat' id='l%d'><body>alma tells one number %03d.</body></message>", i, i)
		anna.say("<message to='mess@conference.ship.example' type='groupchat' id='m%d'><body>anna tells all number %03d.</body></message>", i, i)
		bert.say("<message to='anna@ship.example' type='chat' id='n%d'><body>bert tells one number %03d.</body></message>", i, i)
		if i == 25 {
			r2.until(t, "some have come", func() bool { return anna.count("bert tells one") > 0 })
			r2.stop(t, syscall.SIGKILL)
		}
	}
	r2 = ship.start(t)
	for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma} {
		r2.until(t, name+" is back", func() bool { return c.count("session resumed") == 1 })
	}
	r2.until(t, "all have come", func() bool {
		return bert.count("anna tells one number 049") == 1 && anna.count("alma tells one number 049") == 1 && anna.count("bert tells one number 049") == 1 &&
			alma.count("anna tells all number 049") == 1 && bert.count("anna tells all number 049") == 1
	})
	bert.inOrder(t, "bert", "anna tells one", 50)
	anna.inOrder(t, "anna", "alma tells one", 50)
	anna.inOrder(t, "anna", "bert tells one", 50)
	for name, c := range map[string]*xmppClient{"anna": anna, "alma": alma, "bert": bert} {
		c.inOrder(t, name, "anna tells all", 50)
	}

	// Users change while the gateway runs.
	ship.user(t, "add", "arne")
	aboard.login(t, "arne")
	ship.user(t, "remove", "alma")
	r2.until(t, "alma is put out", func() bool { return alma.count("disconnected") >= 2 })
}

// The session suites of two client libraries with the gateway as their server: slixmpp over TCP, StanzaJS over WebSocket.
func TestXMPPSuites(t *testing.T) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	ship := newSite(t, 2, "")
	ship.link = air.links[1].String()
	p := ship.writeXMPPServer(t, "ship.example", []string{"anna", "alma"}, "", "1 "+air.address(1, 0))
	ship.start(t)
	host, port, _ := net.SplitHostPort(p.c2s)
	const dir = "../../field-tests/xmpp/"
	for _, suite := range []struct { // the first begins with users who do not know each other
		name  string
		parts int
		cmd   *exec.Cmd
	}{
		{"slixmpp", 17, bounded(t, dir+".venv/bin/python", dir+"suite.py", p.host, "conference."+p.host, host, port, p.authority)},
		{"StanzaJS", 12, bounded(t, "node", dir+"suite.js", p.host, "conference."+p.host, portOf(p.components))},
	} {
		cmd := suite.cmd
		cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+p.authority, "NODE_PATH="+dir+".node/node_modules")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains("\n"+string(out), "\nno ") || strings.Count("\n"+string(out), "\nok ") != suite.parts {
			t.Errorf("%s: %v\n%s", suite.name, err, out)
		}
	}
}

// Each mistake about the gateway as a server is a line of check, and of the command that changes users.
func TestXMPPServerConfiguration(t *testing.T) {
	s := newSite(t, 2, "")
	s.writeXMPPServer(t, "ship.example", []string{"anna"}, "", "1")
	text, err := os.ReadFile(s.file)
	c := check.Fatal(t)
	check.NoError(c, err)
	for _, tt := range []struct{ old, is, want string }{
		{"tls_keys = \"xmpp\"\n", "", "xmpp.tls_keys: is missing: gateway keys tak -o xmpp ship.example makes such a directory"},
		{"tls_keys = \"xmpp\"", "tls_keys = \"none\"", "makes what is missing"},
		{"users = \"xmpp/users\"\n", "", "xmpp.users: is missing: the file that gateway xmpp user add makes"},
		{"users = \"xmpp/users\"", "users = \"xmpp/none\"", "gateway xmpp user add NAME makes it"},
		{"users = \"xmpp/users\"", "users = \"xmpp/ca.pem\"", "line 1: \"-----BEGIN\" is no name of a user"},
		{"tls_keys", "server = \"127.0.0.1:5347\"\ntls_keys", "xmpp.listen: is of no use with server"},
		{"tls_keys", "secret_file = \"s\"\ntls_keys", "xmpp.secret_file: is of no use without server"},
		{"[xmpp]\nlisten = ", "[xmpp]\nlisten = \":5222\"\ntls = ", "for all addresses of this machine write \"0.0.0.0:5222\""},
	} {
		bad := strings.Replace(string(text), tt.old, tt.is, 1)
		check.NoError(c, os.WriteFile(s.file, []byte(bad), 0o644))
		if code, out, errs := run(t, "check", "-c", s.file); code == 0 || !strings.Contains(out+errs, tt.want) || strings.Contains(errs, "mistakes") {
			t.Errorf("with %q in the place of %q: no %q in\n%s%s", tt.is, tt.old, tt.want, out, errs)
		}
	}
	check.NoError(c, os.WriteFile(s.file, text, 0o644))
	if code, out, errs := run(t, "check", "-c", s.file); code != 0 || !strings.Contains(out, "for 1 users") {
		t.Error(out, errs)
	}
	check.NoError(c, os.WriteFile(s.dir+"/empty", nil, 0o600))
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"add", "anna", "--password-file", s.dir + "/password"}, "anna is there already"},
		{[]string{"add", "a b", "--password-file", s.dir + "/password"}, "is no name of a user"},
		{[]string{"add", "alma", "--password-file", s.dir + "/empty"}, "is empty"},
		{[]string{"add", "alma"}, "say --password-file FILE"},
		{[]string{"remove", "nobody"}, "there is no user nobody"},
		{[]string{"list", "anna"}, "usage: gateway xmpp"},
	} {
		if code, out, errs := run(t, append([]string{"xmpp", "user", "-c", s.file}, tt.args...)...); code == 0 || !strings.Contains(out+errs, tt.want) {
			t.Errorf("xmpp user %q: no %q in %s%s", tt.args, tt.want, out, errs)
		}
	}
	s.user(t, "add", "Ärne")
	s.user(t, "password", "anna")
	s.user(t, "remove", "anna")
	if _, out, _ := run(t, "xmpp", "user", "list", "-c", s.file); out != "ärne\n" {
		t.Errorf("the users are %q", out)
	}
	users, err := os.ReadFile(s.dir + "/xmpp/users")
	check.NoError(c, err)
	if bytes.Contains(users, []byte("secret")) {
		t.Errorf("the password is in %s", users)
	}
}
