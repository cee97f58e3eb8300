package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// writeXMPPPeers is writeXMPP for a gateway that acts as the servers of the far domains: certificates of one authority prove both ends.
// It gives the server, which must not run yet, its certificate and the gateway's address.
func (s *testSite) writeXMPPPeers(t *testing.T, p *xmppServer, far int, domain, peer string) (at string) {
	t.Helper()
	c := check.Fatal(t)
	s.writeXMPP(t, p, far, domain, peer)
	at = fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250)) // servers call each other on port 5269
	names := fmt.Sprintf("%[1]s,conference.%[1]s,pubsub.%[1]s,upload.%[2]s", domain, p.host)
	for _, keys := range [][2]string{{s.dir + "/s2s", names}, {p.dir + "/keys", fmt.Sprintf("%[1]s,conference.%[1]s,pubsub.%[1]s", p.host)}} {
		dir, of := keys[0], keys[1]
		if dir != s.dir+"/s2s" {
			check.NoError(c, os.CopyFS(dir, os.DirFS(s.dir+"/s2s")))
			check.NoError(c, errors.Join(os.Remove(dir+"/server.pem"), os.Remove(dir+"/server.key")))
		}
		if code, _, errs := run(t, "keys", "tak", "-o", dir, of); code != 0 {
			t.Fatal(errs)
		}
	}
	peers := check.FreeAddress(t, "tcp")
	edit := func(file string, pairs ...string) {
		text, err := os.ReadFile(file)
		check.NoError(c, err)
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(string(text), pairs[i]) {
				t.Fatalf("no %q in %s", pairs[i], file)
			}
		}
		check.NoError(c, os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644))
	}
	edit(s.file, fmt.Sprintf("server = %q\nsecret_file = \"xmpp.secret\"\n", p.components), fmt.Sprintf("s2s = \"%s:5269\"\ns2s_server = %q\ns2s_keys = \"s2s\"\n", at, peers))
	if p.run[0] != "prosody" { // ejabberd
		hosts := fmt.Sprintf("%s %[2]s conference.%[2]s pubsub.%[2]s upload.%[3]s\n", at, domain, p.host)
		check.NoError(c, os.WriteFile(filepath.Join(p.dir, "hosts"), []byte(hosts), 0o644)) // it asks the C library
		p.run = append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, filepath.Join(p.dir, "hosts")}, p.run...)
		file := filepath.Join(p.dir, "ejabberd.yml")
		text, err := os.ReadFile(file)
		check.NoError(c, err)
		before, rest, _ := strings.Cut(string(text), fmt.Sprintf("  -\n    port: %s\n", portOf(p.components)))
		_, after, _ := strings.Cut(rest, "modules:\n")
		check.NoError(c, os.WriteFile(file, fmt.Appendf(nil, `%[1]s  -
    port: %[2]s
    ip: "127.0.0.1"
    module: ejabberd_s2s_in
certfiles:
  - %[3]s/keys/server.pem
  - %[3]s/keys/server.key
ca_file: %[3]s/keys/ca.pem
s2s_use_starttls: required
modules:
%[4]s`, before, portOf(peers), p.dir, after), 0o644))
		return at
	}
	edit(filepath.Join(p.dir, "prosody.cfg.lua"), `"disco", `, `"disco", "tls", "dialback", `, "s2s_ports = {}\n", fmt.Sprintf(`s2s_ports = { %[1]s }
s2s_secure_auth = true
ssl = { certificate = "%[2]s/keys/server.pem"; key = "%[2]s/keys/server.key"; cafile = "%[2]s/keys/ca.pem" }
unbound = { resolvconf = false; options = { ["local-zone:"] = "example. redirect"; ["local-data:"] = "example. A %[3]s" } }
`, portOf(peers), p.dir, at), fmt.Sprintf("Component \"upload.%s\"\n\tcomponent_secret = %q\n", p.host, xmppSecret), "")
	return at
}

// The ship's gateway connects with Prosody, or ejabberd, as the servers of the far domains, with certificates on both sides; ashore a
// gateway is a component. Lines cross with receipts, a room is shared, and waiting lines survive kill -9 of the gateway and of the server.
// A server that cannot prove its domain is refused.
func TestXMPPServerToServer(t *testing.T) {
	t.Run("prosody", func(t *testing.T) { serverToServer(t, newProsody) })
	t.Run("ejabberd", func(t *testing.T) { serverToServer(t, newEjabberd) })
}

