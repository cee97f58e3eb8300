package gateway

import (
	"fmt"

	"aldis/internal/gateway/mail"
	"aldis/internal/link/compact"
)

// coders code and read texts: plain by the model that is built in, net also by what the net has taught. docs/decisions/corpus.md.
type coders struct{ plain, net compact.Coder }

// to is the coder of what goes to these peers: by the net's corpus where all have said that they have it.
func (c *coders) to(peers ...*mail.Peer) *compact.Coder {
	own := c.net.Net.Name()
	if own == 0 || len(peers) == 0 {
		return &c.plain
	}
	for _, p := range peers {
		if p.Met.Corpus != own {
			return &c.plain
		}
	}
	return &c.net
}

// of is the coder that reads what a peer has sent. A peer that has said that it has another corpus, or none, codes nothing by ours.
func (c *coders) of(p *mail.Peer) *compact.Coder {
	own := c.net.Net.Name()
	if own == 0 || p.Met.Placed && p.Met.Corpus != own {
		return &c.plain
	}
	return &c.net
}

// differs says that a peer has now said that it has another corpus than this node, or none.
func (c *coders) differs(p *mail.Peer, corpus uint32) bool {
	own := c.net.Net.Name()
	return own != 0 && corpus != own && (corpus != p.Met.Corpus || !p.Met.Placed)
}

// corpusName is the name of a net's corpus as operators see it; empty: there is none.
func corpusName(name uint32) string {
	if name == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", name)
}

// work is what both have done.
func (c *coders) work() uint64 { return c.plain.Work() + c.net.Work() }
