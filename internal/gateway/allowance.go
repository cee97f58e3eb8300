package gateway

import (
	"encoding/binary"
	"time"

	"aldis/internal/gateway/api"
	"aldis/internal/gateway/mail"
	"aldis/internal/ground/due"
	"aldis/internal/link/frame"
	"aldis/internal/link/profile"
)

// allowance is how many IP octets a bearer may carry in a day (UTC), sent and received. This node never sends beyond it, unless a rule
// lets a message do so. When it is used up, the bearer is silent until the day ends, and its peers are told.
type allowance struct {
	most   int64 // 0: there is no bound
	day    count // the one being counted
	other  count // the one before: a clock may go back
	noted  int64 // octets of day in the journal: never fewer than were used, so that a kill frees none
	lifted bool  // a held message may go beyond
	bearer *bearer
}

// count is a day since 1970, and its octets.
type count struct{ day, octets int64 }

// Bounds of the octets noted ahead, and of those kept for the last datagrams of a day.
const (
	notedAhead = 64 // divides the octets of a day
	notedLeast = 1500
	keptFor    = 3 // of the largest datagrams: a last one, the silence, and an answer
)

// bucketDay of the journal, of each bearer: "day" -> day and octets, of two days.
const bucketDay = "day"

const daySeconds = 24 * 60 * 60

// turn begins a day, or goes back to the one before.
func (a *allowance) turn(wall time.Time) {
	day := wall.Unix() / daySeconds
	switch {
	case day == a.day.day:
		return
	case day == a.other.day:
		a.day, a.other = a.other, a.day
	default:
		a.day, a.other = count{day: day}, a.day
	}
	a.note()
}

// count charges IP octets.
func (a *allowance) count(wall time.Time, octets int) {
	if a.most == 0 {
		return
	}
	a.turn(wall)
	a.day.octets += int64(octets)
	if a.day.octets > a.noted {
		a.note()
	}
}

// note makes the octets used durable, and some ahead.
func (a *allowance) note() {
	a.noted = a.day.octets + max(a.most/notedAhead, notedLeast)
	b := binary.BigEndian.AppendUint64(nil, uint64(a.day.day))
	for _, n := range []int64{a.noted, a.other.day, a.other.octets} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	a.bearer.road.Record(bucketDay, []byte("day"), b)
}

func (a *allowance) restore(value []byte) error {
	if len(value) != 32 {
		return mail.ErrRecord
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(value[8*i:]) &^ (1 << 63)) }
	a.day, a.other = count{at(0), at(1)}, count{at(2), at(3)}
	a.noted = a.day.octets
	return nil
}

// fits says that so many octets more may go.
func (a *allowance) fits(octets int) bool {
	return a.most == 0 || a.lifted || a.day.octets+int64(octets) <= a.most
}

// spent says that there is no room for another datagram and those that it brings about.
func (a *allowance) spent() bool {
	kept := int64(keptFor * (a.bearer.Profile.Largest() + profile.IPUDPOctets))
	return a.most > 0 && a.day.octets+min(kept, a.most/4) > a.most
}

// ends is when the day ends, by the wall clock.
func (a *allowance) ends() time.Time { return time.Unix((a.day.day+1)*daySeconds, 0).UTC() }

// due is when the day ends, as a time of Steps; zero: the bearer is not silent until then.
func (a *allowance) due(now, wall time.Time) time.Time {
	if !a.bearer.silence.spent {
		return time.Time{}
	}
	return due.Latest(now, now.Add(a.ends().Sub(wall)))
}

// step begins and ends the silence of a bearer whose octets of the day are used up.
func (a *allowance) step(now time.Time) {
	if a.most == 0 {
		return
	}
	b, g := a.bearer, a.bearer.road.g
	a.turn(g.silence.wall(now))
	s, was := b.silence, b.silence.quiet()
	if spent := a.spent(); spent != s.spent {
		s.spent = spent
		if spent {
			g.Note("warn", "a link has used its octets of the day: it is silent until the day ends, and messages wait or take another link", "bearer", b.name.Name,
				"octets", a.day.octets, "octets_per_day", a.most, "until", a.ends())
		} else {
			g.Note("info", "a link may be used again: its octets of the day are counted anew", "bearer", b.name.Name, "octets_per_day", a.most)
		}
	}
	a.lifted = s.spent && b.anyBeyond()
	s.lifted = a.lifted
	if was == s.quiet() {
		return
	}
	if s.quiet() && s.spent && !s.byOrder() && !b.modem.Down && g.restored == nil && b.heardAny() {
		b.Announce(now, frame.Silence{Until: uint32(a.ends().Unix())})
	}
	for _, c := range b.Carriers {
		c.Silence(now, b.mute())
	}
	for l := range legsOf(g) {
		if l.bearer == b && !s.quiet() && !l.LastSent.IsZero() {
			l.Handshake.Owe(now) // the peer was told of the silence
		}
	}
}

// heardAny says that a peer was heard on the bearer in this run.
func (b *bearer) heardAny() bool {
	for l := range legsOf(b.road.g) {
		if l.bearer == b && !l.LastHeard.IsZero() {
			return true
		}
	}
	return false
}

// anyBeyond says that a message is held for the bearer that a rule lets go beyond the octets of the day.
func (b *bearer) anyBeyond() bool {
	for l := range legsOf(b.road.g) {
		if l.bearer == b && l.Box.Any(func(e *mail.Entry) bool { return (e.Way == nil || e.Way == l.Peer) && l.of.beyond(e.Message) }) {
			return true
		}
	}
	return false
}

// beyond says that a rule lets a message go where the octets of the day are used up.
func (p *peer) beyond(m *mail.Message) bool {
	r := p.ruleOf(m)
	return r != nil && r.Beyond
}

// status says how many octets are used; nil: there is no bound.
func (a *allowance) status() *api.DayStatus {
	if a.most == 0 {
		return nil
	}
	return &api.DayStatus{Octets: a.day.octets, Most: a.most, Spent: a.bearer.silence.spent, Until: a.ends()}
}
