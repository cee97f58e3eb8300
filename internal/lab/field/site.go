package field

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aldis/internal/lab/fleet"
	"aldis/internal/lab/replay"
	"aldis/internal/link/profile"
)

// linkAddr is the address of the i-th site on the link, on the first one if there are several; 0 is HQ.
func linkAddr(i int) netip.Prefix { return bearerAddr(0, i) }

// bearerAddr is the address of the i-th site on a bearer.
func bearerAddr(bearer, i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(bearer), byte(i + 1)}), 24)
}

// bearer is a link as in configurations. A bearer without a name is the only one.
type bearer struct {
	fleet.Bearer // Profile is a name or path
	profile      profile.Profile
}

// port is the UDP port of the i-th site's gateway on the bearer.
func (x *bearer) port(i int) int {
	if x.Over == fleet.TLS {
		return 443
	}
	return radio + i
}

// redialAddr is the i-th site's address on a bearer after it dials in again.
func redialAddr(bearer, i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(bearer), byte(100 + i)}), 24)
}

// lanAddr is the host-th address of the LAN of the i-th site; the gateway's is host 1.
func lanAddr(i, host int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 20, byte(i), byte(host)}), 24)
}

const (
	seedPort = 9701 // of the gateway over TCP, or of the unaided rendezvous
	httpPort = 9700 // of the gateway over HTTP
	edgePort = 9702 // of a site's first peer; its next has the next port
	radio    = 7142 // of the first bearer; the next one has the next port
)

// lanSite is HQ or a ship: a namespace on the link, and with a gateway one more for each peer.
type lanSite struct {
	name     string
	index    int // node id less one
	ashore   bool
	ns       string
	gateway  *gatewayProc // nil: unaided
	http     bool         // its peers use HTTP
	peers    int          // started so far
	settings replay.Gateway
	script   fleet.Site
	play     *fleet.Script // nil: no script
	sunk     bool          // destroyed: none of its processes runs any more
	outer    string        // namespace of its links except shared channels: behind a wall, another one than ns
	keys     string        // lines of the first [[link]]
	several  *siteMachines // nil: one gateway
	// clean makes a machine with a Debian of its own and the gateway's package; nil: the gateways run on this machine.
	clean func(name, netns string) (*machine, error)
}

// seed is the only rendezvous and relay that the site's peers are given.
func (s *lanSite) seed() string {
	addr, scheme, port := linkAddr(0).Addr(), "tcp", seedPort
	if s.http {
		scheme = "http"
	}
	if s.gateway != nil {
		addr = lanAddr(s.index, 1).Addr()
		if s.http {
			port = httpPort
		}
	}
	return fmt.Sprintf("%s://%s:%d", scheme, addr, port)
}

// startPeer starts the site's next peer: behind its gateway on the LAN, or unaided straight on the link.
func (s *lanSite) startPeer(ctx context.Context, w *world, cfg PeerConfig) (*Peer, error) {
	n := s.peers
	s.peers++
	cfg.Port, cfg.HTTP = edgePort+n, s.http
	if s.gateway == nil {
		cfg.Netns, cfg.Host = s.ns, linkAddr(s.index).Addr().String()
		return StartPeer(ctx, cfg)
	}
	ns, err := w.add(fmt.Sprintf("%s-p%d", s.name, n+1))
	if err != nil {
		return nil, err
	}
	addr := lanAddr(s.index, 11+n)
	if err := plug(s.ns, ns, fmt.Sprintf("p%d", n+1), addr); err != nil {
		return nil, err
	}
	cfg.Netns, cfg.Host = ns, addr.Addr().String()
	return StartPeer(ctx, cfg)
}

// without returns all sites except one.
func without(all []*lanSite, s *lanSite) []*lanSite {
	return slices.DeleteFunc(slices.Clone(all), func(o *lanSite) bool { return o == s })
}

// outfit gives the site a LAN, a data directory and a gateway's configuration, which names the other sites.
func (s *lanSite) outfit(others []*lanSite, bearers []bearer, binary, dir string) error {
	if s.several != nil {
		return s.outfitSeveral(others, bearers, binary, dir)
	}
	if err := lan(s.ns, lanAddr(s.index, 1)); err != nil {
		return err
	}
	g, err := s.configured(others, bearers, binary, dir, s.ns, 1)
	s.gateway = g
	return err
}

