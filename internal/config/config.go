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

	"aldis/internal/infile"
	"aldis/internal/link/compact"
	"aldis/internal/link/profile"
	"aldis/internal/link/seal"
	"aldis/internal/rules/calendar"
	"aldis/internal/rules/filter"
	"aldis/internal/rules/mark"
)

// maxFile is the size in octets of the largest configuration read.
const maxFile = 1 << 20

// Config is a configuration without a mistake. Paths are absolute or count from the working directory.
type Config struct {
	File   string
	Node   Node
	LAN    LAN
	Link   Link
	HTTP   HTTP
	Traces Traces
	// Control is where orders come in.
	Control Control
	Log     Log
	// Delivery is what waits for local peers that are away.
	Delivery Delivery
	// TAK is where TAK devices are.
	TAK TAK
	// Rules say how hard the elements of messages are tried to be made smaller; the first that fits decides, after them
	// those that are built in.
	Rules  []compact.Rule
	Corpus Corpus
	// Filters say what may cross the link; the first that fits decides.
	Filters []filter.Rule
	// Silences are windows in which nothing is transmitted.
	Silences calendar.Windows
	// Messages say how urgent applications' messages are; the first that fits decides.
	Messages []mark.Rule
}

// Node is this gateway.
type Node struct {
	ID      uint16 // 1..65535
	Name    string
	DataDir string
	Silent  bool // nothing is ever transmitted on the link (EMCON), whatever the journal or an order says
	Secret  Secret
}

// LAN is where JXTA peers dial in; one of both addresses may be zero: not served.
type LAN struct {
	TCP            netip.AddrPort
	HTTP           netip.AddrPort
	MaxConnections int // of all peers together; one host gets a quarter
	MaxAway        int // peers of one address that have a lease and no connection
	// Multicast is the group where peers are heard that have no lease, on the interface of TCP or HTTP; zero: nowhere.
	Multicast netip.AddrPort
}

// Seeds are the addresses that peers are given.
func (l LAN) Seeds() (s []string) {
	if l.TCP.IsValid() {
		s = append(s, "tcp://"+l.TCP.String())
	}
	if l.HTTP.IsValid() {
		s = append(s, "http://"+l.HTTP.String())
	}
	return s
}

// Link is the way to the sister gateways.
type Link struct {
	ProfileName string // as written
	Profile     profile.Profile
	Listen      netip.AddrPort
	KeyFile     string
	Key         seal.Key
	Trust       Trust         // keys of single nodes, in the place of Key
	Shore       bool          // this end of the profile is the shore; otherwise a terminal
	Keepalive   time.Duration // 0: none
	Group       netip.AddrPort
	GroupIface  string // of Group; "": that of the route to a peer
	Peers       []Peer // in the order of the file
}

// Peer is a sister gateway.
type Peer struct {
	ID      uint16
	Name    string
	Address netip.AddrPort // zero: learned from its first authentic datagram
}

// Delivery says how far messages wait for local peers that are away.
type Delivery struct {
	Wait            time.Duration // where no message rule says otherwise
	MaxOctets       int           // of all peers together
	MaxOctetsOfPeer int
}

// HTTP is where /metrics, /status and /healthz answer. A zero Listen: nowhere.
type HTTP struct {
	Listen    netip.AddrPort
	Names     []string // host names under which it is asked, besides localhost and addresses
	TokenFile string
	Token     string // that an order over HTTP brings; "": there are none
}

// Log says how much is logged, and how.
type Log struct {
	Level  slog.Level
	Format string // "auto": text on a terminal, JSON elsewhere; "text"; "json"
}

