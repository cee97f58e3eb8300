package config

import (
	"crypto/tls"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"aldis/internal/link/profile"
	"aldis/internal/meet"
	"aldis/internal/site"
	"aldis/internal/tak/rule"
)

// TAK is where TAK devices and their server are; all addresses zero: the gateway has no such face.
type TAK struct {
	Listen     netip.AddrPort // streams over TCP; zero: none
	TLS        netip.AddrPort // streams over TLS, of clients with a certificate; zero: none
	Keys       string         // directory of certificates for TLS
	Server     netip.AddrPort // the LAN's own TAK server, of which the gateway is a client; zero: none
	ServerKeys string         // directory of certificates for TLS towards it; "": plain TCP
	ServerName string         // in its certificate; "": any
	Mesh       string         // IPv4 address of this machine, on whose interface the mesh is; "": it is no member
	Events     netip.AddrPort // group of the mesh for all but chats
	Chats      netip.AddrPort // group of the mesh for chats
	Unicast    netip.AddrPort // where devices of the mesh say what is for one unit alone; zero: nowhere
	Files      TAKFiles       // data packages
	Conns      int            // of all devices together
	Units      int            // that this site may have
	Bound      int            // metres that a unit's far picture may be wrong by
	Age        time.Duration  // a site that has units speaks at least so often; 0: as the link asks for
	Gather     time.Duration  // what is due waits so long for others; 0: likewise
	Gap        time.Duration  // between two batches on a radio net; 0: likewise
	Cadence    time.Duration  // between two events of a far unit that moves
	Wants      []rule.Want    // of this site; empty: everything
	Rules      []rule.Rule
	Meets      []meet.Rule // what is the same in JXTA and TAK
}

// On says whether the gateway has this face.
func (t TAK) On() bool {
	return t.Listen.IsValid() || t.TLS.IsValid() || t.Server.IsValid() || t.Mesh != "" || len(t.Meets) > 0
}

// TAKFiles is where devices of the LAN find data packages, and how many of them are kept.
type TAKFiles struct {
	Listen   netip.AddrPort // over HTTP; zero: not so
	TLS      netip.AddrPort // over TLS, for devices with a certificate; zero: not so
	MostFile int            // octets of one
	Most     int            // octets of all
	Crossing int            // octets of one that crosses the link
	Life     time.Duration
	Bring    []rule.Bring // what comes of far sites without being asked for
}

// URL is under which devices reach the files; "": they are not served.
func (f TAKFiles) URL() string {
	switch {
	case f.Listen.IsValid():
		return "http://" + f.Listen.String()
	case f.TLS.IsValid():
		return "https://" + f.TLS.String()
	}
	return ""
}

var takKeys = []string{"files", "files_tls", "max_file", "max_files", "max_crossing", "file_life", "listen", "tls", "tls_keys", "server", "server_keys", "server_name", "mesh", "mesh_group", "mesh_chat_group", "mesh_unicast", "max_connections", "max_units", "bound", "age", "gather", "gap", "cadence"}

var takRuleKeys = []string{"label", "type", "uid", "callsign", "team", "role", "how", "affiliation", "site", "box", "around", "polygon", "octets_per_minute", "speed_min", "speed_max",
	"octets_min", "octets_max", "action", "bound", "every", "precedence", "expires"}

var takBringKeys = []string{"site", "callsign", "uid", "name", "octets_max"}

var takWantKeys = []string{"type", "team", "affiliation", "box"}

