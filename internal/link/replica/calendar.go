package replica

import "time"

// Calendar records keys by the minute at which each is due, so that nobody has to go through all of them to find the due
// ones. A key may be in it several times, and outlive its item: the caller checks. The zero value is empty.
type Calendar struct {
	minutes map[int64][]string
	from    int64 // nothing is earlier
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// Add records key for at; a zero time is never.
func (c *Calendar) Add(at time.Time, key string) {
	if at.IsZero() {
		return
	}
	m := minuteOf(at)
	if c.minutes == nil {
		c.minutes, c.from = map[int64][]string{}, m
	}
	c.from = min(c.from, m)
	c.minutes[m] = append(c.minutes[m], key)
}

// Due takes out the keys of this minute and earlier ones, up to most. The caller adds keys again that are not yet past.
func (c *Calendar) Due(now time.Time, most int) (keys []string) {
	if len(c.minutes) == 0 {
		return nil
	}
	last := minuteOf(now)
	if last-c.from > int64(len(c.minutes)) { // more minutes than there are with keys, say after a start
		c.from = last + 1
		for m := range c.minutes {
			c.from = min(c.from, m)
		}
	}
	for ; c.from <= last && len(keys) < most; c.from++ {
		due := c.minutes[c.from]
		if n := most - len(keys); len(due) > n {
			keys = append(keys, due[:n]...)
			c.minutes[c.from] = due[n:]
			return keys
		}
		keys = append(keys, due...)
		delete(c.minutes, c.from)
	}
	return keys
}