func serverToServer(t *testing.T, made func(t *testing.T, host string, users []string, far ...string) *xmppServer) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	shore := newProsody(t, "hq.example", []string{"bert"}, "ship.example", "conference.ship.example", "pubsub.ship.example")
	aboard := made(t, "ship.example", []string{"anna"})
	hq := newSite(t, 1, "")
	ship := newSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.writeXMPP(t, shore, 2, "ship.example", "2 "+air.address(0, 1))
	ship.writeXMPPPeers(t, aboard, 1, "hq.example", "1 "+air.address(1, 0))
	shore.start(t)
	aboard.start(t)
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, "other server to the server") {
		t.Fatal(out, errs)
	}
	r1, r2 := hq.start(t), ship.start(t)
	ready := func(r *running) {
		t.Helper()
		r.until(t, "its server has taken all domains", func() bool { return strings.Count(r.logged(), "has taken the component") == 4 })
	}
	ready(r1)
	ready(r2)
	anna, bert := aboard.login(t, "anna"), shore.login(t, "bert")
	anna.say(`<message to='bert@hq.example' type='chat' id='a1'><body>Good morning</body><request xmlns='urn:xmpp:receipts'/></message>`)
	r1.until(t, "the line has crossed", func() bool { return bert.count("<body>Good morning</body>", "anna@ship.example") == 1 })
	bert.say(`<message to='anna@ship.example' type='chat' id='b1'><received xmlns='urn:xmpp:receipts' id='%s'/></message>`, bert.attribute("Good morning", "id"))
	r2.until(t, "the receipt has crossed", func() bool { return anna.count("received", `id="a1"`, "bert@hq.example") == 1 })
	anna.say(`<message to='nobody@hq.example' type='chat' id='a2'><body>Anybody?</body></message>`)
	r2.until(t, "the message to nobody ends", func() bool { return anna.count(`id="a2"`, `type="error"`, "service-unavailable") == 1 })

	// A room at each site.
	both := map[string]*xmppClient{"anna": anna, "bert": bert}
	for _, room := range []string{"ops@conference.hq.example", "mess@conference.ship.example"} {
		for name, c := range both {
			c.say("<presence to='%s/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", room, name)
			r1.until(t, name+" is in "+room, func() bool { return c.count("<presence", room+"/"+name+`"`, "110") > 0 })
		}
		for name, c := range both {
			r1.until(t, name+" sees both in "+room, func() bool { return c.count("<presence", room+"/anna") > 0 && c.count("<presence", room+"/bert") > 0 })
		}
		for name, c := range both {
			c.say("<message to='%s' type='groupchat' id='g-%s'><body>%s speaks in %s</body></message>", room, name, name, room)
		}
		for name, c := range both {
			r1.until(t, name+" hears both in "+room, func() bool {
				return c.count("<message", "anna speaks in "+room) == 1 && c.count("<message", "bert speaks in "+room) == 1
			})
		}
	}

	// Faults: the gateway holds lines that the link does not carry, and the server lines for its user.
	air.setAway(1, true)
	r2.accepts(t, 3, func() {
		anna.say(`<message to='bert@hq.example' type='chat' id='a3'><body>Sent during the outage</body></message>`)
	})
	r2.stop(t, syscall.SIGKILL)
	r2 = ship.start(t)
	ready(r2)
	aboard.stop()
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
	r2.stop(t, syscall.SIGKILL)
	r2 = ship.start(t)
	r2.until(t, "the line waits aboard again", waits(1))
	aboard.start(t)
	// On a new connection Prosody may send lines that a room has kept, from a domain that is not proved there. The gateway closes that
	// connection, and the answer to Prosody's ping is lost with it; Prosody waits half a minute for such an answer.
	await(t, r2.id, r2.ended, 2*patience, "the server has confirmed the line", waits(0))
	again := aboard.login(t, "anna")         // beside the first client, which comes back when it likes
	r2.until(t, "anna has it", func() bool { // a server may give what it has stored to both, where they come at the same moment
		first, second := anna.count("Sent while the server is away"), again.count("Sent while the server is away")
		return max(first, second) == 1
	})
	again.say("<presence to='ops@conference.hq.example/again'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
	r1.until(t, "bert sees her in the room again", func() bool { return bert.count("<presence", "ops@conference.hq.example/again") > 0 })
	again.say("<message to='ops@conference.hq.example' type='groupchat' id='g1'><body>Back in the room</body></message>")
	bert.say("<message to='ops@conference.hq.example' type='groupchat' id='g2'><body>Welcome back</body></message>")
	r1.until(t, "the room is one again", func() bool {
		return again.count("<message", "Welcome back") == 1 && again.count("<message", "Back in the room") == 1 && bert.count("<message", "Back in the room") == 1
	})
	_, metrics := r2.get("/metrics")
	agrees(t, metrics)
}

