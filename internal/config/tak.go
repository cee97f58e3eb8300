package config

import (
	"crypto/tls"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/site"
	"aldis/internal/tak/rule"
)

// TAK is where TAK devices and their server are; all addresses zero: the gateway has no such face.
type TAK struct {
	Listen  netip.AddrPort // streams over TCP; zero: none
	TLS     netip.AddrPort // streams over TLS, of clients with a certificate; zero: none
	Keys    string         // directory of certificates for TLS
	Server  netip.AddrPort // the LAN's own TAK server, of which the gateway is a client; zero: none
	Mesh    string         // IPv4 address of this machine, on whose interface the mesh is; "": it is no member
	Events  netip.AddrPort // group of the mesh for all but chats
	Chats   netip.AddrPort // group of the mesh for chats
	Conns   int            // of all devices together
	Units   int            // that this site may have
	Bound   int            // metres that a unit's far picture may be wrong by
	Age     time.Duration  // a site that has units speaks at least so often; 0: as the link asks for
	Gather  time.Duration  // what is due waits so long for others; 0: likewise
	Gap     time.Duration  // between two batches on a radio net; 0: likewise
	Cadence time.Duration  // between two events of a far unit that moves
	Rules   []rule.Rule
}

// On says whether the gateway has this face.
func (t TAK) On() bool {
	return t.Listen.IsValid() || t.TLS.IsValid() || t.Server.IsValid() || t.Mesh != ""
}

var takKeys = []string{"listen", "tls", "tls_keys", "server", "mesh", "mesh_group", "mesh_chat_group", "max_connections", "max_units", "bound", "age", "gather", "gap", "cadence"}

var takRuleKeys = []string{"label", "type", "uid", "callsign", "team", "role", "how", "affiliation", "site", "box", "around", "speed_min", "speed_max",
	"octets_min", "octets_max", "action", "bound", "every", "precedence", "expires"}

// readTAK reads [tak] and its rules.
func (r *reader) readTAK() {
	s, t := section{r, r.tree.tables["tak"], "tak"}, &r.cfg.TAK
	if s.t == nil {
		if rules := r.tree.arrays["tak.rule"]; len(rules) > 0 {
			r.fail(rules[0].line, "tak.rule", "is of no use without [tak]")
		}
		return
	}
	t.Listen, t.Server = s.address("listen", false), s.address("server", false)
	for key, at := range map[string]netip.AddrPort{"lan.tcp": r.cfg.LAN.TCP, "lan.http": r.cfg.LAN.HTTP} {
		if at.IsValid() && at == t.Listen {
			s.fail("listen", "is the address of %s: each needs a port of its own", key)
		}
	}
	if t.Server.IsValid() && t.Server == t.Listen {
		s.fail("server", "is tak.listen: the gateway is no client of its own")
	}
	r.readTAKKeys(s)
	r.readMesh(s)
	if !t.On() {
		s.fail("listen", "is missing: where TAK devices connect; or set tak.server, the TAK server of this LAN, or tak.mesh")
	}
	t.Conns = s.integer("max_connections", 512, 1, 20_000)
	t.Units = s.integer("max_units", 2000, 1, 100_000)
	t.Bound = s.integer("bound", 50, 1, 100_000)
	t.Age = s.duration("age", 0, 5*time.Second, 6*time.Hour)
	t.Gather = s.duration("gather", 0, 100*time.Millisecond, 10*time.Minute)
	t.Gap = s.duration("gap", 0, time.Second, time.Hour)
	t.Cadence = s.duration("cadence", 5*time.Second, time.Second, 10*time.Minute)
	for i, table := range r.tree.arrays["tak.rule"] {
		s := section{r, table, "tak.rule"}
		if i == maxFilters {
			s.r.fail(table.line, "tak.rule", "there are more than %d rules", maxFilters)
			return
		}
		t.Rules = append(t.Rules, r.takRule(s))
	}
}

// Groups of the mesh where TAK devices are unless told otherwise.
var (
	meshEvents = netip.MustParseAddrPort("239.2.3.1:6969")
	meshChats  = netip.MustParseAddrPort("224.10.10.1:17012")
)

func (r *reader) readTAKKeys(s section) {
	t := &r.cfg.TAK
	t.TLS = s.address("tls", false)
	if t.TLS.IsValid() && t.TLS == t.Listen {
		s.fail("tls", "is tak.listen: each needs a port of its own")
	}
	if t.Keys = r.resolve(s.text("tls_keys", t.TLS.IsValid())); t.Keys == "" || !t.TLS.IsValid() {
		return
	}
	if _, err := loadTAKKeys(t.Keys); err != nil {
		s.fail("tls_keys", "%v (gateway keys tak -o %s HOST CLIENT... makes what is missing)", err, t.Keys)
	}
}

// ServerTLS is what the server of TLS is made of.
func (t TAK) ServerTLS() (*tls.Config, error) { return loadTAKKeys(t.Keys) }

