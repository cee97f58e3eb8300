package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aldis/internal/lab/check"
)

// xmppServer is an unmodified XMPP server of one LAN, with users whose password is "secret".
type xmppServer struct {
	dir, host, c2s, components string
	authority                  string   // file of the authority that has signed its certificate; "": it has none
	run                        []string // its command
	cmd                        *exec.Cmd
}

const xmppSecret = "0123456789abcdef"

func newXMPPServer(t *testing.T, host string) *xmppServer {
	return &xmppServer{dir: t.TempDir(), host: host, c2s: check.FreeAddress(t, "tcp"), components: check.FreeAddress(t, "tcp")}
}

func portOf(at string) string {
	_, port, _ := net.SplitHostPort(at)
	return port
}

// newEjabberd is newProsody with ejabberd.
func newEjabberd(t *testing.T, host string, users []string, far ...string) *xmppServer {
	t.Helper()
	p := newXMPPServer(t, host)
	text := fmt.Sprintf(`hosts:
  - %[1]q
loglevel: info
listen:
  -
    port: %[2]s
    ip: "127.0.0.1"
    module: ejabberd_c2s
  -
    port: %[3]s
    ip: "127.0.0.1"
    module: ejabberd_service
    global_routes: false
    hosts:
`, host, portOf(p.c2s), portOf(p.components))
	for _, domain := range append(far, "upload."+host) {
		text += fmt.Sprintf("      %q:\n        password: %q\n", domain, xmppSecret)
	}
	text += "modules:\n  mod_disco: {}\n  mod_roster: {}\n  mod_ping: {}\n  mod_offline: {}\n  mod_muc: {}\n  mod_caps: {}\n  mod_pubsub:\n    plugins: [flat, pep]\n"
	check.NoError(check.Fatal(t), os.WriteFile(filepath.Join(p.dir, "ejabberd.yml"), []byte(text), 0o644))
	register := ""
	for _, user := range users {
		register += fmt.Sprintf("ejabberd_auth:try_register(<<%q>>,<<%q>>,<<\"secret\">>),", user, host)
	}
	p.run = []string{"env", "HOME=" + p.dir, "EJABBERD_CONFIG_PATH=" + p.dir + "/ejabberd.yml", "ERL_LIBS=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu",
		"erl", "-noinput", "-mnesia", "dir", fmt.Sprintf("%q", p.dir+"/spool"), "-ejabberd", "log_path", fmt.Sprintf("%q", p.dir+"/log"), "-s", "ejabberd", "-eval", register + "ok."}
	return p
}

// newProsody writes the configuration of a server for host, with components of the far domains.
func newProsody(t *testing.T, host string, users []string, far ...string) *xmppServer {
	t.Helper()
	p := newXMPPServer(t, host)
	text := fmt.Sprintf(`run_as_root = true
pidfile = "%[1]s/pid"
data_path = "%[1]s/data"
log = { info = "%[1]s/log" }
modules_enabled = { "roster", "saslauth", "disco", "ping", "offline", "pep" }
authentication = "internal_plain"
c2s_require_encryption = false
s2s_ports = {}
interfaces = { "127.0.0.1" }
c2s_ports = { %[2]s }
component_ports = { %[3]s }
component_interfaces = { "127.0.0.1" }
VirtualHost "%[4]s"
Component "conference.%[4]s" "muc"
	restrict_room_creation = false
	muc_room_locking = false
Component "pubsub.%[4]s" "pubsub"
	autocreate_on_publish = true
	add_permissions = { ["member"] = { "publisher" } }
	admins = { "bert@%[4]s", "anna@%[4]s" }
`, p.dir, portOf(p.c2s), portOf(p.components), host)
	for _, domain := range append(far, "upload."+host) {
		text += fmt.Sprintf("Component %q\n\tcomponent_secret = %q\n", domain, xmppSecret)
	}
	accounts := filepath.Join(p.dir, "data", strings.ReplaceAll(host, ".", "%2e"), "accounts")
	c := check.Fatal(t)
	check.NoError(c, os.MkdirAll(accounts, 0o755))
	for _, user := range users {
		check.NoError(c, os.WriteFile(filepath.Join(accounts, user+".dat"), []byte(`return { ["password"] = "secret"; };`), 0o644))
	}
	check.NoError(c, os.WriteFile(filepath.Join(p.dir, "prosody.cfg.lua"), []byte(text), 0o644))
	p.run = []string{"prosody", "--config", filepath.Join(p.dir, "prosody.cfg.lua"), "-F"}
	return p
}

