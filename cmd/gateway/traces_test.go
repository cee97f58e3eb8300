package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aldis/internal/lab/check"
)

// A running gateway sends a collector the fate of a message, and never its content.
func TestTracesOfARunningGateway(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	names := map[string]int{}
	var all string
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		var d trace.TracesData
		if err == nil {
			err = proto.Unmarshal(b, &d)
		}
		if err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all += string(b)
		for _, s := range d.ResourceSpans[0].ScopeSpans[0].Spans {
			names[s.Name]++
		}
	}))
	t.Cleanup(collector.Close)
	sa := newSite(t, 1, "")
	sb := newSite(t, 2, sa.key())
	sb.more = fmt.Sprintf("[traces]\notlp = %q\n", collector.URL)
	sa.write(t, filepath.Join(sa.dir, "data"), "2 "+sb.link)
	sb.write(t, filepath.Join(sb.dir, "data"), "1 "+sa.link)
	a, b := sa.start(t), sb.start(t)
	b.until(t, "its peer is up", func() bool { return b.peer(t).Link == "up" })
	k := newTalk(t, a, b)
	if err := k.say("a secret word"); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the collector has a trace", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return names["message"] == 1
	})
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"to node1", "accepted", "on the air", "delivered"} {
		check.Equal(t, "spans named "+name, names[name], 1)
	}
	check.Lacks(t, "what was sent", all, "a secret word")
	_, metrics := b.get("/metrics")
	check.Contains(t, "/metrics", metrics, "aldis_traces_sent_total 1\n")
}
