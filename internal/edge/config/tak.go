package config

import (
	"crypto/tls"
	"math"
	"net/netip"
	"strings"
	"time"

	"aldis/internal/adapters/interop"
	"aldis/internal/adapters/tak/rule"
	"aldis/internal/edge/keyfile"
	"aldis/internal/link/profile"
	"aldis/internal/site"
)

// TAK is where TAK devices connect and where their server is; all addresses zero: the gateway has no TAK adapter.
type TAK struct {
	Listen     netip.AddrPort // streams over TCP; zero: none
	TLS        netip.AddrPort // streams over TLS, of clients with a certificate; zero: none
	Keys       string         // directory of certificates for TLS
	Server     netip.AddrPort // the LAN's own TAK server, whose client the gateway is; zero: none
	ServerKeys string         // directory of certificates for TLS towards it; "": plain TCP
	ServerName string         // that its certificate must have; "": any
	Mesh       string         // IPv4 address of this machine on the mesh's interface; "": the gateway is not on the mesh
	Events     netip.AddrPort // multicast group of the mesh for all events but chats
	Chats      netip.AddrPort // multicast group of the mesh for chats
	Unicast    netip.AddrPort // where devices of the mesh send messages to one unit alone; zero: nowhere
	Files      TAKFiles       // data packages
	Conns      int            // of all devices together
	Units      int            // the most units that this site may have
	Bound      int            // metres by which a unit's position at far sites may be wrong
	Age        time.Duration  // the longest time between two batches of a site that has units; 0: the link decides
	Gather     time.Duration  // how long an event that is due waits for others; 0: the link decides
	Gap        time.Duration  // between two batches on a radio net; 0: the link decides
	Cadence    time.Duration  // between two events of a moving far unit
	Wants      []rule.Want    // events that this site wants; empty: all
	Rules      []rule.Rule
	Meets      []interop.Rule // rules that join JXTA, TAK and XMPP
}

// On says whether the gateway has this adapter.
func (t TAK) On() bool {
	return t.Listen.IsValid() || t.TLS.IsValid() || t.Server.IsValid() || t.Mesh != "" || len(t.Meets) > 0
}

// TAKFiles is where devices of the LAN find data packages, and how many of them are kept.
type TAKFiles struct {
	Listen   netip.AddrPort // over HTTP; zero: not served
	TLS      netip.AddrPort // over TLS, for devices with a certificate; zero: not served
	MostFile int            // octets of one package
	Most     int            // octets of all
	Crossing int            // octets of one package that crosses the link
	Life     time.Duration
	Bring    []rule.Bring // files of far sites that come without being asked for
}

// URL is the address at which devices reach the files; "": they are not served.
func (f TAKFiles) URL() string {
	switch {
	case f.Listen.IsValid():
		return "http://" + f.Listen.String()
	case f.TLS.IsValid():
		return "https://" + f.TLS.String()
	}
	return ""
}

// Default groups and port of the mesh of TAK devices.
var (
	meshEvents = netip.MustParseAddrPort("239.2.3.1:6969")
	meshChats  = netip.MustParseAddrPort("224.10.10.1:17012")
)

const meshUnicast = 4242 // where ATAK takes messages for it alone