// configured gives a gateway of the site a data directory and a configuration; host is its address on the site's LAN.
func (s *lanSite) configured(others []*lanSite, bearers []bearer, binary, dir, ns string, host int) (*gatewayProc, error) {
	name := s.name
	if host > 1 {
		name = fmt.Sprintf("%s-%d", s.name, host)
	}
	g := &gatewayProc{name: name, binary: binary, netns: ns, config: filepath.Join(dir, name+".toml"), logFile: filepath.Join(dir, name+"-gateway.log")}
	data := filepath.Join(dir, name+"-data")
	var err error
	if s.clean != nil {
		if g.machine, err = s.clean(name, ns); err != nil {
			return nil, err
		}
		data = "/var/lib/aldis"
	} else {
		_ = os.RemoveAll(data) // empty caches
		if err := os.Mkdir(data, 0o700); err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[node]\nid = %d\nname = %q\ndata_dir = %q\n", s.index+1, s.name, data)
	if s.script.Relay {
		b.WriteString("relay = true\n")
	}
	at := lanAddr(s.index, host).Addr()
	fmt.Fprintf(&b, "\n[lan]\ntcp = \"%s:%d\"\n", at, seedPort)
	if s.http {
		fmt.Fprintf(&b, "http = \"%s:%d\"\n", at, httpPort)
	}
	s.groups(&b)
	first := true // the first bearer has the keys, and names all sites
	for i, x := range bearers {
		if x.Has(s.name) {
			s.link(&b, others, i, x, first)
			first = false
		}
	}
	b.WriteString(rulesTOML(s.settings, others))
	fmt.Fprintf(&b, "\n[http]\nlisten = %q\n", gatewayHTTP)
	g.lan = fmt.Sprintf("%s:%d", at, seedPort)
	text := b.String()
	if g.machine != nil {
		text = g.machine.adopts(g.config, text)
	}
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return g, nil
}

// groups writes the lines of the configuration on views and groups, after [lan].
func (s *lanSite) groups(b *strings.Builder) {
	if s.play == nil {
		return
	}
	if s.play.View != "" {
		fmt.Fprintf(b, "view = %q\n", s.play.View)
	}
	for _, g := range s.play.Groups {
		if !g.Has(s.name) {
			continue
		}
		fmt.Fprintf(b, "\n[[group]]\nname = %q\n", g.Name)
		if g.Lifetime.Duration > 0 {
			fmt.Fprintf(b, "lifetime = %q\n", g.Lifetime)
		}
	}
	if s.play.Beyond == fleet.InGroups {
		for _, far := range s.play.Far(s.name) {
			fmt.Fprintf(b, "\n[[filter]]\nsite = %q\ndirection = \"out\"\naction = \"local\"\n", far)
		}
	}
	if g := s.play.GroupOf(s.name); g != nil {
		for _, about := range []string{fmt.Sprintf("pipe = %q", roomPipe(s.pipe())), `element = "b-t-f"`} { // for JXTA, and for chat of TAK
			fmt.Fprintf(b, "\n[[message]]\n%s\nopen = %q\n", about, g.Name)
		}
	}
}

// link writes the lines of the configuration on the i-th bearer.
func (s *lanSite) link(b *strings.Builder, others []*lanSite, i int, x bearer, first bool) {
	if x.Name == "" {
		fmt.Fprintf(b, "\n[link]\n")
	} else {
		fmt.Fprintf(b, "\n[[link]]\nname = %q\nprice = %g\n", x.Name, x.Price)
	}
	fmt.Fprintf(b, "profile = %q\n", x.Profile)
	if x.Over != "" {
		fmt.Fprintf(b, "over = %q\n", x.Over)
	}
	if x.Over == "" || !s.script.Behind() {
		fmt.Fprintf(b, "listen = \"0.0.0.0:%d\"\n", x.port(i))
	}
	if first {
		b.WriteString(s.keys)
	}
	if x.profile.Shared && x.profile.Transport == profile.PMul {
		fmt.Fprintf(b, "group = \"239.1.1.%d:%d\"\ngroup_interface = \"link%d\"\n", i+1, radio+i, i)
	}
	if s.ashore && !x.profile.Shared {
		fmt.Fprintf(b, "end = \"shore\"\n")
	}
	if keepalive := max(s.settings.Keepalive, x.Keepalive.Duration); keepalive > 0 {
		fmt.Fprintf(b, "keepalive = %q\n", keepalive)
	}
	if x.Direct != nil {
		fmt.Fprintf(b, "direct = %d\n", *x.Direct)
	}
	for _, o := range others {
		behind := o.script.Behind() && !x.profile.Shared
		meet := x.Has(o.name) && !(behind && s.script.Behind())
		if !first && !meet {
			continue
		}
		fmt.Fprintf(b, "\n[[link.peer]]\nid = %d\nname = %q\n", o.index+1, o.name)
		if meet && !behind {
			fmt.Fprintf(b, "address = \"%s:%d\"\n", bearerAddr(i, o.index).Addr(), x.port(i))
		}
		if first && s.play != nil {
			if via := s.play.Ways(s.name, o.name); len(via) > 0 {
				fmt.Fprintf(b, "via = %q\n", strings.Join(via, ", "))
			}
		}
	}
}
