package due

import (
	"testing"

	"aldis/internal/lab/check"
)

// TestRecent: a key is new once, and again after as many other keys as are kept.
func TestRecent(t *testing.T) {
	s := NewRecent[int](3)
	for _, key := range []int{1, 2, 3} {
		check.True(t, "new", s.Add(key), key)
	}
	check.Equal(t, "added again", s.Add(1), false)
	check.Equal(t, "has the oldest", s.Has(1), true)
	check.True(t, "one more", s.Add(4), s)
	check.Equal(t, "has what was the oldest", s.Has(1), false)
	for i := range 1000 {
		check.Equal(t, "has the newest", s.Has(i+4), true)
		s.Add(i + 5)
	}
	check.Equal(t, "keys", s.Len(), 3)
	check.Equal(t, "their order", len(s.order), 3)
}
