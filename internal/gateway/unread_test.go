package gateway

import (
	"testing"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/check"
	"aldis/internal/link/entropy"
)

// An origin whose messages refer to names that never come takes no room from those of others.
func TestUnreadMessagesAreBoundedByOrigin(t *testing.T) {
	g := &Gateway{dropped: map[string]uint64{}, out: &api.Output{}}
	gs := &groups{g: g, secrets: newGroupSecrets()}
	now := time.Unix(1_800_000_000, 0)
	for n := range uint64(3 * mostUnread) {
		gs.await(now, &entropy.Item{Tag: 1, Name: entropy.Name{Origin: 2, Number: n + 1}}, lack{names: true, ref: 7})
	}
	gs.await(now, &entropy.Item{Tag: 1, Name: entropy.Name{Origin: 3, Number: 1}}, lack{names: true, ref: 7})
	check.Equal(t, "messages that wait", len(gs.secrets.unread), mostUnread+1)
	check.Equal(t, "messages dropped", g.dropped["group_unnamed"], uint64(2*mostUnread))
	again := newGroupSecrets()
	for _, r := range g.out.Records {
		check.NoError(t, again.restore(r.Key, r.Value))
	}
	check.Equal(t, "what waits after a restart", again.unread[unread{1, entropy.Name{Origin: 3, Number: 1}}], lack{names: true, ref: 7})
}
