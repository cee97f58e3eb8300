package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"aldis/internal/edge/infile"
	"aldis/internal/edge/keyfile"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
	"aldis/internal/rules/route"
)

// maxFile is the size in octets of the largest configuration read.
const maxFile = 1 << 20

// Config is a configuration without a mistake. Paths are absolute or count from the working directory.
type Config struct {
	File   string
	Node   Node
	LAN    LAN
	Link   Link
	More   []Link // the bearers behind the first; only Link has Key and Trust
	HTTP   HTTP
	Traces Traces
	// Control is the socket on which the gateway takes orders, and who may use it.
	Control Control
	Log     Log
	// Delivery bounds the messages that wait for local peers that are away.
	Delivery Delivery
	// TAK is the adapter for TAK devices.
	TAK TAK
	// Site is the second gateway of this site.
	Site Site
	// Cluster is the members of a site of three gateways and more.
	Cluster Cluster
	// XMPP is the adapter for the XMPP server of the LAN, or for its XMPP clients.
	XMPP XMPP
	// Rules say how much effort compression spends on the elements of messages. The first rule that matches decides; the
	// built-in rules come after these.
	Rules  []compact.Rule
	Corpus Corpus
	// Filters say what may cross the link; the first that matches decides.
	Filters []filter.Rule
	// Silences are windows in which nothing is transmitted.
	Silences calendar.Windows
	// Messages say how urgent applications' messages are; the first that matches decides.
	Messages []mark.Rule
	Routes   []route.Rule
	Groups   []Group
	Views    []View // the first that matches decides
	Fleet    Fleet
}

// Node is this gateway.
type Node struct {
	ID      uint16 // 1..65535
	Name    string
	DataDir string
	Relay   bool // messages between other gateways are passed on
	Silent  bool // nothing is ever transmitted on the link (EMCON), whatever the journal or an order says
	Secret  Secret
}

// LAN is where JXTA peers dial in; one of TCP and HTTP may be zero: not served.
type LAN struct {
	TCP            netip.AddrPort
	HTTP           netip.AddrPort
	MaxConnections int // of all peers together; one host gets a quarter
	MaxAway        int // peers of one address that have a lease but no connection
	// Multicast is the group on which peers without a lease are heard, on the interface of TCP or HTTP; zero: none.
	Multicast netip.AddrPort
	View      string // what other sites learn of the peers
}

// Seeds are the addresses that JXTA peers are given as seeds.
func (l LAN) Seeds() (s []string) {
	if l.TCP.IsValid() {
		s = append(s, "tcp://"+l.TCP.String())
	}
	if l.HTTP.IsValid() {
		s = append(s, "http://"+l.HTTP.String())
	}
	return s
}

// Link is a way to the sister gateways.
type Link struct {
	Name        string // of the bearer, the same at both ends; "": it is the only one
	Price       float64
	Octets      int64   // that it may carry in a day; 0: any number
	Money       float64 // the bound of a day as money, as written
	Direct      int     // direct sessions at most, where there are keepalives
	ProfileName string  // as written in the file
	Profile     profile.Profile
	TLS         bool           // datagrams go over TLS connections; else over UDP
	Listen      netip.AddrPort // over TLS it may be zero: no peer dials this gateway
	Proxy       netip.AddrPort // over TLS: the proxy that gets the CONNECT request; zero: none
	Modem       string         // socket on which the modem may report; "": none
	KeyFile     string
	Key         seal.Key
	Trust       Trust         // keys of single nodes, instead of Key
	Shore       bool          // this end of the profile is the shore; otherwise a terminal
	Keepalive   time.Duration // 0: none
	Group       netip.AddrPort
	GroupIface  string // interface of Group; "": that of the route to a peer
	Peers       []Peer // in the order of the file
}

// Peer is a sister gateway.
type Peer struct {
	ID      uint16
	Name    string
	Address netip.AddrPort // zero: learned from its first authentic datagram
	Shore   bool           // this end is a terminal of a star, and the peer is its shore
	Via     string         // names or ids of peers that pass on messages to it, with commas between
}

// Delivery says how long messages wait for local peers that are away, and how many octets of them.
type Delivery struct {
	Wait            time.Duration // where no message rule says otherwise
	MaxOctets       int           // of all peers together
	MaxOctetsOfPeer int
}

// HTTP is the address at which /metrics, /status and /healthz answer. A zero Listen: they are not served.
type HTTP struct {
	Listen    netip.AddrPort
	Names     []string // host names that requests may use, besides localhost and addresses
	TokenFile string
	Token     string // that an order over HTTP must carry; "": HTTP takes no orders
}

// Log says how much is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // "auto": text on a terminal, JSON elsewhere; "text"; "json"
}