func (r *reader) readMesh(s section) {
	t := &r.cfg.TAK
	t.Events, t.Chats = meshEvents, meshChats
	for key, to := range map[string]*netip.AddrPort{"mesh_group": &t.Events, "mesh_chat_group": &t.Chats} {
		group := s.address(key, false)
		if a := group.Addr(); group.IsValid() && (!a.Is4() || !a.IsMulticast()) {
			s.fail(key, "%s is no IPv4 multicast address (224.0.0.0 to 239.255.255.255)", a)
		} else if group.IsValid() {
			*to = group
		}
	}
	text := s.text("mesh", false)
	if text == "" {
		return
	}
	t.Mesh = text
	if at, err := netip.ParseAddr(text); err != nil || !at.Is4() || at.IsUnspecified() {
		s.fail("mesh", "must be the IPv4 address of this machine on whose interface the mesh is, like \"10.20.0.1\", is %q", text)
	}
}

func (r *reader) takRule(s section) rule.Rule {
	t := rule.Rule{Line: s.t.line, Label: s.printable("label", false), Type: s.text("type", false), UID: s.text("uid", false),
		Callsign: s.text("callsign", false), Team: s.text("team", false), Role: s.text("role", false), How: s.text("how", false),
		Affiliation: s.text("affiliation", false)}
	if strings.ContainsAny(t.Type, "* ") {
		s.fail("type", "is a type like \"a-f-G\" and fits those below it, without *: %q", t.Type)
	}
	if strings.Trim(t.Affiliation, "fhnupasjk") != "" {
		s.fail("affiliation", "must be letters behind a-, like \"fn\" for friends and neutrals, is %q", t.Affiliation)
	}
	if text := s.text("site", false); text != "" {
		if t.Site = r.site(s, text); r.cfg.Link.Profile.Transport == profile.PMul {
			s.fail("site", "is of no use with profile %s: one transmission is for all sites", r.cfg.Link.ProfileName)
		}
	}
	if v := s.numbers("box", 4, "south, west, north and east in degrees, like \"54.1 9.8 54.6 10.4\""); v != nil {
		if t.Box = (&rule.Box{South: v[0], West: v[1], North: v[2], East: v[3]}); v[0] > v[2] || !inWorld(v[0], v[1]) || !inWorld(v[2], v[3]) {
			s.fail("box", "must be south, west, north and east of a part of the world")
		}
	}
	if text := s.text("around", false); text != "" {
		t.Around = s.circle(text)
	}
	for key, to := range map[string]*float64{"speed_min": &t.Slowest, "speed_max": &t.Fastest, "bound": &t.Bound} {
		*to = float64(s.integer(key, 0, 0, 100_000))
	}
	t.Least, t.Most = s.integer("octets_min", 0, 1, math.MaxInt32), s.integer("octets_max", 0, 1, math.MaxInt32)
	t.Every, t.Expires = s.duration("every", 0, time.Second, 24*time.Hour), s.duration("expires", 0, time.Second, 365*24*time.Hour)
	if s.choice("action", "allow", "allow", "local") == "local" {
		t.Action = rule.Local
	}
	if _, ok := s.get("precedence"); ok {
		p, _ := site.ParsePrecedence(s.choice("precedence", "routine", site.Precedences...))
		t.Precedence = &p
	}
	return t
}

// circle reads "54.3 10.1 5000", or "own ANDROID-… 5000".
func (s section) circle(text string) *rule.Circle {
	f := strings.Fields(text)
	c := &rule.Circle{}
	if len(f) == 3 && f[0] == "own" {
		c.Own = f[1]
	} else if len(f) == 3 {
		lat, err1 := strconv.ParseFloat(f[0], 64)
		lon, err2 := strconv.ParseFloat(f[1], 64)
		if c.Lat, c.Lon = lat, lon; err1 != nil || err2 != nil || !inWorld(lat, lon) {
			s.fail("around", "must be latitude, longitude and metres, is %q", text)
		}
	} else {
		s.fail("around", "must be latitude, longitude and metres, like \"54.3 10.1 5000\", or own, the uid of a unit of this site and metres; is %q", text)
		return nil
	}
	var err error
	if c.Radius, err = strconv.ParseFloat(f[2], 64); err != nil || !(c.Radius > 0 && c.Radius < 1e8) {
		s.fail("around", "must end with metres, is %q", text)
	}
	return c
}

// numbers is a text of so many numbers; nil after a mistake or where it is absent.
func (s section) numbers(key string, count int, what string) (list []float64) {
	text := s.text(key, false)
	if text == "" {
		return nil
	}
	for _, f := range strings.Fields(text) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			s.fail(key, "must be %s, is %q", what, text)
			return nil
		}
		list = append(list, v)
	}
	if len(list) != count {
		s.fail(key, "must be %s, is %q", what, text)
		return nil
	}
	return list
}

func inWorld(lat, lon float64) bool { return lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 }
