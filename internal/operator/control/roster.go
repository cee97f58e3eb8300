package control

import (
	"context"
	"fmt"
	"net/http"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/roster"
)

// RosterOrder is the body of POST /roster: use a newer roster, and send it to all peers. The answer is the api.RosterStatus
// afterwards.
type RosterOrder struct {
	Roster []byte `json:"roster"` // as package roster appends it
}

func (RosterOrder) octets() int64 { return 2*roster.MaxOctets + orderOctets }

// String is the order in words, for the log.
func (o RosterOrder) String() string {
	r, err := roster.Parse(o.Roster)
	if err != nil {
		return "no roster"
	}
	return fmt.Sprintf("serial %d of the network %s, %d nodes", r.Serial, r.Network, len(r.Nodes))
}

// roster gives the gateway the order, and waits until its status shows the roster, or why it was refused.
func (s Source) roster(ctx context.Context, order RosterOrder) (any, error) {
	r, err := roster.Parse(order.Roster)
	if err != nil {
		return nil, Refusal{http.StatusBadRequest, err.Error()}
	}
	now, err := s.Snapshot(ctx)
	switch before := now.Gateway.Roster; {
	case err != nil:
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	case before == nil:
		return nil, Refusal{http.StatusConflict, "all gateways of this network share a key (link.key_file): there is no roster to roll over"}
	default:
		s.Order(gateway.NewRoster{Roster: r})
		var got *api.RosterStatus
		err = Obeyed(ctx, func() (bool, error) {
			now, err := s.Snapshot(ctx)
			got = now.Gateway.Roster
			return err == nil && (got.Serial != before.Serial || got.Refusals != before.Refusals), err
		})
		if err == nil && got.Serial < r.Serial {
			return nil, Refusal{http.StatusConflict, got.Refusal}
		}
		if err == nil && s.Durable != nil {
			err = s.Durable(ctx)
		}
		return got, err
	}
}