// Load reads the configuration in file, its profile and its key. The error joins one *profile.FieldError per mistake.
func Load(file string) (*Config, error) {
	r := newReader(file)
	data, err := readSmall(file)
	if err != nil {
		return nil, &profile.FieldError{File: file, Problem: readProblem(err)}
	}
	r.tree = parse(data, r.fail)
	r.read()
	if len(r.faults) == 0 {
		return r.cfg, nil
	}
	slices.SortStableFunc(r.faults, func(a, b *profile.FieldError) int {
		if a.File != b.File { // the configuration before the profile
			return cmp.Compare(boolInt(a.File != file), boolInt(b.File != file))
		}
		return cmp.Compare(a.Line, b.Line)
	})
	errs := make([]error, len(r.faults))
	for i, f := range r.faults {
		errs[i] = f
	}
	return nil, errors.Join(errs...)
}

// Listen is an address of this machine where the gateway listens over TCP.
type Listen struct {
	Key string // of the configuration
	At  netip.AddrPort
}

// Listens are the addresses over TCP that the configuration names, in the order of its keys.
func (c *Config) Listens() (list []Listen) {
	for _, p := range schema(c) {
		for _, k := range p.keys {
			if at, ok := k.to.(*netip.AddrPort); ok && k.listen && at.IsValid() {
				list = append(list, Listen{p.name + "." + k.name, *at})
			}
		}
	}
	for _, l := range c.Bearers() {
		if l.TLS && l.Listen.IsValid() {
			list = append(list, Listen{LinkKey(l, "listen"), l.Listen})
		}
	}
	return list
}

// LinkKey names a key of a [[link]] for people: link.listen, or link.listen of "sat".
func LinkKey(l Link, key string) string {
	if l.Name == "" {
		return "link." + key
	}
	return fmt.Sprintf("link.%s of %q", key, l.Name)
}

// Bearers are all links to the sister gateways, in the order of the file.
func (c *Config) Bearers() []Link { return append([]Link{c.Link}, c.More...) }

// Files are the files that Load has read.
func (c *Config) Files() []string {
	list := []string{c.File}
	for _, file := range []string{c.Link.KeyFile, c.Link.Trust.RosterFile, c.Link.Trust.NodeKeyFile, c.HTTP.TokenFile, c.Corpus.File, c.XMPP.SecretFile} {
		if file != "" {
			list = append(list, file)
		}
	}
	for _, l := range c.Bearers() {
		if isFile(l.ProfileName) {
			list = append(list, (&reader{file: c.File}).resolve(l.ProfileName))
		}
	}
	if c.TAK.TLS.IsValid() || c.TAK.Files.TLS.IsValid() {
		list = append(list, filepath.Join(c.TAK.Keys, keyfile.ServerCert))
	}
	if c.XMPP.Own() {
		list = append(list, filepath.Join(c.XMPP.Keys, keyfile.ServerCert), c.XMPP.UsersFile)
	}
	if c.XMPP.S2SKeys != "" {
		list = append(list, filepath.Join(c.XMPP.S2SKeys, keyfile.ServerCert), filepath.Join(c.XMPP.S2SKeys, keyfile.CACert))
	}
	if c.TAK.ServerKeys != "" {
		list = append(list, filepath.Join(c.TAK.ServerKeys, keyfile.CACert))
	}
	return list
}

// Modems are the sockets on which modems may speak.
func (c *Config) Modems() (paths []string) {
	for _, l := range c.Bearers() {
		if l.Modem != "" {
			paths = append(paths, l.Modem)
		}
	}
	return paths
}

