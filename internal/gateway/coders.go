package gateway

import (
	"fmt"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
)

// coders code and read texts: plain with the built-in model, network also with the network's own corpus. docs/decisions/corpus.md.
type coders struct{ plain, network compact.Coder }

// to is the coder of messages to these peers: that of the network's corpus if all have said that they have it.
func (c *coders) to(peers ...*mail.Peer) *compact.Coder {
	own := c.network.Network.Name()
	if own == 0 || len(peers) == 0 {
		return &c.plain
	}
	for _, p := range peers {
		if p.Handshake.Corpus != own {
			return &c.plain
		}
	}
	return &c.network
}

// of is the coder that reads messages of a peer. A peer that has said that it has another corpus, or none, codes nothing with ours.
func (c *coders) of(p *mail.Peer) *compact.Coder {
	own := c.network.Network.Name()
	if own == 0 || p.Handshake.Placed && p.Handshake.Corpus != own {
		return &c.plain
	}
	return &c.network
}

// differs says that a peer has now said that it has another corpus than this node, or none.
func (c *coders) differs(p *mail.Peer, corpus uint32) bool {
	own := c.network.Network.Name()
	return own != 0 && corpus != own && (corpus != p.Handshake.Corpus || !p.Handshake.Placed)
}

// corpusName is the name of a network's corpus as operators see it; empty: there is none.
func corpusName(name uint32) string {
	if name == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", name)
}

// work is the work of both coders.
func (c *coders) work() uint64 { return c.plain.Work() + c.network.Work() }
