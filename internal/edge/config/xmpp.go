package config

import (
	"crypto/tls"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"aldis/internal/adapters/xmpp/rule"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/keyfile"
	"aldis/internal/site"
)

// XMPP says where the XMPP server of the LAN is, or where the gateway serves clients itself, and which domains far sites have. The zero
// value: the gateway has no XMPP adapter.
type XMPP struct {
	Server netip.AddrPort
	// Addresses for server-to-server connections: at S2S the LAN's server calls the gateway, which acts as the servers of far
	// domains; at S2SServer the gateway calls the LAN's server; zero: not used.
	S2S, S2SServer netip.AddrPort
	S2SKeys        string // directory with the certificate of the far domains, and that of the authority that has signed the certificate of the LAN's server
	// S2SZero says that the servers connect without a handshake (XEP-0361): one of S2S and S2SServer may be zero, S2SKeys may be "".
	// S2SFrom are the addresses from which the server may call; none: only its certificate proves who it is.
	S2SZero bool
	S2SFrom []netip.Addr
	// Addresses at which the gateway serves clients itself, because the LAN has no server; zero: not served.
	Listen, TLS, WebSocket netip.AddrPort
	Keys                   string // directory of the certificate for clients
	UsersFile              string

	SecretFile string
	Secret     string
	Domain     string        // of the users here
	Rooms      string        // of the room service here; "": it has none
	PubSub     string        // of the publish-subscribe service here; "": it has none
	Nodes      string        // of the publish-subscribe service that the gateway itself offers clients here; "": none
	Life       time.Duration // of a message
	Drawn      time.Duration // how long a link is down before far users are shown as extended away
	Gone       time.Duration // how long before they are shown as not there
	Occupants  int           // occupants of a room that far sites learn of, whether they speak or not
	Files      XMPPFiles
	Sites      []XMPPSite
	Rules      []rule.Rule
}

// XMPPFiles is where clients of the LAN upload and fetch files (XEP-0363), and how many are kept. A zero size: files of that kind are
// not served.
type XMPPFiles struct {
	Upload   string         // domain of the upload service; "": there is none
	Listen   netip.AddrPort // over HTTP
	At       string         // address for clients; "": that of Listen
	MostFile int            // octets of one
	Most     int            // octets of all
	Crossing int            // octets of one that crosses the link
	Bring    int            // octets of one that comes without being asked for
	Life     time.Duration
}

// URL is the address at which clients reach the files; "": they are not served.
func (f XMPPFiles) URL() string {
	switch {
	case f.At != "":
		return strings.TrimSuffix(f.At, "/")
	case f.Listen.IsValid():
		return "http://" + f.Listen.String()
	}
	return ""
}

// XMPPSite is a far site.
type XMPPSite struct {
	Line   int
	Site   uint16
	Domain string // of its users
	Rooms  string // of its room service; "": it has none
	PubSub string // of its publish-subscribe service; "": it has none
}

// On says whether the gateway has this adapter.
func (x XMPP) On() bool { return x.Server.IsValid() || x.Peers() || x.Own() }

// Peers says whether the gateway is another server to the LAN's server.
func (x XMPP) Peers() bool { return x.S2S.IsValid() || x.S2SZero }

// Own says whether the gateway serves clients itself.
func (x XMPP) Own() bool { return x.Listen.IsValid() || x.TLS.IsValid() || x.WebSocket.IsValid() }

// PeerTLS is the configuration for TLS with the LAN's server: the gateway's certificate, and the authority that the server's
// must have; nil: they speak without TLS.
func (x XMPP) PeerTLS() (*tls.Config, error) {
	if x.S2SKeys == "" {
		return nil, nil
	}
	return keyfile.PeerTLS(x.S2SKeys)
}

// Services are the domains of the LAN's server, besides that of its users.
func (x XMPP) Services() []string {
	return slices.DeleteFunc([]string{x.Rooms, x.PubSub}, func(domain string) bool { return domain == "" })
}

// ServerTLS is the configuration of the TLS server for clients.
func (x XMPP) ServerTLS() (*tls.Config, error) { return keyfile.PairTLS(x.Keys) }