// isFile says whether link.profile names a file, not a built-in profile.
func isFile(profile string) bool {
	return strings.Contains(profile, "/") || strings.HasSuffix(profile, ".toml")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func readSmall(file string) ([]byte, error) {
	data, err := infile.Read(file, maxFile)
	if err == nil && !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	return data, err
}

// readProblem says why a file cannot be read, without naming it.
func readProblem(err error) string {
	return "cannot be read: " + infile.Why(err).Error()
}

type reader struct {
	file   string
	tree   *tree
	cfg    *Config
	parts  []part // of cfg
	faults []*profile.FieldError
}

func newReader(file string) *reader {
	r := &reader{file: file, cfg: &Config{File: file}}
	r.parts = schema(r.cfg)
	return r
}

func (r *reader) fail(line int, key, format string, args ...any) {
	r.faults = append(r.faults, &profile.FieldError{File: r.file, Line: line, Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (r *reader) read() {
	r.unknown()
	r.readNode()
	r.readLAN()
	r.readLink()
	r.cfg.Rules = readRules(r, "compact.rule", compactKeys, nil)
	r.readCorpus()
	r.readFilters()
	readRules(r, "group", groupKeys, r.checkGroup)
	readRules(r, "view", viewKeys, r.checkView)
	r.readFleet()
	readRules(r, "message", messageKeys, r.checkMessage)
	readRules(r, "route", routeKeys, r.checkRoute)
	r.readSilences()
	r.readDelivery()
	r.readTAK()
	r.readXMPP()
	r.readSite()
	r.readCluster()
	r.readOrders()
	r.checkPorts()
	if r.tree.tables["traces"] != nil {
		r.fill("traces")
	}
	r.fill("log")
}

func (r *reader) readNode() {
	n, s := &r.cfg.Node, r.fill("node")
	if n.Secret.File != "" && n.Secret.Ask {
		s.fail("journal_passphrase", "is of no use with journal_key_file, which says where the secret is")
	}
	switch info, err := os.Stat(n.DataDir); {
	case n.DataDir == "" || errors.Is(err, fs.ErrNotExist): // run makes what is missing
	case err != nil:
		s.fail("data_dir", "%s %s", n.DataDir, readProblem(err))
	case !info.IsDir():
		s.fail("data_dir", "%s is not a directory", n.DataDir)
	}
}

// JXTAGroup is where JXTA peers of both generations send and listen unless told otherwise (wire 2.7).
var JXTAGroup = netip.AddrPortFrom(netip.AddrFrom4([4]byte{224, 0, 1, 85}), 1234)

func (r *reader) readLAN() {
	l, s := &r.cfg.LAN, r.fill("lan")
	if !s.has("tcp") && !s.has("http") && r.tree.tables["tak"] == nil && r.tree.tables["xmpp"] == nil {
		s.missing("tcp", "")
	}
	switch dialled := l.TCP.IsValid() || l.HTTP.IsValid(); {
	case s.has("multicast_group") && !l.Multicast.IsValid():
		s.fail("multicast_group", "is of no use without multicast = true")
	case l.Multicast.IsValid() && dialled && !cmp.Or(l.TCP, l.HTTP).Addr().Is4():
		s.fail("multicast", "needs an IPv4 address in lan.tcp: its interface is where peers are heard")
	}
}

// checkPorts reports addresses that are given twice.
func (r *reader) checkPorts() {
	first := map[netip.AddrPort]string{}
	for _, l := range r.cfg.Listens() {
		if before, twice := first[l.At]; twice {
			section, key, _ := strings.Cut(l.Key, ".")
			r.section(section).fail(key, "is the address of %s: each needs a port of its own", before)
		} else {
			first[l.At] = l.Key
		}
	}
}

// profileOf turns a profile's name or file into the argument of profile.Load.
func (r *reader) profileOf(name string) string {
	if isFile(name) {
		return r.resolve(name)
	}
	return name
}

func (r *reader) readLink() {
	l, link := &r.cfg.Link, r.fill("link")
	r.readBearer(link, l)
	link.perDay(l)
	link.direct(l)
	r.readKeys(link)
	ids, names, addresses := map[uint16]int{}, map[string]int{}, map[netip.AddrPort]int{}
	l.Peers = readRules(r, "link.peer", peerKeys, func(s section, p *Peer) {
		if p.ID != 0 && p.ID == r.cfg.Node.ID {
			s.fail("id", "%d is node.id, this gateway's own: a peer is another gateway", p.ID)
		}
		fresh := once(s, "id", p.ID, ids)
		if p.Name == "" && fresh && p.ID != 0 {
			p.Name = fmt.Sprintf("node-%d", p.ID)
		}
		once(s, "name", p.Name, names)
		once(s, "address", p.Address, addresses)
		r.checkMember(s, p)
	})
	r.checkDials(link, l)
	r.readMore(link, addresses)
	r.checkRelays()
}

// readBearer reads the settings that each bearer has of its own.
func (r *reader) readBearer(link section, l *Link) {
	if name := r.profileOf(l.ProfileName); name != "" {
		var err error
		if l.Profile, err = profile.Load(name, readSmall); err != nil {
			r.profileFaults(link, l.ProfileName, err)
		}
	}
	r.checkOver(link, l)
	if l.Group.IsValid() && l.Profile.Transport != profile.PMul && l.Profile.Name != "" {
		link.fail("group", "is of no use with profile %s: its transport is NORM, which sends to each peer", l.Profile.Name)
	}
}

// checkOver reports keys that do not go with the transport of a bearer's datagrams.
func (r *reader) checkOver(link section, l *Link) {
	switch {
	case link.wrong("over", "listen"):
	case !l.TLS && !l.Listen.IsValid():
		link.missing("listen", "")
	case !l.TLS && link.has("proxy"):
		link.fail("proxy", "is of no use without over = \"tls\"")
	case l.TLS && l.Profile.Transport == profile.PMul:
		link.fail("profile", "%s is for a channel that all hear; over = \"tls\" is one connection for each peer", l.Profile.Name)
	}
}

// checkDials reports a bearer over TLS on which neither end dials.
func (r *reader) checkDials(link section, l *Link) {
	if l.TLS && !l.Listen.IsValid() && !slices.ContainsFunc(l.Peers, func(p Peer) bool { return p.Address.IsValid() }) && !link.wrong("listen") {
		link.fail("listen", "is missing, and no [[link.peer]] has an address: there would be no connection")
	}
}

// ofNetwork are the keys of [link] that belong to the network: only the first bearer has them.
var ofNetwork = append([]string{"key_file"}, trustKeys...)

// readMore reads each [[link]] behind the first.
func (r *reader) readMore(first section, addresses map[netip.AddrPort]int) {
	listens, names, marks := map[bool]map[netip.AddrPort]int{false: {}, true: {}}, map[string]int{}, map[uint8]int{}
	check := func(s section, l *Link) {
		if len(r.tree.links) > 0 && l.Name == "" && !s.wrong("name") {
			s.missing("name", ": each of several [[link]] needs one, the same at both ends of it")
		}
		if once(s, "name", l.Name, names) && l.Name != "" {
			once(s, "name", seal.BearerMark(l.Name), marks)
		}
		once(s, "listen", l.Listen, listens[l.TLS])
	}
	check(first, &r.cfg.Link)
	for _, t := range r.tree.links {
		var l Link
		s := section{r, t.table, "link", len(r.faults)}
		s.fill(linkKeys(&l))
		for _, key := range ofNetwork {
			if s.has(key) {
				s.fail(key, "belongs to the network, not to a bearer: write it in the first [[link]] alone")
			}
		}
		r.readBearer(s, &l)
		s.perDay(&l)
		s.direct(&l)
		check(s, &l)
		ids := map[uint16]int{}
		for _, pt := range t.peers {
			var p Peer
			ps := section{r, pt, "link.peer", len(r.faults)}
			ps.fill(peerKeys(&p))
			once(ps, "id", p.ID, ids)
			once(ps, "address", p.Address, addresses)
			if !slices.ContainsFunc(r.cfg.Link.Peers, func(q Peer) bool { return q.ID == p.ID }) && p.ID != 0 {
				ps.fail("id", "%d is no peer of the first [[link]]: write it there too, without an address if that bearer does not reach it", p.ID)
			}
			l.Peers = append(l.Peers, p)
		}
		r.checkDials(s, &l)
		r.cfg.More = append(r.cfg.More, l)
	}
}

// once reports a value that an earlier section has already, and returns false then. Zero values never count as doubles.
func once[T comparable](s section, key string, v T, seen map[T]int) bool {
	var zero T
	if v == zero {
		return true
	}
	if first, ok := seen[v]; ok {
		s.fail(key, "%v is there twice, first in line %d", v, first)
		return false
	}
	seen[v] = s.line(key)
	return true
}

func (r *reader) profileFaults(link section, name string, err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			r.profileFaults(link, name, e)
		}
		return
	}
	var fe *profile.FieldError
	if errors.As(err, &fe) {
		r.faults = append(r.faults, fe)
		return
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		link.fail("profile", "%s %s", pe.Path, readProblem(err))
		return
	}
	meant := ""
	if errors.Is(err, profile.ErrUnknown) {
		meant = Nearest(name, profile.Names())
	}
	link.fail("profile", "%s%s", strings.TrimPrefix(err.Error(), "profile: "), meant)
}

// resolve makes a relative path start at the configuration's directory.
func (r *reader) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.file), path)
}