func takPart(c *Config) part {
	t, f := &c.TAK, &c.TAK.Files
	return part{name: "tak", title: "towards TAK devices", keys: []key{
		{"listen", address(&t.Listen).listens(), "where TAK devices connect over TCP, such as `10.20.0.1:8087`"},
		{"tls", address(&t.TLS).listens(), "the same over TLS with certificates, such as `10.20.0.1:8089`"},
		{"tls_keys", path(&t.Keys),
			"directory of `ca.pem`, `server.pem` and `server.key` for `tls` and `files_tls`; `gateway keys tak` makes them"},
		{"server", address(&t.Server), "the LAN's own TAK server; the gateway is its client"},
		{"server_keys", path(&t.ServerKeys),
			"directory for TLS to that server: `ca.pem` of its authority, and `client.pem` and `client.key` if it asks for a certificate"},
		{"server_name", text(&t.ServerName), "the name in that server's certificate; default: any"},
		{"mesh", text(&t.Mesh), "IPv4 address of this machine where devices meet by multicast"},
		{"mesh_group", multicast(&t.Events, meshEvents), "where devices send everything but chat"},
		{"mesh_chat_group", multicast(&t.Chats, meshChats), "where devices chat"},
		{"mesh_unicast", unicast(&t.Unicast).listens().usually("port 4242 at the address of `mesh`"),
			"where devices of the mesh send events for one far unit over TCP, or `\"off\"`"},
		{"files", reached(&f.Listen, filesWhere).listens(),
			"where devices upload and download data packages over HTTP, such as `10.20.0.1:8080`"},
		{"files_tls", reached(&f.TLS, filesWhere).listens(), "the same over TLS; without either no file crosses"},
		{"max_file", whole(&f.MostFile, 16<<20, 1024, 64<<20), "octets of the largest package"},
		{"max_files", whole(&f.Most, 256<<20, 1024, math.MaxInt32), "octets of all packages; beyond it the oldest are deleted"},
		{"max_crossing", whole(&f.Crossing, 2<<20, 1024, 64<<20), "octets of the largest package that may cross"},
		{"file_life", duration(&f.Life, 7*24*time.Hour, time.Minute, 365*24*time.Hour), "how long a package is kept"},
		{"max_connections", whole(&t.Conns, 512, 1, 20_000), "connections of all devices; one host may have half"},
		{"max_units", whole(&t.Units, 2000, 1, 100_000), "units of this site"},
		{"bound", whole(&t.Bound, 50, 1, 100_000), "metres by which a unit may be wrong on far maps"},
		{"age", duration(&t.Age, 0, 5*time.Second, 6*time.Hour).usually("1m, on a radio network 5m"),
			"a site with units sends a report at least this often"},
		{"gather", duration(&t.Gather, 0, 100*time.Millisecond, 10*time.Minute).usually("500ms, on a radio network 5s"),
			"how long a report waits for others"},
		{"gap", duration(&t.Gap, 0, time.Second, time.Hour).usually("20s"), "least time between two batches on a radio network"},
		{"cadence", duration(&t.Cadence, 5*time.Second, time.Second, 10*time.Minute), "a moving far unit is shown at least this often"},
	}, doc: "The gateway is a TAK server, a client of one, or both ([tak.md](tak.md)). `listen`, `tls`, `server` or `mesh` is required."}
}

const filesWhere = "must be an address that devices reach, like \"10.20.0.1:8080\": offers of far files name it, and %s is none"

// unicast is where devices of the mesh send messages to one unit alone. The default is at the mesh's address.
func unicast(to *netip.AddrPort) slot {
	k := address(to)
	read := k.read
	k.read = func(s section, key string) {
		if v, _ := s.get(key); v.text == "off" {
			return
		}
		read(s, key)
		if a := to.Addr(); to.IsValid() && (!a.Is4() || a.IsUnspecified()) {
			s.fail(key, "must be an IPv4 address that devices reach, like \"10.20.0.1:4242\", or \"off\"")
		}
	}
	return k
}

func takRulePart(c *Config) part {
	return part{name: "tak.rule", title: "which events cross, and how", keys: takRuleKeys(&rule.Rule{}), rules: c.TAK.Rules, most: maxFilters,
		doc: "The first match decides."}
}

