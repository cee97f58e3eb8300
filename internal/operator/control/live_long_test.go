//go:build long

package control

import (
	"context"
	"net"
	"testing"
	"time"

	"aldis/internal/lab/check"
)

// TestLookerStays: a viewer stays connected for longer than a request may take.
func TestLookerStays(t *testing.T) {
	g := newBridge(t, 2, 0)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go g.desk.Serve(ctx, ln)
	g.URL = "http://" + ln.Addr().String()
	e := g.eye(t, "gzip")
	e.next(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e.lines.Scan() {
		}
	}()
	check.Never(t, 45*time.Second, func() string {
		g.set(func() { g.status.Items++ })
		select {
		case <-ended:
			return "the stream has ended"
		default:
			return ""
		}
	})
}