// unknown reports sections and keys that do not exist, each section once.
func (r *reader) unknown() {
	keys, sections := map[string][]string{}, []string{}
	for _, p := range r.parts {
		sections = append(sections, p.name)
		for _, k := range p.keys {
			if k.read != nil {
				keys[p.name] = append(keys[p.name], k.name)
			}
		}
	}
	keys[""] = sections // what stands before the first section may be meant to be one
	slices.Sort(sections)
	for _, t := range r.tree.order {
		if keys[t.path] == nil {
			r.noSuch(t.line, "section", t.path, t.path, sections)
			continue
		}
		for _, k := range t.keys {
			if t.path == "" || !slices.Contains(keys[t.path], k) {
				r.noSuch(t.values[k].line, "key", join(t.path, k), k, keys[t.path])
			}
		}
	}
}

// noSuch reports a section or key that does not exist, with its present name or the likely one. A key under an old name is not
// reported as missing too.
func (r *reader) noSuch(line int, what, path, name string, candidates []string) {
	if now, old := oldNames[path]; old {
		r.fail(line, path, "there is no such %s since version 0.2: it is %s now", what, now)
		r.tree.slips = append(r.tree.slips, now[strings.LastIndex(now, ".")+1:])
		return
	}
	r.fail(line, path, "there is no such %s%s", what, Nearest(name, candidates))
}
