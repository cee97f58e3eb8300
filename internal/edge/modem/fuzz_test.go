package modem

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/gateway/api"
	"aldis/internal/ground/due"
)

// Whatever a modem sends, the reports stay within their bounds.
func FuzzLines(f *testing.F) {
	f.Add("rate 2400\nqueue 16777216\ndown\nhold\nfree\nup")
	f.Add("rate 0\nrate -1\nqueue 99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		d := &Desk{told: due.Seldom[string]{Every: time.Minute, Most: 16}, cfg: Config{
			Refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "x"}), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Tell: func(m api.Modem) {
				if m.RateBps != 0 && (m.RateBps < LeastBps || m.RateBps > MostBps) || m.QueueOctets < 0 || m.QueueOctets > MostQueue {
					t.Errorf("told %+v", m)
				}
			}}}
		c, holds := net.Conn(&net.TCPConn{}), false
		for line := range strings.SplitSeq(text, "\n") {
			d.take(c, strings.Fields(line), &holds)
		}
		d.leave(c)
		if !holds && d.word != (api.Modem{}) && (d.by[0] != nil || d.by[1] != nil) {
			t.Errorf("left behind: %+v", d.word)
		}
	})
}