// readTAK reads [tak] and its rules.
func (r *reader) readTAK() {
	s, t := section{r, r.tree.tables["tak"], "tak"}, &r.cfg.TAK
	t.Meets = r.readMeets()
	if s.t == nil {
		for _, name := range []string{"tak.rule", "tak.want", "tak.bring"} {
			if list := r.tree.arrays[name]; len(list) > 0 {
				r.fail(list[0].line, name, "is of no use without [tak]")
			}
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
	if t.ServerKeys, t.ServerName = r.resolve(s.text("server_keys", false)), s.text("server_name", false); t.ServerKeys != "" {
		if !t.Server.IsValid() {
			s.fail("server_keys", "is of no use without server")
		}
		if _, err := loadTAKClient(t.ServerKeys, t.ServerName); err != nil {
			s.fail("server_keys", "%v (the directory needs ca.pem of the server's authority, and client.pem with client.key where it asks for a certificate)", err)
		}
	} else if t.ServerName != "" {
		s.fail("server_name", "is of no use without server_keys")
	}
	r.readTAKKeys(s)
	r.readMesh(s)
	r.readTAKFiles(s)
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
	for i, table := range r.tree.arrays["tak.bring"] {
		s := section{r, table, "tak.bring"}
		if i == rule.MostBrings {
			s.r.fail(table.line, "tak.bring", "there are more than %d of them", rule.MostBrings)
			return
		}
		t.Files.Bring = append(t.Files.Bring, r.takBring(s))
	}
	for i, table := range r.tree.arrays["tak.want"] {
		s := section{r, table, "tak.want"}
		if i == rule.MostWants {
			s.r.fail(table.line, "tak.want", "there are more than %d of them", rule.MostWants)
			return
		}
		t.Wants = append(t.Wants, r.takWant(s))
	}
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
	t.Files.TLS = s.address("files_tls", false)
	over := t.TLS.IsValid() || t.Files.TLS.IsValid()
	if t.Keys = r.resolve(s.text("tls_keys", over)); t.Keys == "" || !over {
		return
	}
	if _, err := loadTAKKeys(t.Keys); err != nil {
		s.fail("tls_keys", "%v (gateway keys tak -o %s HOST CLIENT... makes what is missing)", err, t.Keys)
	}
}

func (r *reader) readTAKFiles(s section) {
	t := &r.cfg.TAK
	f := &t.Files
	f.Listen = s.address("files", false)
	taken := map[netip.AddrPort]string{t.Listen: "listen", t.TLS: "tls", r.cfg.LAN.TCP: "lan.tcp", r.cfg.LAN.HTTP: "lan.http"}
	for _, at := range []struct {
		key  string
		addr netip.AddrPort
	}{{"files", f.Listen}, {"files_tls", f.TLS}} {
		if !at.addr.IsValid() {
			continue
		}
		if at.addr.Addr().IsUnspecified() {
			s.fail(at.key, "must be an address that devices reach, like \"10.20.0.1:8080\": offers of far files name it")
		}
		if key := taken[at.addr]; key != "" {
			s.fail(at.key, "is the address of %s: each needs a port of its own", key)
		}
		taken[at.addr] = at.key
	}
	f.MostFile = s.integer("max_file", 16<<20, 1024, 64<<20)
	f.Most = s.integer("max_files", 256<<20, 1024, math.MaxInt32)
	f.Crossing = s.integer("max_crossing", 2<<20, 1024, 64<<20)
	f.Life = s.duration("file_life", 7*24*time.Hour, time.Minute, 365*24*time.Hour)
	if f.MostFile > f.Most {
		s.fail("max_files", "is less than max_file, the octets of one file")
	}
	if f.Crossing > f.MostFile {
		f.Crossing = f.MostFile
	}
}

// ServerTLS is what the server of TLS is made of.
func (t TAK) ServerTLS() (*tls.Config, error) { return loadTAKKeys(t.Keys) }

// ClientTLS is what the client of the LAN's own server is made of; nil: it speaks plain TCP.
func (t TAK) ClientTLS() (*tls.Config, error) {
	if t.ServerKeys == "" {
		return nil, nil
	}
	return loadTAKClient(t.ServerKeys, t.ServerName)
}

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
	at, err := netip.ParseAddr(text)
	if err != nil || !at.Is4() || at.IsUnspecified() {
		s.fail("mesh", "must be the IPv4 address of this machine on whose interface the mesh is, like \"10.20.0.1\", is %q", text)
		return
	}
	r.readUnicast(s, at)
}

// unicastPort is where ATAK takes what is for it alone.
const unicastPort = 4242

// readUnicast reads where devices of the mesh say what is for one unit alone: at the mesh's address unless told otherwise.
func (r *reader) readUnicast(s section, mesh netip.Addr) {
	t := &r.cfg.TAK
	if t.Unicast = netip.AddrPortFrom(mesh, unicastPort); s.text("mesh_unicast", false) == "off" {
		t.Unicast = netip.AddrPort{}
	} else if s.text("mesh_unicast", false) != "" {
		t.Unicast = s.address("mesh_unicast", false)
	}
	if a := t.Unicast.Addr(); t.Unicast.IsValid() && (!a.Is4() || a.IsUnspecified()) {
		s.fail("mesh_unicast", "must be an IPv4 address that devices reach, like \"10.20.0.1:4242\", or \"off\"")
	}
	for key, taken := range map[string]netip.AddrPort{"listen": t.Listen, "tls": t.TLS, "server": t.Server} {
		if t.Unicast.IsValid() && t.Unicast == taken {
			s.fail("mesh_unicast", "is tak.%s: each needs a port of its own", key)
		}
	}
}

func (r *reader) takRule(s section) rule.Rule {
	t := rule.Rule{Line: s.t.line, Label: s.printable("label", false), Type: s.text("type", false), UID: s.text("uid", false),
		Callsign: s.text("callsign", false), Team: s.text("team", false), Role: s.text("role", false), How: s.text("how", false),
		Affiliation: s.text("affiliation", false)}
	s.checkType(t.Type, t.Affiliation)
	if text := s.text("site", false); text != "" {
		if t.Site = r.site(s, "site", text); r.cfg.Link.Profile.Transport == profile.PMul {
			s.fail("site", "is of no use with profile %s: one transmission is for all sites", r.cfg.Link.ProfileName)
		}
	}
	t.Box, t.Polygon = s.box(), s.polygon()
	t.Rate = s.integer("octets_per_minute", 0, 1, 1_000_000)
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

// takBring reads which files of far sites come without being asked for.
func (r *reader) takBring(s section) rule.Bring {
	b := rule.Bring{Line: s.t.line, Callsign: s.text("callsign", false), UID: s.text("uid", false), Name: s.text("name", false),
		Most: int64(s.integer("octets_max", 0, 1, math.MaxInt32))}
	if text := s.text("site", false); text != "" {
		b.Site = r.site(s, "site", text)
	}
	if r.cfg.TAK.Files.URL() == "" {
		s.r.fail(s.t.line, "tak.bring", "is of no use without tak.files or tak.files_tls")
	}
	return b
}

// takWant reads a part of what this site wants to be told.
func (r *reader) takWant(s section) rule.Want {
	w := rule.Want{Line: s.t.line, Type: s.text("type", false), Team: s.text("team", false), Affiliation: s.text("affiliation", false), Box: s.box()}
	s.checkType(w.Type, w.Affiliation)
	for key, text := range map[string]string{"type": w.Type, "team": w.Team} {
		if len(text) > 64 {
			s.fail(key, "has more than 64 octets")
		}
	}
	if w.Type == "" && w.Team == "" && w.Affiliation == "" && w.Box == nil {
		s.fail("type", "is missing, and team, affiliation and box: this fits everything, so leave the section out")
	}
	return w
}

// checkType fails where types and affiliations are none.
func (s section) checkType(kind, affiliation string) {
	if strings.ContainsAny(kind, "* ") {
		s.fail("type", "is a type like \"a-f-G\" and fits those below it, without *: %q", kind)
	}
	if strings.Trim(affiliation, "fhnupasjk") != "" {
		s.fail("affiliation", "must be letters behind a-, like \"fn\" for friends and neutrals, is %q", affiliation)
	}
}

// box reads "54.1 9.8 54.6 10.4"; nil after a mistake or where it is absent.
func (s section) box() *rule.Box {
	v := s.numbers("box", 4, "south, west, north and east in degrees, like \"54.1 9.8 54.6 10.4\"")
	if v == nil {
		return nil
	}
	if v[0] > v[2] || !inWorld(v[0], v[1]) || !inWorld(v[2], v[3]) {
		s.fail("box", "must be south, west, north and east of a part of the world")
	}
	return &rule.Box{South: v[0], West: v[1], North: v[2], East: v[3]}
}

// polygon reads the corners of a part of the world.
func (s section) polygon() (p rule.Polygon) {
	const what = "latitude and longitude of three to 256 corners in degrees, like \"54.1 9.8 54.6 10.4 54.0 10.6\""
	v := s.numbers("polygon", -1, what)
	if v == nil {
		return nil
	}
	if len(v) < 6 || len(v)%2 != 0 || len(v) > 2*rule.MostCorners {
		s.fail("polygon", "must be %s; there are %d numbers", what, len(v))
		return nil
	}
	for i := 0; i < len(v); i += 2 {
		if !inWorld(v[i], v[i+1]) {
			s.fail("polygon", "has a corner outside of the world: %g %g", v[i], v[i+1])
		}
		p = append(p, [2]float64{v[i], v[i+1]})
	}
	return p
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

// numbers is a text of so many numbers, -1: as many as there are; nil after a mistake or where it is absent.
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
	if count >= 0 && len(list) != count {
		s.fail(key, "must be %s, is %q", what, text)
		return nil
	}
	return list
}

func inWorld(lat, lon float64) bool { return lat >= -90 && lat <= 90 && lon >= -180 && lon <= 180 }
