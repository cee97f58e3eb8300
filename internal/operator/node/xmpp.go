package node

import (
	"fmt"
	"net"

	"aldis/internal/adapters/files"
	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/config"
	"aldis/internal/edge/lan/fileroom"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/gateway"
	"aldis/internal/site"
)

// xmppSide is the XMPP adapter of a running gateway and its LAN room; empty if the configuration has none.
type xmppSide struct {
	adapter        *xmpp.Adapter
	lan            *xmpplan.LAN
	accounts       server.Accounts
	sock, tls, web net.Listener   // where clients connect; nil: not served
	peers          net.Listener   // where the LAN's server connects
	files          *fileroom.Room // nil: no files are served
	filesSock      net.Listener   // of files
}

// XMPPConfig is the configuration of the adapter.
func XMPPConfig(c *config.Config) xmpp.Config {
	x := xmpp.Config{ID: c.Node.ID, Domain: c.XMPP.Domain, Rooms: c.XMPP.Rooms, PubSub: c.XMPP.PubSub, Nodes: c.XMPP.Nodes, Life: c.XMPP.Life, Drawn: c.XMPP.Drawn, Gone: c.XMPP.Gone, Occupants: c.XMPP.Occupants, Rules: c.XMPP.Rules, Own: c.XMPP.Own()}
	x.Suit(c.Link.Profile.Gathers())
	f := c.XMPP.Files
	x.Files = xmpp.Files{Domain: f.Upload, URL: f.URL(), Most: int64(f.MostFile), Cross: int64(f.Crossing), Bring: int64(f.Bring)}
	for _, s := range c.XMPP.Sites {
		x.Sites = append(x.Sites, xmpp.Site{ID: s.Site, Domain: s.Domain, Rooms: s.Rooms, PubSub: s.PubSub})
	}
	return x
}

func (x *xmppSide) maker(c *config.Config) func([]site.Memory) (gateway.Adapter, error) {
	return func(memories []site.Memory) (gateway.Adapter, error) {
		cfg := XMPPConfig(c)
		var err error
		if x.accounts, err = c.XMPP.Accounts(); err != nil {
			return nil, fmt.Errorf("xmpp.users: %w", err)
		}
		cfg.Users = x.accounts.Names()
		f, err := xmpp.New(cfg, memories)
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
	if c.Nodes != "" {
		cfg.Domains = append(cfg.Domains, c.Nodes)
	}
	if c.Own() {
		keys, err := c.ServerTLS()
		if err != nil {
			return fmt.Errorf("xmpp.tls_keys: %w", err)
		}
		cfg.Clients = &xmpplan.Clients{Domain: c.Domain, Keys: keys, File: c.UsersFile, Accounts: x.accounts}
		cfg.Domains = nil // no other server has them
	}
	if c.Peers() {
		keys, err := c.PeerTLS()
		if err != nil {
			return fmt.Errorf("xmpp.s2s_keys: %w", err)
		}
		cfg.Server = c.S2SServer
		cfg.Peers = &xmpplan.Peers{Domain: c.Domain, Services: c.Services(), Keys: keys, Zero: c.S2SZero, From: c.S2SFrom}
	}
	x.lan = xmpplan.New(cfg, n.daemon.PostLAN(site.XMPP), n.reg, n.log)
	return nil
}

// start keeps the gateway connected to the server, or serves clients and files through serve, until close.
func (x *xmppSide) start(serve func(net.Listener, func(net.Listener) error)) {
	if x.lan == nil {
		return
	}
	x.lan.Start()
	serve(x.sock, func(ln net.Listener) error { return x.lan.ServeClients(ln, false) })
	serve(x.tls, func(ln net.Listener) error { return x.lan.ServeClients(ln, true) })
	serve(x.web, x.lan.ServeWeb)
	serve(x.peers, x.lan.ServePeers)
	if x.files != nil {
		serve(x.filesSock, func(ln net.Listener) error { return x.files.Serve(ln, nil) })
	}
}

// do carries out an order of the adapter.
func (x *xmppSide) do(o site.Order) {
	if o, ok := o.(files.Order); ok {
		if x.files != nil { // offers of a time when files were served may end now
			x.files.Do(o)
		}
		return
	}
	x.lan.Do(o)
}

func (x *xmppSide) close() {
	if x.lan != nil {
		x.lan.Shutdown()
	}
	if x.files != nil {
		x.files.Shutdown()
	}
	for _, ln := range []net.Listener{x.sock, x.tls, x.web, x.peers, x.filesSock} {
		if ln != nil {
			ln.Close()
		}
	}
}

func (x *xmppSide) metrics() []site.Metric {
	if x.adapter == nil {
		return nil
	}
	return x.adapter.Metrics()
}
