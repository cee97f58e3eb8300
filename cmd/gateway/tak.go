package main

import (
	"crypto/tls"
	"fmt"
	"net/netip"

	"aldis/internal/config"
	"aldis/internal/gateway"
	"aldis/internal/lan/taklan"
	"aldis/internal/link/profile"
	"aldis/internal/site"
	"aldis/internal/tak"
)

// takSide is the TAK face of a running gateway and its LAN room; empty where the configuration has none.
type takSide struct {
	face *tak.Face
	lan  *taklan.LAN
}

// takOverhead is what a datagram of the link has beside the batch in it: seal, frame, envelope and a receipt.
const takOverhead = 40

// takConfig is what the face is made of.
func takConfig(c *config.Config) tak.Config {
	t := c.TAK
	f := tak.Config{Mesh: t.Mesh != "", Shared: c.Link.Profile.Transport == profile.PMul, Octets: min(400, c.Link.Profile.DatagramOctets-takOverhead), Rules: t.Rules,
		Bound: float64(t.Bound), Age: t.Age, Gather: t.Gather, Gap: t.Gap, Cadence: t.Cadence, Units: t.Units}
	for _, p := range c.Link.Peers {
		f.Sites = append(f.Sites, p.ID)
	}
	return f
}

func (t *takSide) maker(c *config.Config) func([]site.Memory) (gateway.Face, error) {
	return func(memories []site.Memory) (gateway.Face, error) {
		f, err := tak.New(takConfig(c), memories)
		t.face = f
		return f, err
	}
}

func (t *takSide) open(n *node) error {
	c := n.cfg
	if t.face == nil {
		return nil
	}
	t.lan = taklan.New(taklan.Config{MaxConns: c.TAK.Conns, MaxConnsPerAddress: max(1, c.TAK.Conns/2)}, n.daemon.PostLAN(site.TAK), n.reg, n.log)
	if n.takTLS != nil {
		keys, err := c.TAK.ServerTLS()
		if err != nil {
			return fmt.Errorf("tak.tls_keys: %w", err)
		}
		n.takTLS = tls.NewListener(n.takTLS, keys)
	}
	if c.TAK.Mesh == "" {
		return nil
	}
	if err := t.lan.OpenMesh(taklan.Mesh{At: netip.MustParseAddr(c.TAK.Mesh), Events: c.TAK.Events, Chats: c.TAK.Chats}); err != nil {
		return fmt.Errorf("tak.mesh: %w", err)
	}
	return nil
}

// dial keeps a stream to the LAN's own server.
func (t *takSide) dial(c *config.Config) {
	if c.TAK.Server.IsValid() {
		t.lan.Keep(c.TAK.Server)
	}
}

func (t *takSide) close() {
	if t.lan != nil {
		t.lan.Shutdown()
	}
}

func (t *takSide) metrics() []site.Metric {
	if t.face == nil {
		return nil
	}
	return t.face.Metrics()
}

// takSummary says what check tells of [tak].
func takSummary(c *config.Config) (lines []string) {
	t := c.TAK
	if t.Listen.IsValid() {
		lines = append(lines, fmt.Sprintf("TAK devices connect to %s, at most %d", t.Listen, t.Conns))
	}
	if t.TLS.IsValid() {
		lines = append(lines, fmt.Sprintf("TAK devices with a certificate connect to %s over TLS (%s)", t.TLS, t.Keys))
	}
	if t.Server.IsValid() {
		lines = append(lines, fmt.Sprintf("client of the TAK server %s", t.Server))
	}
	if t.Mesh != "" {
		lines = append(lines, fmt.Sprintf("member of the mesh at %s: %s, chats %s", t.Mesh, t.Events, t.Chats))
	}
	if t.On() {
		lines = append(lines, fmt.Sprintf("a unit's far picture is wrong by %d m at most before it is told; %d rules", t.Bound, len(t.Rules)))
	}
	return lines
}
