package gateway

import (
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/probe"
)

// bearer is a way over the air, and what the gateway keeps of it for its operator.
type bearer struct {
	*carriage.Bearer
	billed     billed
	linkProbes *linkProbes
}

// newBearer makes the bearer that reaches these peers.
func (g *Gateway) newBearer(peers []*mail.Peer, records []api.Record) (*bearer, error) {
	made, err := carriage.New(carriage.Config{
		Common: mail.Common{
			Self: g.cfg.ID, Peers: peers, Services: g, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain,
			Group: g.cfg.Group, Proofs: g.keys.ProofsMost(), Behind: g.keys.Rosters.MayLack,
		},
		Profile: g.cfg.Profile, Incarnation: g.cfg.Incarnation.Number, Shore: g.cfg.Shore, Keepalive: g.cfg.Keepalive, Rand: g.cfg.Rand,
		Lacks: g.keys.Lacks, Proven: g.keys.Proofs, Records: records, Holds: g.orders.takes,
	})
	if err != nil {
		return nil, err
	}
	b := &bearer{Bearer: made, billed: billed{Bill: g.cfg.Profile.Bill}}
	b.linkProbes = &linkProbes{b: b, services: g, quiet: g.silence.quiet, peers: func() []*peer { return g.peers },
		shore: g.cfg.Shore, incarnation: uint8(g.cfg.Incarnation.Number), far: map[uint16]*probe.Answerer{}}
	return b, nil
}
