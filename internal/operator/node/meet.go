package node

import (
	"crypto/sha256"

	"aldis/internal/adapters/interop"
	"aldis/internal/edge/config"
	"aldis/internal/gateway"
	"aldis/internal/jxta"
	"aldis/internal/site"
)

// meeting is the place where the adapters of a running gateway meet; empty if no rule joins them.
type meeting struct{ made *interop.Meeting }

// maker returns the function for gateway.Config; self is the gateway's own JXTA peer.
func (m *meeting) maker(c *config.Config, self string) func([]site.Memory) (gateway.Meeting, error) {
	if len(c.TAK.Meets) == 0 {
		return nil
	}
	return func(memories []site.Memory) (gateway.Meeting, error) {
		made, err := interop.New(interop.Config{Rules: c.TAK.Meets, Peer: TAKPeer(self), Name: c.Node.Name + " TAK"}, memories)
		m.made = made
		return made, err
	}
}

// TAKPeer is the JXTA peer that speaks for TAK devices: the same at each start.
func TAKPeer(self string) string {
	sum := sha256.Sum256([]byte("meet " + self))
	return jxta.IDParts{Kind: jxta.KindPeer, Group: jxta.WorldUUID, UUID: [16]byte(sum[:16])}.Unique()
}

func (m *meeting) metrics() []site.Metric {
	if m.made == nil {
		return nil
	}
	return m.made.Metrics()
}
