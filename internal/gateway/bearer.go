package gateway

import (
	"aldis/internal/gateway/api"
	"aldis/internal/gateway/carriage"
	"aldis/internal/gateway/mail"
	"aldis/internal/site"
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
			Group: g.cfg.Group, Proofs: proofsMost(&g.cfg), Behind: rollover{g}.mayLack,
		},
		Profile: g.cfg.Profile, Boot: g.cfg.Boot.Number, Shore: g.cfg.Shore, Keepalive: g.cfg.Keepalive, Rand: g.cfg.Rand,
		Lacks: forwardSecrecy{g}.lacks, Proven: g.keys.proofs, Records: records,
		Holds: func(m *site.Message) bool { return g.standing.takes(&g.faces, m) },
	})
	if err != nil {
		return nil, err
	}
	b := &bearer{Bearer: made, billed: billed{Bill: g.cfg.Profile.Bill}}
	b.surveys = newSurveys(b, g.cfg.Shore)
	return b, nil
}
