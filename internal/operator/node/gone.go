package node

import (
	"context"
	"time"
)

// goneEvery is how often the gateway looks for its journal's file.
const goneEvery = 10 * time.Second

// watchJournal reports when somebody takes the journal's file away, or has put it back.
func (n *node) watchJournal(ctx context.Context) {
	tick := time.NewTicker(goneEvery)
	defer tick.Stop()
	said := false
	for {
		err := n.journal.Gone()
		switch {
		case err != nil && !said:
			n.log.Error("the journal is gone", "error", err)
		case err == nil && said:
			n.log.Info("the journal file is back")
		}
		said = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trouble says what keeps the gateway from working now; "": nothing does.
func (n *node) trouble() string {
	if err := n.journal.Gone(); err != nil {
		return err.Error()
	}
	return n.daemon.Trouble()
}