// Load reads the configuration in file, its profile and its key. The error joins one *profile.FieldError per mistake.
func Load(file string) (*Config, error) {
	r := &reader{file: file, cfg: &Config{File: file}}
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

// Files are those that Load has read.
func (c *Config) Files() []string {
	list := []string{c.File}
	for _, file := range []string{c.Link.KeyFile, c.Link.Trust.RosterFile, c.Link.Trust.NodeKeyFile, c.HTTP.TokenFile, c.Corpus.File} {
		if file != "" {
			list = append(list, file)
		}
	}
	if isFile(c.Link.ProfileName) {
		list = append(list, (&reader{file: c.File}).resolve(c.Link.ProfileName))
	}
	if c.TAK.TLS.IsValid() || c.TAK.Files.TLS.IsValid() {
		list = append(list, filepath.Join(c.TAK.Keys, serverCert))
	}
	if c.TAK.ServerKeys != "" {
		list = append(list, filepath.Join(c.TAK.ServerKeys, caCert))
	}
	return list
}

// isFile says whether link.profile names a file, and not a profile that is built in.
func isFile(profile string) bool {
	return strings.Contains(profile, "/") || strings.HasSuffix(profile, ".toml")
}

// ReadNode reads only [node] of a configuration: who looks after a journal may do so while the rest has mistakes.
func ReadNode(file string) (n Node, err error) {
	err = asked(file, func(r *reader) {
		node := section{r, r.tree.tables["node"], "node"}
		n = Node{ID: node.id(), Name: node.name(true), DataDir: r.resolve(node.text("data_dir", true)), Secret: r.secret(node)}
	})
	return n, err
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

// readProblem says why a file cannot be read, without its name.
func readProblem(err error) string {
	return "cannot be read: " + infile.Why(err).Error()
}

// known lists the keys of every section.
var known = map[string][]string{
	"":             nil,
	"node":         {"id", "name", "data_dir", "journal_key_file", "journal_passphrase", "silent"},
	"lan":          {"tcp", "http", "max_connections", "max_away_per_address", "multicast", "multicast_group"},
	"link":         {"profile", "listen", "key_file", "roster", "node_key", "authority", "end", "keepalive", "group", "group_interface"},
	"link.peer":    {"id", "name", "address"},
	"compact":      {"corpus", "corpus_from", "corpus_refuse"},
	"compact.rule": {"type", "name", "octets", "effort"},
	"filter":       filterKeys,
	"message":      messageKeys,
	"tak":          takKeys,
	"tak.rule":     takRuleKeys,
	"tak.want":     takWantKeys,
	"tak.bring":    takBringKeys,
	"meet":         meetKeys,
	"silence":      {"from", "to", "days", "announce"},
	"http":         {"listen", "names", "token_file"},
	"traces":       {"otlp"},
	"control":      {"socket", "group"},
	"log":          {"level", "format"},
	"delivery":     {"wait", "max_octets", "max_octets_per_peer"},
}

type reader struct {
	file   string
	tree   *tree
	cfg    *Config
	faults []*profile.FieldError
}

func (r *reader) fail(line int, key, format string, args ...any) {
	r.faults = append(r.faults, &profile.FieldError{File: r.file, Line: line, Key: key, Problem: fmt.Sprintf(format, args...)})
}

func (r *reader) read() {
	r.unknown()
	c := r.cfg
	node := section{r, r.tree.tables["node"], "node"}
	c.Node.ID = node.id()
	c.Node.Name = node.name(true)
	c.Node.DataDir = r.resolve(node.text("data_dir", true))
	r.checkDataDir(node)
	c.Node.Secret = r.secret(node)
	c.Node.Silent = node.flag("silent")

	lan := section{r, r.tree.tables["lan"], "lan"}
	_, polling := lan.get("http")
	_, tak := r.tree.tables["tak"]
	c.LAN.TCP = lan.address("tcp", !polling && !tak)
	c.LAN.HTTP = lan.address("http", false)
	for key, at := range map[string]netip.AddrPort{"tcp": c.LAN.TCP, "http": c.LAN.HTTP} {
		if at.IsValid() && at.Addr().IsUnspecified() {
			lan.fail(key, "must be the one address that JXTA peers dial and are told; %s names none", at.Addr())
		}
	}
	if c.LAN.HTTP.IsValid() && c.LAN.HTTP == c.LAN.TCP {
		lan.fail("http", "is the address of lan.tcp: each needs a port of its own")
	}
	r.readMulticast(lan)
	c.LAN.MaxConnections = lan.integer("max_connections", 4096, 4, 20_000)
	c.LAN.MaxAway = lan.integer("max_away_per_address", 64, 1, 4096)

	r.readLink()
	r.readRules()
	r.readCorpus()
	r.readFilters()
	r.readMessages()
	r.readSilences()
	r.readDelivery()
	r.readTAK()

	http := section{r, r.tree.tables["http"], "http"}
	c.HTTP.Listen = http.address("listen", false)
	switch at := c.HTTP.Listen; {
	case !at.IsValid():
	case at == c.LAN.TCP:
		http.fail("listen", "is the address of lan.tcp: each needs a port of its own")
	case at == c.TAK.Listen:
		http.fail("listen", "is the address of tak.listen: each needs a port of its own")
	case at == c.LAN.HTTP:
		http.fail("listen", "is the address of lan.http, where JXTA peers poll: each needs a port of its own")
	}

	r.readOrders(http)
	r.readTraces()

	log := section{r, r.tree.tables["log"], "log"}
	if level := log.choice("level", "info", "debug", "info", "warn", "error"); level != "" {
		c.Log.Level.UnmarshalText([]byte(level)) // the choices are slog's own words
	}
	c.Log.Format = log.choice("format", "auto", "auto", "text", "json", "journald")
}

// JXTAGroup is where JXTA peers of both generations send and listen unless told otherwise (wire 2.7).
var JXTAGroup = netip.AddrPortFrom(netip.AddrFrom4([4]byte{224, 0, 1, 85}), 1234)

func (r *reader) readMulticast(lan section) {
	l := &r.cfg.LAN
	on, group := lan.flag("multicast"), lan.address("multicast_group", false)
	if a := group.Addr(); group.IsValid() && (!a.Is4() || !a.IsMulticast()) {
		lan.fail("multicast_group", "%s is no IPv4 multicast address (224.0.0.0 to 239.255.255.255)", a)
	}
	_, named := lan.get("multicast_group")
	switch {
	case named && !on:
		lan.fail("multicast_group", "is of no use without multicast = true")
	case !on:
	case !cmp.Or(l.TCP, l.HTTP).Addr().Is4() && (l.TCP.IsValid() || l.HTTP.IsValid()):
		lan.fail("multicast", "needs an IPv4 address in lan.tcp: its interface is where peers are heard")
	default:
		if l.Multicast = JXTAGroup; group.IsValid() {
			l.Multicast = group
		}
	}
}

// readRules reads how hard message elements are tried to be made smaller; the built-in rules come after them.
func (r *reader) readRules() {
	efforts := map[string]compact.Effort{"full": compact.Full, "light": compact.Light, "none": compact.None}
	for _, t := range r.tree.arrays["compact.rule"] {
		s := section{r, t, "compact.rule"}
		rule := compact.Rule{Type: s.text("type", false), Name: s.text("name", false), Octets: s.integer("octets", 0, 0, 1<<30)}
		rule.Effort = efforts[s.choice("effort", "full", "full", "light", "none")]
		for key, pattern := range map[string]string{"type": rule.Type, "name": rule.Name} {
			if err := compact.CheckRule(compact.Rule{Type: pattern}); err != nil {
				s.fail(key, "%q is no pattern: %v", pattern, err)
			}
		}
		r.cfg.Rules = append(r.cfg.Rules, rule)
	}
}

// profileOf is what a profile's name or file is for profile.Load.
func (r *reader) profileOf(name string) string {
	if isFile(name) {
		return r.resolve(name)
	}
	return name
}

func (r *reader) readLink() {
	l := &r.cfg.Link
	link := section{r, r.tree.tables["link"], "link"}
	l.ProfileName = link.text("profile", true)
	if name := r.profileOf(l.ProfileName); name != "" {
		var err error
		if l.Profile, err = profile.Load(name, readSmall); err != nil {
			r.profileFaults(link, err)
		}
	}
	l.Listen = link.address("listen", true)
	r.readKeys(link)
	l.Shore = link.choice("end", "terminal", "terminal", "shore") == "shore"
	l.Group = link.address("group", false)
	if a := l.Group.Addr(); l.Group.IsValid() && (!a.Is4() || !a.IsMulticast()) {
		link.fail("group", "%s is no IPv4 multicast address (224.0.0.0 to 239.255.255.255)", a)
	}
	if l.Group.IsValid() && l.Profile.Transport != profile.PMul && l.Profile.Name != "" {
		link.fail("group", "is of no use with profile %s: its transport is NORM, which sends to each peer", l.Profile.Name)
	}
	l.GroupIface = link.text("group_interface", false)
	l.Keepalive = link.duration("keepalive", 0, time.Second, 24*time.Hour)

	ids, names, addresses := map[uint16]int{}, map[string]int{}, map[netip.AddrPort]int{}
	for _, t := range r.tree.arrays["link.peer"] {
		s := section{r, t, "link.peer"}
		p := Peer{ID: s.id(), Name: s.name(false), Address: s.address("address", false)}
		if p.ID != 0 && p.ID == r.cfg.Node.ID {
			s.fail("id", "%d is node.id, this gateway's own: a peer is another gateway", p.ID)
		}
		fresh := once(s, "id", p.ID, ids)
		if p.Name == "" && fresh && p.ID != 0 {
			p.Name = fmt.Sprintf("node-%d", p.ID)
		}
		once(s, "name", p.Name, names)
		once(s, "address", p.Address, addresses)
		if p.Address.IsValid() && p.Address.Addr().IsUnspecified() {
			s.fail("address", "must be the peer's address; %s names none (leave the key out to learn it from the peer)", p.Address.Addr())
		}
		r.checkMember(s, &p)
		l.Peers = append(l.Peers, p)
	}
}

// once reports a value that an earlier section has already, and answers false then. Zero values are never doubles.
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

func (r *reader) profileFaults(link section, err error) {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			r.profileFaults(link, e)
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
		meant = Nearest(r.cfg.Link.ProfileName, profile.Names())
	}
	link.fail("profile", "%s%s", strings.TrimPrefix(err.Error(), "profile: "), meant)
}

func (r *reader) checkDataDir(node section) {
	dir := r.cfg.Node.DataDir
	if dir == "" {
		return
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		node.fail("data_dir", "%s is not a directory", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) { // run makes what is missing
		node.fail("data_dir", "%s %s", dir, readProblem(err))
	}
}

// resolve counts a relative path from the configuration's directory.
func (r *reader) resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.file), path)
}

// unknown reports sections and keys that do not exist, each section once.
func (r *reader) unknown() {
	var sections []string
	for name := range known {
		sections = append(sections, name)
	}
	slices.Sort(sections)
	for _, t := range r.tree.order {
		keys, ok := known[t.path]
		if !ok {
			r.fail(t.line, t.path, "there is no such section%s", Nearest(t.path, sections))
			continue
		}
		for _, k := range t.keys {
			if !slices.Contains(keys, k) {
				candidates := keys
				if t.path == "" {
					candidates = sections
				}
				r.fail(t.values[k].line, join(t.path, k), "there is no such key%s", Nearest(k, candidates))
			}
		}
	}
}
