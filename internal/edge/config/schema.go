package config

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"aldis/internal/link/compact"
	"aldis/internal/link/roster"
	"aldis/internal/rules/calendar"
)

// oldNames maps the names of sections and keys in earlier versions to the present ones: "link.old": "link.new", "section":
// "other". A rename needs the new name in the schema and one line here.
var oldNames = map[string]string{
	"message.supersede":         "message.last_value",
	"message.supersede_pattern": "message.last_value_pattern",
}

// part is a section of the schema.
type part struct {
	name  string
	title string // for docs/configure.md
	doc   string // text before its keys in docs/configure.md
	keys  []key  // those of a [[section]] are bound to a value that nobody reads
	rules any    // the slice of a [[section]]; nil: it is a [section]
	most  int    // the most sections of a [[section]]
	live  bool   // a reload applies changed rules
}

// schema lists every section and key in the order of docs/configure.md, bound to the values of c. Parts of it are in filter.go,
// message.go, tak.go and meet.go.
func schema(c *Config) []part {
	return []part{
		{name: "node", title: "this gateway", keys: nodeKeys(&c.Node)},
		{name: "lan", title: "towards the JXTA peers", keys: lanKeys(&c.LAN),
			doc: "`tcp` or `http` is required where neither `[tak]` nor `[xmpp]` is."},
		{name: "link", title: "towards the other gateways", keys: linkKeys(&c.Link)},
		{name: "link.peer", title: "each other gateway", keys: peerKeys(&Peer{}), rules: c.Link.Peers, live: true},
		{name: "silence", title: "when nothing is transmitted", keys: silenceKeys(&calendar.Window{}),
			rules: c.Silences, most: 100, live: true, doc: "Times are UTC."},
		{name: "delivery", title: "far messages for local peers that are away", keys: deliveryKeys(&c.Delivery)},
		{name: "compact", title: "the network's own corpus", keys: corpusKeys(&c.Corpus)},
		{name: "compact.rule", title: "how elements are compressed", keys: compactKeys(&compact.Rule{}), rules: c.Rules, live: true},
		groupPart(c), viewPart(c), fleetPart(c), filterPart(c), messagePart(c), routePart(c),
		takPart(c), takRulePart(c), takBringPart(c), takWantPart(c), meetPart(c),
		xmppPart(c), xmppSitePart(c), xmppRulePart(c),
		sitePart(c), clusterPart(c),
		{name: "http", title: "page, status and metrics", keys: httpKeys(&c.HTTP)},
		{name: "control", title: "orders", keys: controlKeys(&c.Control)},
		{name: "traces", title: "traces of messages", keys: []key{
			{"otlp", parsed(&c.Traces.OTLP, "%[1]v", collector).required(), "OTLP collector, by address: `http://127.0.0.1:4318/v1/traces`"},
		}},
		{name: "log", title: "what is written to standard error", keys: []key{
			{"level", choice(&c.Log.Level, "info", []string{"debug", "info", "warn", "error"},
				slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError).atOnce(), "how much"},
			{"format", word(&c.Log.Format, "auto", "auto", "text", "json", "journald"), "`auto` is `text` on a terminal, else `json`; or `journald`"},
		}},
	}
}

func nodeKeys(n *Node) []key {
	return []key{
		{"id", id(&n.ID), "this gateway's number, unique in the network"},
		{"name", printable(&n.Name).required(), "for logs and status, at most 64 printable octets"},
		{"data_dir", path(&n.DataDir).required(), "directory of the journal, for this `id` alone; `run` makes it"},
		{"journal_key_file", secretPath(&n.Secret.File), "file with the secret that seals journal and audit log, on another medium; " +
			"or `\"$CREDENTIALS_DIRECTORY/NAME\"` of systemd ([more](install.md#a-disk-that-may-be-stolen))"},
		{"journal_passphrase", boolean(&n.Secret.Ask),
			"with `true` the gateway reads the secret at each start, from the terminal or the first line of standard input; not with `--keep-socket`"},
		{"relay", boolean(&n.Relay), "with `true` the gateway passes on messages between other gateways ([more](#relays))"},
		{"silent", boolean(&n.Silent), "with `true` the gateway never transmits (EMCON); no order ends that"},
	}
}