// start runs the server until stop, or the end of the test.
func (p *xmppServer) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(p.run[0], p.run[1:]...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%v: make test installs prosody and ejabberd", err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			t.Logf("the server of %s said:\n%s", p.host, text)
		}
	})
	check.Until(t, 4*patience, "the server of "+p.host+" listens", func() bool {
		c, err := net.Dial("tcp", p.c2s)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// stop kills the server as kill -9 does.
func (p *xmppServer) stop() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.cmd = nil
	}
}

// xmppClient is a slixmpp program (field-tests/xmpp). It writes the received stanzas, one to a line.
type xmppClient struct {
	in io.Writer
	output
}

// count is the number of stanzas that contain all of these texts.
func (c *xmppClient) count(texts ...string) (n int) {
lines:
	for line := range strings.Lines(c.logged()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		n++
	}
	return n
}

func (c *xmppClient) say(format string, args ...any) { fmt.Fprintf(c.in, format+"\n", args...) }

// login starts a client of a user, and returns when the server has told the client of its own presence. Before that ejabberd may store
// a message for the user's next session although this one has begun.
func (p *xmppServer) login(t *testing.T, user string) *xmppClient {
	t.Helper()
	host, port, _ := net.SplitHostPort(p.c2s)
	cmd := exec.Command("../../field-tests/xmpp/.venv/bin/python", "../../field-tests/xmpp/client.py", user+"@"+p.host, "secret", host, port)
	if p.authority != "" {
		cmd.Args = append(cmd.Args, p.authority)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c := &xmppClient{}
	cmd.Stdout, cmd.Stderr = c, c
	in, err := cmd.StdinPipe()
	check.NoError(check.Fatal(t), err)
	c.in = in
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: make xmpp-peers installs it", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s@%s heard:\n%s", user, p.host, c.logged())
		}
	})
	check.Until(t, 2*patience, user+" is there", func() bool {
		return c.count("session begun") > 0 && c.count("<presence", fmt.Sprintf(`from="%s@%s/`, user, p.host)) > 0
	})
	return c
}

// writeXMPP writes the configuration of a gateway for XMPP only.
func (s *testSite) writeXMPP(t *testing.T, p *xmppServer, far int, domain, peer string) {
	t.Helper()
	s.write(t, s.dir+"/data", peer)
	c := check.Fatal(t)
	check.NoError(c, os.WriteFile(s.dir+"/xmpp.secret", []byte(xmppSecret+"\n"), 0o600))
	text, err := os.ReadFile(s.file)
	check.NoError(c, err)
	text = bytes.Replace(text, fmt.Appendf(nil, "[lan]\ntcp = %q\n", s.lan), fmt.Appendf(nil,
		"[xmpp]\nserver = %[1]q\nsecret_file = \"xmpp.secret\"\ndomain = %[2]q\nrooms = \"conference.%[2]s\"\npubsub = \"pubsub.%[2]s\"\nupload = \"upload.%[2]s\"\nfiles = %[5]q\n[[xmpp.site]]\nsite = \"%[3]d\"\ndomain = %[4]q\nrooms = \"conference.%[4]s\"\npubsub = \"pubsub.%[4]s\"\n", p.components, p.host, far, domain, check.FreeAddress(t, "tcp")), 1)
	check.NoError(c, os.WriteFile(s.file, text, 0o644))
}

// Two LANs with servers, one with a Prosody on the ship, and unmodified clients. Lines cross both ways, with receipts, over an emulated
// link that loses datagrams. Waiting lines survive kill -9 of a gateway and of a server, and the link's outage; a message to nobody ends.
func TestXMPPBetweenServers(t *testing.T) {
	t.Run("prosody", func(t *testing.T) { xmppBetween(t, newProsody) })
	t.Run("ejabberd", func(t *testing.T) { xmppBetween(t, newEjabberd) })
}

