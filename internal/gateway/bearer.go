package gateway

import (
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/link/survey"
)

// bearer is a way over the air, and what the gateway keeps of it for its operator.
type bearer struct {
	*carriage.Bearer
	billed  billed
	surveys *surveys
}

// newBearer makes the bearer that reaches these peers.
func (g *Gateway) newBearer(peers []*mail.Peer, records []api.Record) (*bearer, error) {
	made, err := carriage.New(carriage.Config{
		Common: mail.Common{
			Self: g.cfg.ID, Peers: peers, Road: g, Store: g.mail, Replica: g.replica, Coder: &g.coders.plain,
			Group: g.cfg.Group, Proofs: g.keys.ProofsMost(), Behind: g.keys.Rosters.MayLack,
		},
		Profile: g.cfg.Profile, Boot: g.cfg.Boot.Number, Shore: g.cfg.Shore, Keepalive: g.cfg.Keepalive, Rand: g.cfg.Rand,
		Lacks: g.keys.Lacks, Proven: g.keys.Proofs, Records: records, Holds: g.orders.takes,
	})
	if err != nil {
		return nil, err
	}
	b := &bearer{Bearer: made, billed: billed{Bill: g.cfg.Profile.Bill}}
	b.surveys = &surveys{b: b, road: g, quiet: g.silence.quiet, peers: func() []*peer { return g.peers },
		shore: g.cfg.Shore, boot: uint8(g.cfg.Boot.Number), far: map[uint16]*survey.Answerer{}}
	return b, nil
}