// Accounts are the users that the gateway serves itself; nil: it serves none.
func (x XMPP) Accounts() (server.Accounts, error) {
	if !x.Own() {
		return nil, nil
	}
	return keyfile.LoadAccounts(x.UsersFile)
}

func xmppPart(c *Config) part {
	x, f := &c.XMPP, &c.XMPP.Files
	return part{name: "xmpp", title: "towards the XMPP server of the LAN", keys: []key{
		{"server", address(&x.Server), "where the LAN's server takes components (XEP-0114), such as `127.0.0.1:5347`"},
		{"secret_file", path(&x.SecretFile), "required with `server`: file of mode 0600; its first line is the secret that the server knows, 16 octets or more"},
		{"the secret of xmpp.secret_file", derived(&x.Secret).secret(), ""},
		{"s2s", address(&x.S2S).listens(), "where the LAN's server connects to the gateway as to the servers of the far domains (RFC 6120), such as `10.20.0.1:5269`. It must use STARTTLS and SASL EXTERNAL, without `s2s_zero`"},
		{"s2s_server", address(&x.S2SServer), "required with `s2s`: where the LAN's server takes connections of servers, such as `10.20.0.5:5269`"},
		{"s2s_keys", path(&x.S2SKeys), "required with `s2s`: directory of `server.pem` and `server.key` for the far domains, and of `ca.pem`, the authority that has signed the certificate of the LAN's server; `gateway keys tak -o DIR DOMAIN,DOMAIN` makes all"},
		{"s2s_zero", boolean(&x.S2SZero), "`true`: that server and the gateway begin with stanzas, without a handshake (XEP-0361). Then `s2s` or `s2s_server` may be left out, if only one side connects, and `s2s_keys` for TCP without TLS"},
		{"s2s_from", list(&x.S2SFrom, func(s section, key, text string) {
			at, err := netip.ParseAddr(text)
			if err != nil {
				s.fail(key, "must be IP addresses with commas between them, is %q", text)
			}
			x.S2SFrom = append(x.S2SFrom, at.Unmap())
		}).usually("without `s2s_keys` that of `s2s_server`"), "with `s2s_zero`: addresses from which that server may connect"},
		{"listen", address(&x.Listen).listens(), "where clients connect to the gateway itself, if the LAN has no server, such as `0.0.0.0:5222`. They must use STARTTLS"},
		{"tls", address(&x.TLS).listens(), "the same where TLS begins at once, such as `0.0.0.0:5223`"},
		{"websocket", address(&x.WebSocket).listens(), "the same by WebSocket over TLS (RFC 7395), for browsers: `wss://HOST:PORT/xmpp-websocket`"},
		{"tls_keys", path(&x.Keys), "directory of `server.pem` and `server.key` for these; `gateway keys tak -o DIR HOST` makes them, signed by its `ca.pem`"},
		{"users", path(&x.UsersFile), "file of these users, which `gateway xmpp user` changes. It holds no passwords, but keys that check them"},
		{"domain", domain(&x.Domain).required(), "of the users of this LAN"},
		{"rooms", domain(&x.Rooms), "of its room service (XEP-0045), such as `conference.ship.example`; without it far users cannot enter rooms of this site"},
		{"pubsub", domain(&x.PubSub), "of its publish-subscribe service (XEP-0060), such as `pubsub.ship.example`; without it far users can subscribe to nodes of users alone (XEP-0163)"},
		{"nodes", domain(&x.Nodes), "domain of the publish-subscribe service that the gateway is for clients here, such as `tak.ship.example`: with the nodes of `[[meet]]`"},
		{"upload", domain(&f.Upload), "domain of the upload service (XEP-0363) that the gateway is for clients here, such as `upload.ship.example`"},
		{"files", reached(&f.Listen, filesWhere).listens(), "where clients put and get files over HTTP, such as `10.20.0.1:8081`; required with `upload`"},
		{"files_url", text(&f.At), "the same address as clients know it, where another server stands before it (for HTTPS), such as `https://files.ship.example`"},
		{"max_file", whole(&f.MostFile, 16<<20, 1024, 64<<20), "octets of the largest file"},
		{"max_files", whole(&f.Most, 256<<20, 1024, math.MaxInt32), "octets of all files; beyond it the oldest are deleted"},
		{"max_crossing", whole(&f.Crossing, 2<<20, 1024, 64<<20), "octets of the largest file that may cross"},
		{"bring", whole(&f.Bring, 0, 0, 64<<20), "octets of the largest file of a far site that comes before somebody here asks for it, as deferred traffic"},
		{"file_life", duration(&f.Life, 7*24*time.Hour, time.Minute, 365*24*time.Hour), "how long a file is kept"},
		{"life", duration(&x.Life, 24*time.Hour, time.Minute, 30*24*time.Hour), "how long a message may wait for the link; then its sender gets an error"},
		{"away_after", duration(&x.Drawn, 5*time.Minute, 10*time.Second, 24*time.Hour), "a link that is down so long shows far users as `xa`"},
		{"gone_after", duration(&x.Gone, time.Hour, 10*time.Second, 7*24*time.Hour), "and so long as unavailable"},
		{"occupants", ofLink(whole(&x.Occupants, 0, 0, 1000), &x.Occupants), "other sites are told of the occupants of this site in a room of it. Where there are more than so many, they are told of those who have spoken, and of all once somebody there asks who is in the room (XEP-0030); default: 0 on links where octets or messages cost (`hf-*`, `vhf-*`, `iridium-directip`, `iridium-certus-100`), else 20"},
	}, doc: "The gateway is a component of the server for the domain of each `[[xmpp.site]]`, or another server to it, or the server itself ([xmpp.md](xmpp.md)). `server`, `s2s`, `listen`, `tls` or `websocket` is required."}
}

