package node

import (
	"fmt"
	"net"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/edge/config"
	"aldis/internal/edge/lan/fileroom"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/gateway"
	"aldis/internal/site"
)

// xmppSide is the XMPP adapter of a running gateway and its LAN room; empty where the configuration has none.
type xmppSide struct {
	adapter *xmpp.Adapter
	lan     *xmpplan.LAN
	files   *fileroom.Room // nil: none is served
	sock    net.Listener   // of it
}

// XMPPConfig is what the adapter is made of.
func XMPPConfig(c *config.Config) xmpp.Config {
	x := xmpp.Config{ID: c.Node.ID, Domain: c.XMPP.Domain, Rooms: c.XMPP.Rooms, PubSub: c.XMPP.PubSub, Life: c.XMPP.Life, Drawn: c.XMPP.Drawn, Gone: c.XMPP.Gone, Occupants: c.XMPP.Occupants, Rules: c.XMPP.Rules}
	if c.Link.Profile.Gathers() {
		x.Gather = xmpp.GatherFor
	}
	f := c.XMPP.Files
	x.Files = xmpp.Files{Domain: f.Upload, URL: f.URL(), Most: int64(f.MostFile), Cross: int64(f.Crossing), Bring: int64(f.Bring)}
	for _, s := range c.XMPP.Sites {
		x.Sites = append(x.Sites, xmpp.Site{ID: s.Site, Domain: s.Domain, Rooms: s.Rooms, PubSub: s.PubSub})
	}
	return x
}

func (x *xmppSide) maker(c *config.Config) func([]site.Memory) (gateway.Adapter, error) {
	return func(memories []site.Memory) (gateway.Adapter, error) {
		f, err := xmpp.New(XMPPConfig(c), memories)
		x.adapter = f
		return f, err
	}
}

func (x *xmppSide) open(n *node) (err error) {
	c := n.cfg.XMPP
	if x.adapter == nil {
		return nil
	}
	cfg := xmpplan.Config{Server: c.Server, Secret: c.Secret}
	if f := c.Files; f.URL() != "" {
		cfg.Domains = append(cfg.Domains, f.Upload)
		if x.files, err = fileroom.Open(fileroom.Config{Face: fileroom.XMPP, Dir: fileroom.Dir(n.cfg.Node.DataDir, fileroom.XMPP), Key: n.journal.Key(), URL: f.URL(),
			MostFile: int64(f.MostFile), Most: int64(f.Most), Life: f.Life}, n.daemon.PostLAN(site.XMPP), n.reg, n.log); err != nil {
			return fmt.Errorf("xmpp.files: %w", err)
		}
	}
	for _, s := range c.Sites {
		for _, domain := range []string{s.Domain, s.Rooms, s.PubSub} {
			if domain != "" {
				cfg.Domains = append(cfg.Domains, domain)
			}
		}
	}
	x.lan = xmpplan.New(cfg, n.daemon.PostLAN(site.XMPP), n.reg, n.log)
	return nil
}

// do carries out an order of the adapter.
func (x *xmppSide) do(o site.Order) {
	if o, ok := o.(files.Order); ok {
		x.files.Do(o)
		return
	}
	x.lan.Do(o)
}

// start keeps the gateway connected to the server and serves files, until close; failed is told why they cannot be.
func (x *xmppSide) start(failed func(error)) {
	if x.lan != nil {
		x.lan.Start()
	}
	if x.files != nil {
		go func() {
			if err := x.files.Serve(x.sock, nil); err != nil {
				failed(err)
			}
		}()
	}
}

func (x *xmppSide) close() {
	if x.lan != nil {
		x.lan.Shutdown()
	}
	if x.files != nil {
		x.files.Shutdown()
	}
	if x.sock != nil {
		x.sock.Close()
	}
}

func (x *xmppSide) metrics() []site.Metric {
	if x.adapter == nil {
		return nil
	}
	return x.adapter.Metrics()
}
