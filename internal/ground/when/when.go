// Package when parses times as people write them on a command line or in an HTTP request. It has no clock: it infers
// an omitted day or year from the current time, and from whether the time is in the past or the future, both given by
// the caller.
//
// A time without a zone is UTC, as are all times that the gateway prints.
package when

import (
	"fmt"
	"strings"
	"time"
)

// Forms are examples of all accepted forms, for help and for errors.
const Forms = "10:32, yesterday 10:32, 2026-11-25 10:32, 2026-11-25T10:32:00Z (RFC 3339), 251032ZNOV26, 251032Z (date-time groups), or a duration: 2h"

// Past reads a past time: of the times that the text may mean, the latest that is not after now.
func Past(text string, now time.Time) (time.Time, error) { return read(text, now, -1) }

// Ahead reads a future time: of the times that the text may mean, the first after now.
func Ahead(text string, now time.Time) (time.Time, error) {
	at, err := read(text, now, 1)
	if err == nil && !at.After(now) {
		err = fmt.Errorf("%.40s is over", text)
	}
	return at, err
}

// meant is the times near now that a text may mean: k counts the omitted days, months or years. most is how many of them may pass
// until such a date exists; 0: nothing is omitted.
type meant struct {
	at   func(k int) (time.Time, bool)
	most int
}

// read finds the time on the wanted side of now; a time without omissions may be on either side.
func read(typed string, now time.Time, side int) (time.Time, error) {
	now = now.UTC()
	text := strings.TrimSpace(strings.ToUpper(typed))
	if d, err := time.ParseDuration(strings.ToLower(text)); err == nil && d > 0 {
		return now.Add(time.Duration(side) * d).Truncate(time.Second), nil
	}
	for i, day := range []string{"YESTERDAY ", "TODAY ", "TOMORROW "} {
		if clock, ok := strings.CutPrefix(text, day); ok {
			text = now.AddDate(0, 0, i-1).Format(time.DateOnly) + " " + clock
		}
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	if at, ok := Whole(text); ok {
		return at, nil
	}
	m, ok := clock(text, now)
	if !ok {
		m, ok = group(text, now)
	}
	for k := -1; ok && k <= m.most; k++ {
		at, exists := m.at(side * k)
		if exists && (side > 0 && at.After(now) || side < 0 && !at.After(now)) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is no time: write %s", typed, Forms)
}

// Whole reads a time without omissions, which means the same whenever it is read.
func Whole(text string) (time.Time, bool) {
	text = strings.TrimSpace(strings.ToUpper(text))
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if at, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
			return at.UTC(), true
		}
	}
	if m, ok := group(text, time.Time{}); ok && m.most == 0 {
		return m.at(0)
	}
	return time.Time{}, false
}

// clock reads a time of day.
func clock(text string, now time.Time) (meant, bool) {
	for _, layout := range []string{"15:04", "15:04:05", "15:04Z07:00", "15:04:05Z07:00"} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		day := now.In(t.Location())
		return meant{func(k int) (time.Time, bool) {
			return time.Date(day.Year(), day.Month(), day.Day()+k, t.Hour(), t.Minute(), t.Second(), 0, t.Location()).UTC(), true
		}, 1}, true
	}
	return meant{}, false
}

// zones are the letters of the time zones, from twelve hours behind UTC to twelve ahead. J, the observer's own zone, is not
// among them.
const zones = "YXWVUTSRQPONZABCDEFGHIKLM"

// group reads a date-time group: day, hour and minute, the letter of a zone, month, year. The last three may be omitted, but not both
// letter and month.
func group(text string, now time.Time) (meant, bool) {
	text = strings.ReplaceAll(text, " ", "")
	var day, hour, minute, year int
	if n, err := fmt.Sscanf(text, "%2d%2d%2d", &day, &hour, &minute); n != 3 || err != nil || len(text) < 7 || strings.Trim(text[:6], "0123456789") != "" {
		return meant{}, false
	}
	rest, zone := text[6:], time.UTC
	month, named := monthOf(rest)
	if at := strings.IndexByte(zones, rest[0]); !named && at >= 0 {
		zone, rest = time.FixedZone("", (at-strings.IndexByte(zones, 'Z'))*3600), rest[1:]
		month, named = monthOf(rest)
	}
	if named {
		rest = rest[3:]
	}
	dated := rest != ""
	if n, err := fmt.Sscanf(rest, "%d", &year); dated && (!named || n != 1 || err != nil || fmt.Sprintf("%02d", year) != rest || year < 0 || year > 99 && year < 1000 || year > 9999) || hour > 23 || minute > 59 {
		return meant{}, false
	}
	if dated && year < 100 {
		year += 2000
	}
	near, most := now.In(zone), 8 // 8 years, for the 29th of February
	if dated {
		most = 0
	}
	return meant{func(k int) (time.Time, bool) {
		y, m := near.Year(), near.Month()
		switch {
		case dated:
			y, m = year, month
		case named:
			y, m = y+k, month
		default:
			m += time.Month(k)
		}
		at := time.Date(y, m, day, hour, minute, 0, 0, zone)
		return at.UTC(), at.Day() == day
	}, most}, true
}

func monthOf(text string) (time.Month, bool) {
	for m := time.January; m <= time.December; m++ {
		if strings.HasPrefix(text, strings.ToUpper(m.String()[:3])) {
			return m, true
		}
	}
	return 0, false
}