// ofLink sets a number that the file does not set to -1: the link decides.
func ofLink(k slot, to *int) slot {
	k.preset = func() { *to = -1 }
	return k
}

func xmppSitePart(c *Config) part {
	return part{name: "xmpp.site", title: "far sites with XMPP users", keys: xmppSiteKeys(&XMPPSite{}), rules: c.XMPP.Sites, most: 256}
}

func xmppSiteKeys(x *XMPPSite) []key {
	return []key{
		{"site", far(&x.Site).required(), "the peer"},
		{"domain", domain(&x.Domain).required(), "of its users; at that site it is `xmpp.domain`"},
		{"rooms", domain(&x.Rooms), "of its room service; at that site it is `xmpp.rooms`"},
		{"pubsub", domain(&x.PubSub), "of its publish-subscribe service; at that site it is `xmpp.pubsub`"},
	}
}

func xmppRulePart(c *Config) part {
	return part{name: "xmpp.rule", title: "what of XMPP crosses, and what goes first", keys: xmppRuleKeys(&rule.Rule{}), rules: c.XMPP.Rules, most: maxFilters,
		doc: "The first match decides."}
}

func xmppRuleKeys(x *rule.Rule) []key {
	var precedence []*site.Precedence
	for _, p := range precedences() {
		precedence = append(precedence, &p)
	}
	return []key{
		{"label", printable(&x.Label), "a name for people"},
		{"kind", choice(&x.Kind, "", rule.Kinds, rule.Kinds...), "`message` to a user, line in a `room`, `presence`, `subscription`, `file`: one that a message offers (XEP-0363), or `pubsub`: an item of a node (XEP-0060, 0163). Without a rule items of pictures and of keys (`urn:xmpp:avatar:*`, OMEMO, OpenPGP) stay on this LAN"},
		{"from", text(&x.From), ""},
		{"to", text(&x.To), "patterns with `*` of the user that says it and of the user or room that it is for, such as `*@conference.hq.example`; of `pubsub` the user or service, and the node"},
		{"mark", text(&x.Mark), "pattern of what its security label displays (XEP-0258)"},
		{"site", far(&x.Site), "the peer to which it goes"},
		{"octets_min", whole(&x.Least, 0, 1, math.MaxInt32), ""},
		{"octets_max", whole(&x.Most, 0, 1, math.MaxInt32), "its size before compression"},
		{"action", choice(&x.Local, "allow", []string{"allow", "local"}, false, true),
			"`allow`, or `local`: it stays on this LAN, and the sender of a message or subscription is told"},
		{"precedence", choice(&x.Precedence, "", site.Precedences, precedence...), "of a message or line; default: routine"},
		{"expires", duration(&x.Expires, 0, time.Second, 365*24*time.Hour).usually("`xmpp.life`"), "how long a message or line may wait for the link"},
	}
}

