package node

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"aldis/internal/gateway"
	"aldis/internal/gateway/api"
	"aldis/internal/jxtabridge"
	"aldis/internal/operator/control"
	"aldis/internal/operator/control/glance"
	"aldis/internal/operator/control/spans"
	"aldis/internal/site"
)

// quietMost is how long a backup waits for local peers to acknowledge their messages.
const quietMost = time.Second

// backup copies the journal, if possible at a moment at which local peers have acknowledged all messages. Messages that the copy has as
// not acknowledged are delivered again after a restore.
func (n *node) backup(ctx context.Context) (*os.File, error) {
	soon, cancel := context.WithTimeout(ctx, quietMost)
	defer cancel()
	take := n.journal.Backup
	_ = n.daemon.DoSettled(soon, n.bridge.AllAcknowledged, func() { take = n.journal.Freeze() }) // otherwise at any moment
	return take()
}

func (n *node) advertKeys(ctx context.Context) (keys []site.EntryKey, err error) {
	err = n.daemon.Do(ctx, func(time.Time) { keys = n.bridge.EntryKeys() })
	return keys, err
}

func (n *node) advertRows(ctx context.Context, keys []site.EntryKey) (rows []api.AdvertRow, err error) {
	err = n.daemon.Do(ctx, func(now time.Time) { rows = n.gateway.AdvertRows(now, n.bridge.Entries(now, keys)) })
	return rows, err
}

// locals are the peers of the LAN in the form of the page.
func locals(peers []jxtabridge.PeerStatus) []glance.Local {
	list := make([]glance.Local, len(peers))
	for i, p := range peers {
		list[i] = glance.Local{Name: cmp.Or(p.Name, p.Peer), ID: p.Peer, Kind: p.Generation, Waiting: p.Waiting}
	}
	return list
}

// messages runs a function on the messages of this site between two turns of the loop.
func (n *node) messages(ctx context.Context, f func(time.Time, gateway.Messages)) error {
	return n.daemon.Do(ctx, func(now time.Time) { f(now, n.gateway.Messages()) })
}

// lives is messages for spans.Teller.
func (n *node) lives(ctx context.Context, f func(time.Time, spans.Messages)) error {
	return n.messages(ctx, func(now time.Time, m gateway.Messages) { f(now, m) })
}

// known finds the names of peers and pipes in their advertisements.
func (n *node) known(ctx context.Context, ids map[string]bool) (map[string]string, error) {
	keys, err := n.advertKeys(ctx)
	keys = slices.DeleteFunc(keys, func(k site.EntryKey) bool { return !ids[k.ID] })
	names := map[string]string{}
	for batch := range slices.Chunk(keys, namesBatch) {
		if err == nil {
			err = n.daemon.Do(ctx, func(now time.Time) {
				for _, e := range n.bridge.Entries(now, batch) {
					names[e.ID] = cmp.Or(names[e.ID], e.Subject.Name)
				}
			})
		}
	}
	if err == nil { // a peer that has published nothing gave its name with its lease
		err = n.daemon.Do(ctx, func(time.Time) {
			for _, p := range n.bridge.Status().Peers {
				if ids[p.Peer] && names[p.Peer] == "" {
					names[p.Peer] = p.Name
				}
			}
		})
	}
	return names, err
}

// namesBatch is how many names are looked up between two turns of the loop.
const namesBatch = 50

func (n *node) snapshot(ctx context.Context) (s control.Snapshot, err error) {
	err = n.daemon.Do(ctx, func(now time.Time) {
		lan := n.bridge.Status()
		s = control.Snapshot{
			Gateway: n.gateway.Status(now),
			LAN:     lan,
			Locals:  locals(lan.Peers),
			Corpora: n.corpora.Status(),
			Metrics: append(jxtabridge.Metrics(lan, n.bridge.Stats()), slices.Concat(n.tak.metrics(), n.xmpp.metrics(), n.meeting.metrics())...),
		}
	})
	return s, err
}
