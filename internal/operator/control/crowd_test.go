package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"aldis/internal/edge/norm"
	"aldis/internal/edge/radio"
	"aldis/internal/lab/check"
)

// However many connections wait, a caller that sends a request gets its answer, and no more connections are held than allowed.
// A request that is being served is completed.
func TestCrowd(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	slow, asked := make(chan bool), make(chan bool)
	var first atomic.Bool // a request has come
	d := New(Source{Trouble: func() string { return "" }, Radio: func() (s radio.Stats) { return s }, NORM: func() (s norm.Stats) { return s },
		Log: slog.New(slog.DiscardHandler),
		Snapshot: func(ctx context.Context) (Snapshot, error) {
			if _, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr); ok {
				if first.CompareAndSwap(false, true) {
					close(asked)
					<-slow
				}
			}
			return Snapshot{}, nil
		}}, prometheus.NewRegistry())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- d.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	get := func() (string, error) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + ln.Addr().String() + "/healthz")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		return string(body), err
	}
	answer := make(chan string)
	go func() {
		body, err := get()
		if err != nil {
			body = err.Error()
		}
		answer <- body
	}()
	<-asked
	var waiting []net.Conn
	for i := range 5 * maxConnections {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 { // and half of them begin a request
			c.Write([]byte("GET /status HTTP/1.1\r\nHost: local"))
		}
		waiting = append(waiting, c)
		if i%100 == 0 {
			if body, err := get(); body != "ok\n" {
				t.Errorf("after %d connections: %q, %v", i+1, body, err)
			}
		}
	}
	held := func() (n int) {
		for _, c := range waiting {
			c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				n++
			}
		}
		return n
	}
	check.Until(t, 30*time.Second, "no more connections than there may be", func() bool { return held() <= maxConnections })
	close(slow)
	check.Equal(t, "the first answer", strings.TrimSpace(<-answer), "ok")
}