// domain is the domain part of XMPP addresses.
func domain(to *string) slot {
	return text(to).also(func(s section, key string) {
		if *to == "" || len(*to) > 253 || *to != strings.ToLower(*to) || strings.ContainsAny(*to, "@/ \"'&<>") {
			s.fail(key, "must be a domain in small letters, like \"ship.example\", is %q", *to)
		}
	})
}

// readXMPP reads [xmpp] and its sites.
func (r *reader) readXMPP() {
	x := &r.cfg.XMPP
	defer func() {
		for _, m := range r.cfg.TAK.Meets {
			if _, domain, _ := strings.Cut(m.MUC, "@"); m.MUC != "" && (domain == "" || domain != x.Rooms && !slices.ContainsFunc(x.Sites, func(s XMPPSite) bool { return s.Rooms == domain })) {
				r.fail(m.Line, "meet.muc", "must be a room of xmpp.rooms, or of rooms of an [[xmpp.site]], is %q", m.MUC)
			}
			if m.Node != "" && x.Nodes == "" {
				r.fail(m.Line, "meet.node", "needs xmpp.nodes, the domain of the service that has the node")
			}
		}
	}()
	if r.tree.tables["xmpp"] == nil {
		for _, name := range []string{"xmpp.site", "xmpp.rule"} {
			if list := r.tree.arrays[name]; len(list) > 0 {
				r.fail(list[0].line, name, "is of no use without [xmpp]")
			}
		}
		return
	}
	s := r.fill("xmpp")
	if x.SecretFile != "" && x.Server.IsValid() {
		var err error
		if x.Secret, err = keyfile.LoadToken(x.SecretFile); err != nil {
			s.fail("secret_file", "%v", err)
		}
	}
	r.checkXMPPServer(s)
	f := &x.Files
	if (f.Upload != "") != f.Listen.IsValid() {
		s.fail("upload", "and files need each other")
	}
	if u, err := url.Parse(f.At); err != nil || f.At != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		s.fail("files_url", "must be an address like \"https://files.ship.example\", is %q", f.At)
	}
	if f.MostFile > f.Most {
		s.fail("max_files", "is less than max_file, the octets of one file")
	}
	f.Crossing = min(f.Crossing, f.MostFile)
	if x.Gone < x.Drawn {
		s.fail("gone_after", "is less than away_after")
	}
	used := map[string]bool{x.Domain: true, x.Rooms: true, x.PubSub: true, x.Files.Upload: true}
	if used[x.Nodes] && x.Nodes != "" {
		s.fail("nodes", "%s is used already: a domain is of one service", x.Nodes)
	}
	used[x.Nodes] = true
	x.Sites = readRules(r, "xmpp.site", xmppSiteKeys, func(s section, site *XMPPSite) {
		for _, other := range x.Sites {
			if site.Site == other.Site {
				s.fail("site", "has a section already")
			}
		}
		for key, domain := range map[string]string{"domain": site.Domain, "rooms": site.Rooms, "pubsub": site.PubSub} {
			if domain != "" && used[domain] {
				s.fail(key, "%s is used already: a domain is of one service of one site", domain)
			}
			used[domain] = true
		}
		x.Sites = append(x.Sites, *site)
	})
	x.Rules = readRules(r, "xmpp.rule", xmppRuleKeys, nil)
	for key, on := range map[string]bool{"server": x.Server.IsValid(), "s2s": x.Peers()} {
		if len(x.Sites) == 0 && on && !x.Own() {
			s.fail(key, "is of no use without [[xmpp.site]]")
		}
	}
}

