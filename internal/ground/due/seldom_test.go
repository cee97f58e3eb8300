package due_test

import (
	"testing"
	"time"

	"aldis/internal/ground/due"
	"aldis/internal/lab/check"
)

func TestSeldom(t *testing.T) {
	now := time.Unix(1000, 0)
	s := due.Seldom[string]{Every: time.Minute, Most: 2}
	may := func(key string, want bool) {
		t.Helper()
		check.Equal(t, key, s.May(now, key), want)
	}
	may("a", true)
	may("a", false)
	now = now.Add(30 * time.Second)
	may("b", true)
	may("c", false) // two others were of late
	now = now.Add(30 * time.Second)
	may("c", true) // the first is forgotten
	may("a", false)
	may("b", false)
}