func xmppBetween(t *testing.T, ashore func(t *testing.T, host string, users []string, far ...string) *xmppServer) {
	t.Parallel()
	air := newRelay(t, 2, false, 7, func(int, []int, []byte) {})
	shore := ashore(t, "hq.example", []string{"bert", "carl"}, "ship.example", "conference.ship.example", "pubsub.ship.example")
	aboard := newProsody(t, "ship.example", []string{"anna"}, "hq.example", "conference.hq.example", "pubsub.hq.example")
	shore.start(t)
	aboard.start(t)
	hq := newSite(t, 1, "")
	ship := newSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.writeXMPP(t, shore, 2, "ship.example", "2 "+air.address(0, 1))
	ship.writeXMPP(t, aboard, 1, "hq.example", "1 "+air.address(1, 0))
	if code, out, errs := run(t, "check", "-c", ship.file); code != 0 || !strings.Contains(out, "hq.example is the domain of node 1") {
		t.Fatal(out, errs)
	}
	r1, r2 := hq.start(t), ship.start(t)
	r1.until(t, "the shore's server is connected", func() bool { return strings.Contains(r1.logged(), "has taken the component") })
	r2.until(t, "the ship's server is connected", func() bool { return strings.Contains(r2.logged(), "has taken the component") })
	anna, bert := aboard.login(t, "anna"), shore.login(t, "bert")
	anna.say(`<message to='bert@hq.example/x' type='chat' id='a1'><body>Good morning from the ship &amp; all aboard</body><request xmlns='urn:xmpp:receipts'/><active xmlns='http://jabber.org/protocol/chatstates'/></message>`)
	r1.until(t, "the line has crossed", func() bool {
		return bert.count("<body>Good morning from the ship &amp; all aboard</body>", "anna@ship.example") == 1
	})
	if bert.count("chatstates") != 0 {
		t.Error("a chat state has crossed")
	}
	id := bert.attribute("Good morning", "id")
	bert.say(`<message to='anna@ship.example' type='chat' id='b1'><received xmlns='urn:xmpp:receipts' id='%s'/></message>`, id)
	r2.until(t, "the receipt has crossed", func() bool { return anna.count("received", `id="a1"`, "bert@hq.example") == 1 })
	bert.say(`<message to='anna@ship.example' type='chat' id='b2'><body>Welcome</body></message>`)
	bert.say(`<message to='anna@ship.example' type='chat' id='b3'><body>Welcome aboard</body><replace xmlns='urn:xmpp:message-correct:0' id='b2'/></message>`)
	r2.until(t, "the correction has crossed", func() bool { return anna.count("<body>Welcome aboard</body>", "message-correct") == 1 })
	if first := anna.attribute("<body>Welcome</body>", "id"); anna.count("replace", fmt.Sprintf(`id="%s"`, first)) != 1 {
		t.Errorf("the correction does not name the message %s", first)
	}
	anna.say(`<message to='nobody@hq.example' type='chat' id='a2'><body>Anybody?</body></message>`)
	r2.until(t, "the message to nobody ends", func() bool { return anna.count(`id="a2"`, `type="error"`, "service-unavailable") == 1 })

	// A room ashore: both sides see each other, and each line reaches everybody once, the sender included.
	enter := "<presence to='ops@conference.hq.example/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
	carl := shore.login(t, "carl")
	carl.say(enter, "carl")
	r1.until(t, "carl is in the room", func() bool { return carl.count("ops@conference.hq.example/carl", "110") == 1 })
	anna.say(enter, "anna")
	r2.until(t, "anna is in the room at once", func() bool { return anna.count("ops@conference.hq.example/anna", "110") == 1 })
	r2.until(t, "anna sees carl", func() bool { return anna.count("<presence", "ops@conference.hq.example/carl") == 1 })
	r1.until(t, "carl sees anna", func() bool { return carl.count("<presence", "ops@conference.hq.example/anna") == 1 })
	for i, c := range []*xmppClient{anna, carl} {
		c.say("<message to='ops@conference.hq.example' type='groupchat' id='g%d'><body>line %d for the room</body></message>", i, i)
	}
	r1.until(t, "the room has both lines everywhere", func() bool {
		return anna.count("line 0 for", "/anna") == 1 && anna.count("line 1 for", "/carl") == 1 && carl.count("line 0 for", "/anna") == 1 && carl.count("line 1 for", "/carl") == 1
	})
	bert.say(enter, "anna") // a nick in use
	r1.until(t, "the nick is refused", func() bool { return bert.count("presence", "conflict") == 1 })

	// Nodes: anna's published location reaches bert, who is subscribed to her and wants it; a service's node reaches its subscribers.
	for _, pair := range [][2]*xmppClient{{anna, bert}, {bert, anna}} {
		to, from := "bert@hq.example", "anna@ship.example"
		if pair[0] == bert {
			to, from = from, to
		}
		pair[0].say("<presence to='%s' type='subscribe'/>", to)
		r1.until(t, "the request has crossed", func() bool { return pair[1].count("<presence", `type="subscribe"`, from) > 0 })
		pair[1].say("<presence to='%s' type='subscribed'/>", from)
		r1.until(t, "the consent has crossed", func() bool { return pair[0].count("<presence", `type="subscribed"`, to) > 0 })
	}
	const pubsub = "xmlns='http://jabber.org/protocol/pubsub'"
	anna.say("<iq type='set' id='place'><pubsub %s><publish node='http://jabber.org/protocol/geoloc'><item id='current'><geoloc xmlns='http://jabber.org/protocol/geoloc'><lat>59.44</lat></geoloc></item></publish></pubsub></iq>", pubsub)
	r2.until(t, "her server has it", func() bool { return anna.count("<iq", `id="place"`, `type="result"`) == 1 })
	r1.until(t, "bert is told where anna is", func() bool { return bert.count("<message", "anna@ship.example", "<lat>59.44</lat>") > 0 })
	anna.say("<iq type='set' id='s1' to='pubsub.hq.example'><pubsub %s><subscribe node='alerts' jid='anna@ship.example'/></pubsub></iq>", pubsub)
	r2.until(t, "nobody has made the node", func() bool { return anna.count("<message", "alerts", `subscription="none"`) == 1 })
	bert.say("<iq type='set' id='alert' to='pubsub.hq.example'><pubsub %s><publish node='alerts'><item id='one'><alert xmlns='urn:alert'>Squall at noon</alert></item></publish></pubsub></iq>", pubsub)
	r1.until(t, "the service has it", func() bool { return bert.count("<iq", `id="alert"`, `type="result"`) == 1 })
	anna.say("<iq type='set' id='s2' to='pubsub.hq.example'><pubsub %s><subscribe node='alerts' jid='anna@ship.example'/></pubsub></iq>", pubsub)
	r2.until(t, "the item has crossed", func() bool { return anna.count("<message", "pubsub.hq.example", "Squall at noon") > 0 })

	// A file: anna uploads it to her gateway, and bert downloads it from his.
	photo := bytes.Repeat([]byte("a picture of the quay "), 2000)
	anna.say("<iq type='get' id='slot' to='upload.ship.example'><request xmlns='urn:xmpp:http:upload:0' filename='the quay.jpg' size='%d' content-type='image/jpeg'/></iq>", len(photo))
	r2.until(t, "anna has a slot", func() bool { return anna.count("<slot", "<put") == 1 })
	at := anna.attribute("<slot", "url")
	put, err := http.NewRequest(http.MethodPut, at, bytes.NewReader(photo))
	check.NoError(check.Fatal(t), err)
	answer, err := http.DefaultClient.Do(put)
	check.NoError(check.Fatal(t), err)
	answer.Body.Close()
	check.Equal(t, "the answer to the upload", answer.StatusCode, http.StatusCreated)
	anna.say("<message to='bert@hq.example' type='chat' id='photo'><body>%[1]s</body><x xmlns='jabber:x:oob'><url>%[1]s</url></x></message>", at)
	r1.until(t, "the file is offered to bert", func() bool { return bert.count("<url>", "quay.jpg") == 1 })
	_, rest, _ := strings.Cut(bert.logged(), "<url>")
	at, _, _ = strings.Cut(rest, "</url>")
	var got []byte
	r1.until(t, "bert gets the file", func() bool {
		answer, err := http.Get(at)
		if err != nil || answer.StatusCode != http.StatusOK {
			return false
		}
		defer answer.Body.Close()
		got, _ = io.ReadAll(answer.Body)
		return true
	})
	if !bytes.Equal(got, photo) {
		t.Errorf("bert has got %d octets of %d", len(got), len(photo))
	}

	// Faults of the link, a gateway and a server.
	air.setAway(1, true)
	r2.accepts(t, 4, func() {
		anna.say(`<message to='bert@hq.example' type='chat' id='a3'><body>Sent during the outage</body></message>`)
	})
	r2.stop(t, syscall.SIGKILL)
	shore.stop()
	air.setAway(1, false)
	r2 = ship.start(t)
	r1.until(t, "the line waits ashore", func() bool {
		_, metrics := r1.get("/metrics")
		return strings.Contains(metrics, "aldis_xmpp_waiting 1\n")
	})
	r1.stop(t, syscall.SIGKILL)
	shore.start(t)
	check.Until(t, 2*patience, "bert is back", func() bool { return bert.count("session begun") == 2 }) // ejabberd may put by what comes in this moment
	r1 = hq.start(t)
	r1.until(t, "the line of the outage came", func() bool { return bert.count("Sent during the outage") == 1 })
	_, metrics := r1.get("/metrics")
	agrees(t, metrics)
	r1.until(t, "the server has confirmed it", func() bool {
		_, metrics := r1.get("/metrics")
		return strings.Contains(metrics, "aldis_xmpp_waiting 0\n")
	})
}