// checkXMPPServer reports mistakes about the server, whether it is the LAN's or the gateway itself.
func (r *reader) checkXMPPServer(s section) {
	x := &r.cfg.XMPP
	switch {
	case s.wrong("server", "s2s", "listen", "tls", "websocket"):
		return
	case x.Peers() && (x.Server.IsValid() || x.Own()):
		s.fail("s2s", "is of no use with server, listen, tls or websocket: the gateway is one of component, other server and server")
		return
	case x.Peers():
		r.checkXMPPPeers(s)
		return
	case s.has("s2s_server") || s.has("s2s_keys") || s.has("s2s_from"):
		s.fail("s2s_server", "s2s_keys and s2s_from are of no use without s2s")
		return
	case x.Server.IsValid() && x.Own():
		s.fail("listen", "is of no use with server: either the LAN has a server, or the gateway is the server")
		return
	case !x.On():
		s.fail("server", "is missing: where the LAN's server takes components; or set xmpp.listen, if the LAN has no server")
		return
	case x.Server.IsValid():
		if !s.has("secret_file") {
			s.missing("secret_file", "")
		}
		for _, key := range []string{"tls_keys", "users"} {
			if s.has(key) {
				s.fail(key, "is of no use without listen, tls or websocket")
			}
		}
		return
	case s.has("secret_file"):
		s.fail("secret_file", "is of no use without server")
	}
	if !s.has("tls_keys") {
		s.missing("tls_keys", fmt.Sprintf(": gateway keys tak -o xmpp %s makes such a directory", x.Domain))
	} else if _, err := x.ServerTLS(); err != nil && x.Keys != "" {
		s.fail("tls_keys", "%v (gateway keys tak -o %s %s makes what is missing)", err, x.Keys, x.Domain)
	}
	if !s.has("users") {
		s.missing("users", ": the file that gateway xmpp user add makes")
	} else if x.UsersFile != "" {
		if _, err := x.Accounts(); err != nil {
			s.fail("users", "%v", err)
		}
	}
}

// checkXMPPPeers reports mistakes about the connection to the LAN's server where the gateway acts as another server.
func (r *reader) checkXMPPPeers(s section) {
	x := &r.cfg.XMPP
	for _, key := range []string{"secret_file", "tls_keys", "users"} {
		if s.has(key) {
			s.fail(key, "is of no use with s2s")
		}
	}
	if x.S2SZero {
		checkXMPPZero(s, x)
		return
	}
	if s.has("s2s_from") {
		s.fail("s2s_from", "is of no use without s2s_zero: the server proves itself by its certificate")
	}
	if !s.has("s2s_server") {
		s.missing("s2s_server", ": where the LAN's server takes connections of servers")
	}
	if !s.has("s2s_keys") {
		s.missing("s2s_keys", ": gateway keys tak -o s2s DOMAIN,DOMAIN makes such a directory for the far domains")
	} else if _, err := x.PeerTLS(); err != nil && x.S2SKeys != "" {
		s.fail("s2s_keys", "%v (gateway keys tak -o %s DOMAIN,DOMAIN makes what is missing)", err, x.S2SKeys)
	}
}

// checkXMPPZero reports mistakes about that connection without a handshake.
func checkXMPPZero(s section, x *XMPP) {
	if !x.S2S.IsValid() && !x.S2SServer.IsValid() && !s.wrong("s2s", "s2s_server") {
		s.missing("s2s_server", " with s2s_zero, or s2s: where the server takes connections, or the gateway does")
	}
	if _, err := x.PeerTLS(); err != nil {
		s.fail("s2s_keys", "%v (gateway keys tak -o %s DOMAIN,DOMAIN makes what is missing)", err, x.S2SKeys)
	}
	switch {
	case !x.S2S.IsValid() && s.has("s2s_from"):
		s.fail("s2s_from", "is of no use without s2s: nobody connects to the gateway")
	case !x.S2S.IsValid() || x.S2SKeys != "" || s.has("s2s_from"):
	case x.S2SServer.IsValid():
		x.S2SFrom = []netip.Addr{x.S2SServer.Addr().Unmap()}
	default:
		s.missing("s2s_from", ": without s2s_keys the gateway knows the server by the addresses from which it connects")
	}
}

// XMPPUsers reads only the path of the file with the users that the gateway serves.
func XMPPUsers(file string) (string, error) {
	c, err := asked(file, func(r *reader) {
		if s := r.fill("xmpp", "users"); !s.has("users") {
			s.missing("users", ": the gateway serves no XMPP clients")
		}
	})
	return c.XMPP.UsersFile, err
}
