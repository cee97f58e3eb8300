package sim

import (
	"maps"

	"aldis/internal/gateway"
)

// undone is how many commits PutBack can take back.
const undone = 1000

// change is what a record was before a commit; Value nil: it was not there.
type change struct {
	key    string
	before gateway.Record
}

// commit makes records durable.
func (n *Node) commit(records []gateway.Record) {
	if len(records) == 0 {
		return
	}
	var changes []change
	for _, r := range records {
		key := r.Bucket + "\x00" + string(r.Key)
		changes = append(changes, change{key, n.journal[key]})
		if r.Value == nil {
			delete(n.journal, key)
		} else {
			n.journal[key] = r
		}
	}
	if n.undo = append(n.undo, changes); len(n.undo) > undone {
		n.undo = n.undo[1:]
	}
}

// Commits is how many commits PutBack can take back now.
func (n *Node) Commits() int { return len(n.undo) }

// PutBack makes the next start of n one with the journal that it had so many commits ago: a copy of its data was put back,
// or a disk lost what it had confirmed.
func (w *World) PutBack(n *Node, commits int) {
	for ; commits > 0 && len(n.undo) > 0; commits-- {
		last := n.undo[len(n.undo)-1]
		n.undo = n.undo[:len(n.undo)-1]
		for i := len(last) - 1; i >= 0; i-- {
			if c := last[i]; c.before.Value == nil {
				delete(n.journal, c.key)
			} else {
				n.journal[c.key] = c.before
			}
		}
	}
}

// Journal is a copy of a node's data, and SetJournal makes the next start of n one with such a copy.
func (n *Node) Journal() map[string]gateway.Record { return maps.Clone(n.journal) }

// SetJournal puts a copy back.
func (n *Node) SetJournal(copy map[string]gateway.Record) { n.journal, n.undo = maps.Clone(copy), nil }