func lanKeys(l *LAN) []key {
	const dialled = "must be the one address that JXTA peers dial and are told; %s names none"
	return []key{
		{"tcp", reached(&l.TCP, dialled).listens(),
			"the address of this machine that JXTA peers dial and are told, such as `10.20.0.1:9701`"},
		{"http", reached(&l.HTTP, dialled).listens(), "the same for HTTP polling, on its own port"},
		{"max_connections", whole(&l.MaxConnections, 4096, 4, 20_000), "connections of all peers; one host may have a quarter"},
		{"max_away_per_address", whole(&l.MaxAway, 64, 1, 4096), "peers of one address with a lease and no connection; " +
			"one more replaces the peer longest away"},
		{"multicast", slot{to: &l.Multicast, read: func(s section, key string) {
			var on bool
			boolean(&on).read(s, key)
			if on {
				l.Multicast = JXTAGroup
			}
		}}, "`true` listens to JXTA's multicast on the interface of `tcp` or `http`"},
		{"multicast_group", slot{absent: JXTAGroup.String(), quoted: true, read: func(s section, key string) {
			var group netip.AddrPort
			multicast(&group, group).read(s, key)
			if group.IsValid() && l.Multicast.IsValid() {
				l.Multicast = group
			}
		}}, "multicast group and port"},
		{"view", viewOfPeers(&l.View).atOnce(),
			"what other sites are told of the peers here: `complete`, each that comes; `ring`, `random(k)`, `tree(v)`, each that comes, but only some sites; " +
				"`ask`, one whose name somebody there looks for; `count`, their number; `site`, whether there are any; `blind`, nothing. Several with `+` between them. " +
				"`bearer` is `ask` for a site that is reached over a link below 64 kbit/s or while `node.silent` is set, and `complete` for another. " +
				"In each, one whose id somebody there looks for ([more](groups.md#views-of-peers))"},
	}
}

func linkKeys(l *Link) []key {
	file := l.Profile
	file.Tariff, file.Summary = "", ""
	return []key{
		{"name", printable(&l.Name), "of several `[[link]]` each needs a name, the same at both ends ([more](#several-bearers))"},
		{"price", amount(&l.Price), "what 1,000 octets cost, in any unit; default: 1 where the profile's tariff is `octets`, else 0. Messages take the cheapest bearer on which they are in time"},
		{"octets_per_day", whole(&l.Octets, 0, 1000, math.MaxInt64), "IP octets that the link may carry in a day (UTC), sent and received; then this gateway is silent there until the day ends. Default: any"},
		{"money_per_day", amount(&l.Money), "the same bound in the unit of `price`"},
		{"profile", text(&l.ProfileName).required(), "name of a profile (`gateway profiles`) or a profile file; the same at both ends"},
		{"link.profile (its tariff)", derived(&l.Profile.Tariff).atOnce(), ""}, {"link.profile (its file)", derived(&file).secret(), ""},
		{"over", choice(&l.TLS, "udp", []string{"udp", "tls"}, false, true), "`tls`: the same datagrams over one TLS connection with each peer ([more](install.md#a-site-whose-firewall-lets-only-443-out))"},
		{"listen", address(&l.Listen), "UDP address on the link, required; over TLS the TCP address that peers dial, where any does"},
		{"proxy", reached(&l.Proxy, "must be the proxy's address; %s names none"), "over TLS: HTTP proxy that is asked to CONNECT to the peers' addresses, such as `10.0.0.8:3128`"},
		{"modem", path(&l.Modem), "unix socket on which the modem may say whether it is up, its rate and its queue ([protocol](modem.md)); for root, the gateway's user and `control.group`"},
		{"key_file", path(&l.KeyFile), "the key that all gateways share, from `gateway keys new`; `roster`, `node_key` and `authority` instead give each node its own"},
		{"the key of link.key_file", derived(&l.Key).secret(), ""},
		{"roster", path(&l.Trust.RosterFile), "file with all nodes and their keys, from `gateway keys roster`"},
		{"the roster of link.roster", derived(&l.Trust.Roster).secret(), ""},
		{"node_key", path(&l.Trust.NodeKeyFile), "this node's key, from `gateway keys node new`"},
		{"the key of link.node_key", derived(&l.Trust.Own).secret(), ""},
		{"authority", parsed(&l.Trust.Authority, "%[1]v: gateway keys authority show prints it", roster.ParseAuthorityPublic).secret(),
			"public key of the roster's signer, `\"aldis-authority:…\"`"},
		{"end", choice(&l.Shore, "terminal", []string{"terminal", "shore"}, false, true),
			"`terminal` sends at the profile's up rate, `shore` to each terminal at its down rate"},
		{"keepalive", duration(&l.Keepalive, 0, time.Second, 24*time.Hour).atOnce(),
			"after this time without a datagram to a peer the gateway sends one; `check` says what that costs"},
		{"direct", whole(&l.Direct, DefaultDirect, 0, 64),
			"with `keepalive`, over UDP, on a channel that nobody shares: at most so many direct sessions with peers that are reached over relays alone ([more](#direct-sessions)); 0: none"},
		{"group", multicast(&l.Group, netip.AddrPort{}),
			"IPv4 multicast address, for profiles with P_Mul. Without it every peer gets a copy"},
		{"group_interface", text(&l.GroupIface), "interface of `group`; default: that of the route to a peer"},
	}
}

