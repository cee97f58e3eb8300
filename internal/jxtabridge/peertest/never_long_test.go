//go:build long

package peertest

import (
	"context"
	"sync"
	"time"

	"aldis/internal/lab/field"
)

// never watches the peers for the time d, and fails at once if one gets an event that must not come, or ends.
func (w world) never(d time.Duration, what string, match func(field.Event) bool, peers ...*field.Peer) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	var group sync.WaitGroup
	for _, p := range peers {
		group.Go(func() {
			if e, err := p.Wait(ctx, match); err == nil {
				w.Errorf("%s: %s: %+v", p.Name(), what, e)
				cancel()
			} else if ctx.Err() == nil {
				w.Errorf("%s: %v", p.Name(), err)
				cancel()
			}
		})
	}
	group.Wait()
	if w.Failed() {
		w.FailNow()
	}
}
