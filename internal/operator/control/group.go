package control

import (
	"context"
	"net/http"
	"slices"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/link/entropy"
)

// GroupOrder is the body of POST /groups: join a group and the groups that contain it, or leave it. The answer is the groups that the
// gateway is in.
type GroupOrder struct {
	Name string `json:"name"`
	In   bool   `json:"in"`
	Key  bool   `json:"key,omitempty"` // with in: the group's messages are sealed for its members alone
}

// String is the order in words, for the log.
func (o GroupOrder) String() string {
	if o.In {
		return "join " + o.Name
	}
	return "leave " + o.Name
}

// GroupList is the answer to a GroupOrder.
type GroupList struct {
	Groups   []api.GroupStatus   `json:"groups"`
	Channels []api.ChannelStatus `json:"channels,omitempty"`
}

// In says whether the gateway is in a group.
func (l GroupList) In(name string) bool {
	return slices.ContainsFunc(l.Groups, func(g api.GroupStatus) bool { return g.Name == name })
}

// group gives the gateway the order, and waits until its status shows that.
func (s Source) group(ctx context.Context, order GroupOrder) (any, error) {
	if err := entropy.CheckName(order.Name); err != nil {
		return nil, Refusal{http.StatusBadRequest, err.Error()}
	}
	now, err := s.Snapshot(ctx)
	if err != nil {
		return nil, Refusal{http.StatusServiceUnavailable, err.Error()}
	}
	if why := gateway.GroupRefusal(now.Gateway, gateway.GroupOrder{Name: order.Name, In: order.In}); why != nil {
		return nil, Refusal{http.StatusConflict, why.Error()}
	}
	s.Order(gateway.GroupOrder{Name: order.Name, In: order.In, Key: order.Key})
	var got GroupList
	err = Obeyed(ctx, func() (bool, error) {
		now, err := s.Snapshot(ctx)
		got.Groups, got.Channels = now.Gateway.Groups, now.Gateway.Channels
		keyed := slices.ContainsFunc(got.Groups, func(g api.GroupStatus) bool { return g.Name == order.Name && g.Keyed })
		return got.In(order.Name) == order.In && (keyed || !order.In || !order.Key), err
	})
	return got, err
}
