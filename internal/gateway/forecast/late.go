package forecast

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/history"
	"aldis/internal/link/frame"
	"aldis/internal/site"
)

// Late looks at the queue for a site now and then, for messages that will expire before they are there.
type Late struct {
	api.Foreseen
	next  time.Time
	told  map[uint64]bool // messages whose lives say so
	noted time.Time       // when the log last did
}

const (
	foreseeEvery = 15 * time.Second
	foreseeEach  = 5 * time.Millisecond // and so much for each message that waits: a look sorts them all
	foreseeNoted = 5 * time.Minute
)

// Due says that it is time for Look.
func (f *Late) Due(now time.Time) bool { return !now.Before(f.next) }

// Look forecasts which messages come too late, and says so in their lives and in the log: once in five minutes while there are
// more of them than before.
func (f *Late) Look(now time.Time, s *Site, store *mail.Store) (notes site.Notes) {
	before := f.Messages
	f.Foreseen = api.Foreseen{}
	f.next = now.Add(foreseeEvery)
	waiting, underWay, _ := s.Box.Held(frame.Direct, frame.Bulk, mail.Group)
	if s.Orders.Together() {
		waiting += underWay // P_Mul has numbers for all of these messages
	}
	if waiting == 0 || s.why() != "" {
		f.told = nil
		return nil
	}
	q := s.Queue(now)
	f.next = now.Add(foreseeEvery + time.Duration(len(q.Places))*foreseeEach)
	told, behind := map[uint64]bool{}, q.Sort()
	for _, place := range q.Places {
		one := store.Get(place.ID)
		if one == nil || one.Content.Payload == nil || one.Content.Payload.Expires.IsZero() {
			continue
		}
		expires, there := one.Content.Payload.Expires, q.Expected(behind[place.ID].Octets, place.Octets)
		if there.IsZero() || !there.After(expires) {
			continue
		}
		f.Messages++
		if f.Expires.IsZero() || expires.Before(f.Expires) {
			f.Expires, f.Expected = expires.UTC().Round(0), there.UTC().Round(time.Second)
		}
		f.Octets += place.Octets
		told[place.ID] = true
		if !f.told[place.ID] {
			store.Lives.Note(place.ID, history.Event{What: history.Foreseen, Peer: s.ID, Detail: "expected " + there.UTC().Format(time.RFC3339)})
		}
	}
	f.told = told
	if f.Messages > before && now.Sub(f.noted) >= foreseeNoted {
		f.noted = now
		notes.Note("warn", "messages will expire before they arrive, by the queue's forecast",
			"peer", s.Name, "messages", f.Messages, "octets", f.Octets, "first_expires", f.Expires, "expected", f.Expected)
	}
	return notes
}

// Foresees says that a message was late at the last look.
func (f *Late) Foresees(id uint64) bool { return f.told[id] }

// Took counts a message that was accepted at since and is there now; since is zero where nobody knows.
func Took(d *api.Delays, now, since time.Time) {
	if since.IsZero() {
		return
	}
	s := max(now.Sub(since).Seconds(), 0)
	d.Count++
	d.SumS += s
	for i, bound := range api.DelayBounds {
		if s <= bound {
			d.Counts[i]++
			return
		}
	}
}
