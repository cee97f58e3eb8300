package calendar

import (
	"math/rand/v2"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

func date(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return t
}

// window is one of days, such as "mon-fri 22:00 06:00".
func window(t *testing.T, days, from, to string) Window {
	t.Helper()
	d, err := ParseDays(days)
	check.NoError(t, err)
	w := Window{Days: d}
	w.From, w.Begins, err = ParseTime(from)
	check.NoError(t, err)
	w.To, w.Ends, err = ParseTime(to)
	check.NoError(t, err)
	return w
}

// 22 November 2026 is a Sunday.
func TestAt(t *testing.T) {
	night, noon := window(t, "mon-fri", "22:00", "06:00"), window(t, "sat, sun", "12:00", "13:00")
	once := window(t, "", "2026-11-24T06:00:00Z", "2026-11-24T08:00:00Z")
	noon.Announce = true
	ws := Windows{night, noon, once}
	for _, tt := range []struct{ at, until, next string }{
		{"2026-11-22 11:59", "", "2026-11-22 12:00"},
		{"2026-11-22 12:00", "2026-11-22 13:00", "2026-11-23 22:00"},
		{"2026-11-22 13:00", "", "2026-11-23 22:00"},
		{"2026-11-22 23:00", "", "2026-11-23 22:00"}, // Sunday evening
		{"2026-11-23 22:00", "2026-11-24 08:00", "2026-11-24 06:00"},
		{"2026-11-24 05:59", "2026-11-24 08:00", "2026-11-24 06:00"},
		{"2026-11-24 07:00", "2026-11-24 08:00", "2026-11-24 22:00"},
		{"2026-11-28 05:00", "2026-11-28 06:00", "2026-11-28 12:00"}, // of Friday
		{"2026-11-28 23:00", "", "2026-11-29 12:00"},
	} {
		until, announce, silent := ws.At(date(tt.at))
		in := check.In(t, tt.at)
		check.Equal(in, "silent", silent, tt.until != "")
		if silent {
			check.Equal(in, "until", until.Format("2006-01-02 15:04"), tt.until)
		}
		check.Equal(in, "announced", announce, tt.at == "2026-11-22 12:00")
		check.Equal(in, "next", ws.Next(date(tt.at)).Format("2006-01-02 15:04"), tt.next)
	}
	check.True(t, "no window follows none", Windows{}.Next(date("2026-11-22 12:00")).IsZero())
	check.True(t, "nor one that is over", Windows{once}.Next(date("2026-12-22 12:00")).IsZero())
	always := Windows{window(t, "", "00:00", "00:00")}
	until, _, silent := always.At(date("2026-11-22 12:00"))
	check.True(t, "every minute of every day", silent && until.After(date("2026-11-29 12:00")), until)
}

// Whatever the windows: a minute is silent if one of them holds, the end is the first minute that is not, and the next begins
// where one begins.
func TestAtByMinutes(t *testing.T) {
	rng := rand.New(rand.NewPCG(48, 1))
	for range 200 {
		var ws Windows
		for range 1 + rng.IntN(3) {
			w := Window{From: time.Duration(rng.IntN(48)) * 30 * time.Minute, To: time.Duration(rng.IntN(48)) * 30 * time.Minute}
			for d := range w.Days {
				w.Days[d] = rng.IntN(3) == 0
			}
			ws = append(ws, w)
		}
		holds := func(at time.Time) bool {
			for _, w := range ws {
				for back := range 2 {
					begins, ends, ok := w.on(day(at).AddDate(0, 0, -back))
					if ok && !at.Before(begins) && at.Before(ends) {
						return true
					}
				}
			}
			return false
		}
		start := date("2026-11-22 00:00").Add(time.Duration(rng.IntN(7*48)) * 30 * time.Minute)
		until, _, silent := ws.At(start)
		check.Equal(t, "silent", silent, holds(start))
		end := start
		for holds(end) && end.Sub(start) < most*24*time.Hour {
			end = end.Add(30 * time.Minute)
		}
		if silent && end.Sub(start) < most*24*time.Hour {
			check.Equal(t, "until", until, end)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]int{"": 7, "mon": 1, "mon, WED": 2, "mon-fri": 5, "fri-mon": 4, "sat-sat": 1} {
		days, err := ParseDays(text)
		check.NoError(t, err)
		n := 0
		for _, is := range days {
			if is {
				n++
			}
		}
		check.Equal(t, "days of "+text, n, want)
	}
	for _, text := range []string{"monday", "mon-", ",", "mon-fri-sun"} {
		if _, err := ParseDays(text); err == nil {
			t.Errorf("%q is days", text)
		}
	}
	for _, text := range []string{"", "24:00", "22", "2026-12-01", "012200Z"} {
		if _, _, err := ParseTime(text); err == nil {
			t.Errorf("%q is a time", text)
		}
	}
}
