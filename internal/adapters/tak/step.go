package tak

import (
	"encoding/binary"
	"time"

	"aldis/internal/adapters/tak/code"
	"aldis/internal/adapters/tak/track"
	"aldis/internal/ground/due"
	"aldis/internal/site"
)

// step is the state that all parts share: configuration, counters, and the Step under way.
type step struct {
	cfg     Config
	token   uint64    // of the last message to the link
	trouble due.Tally // counters of events, and of refusals
	out     site.Output
}

func (s *step) note(level, text string, attrs ...any) {
	s.out.Notes = append(s.out.Notes, site.Note{Level: level, Text: text, Attrs: attrs})
}

// refuse counts an event that was not taken, and logs it: each reason once a minute for a host.
func (s *step) refuse(now time.Time, reason string, c *client, uid string, err error) {
	s.trouble.Count("refused " + reason)
	if !s.trouble.May(now, "refused "+reason+" "+c.host) {
		return
	}
	attrs := []any{"reason", reason, "remote", c.host, "refused_so_far", s.trouble.Of["refused "+reason]}
	if uid != "" {
		attrs = append(attrs, "uid", uid)
	}
	if err != nil {
		attrs = append(attrs, "error", err)
	}
	s.note("warn", "a TAK event was rejected", attrs...)
}

func (s *step) undelivered(m site.FarMessage, why site.Why) {
	s.out.Undelivered = append(s.out.Undelivered, site.Undelivered{Token: m.Token, Why: why})
}

// farTrouble logs that a message of a far site could not be read: perhaps that gateway has another version.
func (s *step) farTrouble(now time.Time, from uint16, err error) {
	s.trouble.Count("far_unreadable")
	if s.trouble.May(now, "far unreadable") {
		s.note("warn", "a TAK message of a far site could not be read", "site", from, "error", err)
	}
}

func (s *step) remember(key string, value []byte) {
	s.out.Remember = append(s.out.Remember, site.Memory{Key: key, Value: value})
}

func (s *step) rememberUnit(u *track.Unit) {
	s.remember(keyUnit+u.UID, binary.BigEndian.AppendUint32([]byte{u.Version}, u.Number))
}

func farKey(from uint16, number uint32) string {
	return string(binary.BigEndian.AppendUint32([]byte{byte(from >> 8), byte(from)}, number))
}

// rememberFar saves the report of a far unit: its whole event, or its position.
func (s *step) rememberFar(from uint16, far *track.Far, u *track.FarUnit) {
	key := farKey(from, u.Number)
	if code.FixOf(u.Event) == u.Fix {
		flags := byte(0)
		if u.Late {
			flags |= flagLate
		}
		if u.Away {
			flags |= flagAway
		}
		value := appendMillis([]byte{byte(far.Run >> 8), byte(far.Run), u.Version, flags}, u.At)
		s.remember(keyFar+key, code.Append(value, u.Event, u.At, nil))
		return
	}
	value := appendMillis(nil, u.At)
	for _, v := range []int64{int64(u.Fix.Lat), int64(u.Fix.Lon), int64(u.Fix.HAE), int64(u.Fix.Course), int64(u.Fix.Speed), int64(u.Fix.Battery)} {
		value = binary.AppendVarint(value, v)
	}
	s.remember(keyAt+key, value)
}

func (s *step) forgetFar(from uint16, number uint32) {
	s.remember(keyFar+farKey(from, number), nil)
	s.remember(keyAt+farKey(from, number), nil)
}
