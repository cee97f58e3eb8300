package node

import (
	"aldis/internal/adapters/xmpp"
	"aldis/internal/edge/config"
	"aldis/internal/edge/lan/xmpplan"
	"aldis/internal/gateway"
	"aldis/internal/site"
)

// xmppSide is the XMPP adapter of a running gateway and its LAN room; empty where the configuration has none.
type xmppSide struct {
	adapter *xmpp.Adapter
	lan     *xmpplan.LAN
}

// XMPPConfig is what the adapter is made of.
func XMPPConfig(c *config.Config) xmpp.Config {
	x := xmpp.Config{ID: c.Node.ID, Domain: c.XMPP.Domain, Rooms: c.XMPP.Rooms, PubSub: c.XMPP.PubSub, Life: c.XMPP.Life, Drawn: c.XMPP.Drawn, Gone: c.XMPP.Gone, Occupants: c.XMPP.Occupants, Rules: c.XMPP.Rules}
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

func (x *xmppSide) open(n *node) {
	c := n.cfg.XMPP
	if x.adapter == nil {
		return
	}
	cfg := xmpplan.Config{Server: c.Server, Secret: c.Secret}
	for _, s := range c.Sites {
		for _, domain := range []string{s.Domain, s.Rooms, s.PubSub} {
			if domain != "" {
				cfg.Domains = append(cfg.Domains, domain)
			}
		}
	}
	x.lan = xmpplan.New(cfg, n.daemon.PostLAN(site.XMPP), n.reg, n.log)
}

// start keeps the gateway connected to the server, until close.
func (x *xmppSide) start() {
	if x.lan != nil {
		x.lan.Start()
	}
}

func (x *xmppSide) close() {
	if x.lan != nil {
		x.lan.Shutdown()
	}
}

func (x *xmppSide) metrics() []site.Metric {
	if x.adapter == nil {
		return nil
	}
	return x.adapter.Metrics()
}