// commits is how often the gateway has committed to its journal.
func (r *running) commits() string {
	_, metrics := r.get("/metrics")
	_, rest, _ := strings.Cut(metrics, "\naldis_journal_commit_seconds_count ")
	count, _, _ := strings.Cut(rest, "\n")
	return count
}

// settles waits until the journal has stored all stanzas: there are no more commits.
func (r *running) settles(t *testing.T) {
	t.Helper()
	last, same := "", 0
	r.until(t, "the journal has it", func() bool {
		now := r.commits()
		if same++; now != last {
			last, same = now, 0
		}
		return same == 30
	})
}

// accepts makes a client send the gateway's message number n, and waits until the journal has it: a slow disk may write long after the
// message was counted.
func (r *running) accepts(t *testing.T, n int, say func()) {
	t.Helper()
	r.settles(t)
	before := r.commits()
	say()
	r.until(t, "it is in custody", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, fmt.Sprintf("aldis_xmpp_stanzas_total{what=\"messages\"} %d\n", n)) && r.commits() != before
	})
	r.settles(t)
}

// attribute is an attribute of the stanza that contains a text.
func (c *xmppClient) attribute(text, name string) string {
	for line := range strings.Lines(c.logged()) {
		if strings.Contains(line, text) {
			_, rest, _ := strings.Cut(line, " "+name+`="`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

// check says which rule decides about a stanza, and why earlier ones do not; mistakes in [xmpp] are named.
func TestXMPPConfiguration(t *testing.T) {
	p := newXMPPServer(t, "ship.example")
	s := newSite(t, 2, "")
	s.writeXMPP(t, p, 1, "hq.example", "1")
	text, err := os.ReadFile(s.file)
	c := check.Fatal(t)
	check.NoError(c, err)
	rules := "[[xmpp.rule]]\nlabel = \"secrets\"\nmark = \"*SECRET\"\naction = \"local\"\n[[xmpp.rule]]\nlabel = \"ops\"\nkind = \"room\"\nto = \"ops@*\"\nprecedence = \"flash\"\nexpires = \"1h\"\n"
	check.NoError(c, os.WriteFile(s.file, append(text, rules...), 0o644))
	file := s.dir + "/stanza.xml"
	for stanza, wants := range map[string][]string{
		"<message from='anna@ship.example/x' to='ops@conference.hq.example' type='groupchat'><body>hi</body></message>": {
			`out: allow by rule "ops" (line`, "crosses with precedence flash within 1h0m0s", `not by rule "secrets" (line`, "its mark does not fit"},
		"<message from='anna@ship.example' to='bert@hq.example' type='chat'><body>hi</body><securitylabel xmlns='urn:xmpp:sec-label:0'><displaymarking>SECRET</displaymarking></securitylabel></message>": {
			`out: local by rule "secrets" (line`, "stays on this LAN"},
		"<presence from='anna@ship.example/x' to='bert@hq.example'/>":                                                                 {"out: allow by default: crosses with precedence routine within 24h0m0s"},
		"<message from='anna@ship.example' to='bert@hq.example'><composing xmlns='http://jabber.org/protocol/chatstates'/></message>": {"nothing of this stanza crosses"},
		"<message from='anna@ship.example' to='bert@hq.example'><body>&bomb;</body></message>":                                        {"no whole stanza"},
	} {
		check.NoError(c, os.WriteFile(file, []byte(stanza), 0o644))
		_, out, errs := run(t, "check", "-c", s.file, "--example", file)
		for _, want := range wants {
			if !strings.Contains(out+errs, want) {
				t.Errorf("no %q in\n%s%s", want, out, errs)
			}
		}
	}
	meet := "[tak]\n[[meet]]\nroom = \"Bridge\"\nmuc = \"ops@conference.hq.example\"\n"
	check.NoError(c, os.WriteFile(s.file, append(text, meet...), 0o644))
	if _, out, errs := run(t, "check", "-c", s.file); !strings.Contains(out, `the room "Bridge" of TAK is the room ops@conference.hq.example of XMPP`) {
		t.Errorf("of a meeting check says %s%s", out, errs)
	}
	check.NoError(c, os.WriteFile(s.file, []byte(string(text)+strings.Replace(meet, "hq.example", "sea.example", 1)), 0o644))
	if _, out, errs := run(t, "check", "-c", s.file); !strings.Contains(errs, "must be a room of xmpp.rooms") {
		t.Errorf("of a room of nobody check says %s%s", out, errs)
	}
	bad := strings.NewReplacer(`domain = "hq.example"`, `domain = "ship.example"`, `rooms = "conference.ship.example"`, `rooms = "Conference@ship"`).Replace(string(text))
	check.NoError(c, os.WriteFile(s.file, []byte(bad), 0o644))
	check.NoError(c, os.Chmod(s.dir+"/xmpp.secret", 0o644))
	_, out, errs := run(t, "check", "-c", s.file)
	for _, want := range []string{"xmpp.secret", "ship.example is used already", "must be a domain in small letters"} {
		if !strings.Contains(out+errs, want) {
			t.Errorf("no %q in\n%s%s", want, out, errs)
		}
	}
}

// Two clients on each side send a hundred lines each in a room and to each other. The link is down for half of them, and both
// gateways are killed while lines wait. All lines reach everybody once, in the order of their sender, and no client is
// disconnected.
func TestXMPPRoomThroughOutage(t *testing.T) {
	t.Parallel()
	air := newRelay(t, 2, false, 9, func(int, []int, []byte) {})
	shore := newProsody(t, "hq.example", []string{"bert", "carl"}, "ship.example", "conference.ship.example", "pubsub.ship.example")
	aboard := newProsody(t, "ship.example", []string{"anna", "alma"}, "hq.example", "conference.hq.example", "pubsub.hq.example")
	shore.start(t)
	aboard.start(t)
	hq := newSite(t, 1, "")
	ship := newSite(t, 2, hq.key())
	hq.link, ship.link = air.links[0].String(), air.links[1].String()
	hq.writeXMPP(t, shore, 2, "ship.example", "2 "+air.address(0, 1))
	ship.writeXMPP(t, aboard, 1, "hq.example", "1 "+air.address(1, 0))
	r1, r2 := hq.start(t), ship.start(t)
	ready := func(r *running) {
		t.Helper()
		r.until(t, "both components are connected", func() bool { return strings.Count(r.logged(), "has taken the component") == 4 })
	}
	ready(r1)
	ready(r2)
	const lines = 100
	names := []string{"anna", "alma", "bert", "carl"}
	peer := map[string]string{"anna": "bert@hq.example", "alma": "carl@hq.example", "bert": "anna@ship.example", "carl": "alma@ship.example"}
	clients := map[string]*xmppClient{}
	for _, name := range names {
		server := shore
		if name[0] == 'a' {
			server = aboard
		}
		c := server.login(t, name)
		c.say("<presence to='ops@conference.hq.example/%s'><x xmlns='http://jabber.org/protocol/muc'/></presence>", name)
		clients[name] = c
	}
	for _, name := range names {
		r1.until(t, name+" sees all", func() bool {
			n := 0
			for _, other := range names {
				n += min(1, clients[name].count("<presence", "ops@conference.hq.example/"+other+`"`))
			}
			return n == len(names)
		})
	}
	say := func(from, to int) {
		for i := from; i < to; i++ {
			for _, name := range names {
				clients[name].say("<message to='ops@conference.hq.example' type='groupchat' id='%s-r%d'><body>%s tells all number %03d.</body></message>", name, i, name, i)
				clients[name].say("<message to='%s' type='chat' id='%s-m%d'><body>%s tells one number %03d.</body></message>", peer[name], name, i, name, i)
			}
		}
	}
	taken := func(r *running, n int) {
		t.Helper()
		r.until(t, "the gateway has the lines", func() bool {
			_, metrics := r.get("/metrics")
			return strings.Contains(metrics, fmt.Sprintf("aldis_xmpp_stanzas_total{what=\"messages\"} %d\n", n)) &&
				strings.Contains(metrics, fmt.Sprintf("aldis_xmpp_stanzas_total{what=\"lines\"} %d\n", n))
		})
	}
	air.setAway(1, true)
	say(0, lines/2)
	taken(r1, lines)
	taken(r2, lines)
	for _, r := range []*running{r1, r2} {
		last, same := "", 0
		r.until(t, "the journal has all", func() bool {
			now := r.commits()
			if same++; now != last {
				last, same = now, 0
			}
			return same == 30
		})
		r.stop(t, syscall.SIGKILL)
	}
	r1, r2 = hq.start(t), ship.start(t)
	ready(r1)
	ready(r2)
	air.setAway(1, false)
	say(lines/2, lines)
	for _, name := range names {
		c := clients[name]
		check.Until(t, 3*patience, name+" has the last lines", func() bool {
			n := 0
			for _, other := range names {
				n += c.count("<message", fmt.Sprintf("%s tells all number %03d.", other, lines-1))
			}
			return n == len(names) && c.count("<message", fmt.Sprintf("tells one number %03d.", lines-1)) == 1
		})
		for _, other := range names {
			c.inOrder(t, name, other+" tells all", lines)
			if strings.HasPrefix(peer[other], name) {
				c.inOrder(t, name, other+" tells one", lines)
			}
		}
		if c.count("disconnected") != 0 {
			t.Errorf("%s was disconnected", name)
		}
	}
}

// inOrder checks that lines of one sender came once and in order.
func (c *xmppClient) inOrder(t *testing.T, who, what string, lines int) {
	t.Helper()
	next := 0
	for line := range strings.Lines(c.logged()) {
		if _, rest, ok := strings.Cut(line, what+" number "); ok && strings.HasPrefix(line, "<message") {
			var n int
			fmt.Sscanf(rest, "%03d.", &n)
			if n != next {
				t.Errorf("%s heard number %d of %q in the place of %d", who, n, what, next)
				return
			}
			next++
		}
	}
	if next != lines {
		t.Errorf("%s heard %d of %q, want %d", who, next, what, lines)
	}
}