func peerKeys(p *Peer) []key {
	return []key{
		{"id", id(&p.ID), "its `node.id`"},
		{"name", printable(&p.Name), "default: the name in the roster, or `node-ID`"},
		{"address", reached(&p.Address, "must be the peer's address; %s names none (leave the key out to learn it from the peer)"),
			"its UDP address, used first and when a learned one does not answer; default: learned from its first authentic datagram. Over TLS this gateway dials it, and a peer without an address dials this gateway"},
		{"end", choice(&p.Shore, "terminal", []string{"terminal", "shore"}, false, true),
			"`shore` at a terminal of a star: at a start this gateway greets only that peer, and terminals that it has met before"},
		{"via", text(&p.Via), "names or ids of peers that pass on what is for this one when it does not answer itself, the first of them that does: `\"hq, 3\"` ([more](#relays))"},
	}
}

func silenceKeys(w *calendar.Window) []key {
	days := parsed(&w.Days, "%[1]v", calendar.ParseDays)
	days.preset = func() { w.Days, _ = calendar.ParseDays("") }
	return []key{
		{"from", moment(&w.From, &w.Begins), ""},
		{"to", moment(&w.To, &w.Ends), "two times of day, `\"22:00\"`, or dates, `\"2026-12-01T22:00:00Z\"` or `\"012200ZDEC26\"`"},
		{"days", days.usually("every day"), "days on which a window begins: `\"mon-fri\"`, `\"sat, sun\"`"},
		{"announce", boolean(&w.Announce), "`true` tells the far gateways in one last datagram"},
		{"link", printable(&w.Link), "name of the one `[[link]]` that is silent; default: all"},
	}
}

// readSilences reads the windows in which nothing is transmitted.
func (r *reader) readSilences() {
	r.cfg.Silences = readRules(r, "silence", silenceKeys, func(s section, w *calendar.Window) {
		switch {
		case s.wrong("from", "to"):
		case w.Link != "" && !slices.ContainsFunc(r.cfg.Bearers(), func(l Link) bool { return l.Name == w.Link }):
			s.fail("link", "no [[link]] has the name %q", w.Link)
		case w.Begins.IsZero() != w.Ends.IsZero():
			s.fail("to", "from and to must both be times of day, or both dates")
		case !w.Begins.IsZero() && !w.Ends.After(w.Begins):
			s.fail("to", "is not after from")
		case !w.Begins.IsZero() && s.has("days"):
			s.fail("days", "is of no use with dates")
		}
	})
}

// moment is a time of day or a date.
func moment(clock *time.Duration, date *time.Time) slot {
	return parsed(clock, "%v, is %q", func(text string) (at time.Duration, err error) {
		at, *date, err = calendar.ParseTime(text)
		return at, err
	}).required()
}

func deliveryKeys(d *Delivery) []key {
	return []key{
		{"wait", duration(&d.Wait, 24*time.Hour, minWait, maxWait).also(func(s section, key string) {
			if d.Wait == 0 {
				s.fail(key, "must be at least %v: messages that arrive while a peer redials would be lost", minWait)
			}
		}), "how long a message waits"},
		{"max_octets", whole(&d.MaxOctets, 64<<20, 64<<10, 16<<30), "octets that wait in all; beyond it the gateway drops the oldest of the least urgent messages"},
		{"max_octets_per_peer", whole(&d.MaxOctetsOfPeer, 0, 16<<10, 16<<30).usually("a quarter of `max_octets`"), "octets that wait for one peer"},
	}
}

func corpusKeys(c *Corpus) []key {
	return []key{
		{"corpus", path(&c.File),
			"file from `gateway corpus build` ([how](orders.md#teach-the-gateway-your-formats)); takes 11 MB of memory"},
		{"the corpus of compact.corpus", derived(&c.CorpusFile).secret(), ""},
		{"corpus_from", list(&c.From, func(s section, key, text string) { c.From = append(c.From, s.r.site(s, key, text)) }).secret(),
			"peers whose corpus the gateway uses from its next start on without an operator's order: `\"hq, 3\"`"},
		{"corpus_refuse", boolean(&c.Refuse), "with `true` the gateway keeps no corpus of a peer"},
	}
}

