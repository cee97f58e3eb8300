package mail

import "time"

// Backlog counts the messages of one precedence that wait for a peer.
type Backlog struct {
	Rank     int // of the precedence
	Messages int
	Octets   int       // as journalled
	News     int       // octets of state that goes among them and is not counted as messages
	Oldest   time.Time // when the oldest was accepted; zero: unknown
}

// Backlog counts, by precedence, the messages that wait for the peer and are not held by an order: the most urgent precedence first, those
// without messages left out. Messages that P_Mul holds wait too: they have their numbers from the beginning. The time that this takes
// grows with the local peers and with the state that waits, not with the messages.
func (b *PeerQueue) Backlog() (list []Backlog) {
	var all [ranks]Backlog
	for queue := range b.waiting {
		for rank := range all {
			b.waiting[queue].levels[rank].add(&all[rank])
		}
	}
	for a, e := range b.underWay {
		switch row := &all[e.Rank()]; {
		case a.Queue != Group || e.Held || e.OnHold:
		case e.Content.Payload == nil:
			row.News += len(e.Full)
		default:
			row.note(e, 1)
			row.Octets += len(e.Full)
		}
	}
	for rank := len(all) - 1; rank >= 0; rank-- {
		if row := all[rank]; row.Messages > 0 || row.News > 0 {
			row.Rank, row.Octets = rank, row.Octets+b.byRank[rank]
			list = append(list, row)
		}
	}
	return list
}

// add counts the messages and the state that wait in a level of a queue.
func (l *level) add(row *Backlog) {
	for _, e := range l.state {
		row.News, row.Octets = row.News+len(e.Full), row.Octets-len(e.Full) // Box.byRank has them
	}
	for _, s := range l.sources {
		row.note(s.list[0], len(s.list))
	}
}

// note counts messages, of which first is the oldest.
func (row *Backlog) note(first *Entry, messages int) {
	if row.Messages == 0 || first.Accepted.Before(row.Oldest) {
		row.Oldest = first.Accepted
	}
	row.Messages += messages
}
