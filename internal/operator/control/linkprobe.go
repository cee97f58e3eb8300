package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/probe"
)

// LinkProbeOrder is the body of POST /probe: measure the link to a peer with so many octets in both directions. The answer is
// the LinkProbe that has begun.
type LinkProbeOrder struct {
	Peer   uint16 `json:"peer"`           // id of a [[link.peer]]
	Link   string `json:"link,omitempty"` // the bearer to measure; "": the first
	Budget int    `json:"budget_octets"`
}

// LinkProbe is the answer of GET /probe about the last link probe; it has the datagrams once the probe is done.
type LinkProbe struct {
	api.LinkProbeStatus
	Packets []probe.Packet `json:"packets,omitempty"`
}

// linkProbe gives the gateway the order, and waits until its status shows the probe.
func (s Source) linkProbe(ctx context.Context, order LinkProbeOrder) (any, error) {
	ref := rand.Uint64() | 1
	s.Order(gateway.LinkProbeOrder{Ref: ref, Peer: order.Peer, Bearer: order.Link, Budget: order.Budget})
	var got *api.LinkProbeStatus
	err := Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got = now.Gateway.LinkProbe
		if err == nil && got != nil && got.Ref != ref && got.State == api.LinkProbeRuns {
			return false, Refusal{http.StatusConflict, fmt.Sprintf("a link probe to %s runs", got.Peer)}
		}
		return got != nil && got.Ref == ref, err
	})
	if err == nil && got.State == api.LinkProbeRefused {
		err = Refusal{http.StatusConflict, got.Text}
	}
	if err != nil {
		return nil, err
	}
	return LinkProbe{LinkProbeStatus: *got}, nil
}

// lastLinkProbe answers GET /probe with the last link probe.
func (s Source) lastLinkProbe(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	now, err := s.Snapshot(ctx)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case now.Gateway.LinkProbe == nil:
		http.Error(w, "no link probe was ordered since the gateway's start", http.StatusNotFound)
	default:
		answer(w, LinkProbe{*now.Gateway.LinkProbe, now.Gateway.LinkProbe.Packets})
	}
}
