package gateway

import (
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/gateway/mail/life"
	"aldis/internal/link/frame"
)

// foreseen looks at a queue now and then.
type foreseen struct {
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

// look forecasts which messages come too late, and says so in their lives and in the log: once in five minutes while there are
// more of them than before.
func (f *foreseen) look(g *Gateway, now time.Time, p *peer) {
	if now.Before(f.next) {
		return
	}
	before := f.Messages
	f.Foreseen = api.Foreseen{}
	m := MessagesOf(g)
	f.next = now.Add(foreseeEvery)
	waiting, underWay, _ := p.Box.Held(frame.Direct, frame.Bulk, mail.Group)
	if p.bearer.Carrier().Orders().Together() {
		waiting += underWay // P_Mul has numbers for all of it
	}
	if waiting == 0 || m.stands(p) != "" {
		f.told = nil
		return
	}
	q := m.Queue(now, p.ID)
	f.next = now.Add(foreseeEvery + time.Duration(len(q.Places))*foreseeEach)
	told, behind := map[uint64]bool{}, q.Sort()
	for _, place := range q.Places {
		one := g.mail.Get(place.ID)
		if one == nil || one.Content.Payload == nil || one.Content.Payload.Expires.IsZero() {
			continue
		}
		expires, there := one.Content.Payload.Expires, q.Expected(behind[place.ID].Octets, place.Octets)
		if there.IsZero() || !there.After(expires) {
			continue
		}
		if f.Messages++; f.Expires.IsZero() || expires.Before(f.Expires) {
			f.Expires, f.Expected = expires.UTC().Round(0), there.UTC().Round(time.Second)
		}
		f.Octets += place.Octets
		if told[place.ID] = true; !f.told[place.ID] {
			g.mail.Lives.Note(place.ID, life.Event{What: life.Foreseen, Peer: p.ID, Detail: "expected " + there.UTC().Format(time.RFC3339)})
		}
	}
	f.told = told
	if f.Messages > before && now.Sub(f.noted) >= foreseeNoted {
		f.noted = now
		g.Note("warn", "messages will expire before they are there, by the queue's forecast", "peer", p.Name, "messages", f.Messages, "octets", f.Octets,
			"first_expires", f.Expires, "expected", f.Expected)
	}
}
