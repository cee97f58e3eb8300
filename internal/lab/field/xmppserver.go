package field

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Ports of XMPP servers, and the secret with which their components and the gateways prove themselves.
const (
	xmppClients    = 5222
	xmppServers    = 5269
	xmppComponents = 5347
	xmppSecret     = "0123456789abcdef"
)

// xmppSite is the LAN of a site: its domain, and the namespace, address and directory of its server.
type xmppSite struct{ domain, ns, at, dir string }

// openXMPP starts the server of a site with an account for each user: ejabberd at headquarters, Prosody on ships. With gateways it
// is on a LAN of its own and the gateway is its component for all far domains; without, it speaks to the other servers over the link.
func (g *xmppGame) openXMPP(all context.Context, i int, users []string) error {
	lan, s := &g.lans[i], g.sites[i]
	lan.dir = filepath.Join(g.dir, s.name+"-server")
	if err := errors.Join(os.RemoveAll(lan.dir), os.MkdirAll(lan.dir, 0o755)); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	lan.ns, lan.at = s.ns, linkAddr(i).Addr().String()
	if s.gateway != nil {
		var err error
		own := lanAddr(i, 11)
		if lan.ns, err = g.w.add(s.name + "-xmpp"); err != nil {
			return err
		}
		if err := plug(s.ns, lan.ns, "p1", own); err != nil {
			return err
		}
		lan.at = own.Addr().String()
		text := fmt.Sprintf("[xmpp]\nserver = \"%s:%d\"\nsecret_file = \"xmpp.secret\"\ndomain = %q\nrooms = \"conference.%[3]s\"\n", lan.at, xmppComponents, lan.domain)
		for j, far := range g.sites {
			if j != i {
				text += fmt.Sprintf("[[xmpp.site]]\nsite = %q\ndomain = %q\nrooms = \"conference.%[2]s\"\n", far.name, g.lans[j].domain)
			}
		}
		if err := errors.Join(os.WriteFile(filepath.Join(g.dir, "xmpp.secret"), []byte(xmppSecret+"\n"), 0o600), s.gateway.configure(text)); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	command, err := g.prosody(i, users), error(nil)
	if i == 0 {
		command = g.ejabberd(users)
	}
	for name, text := range command.files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(filepath.Join(lan.dir, name)), 0o755), os.WriteFile(filepath.Join(lan.dir, name), []byte(text), 0o644))
	}
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return startServer(all, lan.ns, fmt.Sprintf("%s:%d", lan.at, xmppClients), lan.dir, "output.log", command.run...)
}

// program is a server of other makers: its files, and its command.
type program struct {
	files map[string]string
	run   []string
}

// far are the domains of the other sites.
func (g *xmppGame) far(i int) (domains []string) {
	for j, other := range g.lans {
		if j != i {
			domains = append(domains, other.domain, "conference."+other.domain)
		}
	}
	return domains
}

// hosts is a list of names and addresses for the servers: ejabberd finds it in /etc/hosts, which ip netns gives it for itself.
func (g *xmppGame) hosts() (text string) {
	for j, other := range g.lans {
		text += fmt.Sprintf("%s %s conference.%[2]s\n", linkAddr(j).Addr(), other.domain)
	}
	return text
}

func (g *xmppGame) prosody(i int, users []string) program {
	lan := g.lans[i]
	aided := g.kind == "gateway"
	p := program{files: map[string]string{"hosts": g.hosts()}, run: []string{"prosody", "--config", lan.dir + "/prosody.cfg.lua", "-F"}}
	text := fmt.Sprintf(`run_as_root = true
pidfile = "%[1]s/pid"
data_path = "%[1]s/data"
log = { info = "%[1]s/log" }
modules_enabled = { "roster", "saslauth", "disco", "ping", "offline", "dialback" }
authentication = "internal_plain"
c2s_require_encryption = false
s2s_require_encryption = false
s2s_secure_auth = false
interfaces = { %[2]q }
c2s_ports = { %[3]d }
component_ports = { %[4]d }
component_interfaces = { %[2]q }
`, lan.dir, lan.at, xmppClients, xmppComponents)
	if aided {
		text += "s2s_ports = {}\n"
	} else {
		text += fmt.Sprintf("s2s_ports = { %d }\nunbound = { hoststxt = %q; resolvconf = false; forward = { \"127.0.0.1\" } }\n", xmppServers, lan.dir+"/hosts")
	}
	text += fmt.Sprintf("VirtualHost %q\nComponent \"conference.%[1]s\" \"muc\"\n\tmuc_room_locking = false\n", lan.domain)
	for _, domain := range g.far(i) {
		if aided {
			text += fmt.Sprintf("Component %q\n\tcomponent_secret = %q\n", domain, xmppSecret)
		}
	}
	p.files["prosody.cfg.lua"] = text
	for _, user := range users {
		p.files["data/"+strings.ReplaceAll(lan.domain, ".", "%2e")+"/accounts/"+user+".dat"] = `return { ["password"] = "secret"; };`
	}
	return p
}

func (g *xmppGame) ejabberd(users []string) program {
	lan := g.lans[0]
	listen := func(port int, module string) string {
		return fmt.Sprintf("  -\n    port: %d\n    ip: %q\n    module: %s\n", port, lan.at, module)
	}
	text := fmt.Sprintf("hosts:\n  - %q\nloglevel: info\nlisten:\n%s", lan.domain, listen(xmppClients, "ejabberd_c2s"))
	if g.kind == "gateway" {
		text += listen(xmppComponents, "ejabberd_service") + "    global_routes: false\n    hosts:\n"
		for _, domain := range g.far(0) {
			text += fmt.Sprintf("      %q:\n        password: %q\n", domain, xmppSecret)
		}
	} else {
		text += listen(xmppServers, "ejabberd_s2s_in")
	}
	text += "modules:\n  mod_disco: {}\n  mod_roster: {}\n  mod_ping: {}\n  mod_offline: {}\n  mod_muc: {}\n  mod_s2s_dialback: {}\n"
	register := ""
	for _, user := range users {
		register += fmt.Sprintf("ejabberd_auth:try_register(<<%q>>,<<%q>>,<<\"secret\">>),", user, lan.domain)
	}
	return program{files: map[string]string{"ejabberd.yml": text, "hosts": g.hosts()},
		run: []string{"sh", "-c", `mount --bind hosts /etc/hosts && exec "$0" "$@"`, "env", "HOME=" + lan.dir, "EJABBERD_CONFIG_PATH=" + lan.dir + "/ejabberd.yml", "ERL_LIBS=/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu",
			"erl", "-noinput", "-mnesia", "dir", fmt.Sprintf("%q", lan.dir+"/spool"), "-ejabberd", "log_path", fmt.Sprintf("%q", lan.dir+"/log"), "-s", "ejabberd", "-eval", register + "ok."}}
}
