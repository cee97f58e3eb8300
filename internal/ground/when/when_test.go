package when_test

import (
	"strings"
	"testing"
	"time"

	"aldis/internal/ground/when"
	"aldis/internal/lab/check"
)

// An omitted part is inferred from the present time, and from whether the time is past or future.
func TestTimesAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 11, 25, 10, 40, 30, 0, time.UTC)
	for _, tt := range []struct{ text, past, ahead string }{
		{"2h", "2026-11-25T08:40:30Z", "2026-11-25T12:40:30Z"},
		{"6h30m", "2026-11-25T04:10:30Z", "2026-11-25T17:10:30Z"},
		{"10:32", "2026-11-25T10:32:00Z", "2026-11-26T10:32:00Z"},
		{"10:32Z", "2026-11-25T10:32:00Z", "2026-11-26T10:32:00Z"},
		{"10:32:10", "2026-11-25T10:32:10Z", "2026-11-26T10:32:10Z"},
		{"23:10", "2026-11-24T23:10:00Z", "2026-11-25T23:10:00Z"},
		{"00:10+02:00", "2026-11-24T22:10:00Z", "2026-11-25T22:10:00Z"},
		{"yesterday 10:32", "2026-11-24T10:32:00Z", ""},
		{"today 23:00", "2026-11-25T23:00:00Z", "2026-11-25T23:00:00Z"},
		{"tomorrow 06:00", "2026-11-26T06:00:00Z", "2026-11-26T06:00:00Z"},
		{"2026-11-25 10:32", "2026-11-25T10:32:00Z", ""},
		{"2026-11-26 10:32", "2026-11-26T10:32:00Z", "2026-11-26T10:32:00Z"},
		{"2026-11-26 10:32Z", "2026-11-26T10:32:00Z", "2026-11-26T10:32:00Z"},
		{"2026-11-26", "2026-11-26T00:00:00Z", "2026-11-26T00:00:00Z"},
		{"2026-11-26T10:32:00+01:00", "2026-11-26T09:32:00Z", "2026-11-26T09:32:00Z"},
		{"251032ZNOV26", "2026-11-25T10:32:00Z", ""},
		{"251032Z NOV 26", "2026-11-25T10:32:00Z", ""},
		{"251032znov2026", "2026-11-25T10:32:00Z", ""},
		{"251032ZNOV", "2026-11-25T10:32:00Z", "2027-11-25T10:32:00Z"},
		{"251032NOV", "2026-11-25T10:32:00Z", "2027-11-25T10:32:00Z"},
		{"251032Z", "2026-11-25T10:32:00Z", "2026-12-25T10:32:00Z"},
		{"251132Z", "2026-10-25T11:32:00Z", "2026-11-25T11:32:00Z"},
		{"251132A", "2026-11-25T10:32:00Z", "2026-12-25T10:32:00Z"},
		{"250532RNOV", "2026-11-25T10:32:00Z", "2027-11-25T10:32:00Z"},
		{"312200Z", "2026-10-31T22:00:00Z", "2026-12-31T22:00:00Z"},
		{"291200ZFEB", "2024-02-29T12:00:00Z", "2028-02-29T12:00:00Z"},
	} {
		at, err := when.Past(tt.text, now)
		check.NoError(check.In(t, tt.text), err)
		check.Equal(t, "past: "+tt.text, at.Format(time.RFC3339), tt.past)
		at, err = when.Ahead(tt.text, now)
		if tt.ahead == "" {
			check.True(t, "ahead: "+tt.text+" is over", err != nil && strings.Contains(err.Error(), "is over"), err)
			continue
		}
		check.NoError(check.In(t, tt.text), err)
		check.Equal(t, "ahead: "+tt.text, at.Format(time.RFC3339), tt.ahead)
	}
}

// A text that is no time is refused, and the error lists the forms.
func TestNoTimes(t *testing.T) {
	now := time.Date(2026, 11, 25, 10, 40, 30, 0, time.UTC)
	for _, text := range []string{"", "10", "soon", "-2h", "0s", "24:00", "10:60", "251032", "25103Z", "251032J", "252460ZNOV26", "322200Z", "001200Z",
		"311200ZNOV26", "311200ZFEB", "251032ZNOX26", "251032ZNOV-6", "251032ZNOV+26", "251032ZNOV126", "251032Z26", "+51032Z", "251032ZNOV26X",
		"2026-13-01 10:00", "2026-11-31", "yesterday", "yesterday yesterday 10:32", strings.Repeat("9", 1<<16)} {
		for _, read := range []func(string, time.Time) (time.Time, error){when.Past, when.Ahead} {
			at, err := read(text, now)
			check.True(t, "an error for "+text[:min(len(text), 40)], err != nil && strings.Contains(err.Error(), when.Forms), at, err)
		}
	}
}
