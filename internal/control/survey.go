package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/survey"
)

// SurveyOrder is the body of POST /survey: measure the link to a peer with so many octets of both directions. The answer is
// the Survey that has begun.
type SurveyOrder struct {
	Peer   uint16 `json:"peer"` // id of a [[link.peer]]
	Budget int    `json:"budget_octets"`
}

// Survey is what GET /survey says of the last one: with its datagrams when it is done.
type Survey struct {
	api.SurveyStatus
	Packets []survey.Packet `json:"packets,omitempty"`
}

// survey gives the gateway the order, and waits until its status shows that.
func (s Source) survey(ctx context.Context, order SurveyOrder) (any, error) {
	ref := rand.Uint64() | 1
	s.Order(gateway.SurveyOrder{Ref: ref, Peer: order.Peer, Budget: order.Budget})
	var got *api.SurveyStatus
	err := Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got = now.Gateway.Survey
		if err == nil && got != nil && got.Ref != ref && got.State == api.SurveyRuns {
			return false, Refusal{http.StatusConflict, fmt.Sprintf("a survey of the link to %s runs", got.Peer)}
		}
		return got != nil && got.Ref == ref, err
	})
	if err == nil && got.State == api.SurveyRefused {
		err = Refusal{http.StatusConflict, got.Text}
	}
	if err != nil {
		return nil, err
	}
	return Survey{SurveyStatus: *got}, nil
}

// lastSurvey answers what became of the last survey.
func (s Source) lastSurvey(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	now, err := s.Snapshot(ctx)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case now.Gateway.Survey == nil:
		http.Error(w, "no survey was ordered since the gateway's start", http.StatusNotFound)
	default:
		answer(w, Survey{*now.Gateway.Survey, now.Gateway.Survey.Packets})
	}
}
