package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

var epoch = time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)

// A name is read as people write and say it, and nothing else is one.
func TestName(t *testing.T) {
	for id, name := range map[uint64]string{1: "0000000-1", 0x6b02e7f500000011: "1NG5SZN-17", 1<<64 - 1: "3ZZZZZZ-4294967295"} {
		check.Equal(t, "name", Name(id), name)
		for _, said := range []string{name, strings.ToLower(name), " " + name + "\n", strings.ReplaceAll(strings.ReplaceAll(name, "0", "o"), "1", "l")} {
			if strings.Contains(said, "-l") {
				continue // the number is a number
			}
			got, err := ParseName(said)
			check.NoError(check.In(t, said), err)
			check.Equal(check.In(t, said), "id", got, id)
		}
	}
	for _, bad := range []string{"", "-", "1", "0000000", "0000000-", "000000-1", "00000000-1", "4000000-1", "0000000-4294967296", "0000000-+1", "U000000-1",
		"0000000-1-1", "é000000-1", "0000000-0x1", strings.Repeat("0", 1<<20)} {
		if id, err := ParseName(bad); err == nil {
			t.Errorf("%.20q is %d", bad, id)
		}
	}
}

// Events of a message that goes again and again are added up, and the first and the last are kept of many.
func TestEvents(t *testing.T) {
	var s Lives
	s.Turn(epoch)
	s.Begin(Life{ID: 1, Accepted: epoch})
	s.For(1, 7, Waiting)
	for i := range 100 {
		s.Turn(epoch.Add(time.Duration(i) * time.Second))
		s.Aired(1, 7, 10, 2, false)
	}
	l := s.Get(1)
	check.Equal(t, "events", len(l.Events), 2)
	check.Equal(t, "on the air", l.Events[1].N, 100)
	check.Equal(t, "octets", l.Events[1].Octets, 1000)
	check.Equal(t, "sent", l.Of(7).Sent, 1000)
	check.Equal(t, "the last time", l.Events[1].Until, epoch.Add(99*time.Second))
	for i := range 100 {
		s.Note(1, Event{What: Ordered, Detail: fmt.Sprint(i)})
	}
	check.Equal(t, "events", len(l.Events), MostEvents)
	check.Equal(t, "the first", l.Events[0].What, Accepted)
	check.Equal(t, "the last", l.Events[MostEvents-1].Detail, "99")
	check.Equal(t, "those between", l.Lost, 102-MostEvents)
}

// A final state stays, but for what the recipient tells later of a message that it had acknowledged.
func TestOneFinalState(t *testing.T) {
	var s Lives
	s.Turn(epoch)
	for id, tt := range []struct{ first, second, want State }{
		{Delivered, Cancelled, Delivered}, {Delivered, Undeliverable, Undeliverable}, {Delivered, Again, Again}, {Cancelled, Delivered, Cancelled},
		{Expired, Undeliverable, Expired}, {Superseded, Expired, Superseded}, {Undeliverable, Delivered, Undeliverable},
	} {
		s.Begin(Life{ID: uint64(id)})
		s.For(uint64(id), 7, UnderWay)
		s.End(uint64(id), 7, tt.first, "")
		s.End(uint64(id), 7, tt.second, "")
		check.Equal(check.In(t, tt), "state", s.Get(uint64(id)).Of(7).State, tt.want)
	}
	s.End(99, 7, Delivered, "") // of a life that is not kept
	s.End(0, 8, Delivered, "")  // of nobody's
	check.Equal(t, "recipients", len(s.Get(0).Fates), 1)
}

// Lives are bounded in number and octets. Those that ended first go first, and one for which there is no room is not kept.
func TestBounds(t *testing.T) {
	var s Lives
	s.Turn(epoch)
	for id := range uint64(MostLives + 100) {
		s.Begin(Life{ID: id})
		s.For(id, 7, Waiting)
	}
	check.Equal(t, "lives", s.Len(), MostLives)
	check.Equal(t, "unkept", s.Unkept(), 100)
	for _, id := range []uint64{5, 3} {
		s.End(id, 7, Delivered, "")
	}
	s.Begin(Life{ID: 1 << 40})
	check.True(t, "the first that ended has gone", s.Get(5) == nil && s.Get(3) != nil && s.Get(1<<40) != nil)

	s = Lives{}
	s.Turn(epoch)
	long := strings.Repeat("x", 1<<20)
	for id := range uint64(MostLives) {
		s.Begin(Life{ID: id, From: long, To: long, Label: long})
		s.For(id, 7, Waiting)
		for i := range 40 {
			s.Note(id, Event{What: Ordered, Detail: fmt.Sprint(i, long[:1000])})
		}
	}
	check.True(t, "octets are bounded", s.octets <= MostOctets+MostLives*fateOctets, s.octets)
	sum := 0
	for _, l := range s.byID {
		sum += l.cost
	}
	check.Equal(t, "octets add up", s.octets, sum)
	for id := range s.byID {
		s.End(id, 7, Delivered, "")
	}
	for id := range uint64(100000) {
		s.Begin(Life{ID: 1<<40 + id, From: long})
		s.For(1<<40+id, 7, Waiting)
		s.End(1<<40+id, 7, Delivered, long)
	}
	check.True(t, "octets are bounded", s.octets <= MostOctets+fateOctets, s.octets)
	check.True(t, "those that ended are forgotten in order", s.Get(1<<40+99999) != nil && s.Get(1<<40) == nil)
	check.True(t, "the list of those is bounded", len(s.ended) <= MostLives+1, len(s.ended))
}