// Mistakes in s2s are named, and keys destroy destroys its keys.
func TestXMPPServerToServerConfiguration(t *testing.T) {
	p := newProsody(t, "ship.example", nil)
	s := newSite(t, 2, "")
	s.writeXMPPPeers(t, p, 1, "hq.example", "1")
	text, err := os.ReadFile(s.file)
	c := check.Fatal(t)
	check.NoError(c, err)
	for change, want := range map[[2]string]string{
		{"s2s_server", "#"}: "xmpp.s2s_server: is missing", {"s2s_keys", "#"}: "xmpp.s2s_keys: is missing", {`s2s_keys = "s2s"`, `s2s_keys = "nowhere"`}: "makes what is missing",
		{"s2s =", "#"}: "are of no use without s2s", {"[xmpp]\n", "[xmpp]\nserver = \"127.0.0.1:5347\"\n"}: "is of no use with server",
		{"[xmpp]\n", "[xmpp]\nusers = \"users\"\n"}: "is of no use with s2s", {"[[xmpp.site]]", "[[other]]"}: "without [[xmpp.site]]",
	} {
		check.NoError(c, os.WriteFile(s.file, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o644))
		if code, out, errs := run(t, "check", "-c", s.file); code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("with %q for %q no %q in %s%s", change[1], change[0], want, out, errs)
		}
	}
	zero := strings.Replace(string(text), "s2s = ", "s2s_zero = true\ns2s = ", 1)
	for _, m := range [][3]string{{"s2s_keys", "#", ", without handshake and TLS"}, {"s2s =", "#", "without handshake;"}, {"s2s_server", "#", "without handshake;"}, {"s2s_server", "s2s_from = \"10.0.0.1, ship\"\n#", "must be IP addresses"},
		{"s2s =", "s2s_from = \"::1\"\n#", "nobody connects to the gateway"}, {`s2s_keys = "s2s"`, `s2s_keys = "nowhere"`, "makes what is missing"}, {"s2s_zero = true", "s2s_from = \"10.0.0.1\"", "is of no use without s2s_zero"}} {
		check.NoError(c, os.WriteFile(s.file, []byte(strings.Replace(zero, m[0], m[1], 1)), 0o644))
		if _, out, errs := run(t, "check", "-c", s.file); !strings.Contains(out+errs, m[2]) {
			t.Errorf("with %q for %q and s2s_zero no %q in %s%s", m[1], m[0], m[2], out, errs)
		}
	}
	neither := strings.NewReplacer("s2s =", "#", "s2s_server", "#").Replace(zero)
	for text, want := range map[string]string{neither: "xmpp.s2s_server: is missing with s2s_zero", strings.NewReplacer("s2s_keys", "#", "s2s_server", "#").Replace(zero): "xmpp.s2s_from: is missing"} {
		check.NoError(c, os.WriteFile(s.file, []byte(text), 0o644))
		if code, out, errs := run(t, "check", "-c", s.file); code == 0 || !strings.Contains(out+errs, want) {
			t.Errorf("no %q in %s%s", want, out, errs)
		}
	}
	check.NoError(c, os.WriteFile(s.file, text, 0o644))
	does(t, "destroy", "-c", s.file, "--yes")
	for _, gone := range []string{"ca.key", "server.key"} {
		if _, err := os.Stat(filepath.Join(s.dir, "s2s", gone)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}
