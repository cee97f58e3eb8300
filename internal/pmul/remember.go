package pmul

import (
	"cmp"
	"slices"
	"time"

	"aldis/internal/ground/due"
)

// How long a Receiver waits for an incomplete message, and remembers a complete one. ACP 142 derives both from Expiry_Time
// and the Receiver's clock. Gateways do not: senders end their messages themselves, the seal keeps out recorded datagrams,
// and a ship's clock may be years wrong (docs/decisions/pmul-carrier.md).

// doubtful is how long a message is kept whose Expiry_Time cannot be true by this clock.
const doubtful = 25 * time.Hour

// over is when a message heard of now is over.
func (c *Config) over(now, expiry time.Time) time.Time {
	at := expiry.Add(c.ClockError)
	switch {
	case c.Coding == ACP142:
		return at
	case at.Before(now):
		return now.Add(doubtful)
	}
	return due.Earliest(at, now.Add(c.RememberFor))
}

// wakeUp sets the times of messages from the journal: the clock may have been set meanwhile.
func (r *Receiver) wakeUp(now time.Time) {
	for _, m := range r.in {
		m.until = r.cfg.over(now, m.expiry)
	}
	if r.cfg.Coding == ACP142 {
		return
	}
	for _, f := range r.done {
		f.forget = due.Earliest(due.Latest(f.forget, now.Add(doubtful)), now.Add(r.cfg.RememberFor))
	}
}

// remember notes that a message is complete here.
func remember(r *Receiver, now time.Time, key Key, expiry time.Time) *finished {
	f := &finished{key: key, total: 1, forget: due.Earliest(r.cfg.over(now, expiry).Add(r.cfg.ClockError), now.Add(r.cfg.RememberFor))}
	r.done[key] = f
	r.used(key.Source).remembered++
	return f
}

// Knows says that a message is complete here, or has come another way.
func Knows(r *Receiver, key Key) bool { return r.done[key] != nil }

// elsewhere marks a message as complete that has come another way.
func elsewhere(r *Receiver, now time.Time, key Key) {
	if r.done[key] != nil {
		return
	}
	r.remembers(key.Source)
	m := r.in[key]
	f := remember(r, now, key, now.Add(r.cfg.RememberFor))
	if f.total, f.elsewhere = 0, true; m != nil {
		f.coding, f.nodes, f.total = m.coding, m.nodes, m.total
		r.drop(m)
		place(r, f, m.sequence)
		return
	}
	r.dropOrphans(key)
	r.out.record(bucketDone, keyOctets(key), f.encode())
}

// place reports the Message_Sequence_Number of a message that has come another way.
func place(r *Receiver, f *finished, sequence uint32) {
	f.elsewhere = false
	r.out.record(bucketDone, keyOctets(f.key), f.encode())
	r.out.Deliver = append(r.out.Deliver, Message{Key: f.key, Sequence: sequence})
}

// forget forgets delivered messages.
func (r *Receiver) forget(list []Key) {
	for _, key := range list {
		delete(r.done, key)
		delete(r.owing, key)
		r.used(key.Source).remembered--
		r.out.record(bucketDone, keyOctets(key), nil)
	}
}

// remembers makes room to remember one more message of a source; false: there is none. In the compact coding the oldest
// messages are forgotten, so that a gateway that starts again and again, and doubts its clock each time, does not fill up.
func (r *Receiver) remembers(source NodeID) bool {
	u, limit := r.used(source), r.cfg.Limits.Remembered
	if len(r.done) < limit && u.remembered < r.share(limit) {
		return true
	}
	if r.cfg.Coding == ACP142 {
		return false
	}
	var old []Key
	for key, f := range r.done {
		if key.Source == source && f.ackAt.IsZero() && !f.owed {
			old = append(old, key)
		}
	}
	slices.SortFunc(old, func(a, b Key) int { return cmp.Or(r.done[a].forget.Compare(r.done[b].forget), a.compare(b)) })
	r.forget(old[:min(len(old), len(old)/16+1)])
	return len(r.done) < limit && u.remembered < r.share(limit)
}
