package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"aldis/internal/jxta"
)

// contentKey tells messages apart: the pipe, names and content. Equal messages are matched in order.
func contentKey(pipe string, elements []jxta.Element) string {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
		h.Write(b)
	}
	field([]byte(pipe))
	for _, e := range elements {
		field([]byte(e.Namespace))
		field([]byte(e.Name))
		field(e.Data)
	}
	return string(h.Sum(nil)[:16])
}

// Record notes the actions of a Script's peers and the messages that reached them. Times count from the trace's beginning.
type Record struct {
	s       *Script
	sends   map[string][]int // messages sent, by content, in order
	sent    []time.Duration  // by message; never: notSent
	got     map[delivery]time.Duration
	heard   map[heardKey]int // the place of a peer in the sends of a content
	order   map[wayOf]int    // the latest message that came
	ready   map[int]time.Duration
	asked   map[nameOf]time.Duration // first query
	found   map[nameOf]time.Duration
	opened  map[pipeOf]time.Duration
	usable  map[pipeOf]time.Duration
	known   map[pipeOf]time.Duration
	taken   map[string][]time.Duration // by content: when the sender's gateway took the messages, in order
	custody bool                       // the caller reports which messages are taken
	refused int

	delivered, duplicates, strange, disorder int
	local                                    int // messages to peers of the same side
	octetsIn                                 int64
	last                                     time.Duration // of the deliveries
}

const notSent = time.Duration(-1)

type (
	delivery struct{ message, peer int }
	heardKey struct {
		key  string
		peer int
	}
	wayOf  struct{ from, pipe, to int }
	nameOf struct {
		peer int
		name string
	}
	pipeOf struct{ peer, pipe int }
)

// NewRecord makes an empty Record.
func NewRecord(s *Script) *Record {
	r := &Record{s: s, sends: map[string][]int{}, got: map[delivery]time.Duration{}, heard: map[heardKey]int{}, order: map[wayOf]int{},
		ready: map[int]time.Duration{}, asked: map[nameOf]time.Duration{}, found: map[nameOf]time.Duration{},
		opened: map[pipeOf]time.Duration{}, usable: map[pipeOf]time.Duration{}, known: map[pipeOf]time.Duration{},
		taken: map[string][]time.Duration{}}
	for range s.Messages {
		r.sent = append(r.sent, notSent)
	}
	return r
}

func first[K comparable](m map[K]time.Duration, k K, at time.Duration) {
	if _, ok := m[k]; !ok {
		m[k] = at
	}
}

// Ready: a peer has its rendezvous.
func (r *Record) Ready(peer int, at time.Duration) { first(r.ready, peer, at) }

// Asked: a peer has asked for a name.
func (r *Record) Asked(peer int, name string, at time.Duration) {
	first(r.asked, nameOf{peer, name}, at)
}

// Found: a peer has an advertisement of this name that another one published.
func (r *Record) Found(peer int, name string, at time.Duration) {
	first(r.found, nameOf{peer, name}, at)
}

// Opened: a peer has asked for a pipe, to send or to listen.
func (r *Record) Opened(peer, pipe int, at time.Duration) { first(r.opened, pipeOf{peer, pipe}, at) }

// Usable: the pipe is open as far as the peer can tell.
func (r *Record) Usable(peer, pipe int, at time.Duration) { first(r.usable, pipeOf{peer, pipe}, at) }

// Known: the other side's gateway knows that the peer listens, if it does already.
func (r *Record) Known(peer, pipe int, at time.Duration) {
	if _, open := r.opened[pipeOf{peer, pipe}]; open {
		first(r.known, pipeOf{peer, pipe}, at)
	}
}

// Taken: a gateway has taken a propagate pipe's message for the other side. A caller of Taken has called WatchesCustody before.
func (r *Record) Taken(pipe string, elements []jxta.Element, at time.Duration) {
	key := contentKey(pipe, elements)
	r.taken[key] = append(r.taken[key], at)
}

// WatchesCustody says that the caller reports every message taken, by Taken.
func (r *Record) WatchesCustody() { r.custody = true }

// takenAt returns when messages were taken, by message. A message that is not in it was not taken, or its taking was not reported.
func (r *Record) takenAt() map[int]time.Duration {
	at := map[int]time.Duration{}
	for key, times := range r.taken {
		for i, message := range r.sends[key] {
			if i < len(times) {
				at[message] = times[i]
			}
		}
	}
	return at
}

// Refused: a peer could not send a message.
func (r *Record) Refused(int, time.Duration) { r.refused++ }

// Sent: a peer has sent a message.
func (r *Record) Sent(message int, at time.Duration) {
	m := &r.s.Messages[message]
	r.sent[message] = at
	r.sends[m.key] = append(r.sends[m.key], message)
}

// Got: a message has reached a peer.
func (r *Record) Got(peer, pipe int, elements []jxta.Element, at time.Duration) {
	key := contentKey(r.s.Pipes[pipe].ID, elements)
	h := heardKey{key, peer}
	list := r.sends[key]
	// Of equal messages, the next one that this peer does not have yet.
	for i := r.heard[h]; i < len(list); i++ {
		if r.s.Messages[list[i]].Peer == peer {
			continue
		}
		r.heard[h] = i + 1
		r.arrived(list[i], peer, at)
		return
	}
	if len(list) > 0 {
		r.duplicates++
	} else {
		r.strange++
	}
}

func (r *Record) arrived(message, peer int, at time.Duration) {
	m := &r.s.Messages[message]
	if r.s.Peers[m.Peer].Edge == r.s.Peers[peer].Edge {
		r.local++
		return
	}
	r.got[delivery{message, peer}] = at
	r.last = max(r.last, at)
	if r.s.Peers[peer].Edge {
		r.octetsIn += int64(m.Octets)
	}
	way := wayOf{m.Peer, m.Pipe, peer}
	if latest, ok := r.order[way]; ok && latest > message {
		r.disorder++
	}
	r.order[way] = max(r.order[way], message)
	for _, p := range m.To {
		if p == peer {
			r.delivered++
		}
	}
}

// Delivered says whether every message sent has reached all its recipients.
func (r *Record) Delivered() bool {
	want := 0
	for i, at := range r.sent {
		if at != notSent {
			want += len(r.s.Messages[i].To)
		}
	}
	return r.delivered >= want
}
