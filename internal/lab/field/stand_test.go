package field

import (
	"context"
	"io"
	"testing"

	"aldis/internal/link/profile"
)

// stand sets up headquarters and one ship, until the test ends, on a link whose losses follow from a seed. The caller configures and
// starts their gateways. The context ends with the test, before they are removed.
func stand(t *testing.T, kind string, p profile.Profile, seed uint64) (*game, context.Context) {
	t.Helper()
	g := &game{o: Options{Profile: p.Name, Seed: seed, Ships: 1, Gateway: builtGateway(t)}, p: p, kind: kind, voice: (&progressLog{w: io.Discard}).voice(kind)}
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(func() {
		end()
		run := &Run{}
		if _, err := g.tearDown(run, nil, func() {}); err != nil || len(run.GatewayErrors) > 0 {
			t.Errorf("at the end: %v %v", err, run.GatewayErrors)
		}
	})
	if err := g.setUp(ctx); err != nil {
		t.Fatal(err)
	}
	return g, ctx
}