func takRuleKeys(t *rule.Rule) []key {
	var precedence []*site.Precedence
	for _, p := range precedences() {
		precedence = append(precedence, &p)
	}
	return []key{
		{"label", printable(&t.Label), "a name for people"},
		{"type", takType(&t.Type), ""}, {"how", text(&t.How), "this value and those below it: `a-f-S` matches `a-f-S-X`"},
		{"uid", text(&t.UID), ""}, {"callsign", text(&t.Callsign), ""}, {"team", text(&t.Team), ""},
		{"role", text(&t.Role), "patterns with `*`"},
		{"affiliation", affiliation(&t.Affiliation), "letters behind `a-`: `\"fn\"` are friends and neutrals"},
		{"site", far(&t.Site).also(func(s section, key string) {
			if s.r.cfg.Link.Profile.Transport == profile.PMul {
				s.fail(key, "is of no use with profile %s: one transmission is for all sites", s.r.cfg.Link.ProfileName)
			}
		}), "the peer to which the event goes; not on a radio network"},
		{"box", parsed(&t.Box, "must be %v, is %q", rule.ParseBox), "south, west, north, east in degrees"},
		{"polygon", parsed(&t.Polygon, "%v, is %q", rule.ParsePolygon), "latitude and longitude of 3 to 256 corners in order"},
		{"around", parsed(&t.Around, "must %v, is %q", rule.ParseCircle), "a circle: latitude, longitude, metres; or the word `own`, uid of a unit of this site, metres"},
		{"speed_min", whole(&t.Slowest, 0, 0, 100_000), ""}, {"speed_max", whole(&t.Fastest, 0, 0, 100_000), "metres a second"},
		{"octets_min", whole(&t.Least, 0, 1, math.MaxInt32), ""},
		{"octets_max", whole(&t.Most, 0, 1, math.MaxInt32), "size of the event as XML"},
		{"action", choice(&t.Action, "allow", []string{"allow", "local"}, rule.Allow, rule.Local),
			"`allow`, or `local`: the event stays on this LAN"},
		{"bound", whole(&t.Bound, 0, 0, 100_000), "as in `[tak]`"},
		{"every", duration(&t.Every, 0, time.Second, 24*time.Hour), "least time between two reports of a unit"},
		{"octets_per_minute", whole(&t.Rate, 0, 1, 1_000_000), "most coded octets a minute to one site; beyond it positions are sent later, and other events are not sent"},
		{"precedence", choice(&t.Precedence, "", site.Precedences, precedence...), "of an event on the link; of positions only `deferred` counts: they go after the others"},
		{"expires", duration(&t.Expires, 0, time.Second, 365*24*time.Hour),
			"how long an event may wait, positions excepted; default: until its stale time"},
	}
}

func takBringPart(c *Config) part {
	return part{name: "tak.bring", title: "far packages that come unasked", keys: takBringKeys(&rule.Bring{}),
		rules: c.TAK.Files.Bring, most: rule.MostBrings, doc: "One match is enough."}
}

// takBringKeys are the keys of a rule about files of far sites that come without being asked for.
func takBringKeys(b *rule.Bring) []key {
	return []key{
		{"site", far(&b.Site), ""}, {"callsign", text(&b.Callsign), ""},
		{"uid", text(&b.UID), "who offers it: the peer, and patterns of the device's callsign and uid"},
		{"name", text(&b.Name), "pattern of the file's name"},
		{"octets_max", whole(&b.Most, 0, 1, math.MaxInt32), "the largest size, up to `max_crossing`"},
	}
}

func takWantPart(c *Config) part {
	return part{name: "tak.want", title: "what this site wants", keys: takWantKeys(&rule.Want{}), rules: c.TAK.Wants, most: rule.MostWants,
		doc: "With such sections other sites send only events that match one, alerts, withdrawals, and events that name a device here."}
}

func takWantKeys(w *rule.Want) []key {
	short := func(k slot, to *string) slot {
		return k.also(func(s section, key string) {
			if len(*to) > 64 {
				s.fail(key, "has more than 64 octets")
			}
		})
	}
	return []key{
		{"type", short(takType(&w.Type), &w.Type), "this type and those below it"},
		{"team", short(text(&w.Team), &w.Team), "exactly this team"},
		{"affiliation", affiliation(&w.Affiliation), "letters behind `a-`"},
		{"box", parsed(&w.Box, "must be %v, is %q", rule.ParseBox), "south, west, north, east in degrees"},
	}
}

