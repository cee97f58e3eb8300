package control

import (
	"context"
	"fmt"
	"net/http"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
)

// ForgetOrder is the body of POST /peers/forget. The answer is the api.PeerStatus afterwards.
type ForgetOrder struct {
	Peer     uint16 `json:"peer"`                // id of a [[link.peer]]
	AnyStart bool   `json:"any_start,omitempty"` // its next start may have any number
}

// forget gives the gateway the order, and waits until its status shows it.
func (s Source) forget(ctx context.Context, order ForgetOrder) (any, error) {
	before, err := s.peer(ctx, order.Peer)
	if err != nil {
		return nil, err
	}
	if before.Forgotten == gateway.ForgetMost {
		return nil, Refusal{http.StatusConflict, fmt.Sprintf("peer %d was forgotten %d times since the gateway's start: restart it first", order.Peer, before.Forgotten)}
	}
	s.Order(api.Forget{Peer: order.Peer, AnyStart: order.AnyStart})
	var now api.PeerStatus
	err = Obeyed(ctx, func() (_ bool, err error) {
		now, err = s.peer(ctx, order.Peer)
		return now.Forgotten > before.Forgotten, err
	})
	return now, err
}

// peer is the status of a peer.
func (s Source) peer(ctx context.Context, id uint16) (api.PeerStatus, error) {
	now, err := s.Snapshot(ctx)
	if err != nil {
		return api.PeerStatus{}, err
	}
	for _, p := range now.Gateway.Peers {
		if p.ID == id {
			return p, nil
		}
	}
	return api.PeerStatus{}, Refusal{http.StatusNotFound, fmt.Sprintf("no [[link.peer]] has the id %d", id)}
}
