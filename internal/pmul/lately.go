package pmul

import (
	"maps"
	"slices"
	"time"
)

// lately lists the messages of each source that became complete last. On a shared channel with turns, acknowledgements name
// these again: a run of many messages takes no more room than one message, and a sender that has missed an acknowledgement
// would take the messages that the next one leaves out for lost.
type lately map[NodeID][]MessageID

// latelyMost is the most messages of one source that are named again: as many as it sends in some turns.
const latelyMost = 16

// add notes a message that is complete.
func (l lately) add(key Key) {
	ids := append(l[key.Source], key.Message)
	if len(ids) > latelyMost {
		ids = slices.Delete(ids, 0, len(ids)-latelyMost)
	}
	l[key.Source] = ids
}

// recite makes this node owe again the acknowledgements of a source's messages that became complete lately.
func recite(now time.Time, r *Receiver, source NodeID) {
	for _, id := range r.lately[source] {
		if f := r.done[Key{source, id}]; f != nil {
			r.owe(now, f, max(f.nodes, 1), 0)
		}
	}
}

// with makes the entries for the owed messages of one source, in two ways: first together with the messages that became
// complete lately, for datagrams with room, then alone.
func (l lately) with(owing []Key) (ways [2][]AckEntry) {
	all := map[MessageID]bool{}
	for _, key := range owing {
		all[key.Message] = true
	}
	source := owing[0].Source
	entries := func() (list []AckEntry) {
		for _, id := range slices.Sorted(maps.Keys(all)) {
			list = append(list, AckEntry{Source: source, Message: id})
		}
		return list
	}
	ways[1] = entries()
	for _, id := range l[source] {
		all[id] = true
	}
	ways[0] = entries()
	return ways
}
