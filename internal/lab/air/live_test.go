package air

import (
	"slices"
	"testing"
	"time"
)

// seenOf is observations in which each post arrives a second after it was sent, unless changed says otherwise.
func seenOf(l Live, change func(post, site int, at time.Time) time.Time) (s Seen) {
	zero := time.Unix(1e9, 0)
	for i, p := range l.Posts {
		s.Sent = append(s.Sent, zero.Add(p.At))
		s.Arrived = append(s.Arrived, make([]time.Time, l.Ships+1))
		for to := range l.Ships + 1 {
			if to != p.From {
				s.Arrived[i][to] = change(i, to, zero.Add(p.At+time.Second))
			}
		}
	}
	if l.OutageFor > 0 {
		s.Back = zero.Add(l.OutageAt + l.OutageFor)
	}
	return s
}

// Every live scenario has posts in the order of time, no two alike, and makes a sample of its observations.
func TestLive(t *testing.T) {
	list, err := LiveScenarios()
	if err != nil || len(list) < 20 {
		t.Fatalf("%d scenarios: %v", len(list), err)
	}
	for _, s := range list {
		l, ok, err := s.Live(3)
		if err != nil || !ok || l.Link != s.Link {
			t.Fatalf("%s on %s: %v, %v", s.Name, s.Link, ok, err)
		}
		said := map[string]bool{}
		for _, p := range l.Posts {
			said[string(p.Data)] = true
		}
		if len(said) != len(l.Posts) || !slices.IsSortedFunc(l.Posts, func(a, b Post) int { return int(a.At - b.At) }) {
			t.Errorf("%s on %s, %s: %d messages, %d different", s.Name, s.Link, s.Rows[0].What, len(l.Posts), len(said))
		}
		got, err := l.Judge(seenOf(l, func(_, _ int, at time.Time) time.Time { return at }))
		if err != nil || len(got) != len(s.Rows) || len(got[0]) != 1 {
			t.Errorf("%s on %s, %s: %v, %v", s.Name, s.Link, s.Rows[0].What, got, err)
		}
	}
	if _, err := LiveScenarios("burst", "idle"); err == nil {
		t.Error("a table that nobody can play live was taken")
	}
	all, err := Scenarios("idle")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := all[0].Live(1); ok || err != nil {
		t.Errorf("a day is played live: %v", err)
	}
}

// For an outage the last of the messages sent before its end counts; it is an error if a message is missing or came before an earlier
// one.
func TestLiveJudged(t *testing.T) {
	l, err := liveOutage("iridium-directip", 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	late := func(post, _ int, at time.Time) time.Time {
		if sent, back := l.Posts[post].At, l.OutageAt+l.OutageFor; sent > back {
			return at.Add(20 * time.Second) // irrelevant to the outage
		}
		return at.Add(2 * time.Second) // the last was sent 1.5 s before the end
	}
	got, err := l.Judge(seenOf(l, late))
	if err != nil || got[0][0] != 1.5 {
		t.Errorf("the last after the outage: %v, %v", got, err)
	}
	missing := func(post, _ int, at time.Time) time.Time {
		if post == 7 {
			return time.Time{}
		}
		return at
	}
	if _, err := l.Judge(seenOf(l, missing)); err == nil {
		t.Error("a message that did not arrive was not missed")
	}
	overtaken := func(post, _ int, at time.Time) time.Time {
		if post == 7 {
			return at.Add(time.Minute)
		}
		return at
	}
	if _, err := l.Judge(seenOf(l, overtaken)); err == nil {
		t.Error("an overtaken message was not noticed")
	}
	burst, err := liveAtOnce("hf-2400", 0, 3, 2, 200, nil)
	if err != nil {
		t.Fatal(err)
	}
	slow := func(post, site int, at time.Time) time.Time {
		if post == 0 && site == 3 {
			return at.Add(time.Minute) // messages over P_Mul may overtake each other
		}
		return at
	}
	if got, err := burst.Judge(seenOf(burst, slow)); err != nil || got[0][0] < 25 || got[0][0] > 27 {
		t.Errorf("the last at the last of three: %v, %v", got, err) // 61 s over 400 octets and a delay of 1 s: 2.33 s
	}
}
