// Package calendar evaluates the operator's windows of silence: the hours, days and dates at which a node transmits
// nothing. Times are UTC, by the wall clock. The package is pure: callers pass the time.
package calendar

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"aldis/internal/ground/when"
)

// Window is a time of silence that recurs on certain days, or comes once.
type Window struct {
	Line     int // in the configuration
	Days     [7]bool
	From, To time.Duration // since midnight; a To that is not after From is on the next day
	Begins   time.Time     // of a window that comes once; zero: it recurs
	Ends     time.Time
	Announce bool   // one last datagram announces it to the far gateways
	Link     string // the bearer that is silent; "": all are
}

// Windows are the windows of a node.
type Windows []Window

// On is the windows of one bearer; "": those of all bearers.
func (ws Windows) On(link string) (list Windows) {
	for _, one := range ws {
		if one.Link == link {
			list = append(list, one)
		}
	}
	return list
}

// most is how many days a calendar looks ahead: a weekly window comes within eight days.
const most = 9

// day is the midnight before a time.
func day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// on is the time of a window that begins on a day; false: it does not.
func (w Window) on(midnight time.Time) (begins, ends time.Time, ok bool) {
	if !w.Begins.IsZero() {
		return w.Begins, w.Ends, day(w.Begins).Equal(midnight)
	}
	ends = midnight.Add(w.To)
	if w.To <= w.From {
		ends = ends.Add(24 * time.Hour)
	}
	return midnight.Add(w.From), ends, w.Days[midnight.Weekday()]
}

// at is the end of a window that holds at t.
func (w Window) at(t time.Time) (until time.Time, ok bool) {
	if !w.Begins.IsZero() {
		return w.Ends, !t.Before(w.Begins) && t.Before(w.Ends)
	}
	for _, midnight := range []time.Time{day(t), day(t).Add(-24 * time.Hour)} {
		if begins, ends, comes := w.on(midnight); comes && !t.Before(begins) && t.Before(ends) {
			return ends, true
		}
	}
	return time.Time{}, false
}

// At says whether there is silence at t, when it ends, and whether it is to be announced. Windows that follow each other
// without a pause are joined, for some days at most.
func (ws Windows) At(t time.Time) (until time.Time, announce, silent bool) {
	for until = t; ; {
		further := until
		for _, w := range ws {
			if end, ok := w.at(until); ok && end.After(further) {
				further, announce = end, announce || w.Announce
			}
		}
		if !further.After(until) || further.Sub(t) > most*24*time.Hour {
			return further, announce, further.After(t)
		}
		until = further
	}
}

// Next is the beginning of the first window after t; zero: there is none in sight.
func (ws Windows) Next(t time.Time) (next time.Time) {
	for _, w := range ws {
		begins := w.Begins
		for n := 0; w.Begins.IsZero() && n < most; n++ {
			if b, _, ok := w.on(day(t).AddDate(0, 0, n)); ok && b.After(t) {
				begins = b
				break
			}
		}
		if begins.After(t) && (next.IsZero() || begins.Before(next)) {
			next = begins
		}
	}
	return next
}

// names are the names of days, as ParseDays reads them.
var names = [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// ParseDays reads days: "mon, wed", "mon-fri", "fri-mon"; "" is every day.
func ParseDays(text string) (days [7]bool, err error) {
	if strings.TrimSpace(text) == "" {
		return [7]bool{true, true, true, true, true, true, true}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, several := strings.Cut(part, "-")
		a, err := weekday(from)
		b := a
		if err == nil && several {
			b, err = weekday(to)
		}
		if err != nil {
			return days, err
		}
		for ; ; a = (a + 1) % 7 {
			days[a] = true
			if a == b {
				break
			}
		}
	}
	return days, nil
}

func weekday(text string) (int, error) {
	for i, name := range names {
		if strings.EqualFold(strings.TrimSpace(text), name) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is no day: say %s", strings.TrimSpace(text), strings.Join(names[:], ", "))
}

// ParseTime reads a time of day, "22:00" (since midnight), or a date with a time, "2026-12-01T22:00:00Z".
func ParseTime(text string) (clock time.Duration, date time.Time, err error) {
	if t, err := time.Parse("15:04", text); err == nil {
		return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, time.Time{}, nil
	}
	if t, ok := when.Whole(text); ok {
		return 0, t, nil
	}
	return 0, time.Time{}, errors.New("must be a time of day in UTC, like \"22:00\", or a date with a time, like \"2026-12-01T22:00:00Z\" or \"012200ZDEC26\"")
}

// String describes the window in words.
func (w Window) String() string {
	text := "from " + w.Begins.Format(time.RFC3339) + " to " + w.Ends.Format(time.RFC3339)
	if w.Begins.IsZero() {
		clock := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", int(d.Hours()), int(d.Minutes())%60) }
		var days []string
		for i, on := range w.Days {
			if on {
				days = append(days, names[i])
			}
		}
		text = fmt.Sprintf("from %s to %s UTC, %s", clock(w.From), clock(w.To), strings.Join(days, " "))
		if len(days) == len(names) {
			text = fmt.Sprintf("from %s to %s UTC, every day", clock(w.From), clock(w.To))
		}
	}
	if w.Announce {
		text += ", announced"
	}
	if w.Link != "" {
		text += ", on " + w.Link
	}
	return text
}
