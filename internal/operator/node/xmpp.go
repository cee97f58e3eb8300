package node

import (
	"fmt"
	"net"

	"aldis/internal/adapters/xmpp"
	"aldis/internal/adapters/xmpp/server"
	"aldis/internal/edge/config"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/gateway"
	"aldis/internal/site"
)

// xmppSide is the XMPP adapter of a running gateway and its LAN room; empty where the configuration has none.
type xmppSide struct {
	adapter        *xmpp.Adapter
	lan            *xmpplan.LAN
	accounts       server.Accounts
	sock, tls, web net.Listener // where clients connect; nil: not there
}

// XMPPConfig is what the adapter is made of.
func XMPPConfig(c *config.Config) xmpp.Config {
	x := xmpp.Config{ID: c.Node.ID, Domain: c.XMPP.Domain, Rooms: c.XMPP.Rooms, Life: c.XMPP.Life, Drawn: c.XMPP.Drawn, Gone: c.XMPP.Gone, Occupants: c.XMPP.Occupants, Rules: c.XMPP.Rules, Own: c.XMPP.Own()}
	for _, s := range c.XMPP.Sites {
		x.Sites = append(x.Sites, xmpp.Site{ID: s.Site, Domain: s.Domain, Rooms: s.Rooms})
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

func (x *xmppSide) open(n *node) error {
	c := n.cfg.XMPP
	if x.adapter == nil {
		return nil
	}
	cfg := xmpplan.Config{Server: c.Server, Secret: c.Secret}
	if c.Own() {
		keys, err := c.ServerTLS()
		if err != nil {
			return fmt.Errorf("xmpp.tls_keys: %w", err)
		}
		cfg.Clients = &xmpplan.Clients{Domain: c.Domain, Keys: keys, File: c.UsersFile, Accounts: x.accounts}
		c.Sites = nil
	}
	for _, s := range c.Sites {
		cfg.Domains = append(cfg.Domains, s.Domain)
		if s.Rooms != "" {
			cfg.Domains = append(cfg.Domains, s.Rooms)
		}
	}
	x.lan = xmpplan.New(cfg, n.daemon.PostLAN(site.XMPP), n.reg, n.log)
	return nil
}

// start keeps the gateway connected to the server, or serves clients by serve, until close.
func (x *xmppSide) start(serve func(net.Listener, func(net.Listener) error)) {
	if x.lan == nil {
		return
	}
	x.lan.Start()
	serve(x.sock, func(ln net.Listener) error { return x.lan.ServeClients(ln, false) })
	serve(x.tls, func(ln net.Listener) error { return x.lan.ServeClients(ln, true) })
	serve(x.web, x.lan.ServeWeb)
}

func (x *xmppSide) close() {
	if x.lan != nil {
		x.lan.Shutdown()
	}
	for _, ln := range []net.Listener{x.sock, x.tls, x.web} {
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