// readTAK reads [tak] and its rules.
func (r *reader) readTAK() {
	t := &r.cfg.TAK
	t.Meets = r.readMeets()
	if r.tree.tables["tak"] == nil {
		for _, name := range []string{"tak.rule", "tak.want", "tak.bring"} {
			if list := r.tree.arrays[name]; len(list) > 0 {
				r.fail(list[0].line, name, "is of no use without [tak]")
			}
		}
		return
	}
	s := r.fill("tak")
	if !t.On() {
		s.fail("listen", "is missing: where TAK devices connect; or set tak.server, the TAK server of this LAN, or tak.mesh")
	}
	if t.Server.IsValid() && t.Server == t.Listen {
		s.fail("server", "is tak.listen: the gateway is no client of its own")
	}
	r.checkTAKKeys(s)
	if t.Mesh == "" {
		t.Unicast = netip.AddrPort{}
	} else {
		at, err := netip.ParseAddr(t.Mesh)
		if err != nil || !at.Is4() || at.IsUnspecified() {
			s.fail("mesh", "must be the IPv4 address of this machine on whose interface the mesh is, like \"10.20.0.1\", is %q", t.Mesh)
		} else if !s.has("mesh_unicast") {
			t.Unicast = netip.AddrPortFrom(at, meshUnicast)
		}
	}
	f := &t.Files
	if f.MostFile > f.Most {
		s.fail("max_files", "is less than max_file, the octets of one file")
	}
	f.Crossing = min(f.Crossing, f.MostFile)
	f.Bring = readRules(r, "tak.bring", takBringKeys, func(s section, _ *rule.Bring) {
		if f.URL() == "" {
			r.fail(s.t.line, "tak.bring", "is of no use without tak.files or tak.files_tls")
		}
	})
	t.Wants = readRules(r, "tak.want", takWantKeys, func(s section, w *rule.Want) {
		if len(s.t.keys) == 0 {
			s.fail("type", "is missing, and team, affiliation and box: this fits everything, so leave the section out")
		}
	})
	t.Rules = readRules(r, "tak.rule", takRuleKeys, nil)
}

// checkTAKKeys reports mistakes in the directories of certificates.
func (r *reader) checkTAKKeys(s section) {
	t := &r.cfg.TAK
	over := t.TLS.IsValid() || t.Files.TLS.IsValid()
	if !over {
		// then no listener needs tls_keys
	} else if !s.has("tls_keys") {
		s.missing("tls_keys", "")
	} else if _, err := keyfile.ServerTLS(t.Keys); err != nil && t.Keys != "" {
		s.fail("tls_keys", "%v (gateway keys tak -o %s HOST CLIENT... makes what is missing)", err, t.Keys)
	}
	if t.ServerKeys == "" {
		if t.ServerName != "" {
			s.fail("server_name", "is of no use without server_keys")
		}
		return
	}
	if !t.Server.IsValid() {
		s.fail("server_keys", "is of no use without server")
	}
	if _, err := keyfile.ClientTLS(t.ServerKeys, t.ServerName); err != nil {
		s.fail("server_keys", "%v (the directory needs ca.pem of the server's authority, and client.pem with client.key where it asks for a certificate)", err)
	}
}

// ServerTLS is the configuration of the TLS server for devices.
func (t TAK) ServerTLS() (*tls.Config, error) { return keyfile.ServerTLS(t.Keys) }

// ClientTLS is the configuration for TLS to the LAN's own server; nil: plain TCP.
func (t TAK) ClientTLS() (*tls.Config, error) {
	if t.ServerKeys == "" {
		return nil, nil
	}
	return keyfile.ClientTLS(t.ServerKeys, t.ServerName)
}

// takType is a CoT type; it matches the types below it too.
func takType(to *string) slot {
	return text(to).also(func(s section, key string) {
		if strings.ContainsAny(*to, "* ") {
			s.fail(key, "is a type like \"a-f-G\" and fits those below it, without *: %q", *to)
		}
	})
}

// affiliation is one or more affiliation letters of unit types.
func affiliation(to *string) slot {
	return text(to).also(func(s section, key string) {
		if strings.Trim(*to, "fhnupasjk") != "" {
			s.fail(key, "must be letters behind a-, like \"fn\" for friends and neutrals, is %q", *to)
		}
	})
}
