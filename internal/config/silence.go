package config

import (
	"time"

	"aldis/internal/rules/calendar"
)

// mostSilences bounds the windows: the calendar goes through all of them.
const mostSilences = 100

// readSilences reads the windows in which nothing is transmitted.
func (r *reader) readSilences() {
	for i, t := range r.tree.arrays["silence"] {
		s := section{r, t, "silence"}
		if i == mostSilences {
			s.fail("from", "more than %d windows", mostSilences)
			return
		}
		w := calendar.Window{Line: t.line, Announce: s.flag("announce")}
		var ok, also bool
		w.From, w.Begins, ok = s.moment("from")
		w.To, w.Ends, also = s.moment("to")
		days := s.text("days", false)
		var err error
		if w.Days, err = calendar.ParseDays(days); err != nil {
			s.fail("days", "%v", err)
		}
		switch {
		case !ok || !also:
		case w.Begins.IsZero() != w.Ends.IsZero():
			s.fail("to", "from and to must both be times of day, or both dates")
		case !w.Begins.IsZero() && !w.Ends.After(w.Begins):
			s.fail("to", "is not after from")
		case !w.Begins.IsZero() && days != "":
			s.fail("days", "is of no use with dates")
		}
		r.cfg.Silences = append(r.cfg.Silences, w)
	}
}

// moment is a time of day or a date; false after a mistake.
func (s section) moment(key string) (clock time.Duration, date time.Time, ok bool) {
	text := s.text(key, true)
	if text == "" {
		return 0, date, false
	}
	clock, date, err := calendar.ParseTime(text)
	if err != nil {
		s.fail(key, "%v, is %q", err, text)
	}
	return clock, date, err == nil
}
