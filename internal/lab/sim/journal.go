package sim

import (
	"maps"
	"slices"

	"aldis/internal/gateway/api"
)

// undone is how many commits PutBack can take back.
const undone = 1000

// change is a record before a commit; Value nil: it was not there.
type change struct {
	key    string
	before api.Record
}

// taken is a commit that PutBack can take back.
type taken struct {
	changes []change
	store   uint32 // the store to which they belonged
}

// commit makes records durable.
func (n *Node) commit(records []api.Record) {
	if len(records) == 0 {
		return
	}
	last := taken{store: n.cfg.Store}
	for _, r := range records {
		key := r.Bucket + "\x00" + string(r.Key)
		last.changes = append(last.changes, change{key, n.journal[key]})
		if r.Value == nil {
			delete(n.journal, key)
		} else {
			n.journal[key] = r
		}
	}
	n.remember(last)
}

func (n *Node) remember(last taken) {
	n.undo = append(n.undo, last)
	if len(n.undo) > undone {
		n.undo = n.undo[1:]
	}
}

// LoseStore gives the next start of n an empty journal and another store. PutBack counts that as one commit: a copy may be older.
func (w *World) LoseStore(n *Node) {
	last := taken{store: n.cfg.Store}
	for _, key := range slices.Sorted(maps.Keys(n.journal)) {
		last.changes = append(last.changes, change{key, n.journal[key]})
	}
	n.remember(last)
	n.journal = map[string]api.Record{}
	n.cfg.Store = w.rng.Uint32()
}

// Commits is how many commits PutBack can take back now.
func (n *Node) Commits() int { return len(n.undo) }

// PutBack gives the next start of n the journal from before so many commits: a copy of its data was put back, or a disk lost commits that
// it had confirmed.
func (w *World) PutBack(n *Node, commits int) {
	for ; commits > 0 && len(n.undo) > 0; commits-- {
		last := n.undo[len(n.undo)-1]
		n.undo = n.undo[:len(n.undo)-1]
		n.cfg.Store = last.store
		for i := len(last.changes) - 1; i >= 0; i-- {
			if c := last.changes[i]; c.before.Value == nil {
				delete(n.journal, c.key)
			} else {
				n.journal[c.key] = c.before
			}
		}
	}
}

// Journal is a copy of a node's data.
func (n *Node) Journal() map[string]api.Record { return maps.Clone(n.journal) }

// SetJournal gives the next start of n such a copy.
func (n *Node) SetJournal(copy map[string]api.Record) { n.journal, n.undo = maps.Clone(copy), nil }