func compactKeys(r *compact.Rule) []key {
	pattern := func(to *string) slot {
		return text(to).also(func(s section, key string) {
			if err := compact.CheckRule(compact.Rule{Type: *to}); err != nil {
				s.fail(key, "%q is no pattern: %v", *to, err)
			}
		})
	}
	return []key{
		{"type", pattern(&r.Type), ""}, {"name", pattern(&r.Name), "patterns of an element's MIME type (`\"image/*\"`) and name"},
		{"octets", whole(&r.Octets, 0, 0, 1<<30), "the least size of an element"},
		{"effort", choice(&r.Effort, "full", []string{"full", "light", "none"}, compact.Full, compact.Light, compact.None),
			"`full` tries every method, `light` only deflate, `none` does not compress"},
	}
}

func httpKeys(h *HTTP) []key {
	name := func(s section, key, name string) {
		if strings.ContainsAny(name, " :/") {
			s.fail(key, "%q is no host name; several have a comma between them", name)
			return
		}
		h.Names = append(h.Names, name)
	}
	return []key{
		{"listen", address(&h.Listen).listens(),
			"where page, `/status`, `/metrics`, `/healthz` and the like answer, without a password: bind it to loopback"},
		{"names", list(&h.Names, name).atOnce(), "its host names besides `localhost`: `\"ship.example, aldis\"`"},
		{"token_file", path(&h.TokenFile).atOnce(),
			"file of mode 0600; its first line is the token of 16 octets or more that orders over `listen` must carry"},
		{"the token of http.token_file", derived(&h.Token).secret().atOnce(), ""},
	}
}

func controlKeys(c *Control) []key {
	return []key{
		{"socket", path(&c.Socket).usually("`control.sock` in `data_dir`"), "unix socket for orders of root and the gateway's user"},
		{"group", text(&c.Group), "a group whose members may order too"},
		{"the number of control.group", derived(&c.GID), ""},
	}
}

// arrays are the sections that are written with two brackets.
var arrays = func() map[string]bool {
	all := map[string]bool{}
	for _, p := range schema(&Config{}) {
		all[p.name] = p.rules != nil
	}
	return all
}()

// isArray says whether a section is written with two brackets, also under an old name.
func isArray(path string) bool {
	if now, old := oldNames[path]; old {
		path = now
	}
	return arrays[path]
}

func (r *reader) section(name string) section {
	return section{r, r.tree.tables[name], name, len(r.faults)}
}

// Text is c as a file, without rules, and without values that are zero or the default.
func (c *Config) Text() string {
	var b strings.Builder
	write := func(heading string, keys []key) {
		for _, k := range keys {
			if k.read == nil || k.to == nil || reflect.ValueOf(k.to).Elem().IsZero() || k.String() == k.absent {
				continue
			}
			value := k.String()
			if k.quoted {
				value = strconv.Quote(value)
			}
			fmt.Fprintf(&b, "%s%s = %s\n", heading, k.name, value)
			heading = ""
		}
	}
	for _, p := range schema(c) {
		if p.rules == nil {
			write("\n["+p.name+"]\n", p.keys)
		}
		for i := range c.Link.Peers {
			if p.name == "link.peer" {
				write("\n[["+p.name+"]]\n", peerKeys(&c.Link.Peers[i]))
			}
		}
	}
	return b.String()
}

// fill reads the keys of a [section], or only some of them, into the configuration.
func (r *reader) fill(name string, only ...string) section {
	s := r.section(name)
	for _, p := range r.parts {
		if p.name == name {
			s.fill(p.keys, only...)
		}
	}
	return s
}

func (s section) fill(keys []key, only ...string) {
	for _, k := range keys {
		if k.read == nil || only != nil && !slices.Contains(only, k.name) {
			continue
		}
		if k.preset != nil {
			k.preset()
		}
		if s.has(k.name) {
			k.read(s, k.name)
		} else if k.must {
			s.missing(k.name, k.lack)
		}
	}
}

// readRules reads all [[sections]] of a name. keys binds the keys of one section; check, which may be nil, checks it.
func readRules[T any](r *reader, name string, keys func(*T) []key, check func(section, *T)) (list []T) {
	most := 0
	for _, p := range r.parts {
		if p.name == name {
			most = p.most
		}
	}
	for i, t := range r.tree.arrays[name] {
		if most > 0 && i == most {
			r.fail(t.line, name, "there are more than %d of them", most)
			break
		}
		var rule T
		if line := reflect.ValueOf(&rule).Elem().FieldByName("Line"); line.IsValid() {
			line.SetInt(int64(t.line))
		}
		s := section{r, t, name, len(r.faults)}
		s.fill(keys(&rule))
		if check != nil {
			check(s, &rule)
		}
		list = append(list, rule)
	}
	return list
}
