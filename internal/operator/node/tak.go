package node

import (
	"aldis/internal/adapters/files"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"aldis/internal/adapters/tak"
	"aldis/internal/edge/config"
	"aldis/internal/edge/lan/fileroom"
	"aldis/internal/edge/lan/taklan"
	"aldis/internal/gateway"
	"aldis/internal/link/profile"
	"aldis/internal/link/roster"
	"aldis/internal/operator/cli"
	"aldis/internal/site"
)

// takSide is the TAK adapter of a running gateway and its LAN room; empty if the configuration has none.
type takSide struct {
	adapter   *tak.Adapter
	lan       *taklan.LAN
	files     *fileroom.Room // nil: no files are served
	sock      net.Listener   // nil: no devices over TCP
	tls       net.Listener   // nil: none over TLS
	filesSock net.Listener   // nil: not over HTTP
	filesTLS  net.Listener   // nil: none over TLS
	unicast   net.Listener   // nil: devices of the mesh cannot send events to one unit alone
	keys      *tls.Config    // of the servers over TLS
	over      *tls.Config    // towards the LAN's own server; nil: plain TCP
}

// takOverhead is the octets of a datagram on the link besides its batch: seal, frame, envelope and an acknowledgement.
const takOverhead = 40

// TAKConfig is the configuration of the adapter. enrolled are the nodes that a roster of the journal names, besides those of the
// configuration.
func TAKConfig(c *config.Config, enrolled ...roster.Node) tak.Config {
	t := c.TAK
	f := tak.Config{Mesh: t.Mesh != "", Shared: c.Link.Profile.Transport == profile.PMul, Octets: min(400, c.Link.Profile.DatagramOctets-takOverhead), Rules: t.Rules,
		Bound: float64(t.Bound), Age: t.Age, Gather: t.Gather, Gap: t.Gap, Cadence: t.Cadence, Units: t.Units}
	for i := range c.Messages {
		f.Open = f.Open || c.Messages[i].Open != ""
	}
	f.Wants, f.Twice, f.RateBps = t.Wants, c.Link.Profile.Free(), c.Link.Profile.SlowerBps()
	f.Beside = beside(c)
	if t.Unicast.IsValid() {
		f.Unicast = t.Unicast.String()
	}
	f.Files = tak.Files{URL: t.Files.URL(), Most: int64(t.Files.Crossing), Bring: t.Files.Bring}
	for _, p := range c.Link.Peers {
		f.Sites = append(f.Sites, p.ID)
	}
	for _, n := range append(c.Link.Enrolled(), enrolled...) {
		if !slices.Contains(f.Sites, n.ID) {
			f.Sites = append(f.Sites, n.ID)
		}
	}
	return f
}

func (t *takSide) maker(c *config.Config, enrolled []roster.Node) func([]site.Memory) (gateway.Adapter, error) {
	return func(memories []site.Memory) (gateway.Adapter, error) {
		cfg := TAKConfig(c, enrolled...)
		cfg.Taken = true
		f, err := tak.New(cfg, memories)
		t.adapter = f
		return f, err
	}
}

func (t *takSide) open(n *node) error {
	c := n.cfg
	if t.adapter == nil {
		return nil
	}
	bounds := taklan.Config{MaxConns: c.TAK.Conns, MaxConnsPerAddress: max(1, c.TAK.Conns/2)}
	if n.air.lead != nil {
		bounds.Passed = n.air.lead.link.Passed
	}
	if n.tak.tls != nil || t.filesTLS != nil {
		keys, err := c.TAK.ServerTLS()
		if err != nil {
			return fmt.Errorf("tak.tls_keys: %w", err)
		}
		t.keys, bounds.Verify = keys, keys.VerifyConnection
	}
	over, err := c.TAK.ClientTLS()
	if err != nil {
		return fmt.Errorf("tak.server_keys: %w", err)
	}
	t.over = over
	t.lan = taklan.New(bounds, n.daemon.PostLAN(site.TAK), n.reg, n.log)
	if n.tak.tls != nil {
		n.tak.tls = tls.NewListener(n.tak.tls, t.keys)
	}
	if f := c.TAK.Files; f.URL() != "" {
		room, err := fileroom.Open(fileroom.Config{Face: fileroom.TAK, Dir: fileroom.Dir(c.Node.DataDir, fileroom.TAK), Key: n.journal.Key(), URL: f.URL(), Version: cli.Version, MostFile: int64(f.MostFile),
			Most: int64(f.Most), Life: f.Life}, n.daemon.PostLAN(site.TAK), n.reg, n.log)
		if err != nil {
			return fmt.Errorf("tak.files: %w", err)
		}
		t.files = room
	}
	if c.TAK.Mesh == "" {
		return nil
	}
	if err := t.lan.OpenMesh(taklan.Mesh{At: netip.MustParseAddr(c.TAK.Mesh), Events: c.TAK.Events, Chats: c.TAK.Chats}); err != nil {
		return fmt.Errorf("tak.mesh: %w", err)
	}
	return nil
}

// do carries out an order of the adapter.
func (t *takSide) do(o site.Order) {
	if o, ok := o.(files.Order); ok {
		if t.files != nil {
			t.files.Do(o)
		}
		return
	}
	t.lan.Do(o)
}

// serveFiles serves data packages until close; failed gets the reason if they cannot be served.
func (t *takSide) serveFiles(failed func(error)) {
	serve := func(ln net.Listener, wrap func(net.Listener) net.Listener) {
		if ln == nil {
			return
		}
		go func() {
			if err := t.files.Serve(ln, wrap); err != nil {
				failed(err)
			}
		}()
	}
	serve(t.filesSock, nil)
	serve(t.filesTLS, func(ln net.Listener) net.Listener { return tls.NewListener(ln, t.keys) })
}

// dial keeps a stream to the LAN's own server.
func (t *takSide) dial(c *config.Config) {
	if c.TAK.Server.IsValid() {
		t.lan.Keep(c.TAK.Server, t.over)
	}
}

func (t *takSide) close() {
	if t.lan != nil {
		t.lan.Shutdown()
	}
	if t.files != nil {
		t.files.Shutdown()
	}
	for _, ln := range []net.Listener{t.filesSock, t.filesTLS, t.unicast} {
		if ln != nil {
			ln.Close()
		}
	}
}

func (t *takSide) metrics() []site.Metric {
	if t.adapter == nil {
		return nil
	}
	return t.adapter.Metrics()
}
