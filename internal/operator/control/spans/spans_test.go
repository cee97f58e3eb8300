package spans

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aldis/internal/gateway/api"
	"aldis/internal/lab/air"
	"aldis/internal/lab/check"
	"aldis/internal/lab/sim"
	"aldis/internal/link/profile"
)

// collector accepts the requests to it, or answers with a code.
type collector struct {
	*httptest.Server
	code  int
	spans []*trace.Span
	last  *trace.TracesData
}

func newCollector(t *testing.T) *collector {
	c := &collector{code: 200}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		check.NoError(t, err)
		check.Equal(t, "type", r.Header.Get("Content-Type"), "application/x-protobuf")
		var d trace.TracesData
		check.NoError(t, proto.Unmarshal(b, &d))
		if c.code == 200 {
			c.last = &d
			c.spans = append(c.spans, d.ResourceSpans[0].ScopeSpans[0].Spans...)
		}
		w.WriteHeader(c.code)
	}))
	t.Cleanup(c.Close)
	return c
}

// Messages of a ship that HQ has received become traces with a span for each step, sent once. A collector that refuses them
// gets them later, and one that never accepts any causes bounded cost.
func TestMessagesBecomeTraces(t *testing.T) {
	p, err := profile.Load("iridium-directip", nil)
	check.NoError(t, err)
	wire, err := profile.Load("wire", nil)
	check.NoError(t, err)
	w, err := sim.New(sim.Config{Nodes: 2, Profile: p, Wire: wire, Seed: 7})
	check.NoError(t, err)
	ship := w.Nodes[1]
	w.Run(time.Minute)
	c := newCollector(t)
	var log bytes.Buffer
	teller := New(Config{URL: c.URL, Name: "ship", Version: "9", ID: 2, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Messages: func(_ context.Context, f func(time.Time, Messages)) error {
			f(w.Now, ship.GW.Messages())
			return nil
		}}, prometheus.NewRegistry())
	for i := range 3 {
		ship.Site.Send(w, air.Track(2, air.Pipe, i, 200), 1)
	}
	w.Run(100 * time.Millisecond)
	teller.once(t.Context())
	check.Equal(t, "spans of messages that go on", len(c.spans), 0)
	w.Run(time.Minute)
	c.code = 503
	teller.once(t.Context())
	teller.once(t.Context())
	check.Equal(t, "lines about a collector that refuses", strings.Count(log.String(), "trace export failed"), 1)
	c.code = 200
	teller.once(t.Context())
	teller.once(t.Context())
	check.Equal(t, "lines about one that takes again", strings.Count(log.String(), "trace export works again"), 1)
	check.Equal(t, "sent", counted(t, teller.sent), 3.0)

	whole, ids, names := 0, map[string]bool{}, map[string]int{}
	byID := map[string]*trace.Span{}
	for _, s := range c.spans {
		check.Equal(t, "octets of an id", len(s.TraceId)*100+len(s.SpanId), 1608)
		check.True(t, "a span of its own", byID[string(s.SpanId)] == nil)
		byID[string(s.SpanId)] = s
		ids[string(s.TraceId)] = true
		names[s.Name]++
		if s.ParentSpanId == nil {
			whole++
		}
	}
	check.Equal(t, "messages", whole, 3)
	check.Equal(t, "traces", len(ids), 3)
	for _, name := range []string{"message", "to hq", "accepted", "on the air", "delivered"} {
		check.Equal(t, "spans named "+name, names[name], 3)
	}
	for _, s := range c.spans {
		if parent := byID[string(s.ParentSpanId)]; s.ParentSpanId != nil {
			check.True(t, "a parent of the same trace", parent != nil && string(parent.TraceId) == string(s.TraceId))
			check.True(t, s.Name+" is inside of its parent", parent.StartTimeUnixNano <= s.StartTimeUnixNano && s.EndTimeUnixNano <= parent.EndTimeUnixNano)
		}
		check.True(t, "it ends after its beginning", s.EndTimeUnixNano >= s.StartTimeUnixNano)
	}
	check.True(t, "no content", !strings.Contains(c.last.String(), "TRK"))

	c.code = 500
	for range mostHeld {
		teller.held = append(teller.held, api.MessageRow{Accepted: w.Now})
	}
	ship.Site.Send(w, air.Track(2, air.Pipe, 9, 200), 1)
	w.Run(time.Minute)
	teller.once(t.Context())
	check.Equal(t, "messages that are held", len(teller.held), mostHeld)
	check.Equal(t, "dropped", counted(t, teller.dropped), 1.0)
}

// A message that did not reach a site is an error; many recipients have no more spans than there are names for.
func TestSpansOfFates(t *testing.T) {
	teller := New(Config{ID: 2}, prometheus.NewRegistry())
	at := time.Unix(1_800_000_000, 0)
	m := api.MessageRow{Number: 7, Accepted: at, Label: "\xff"}
	for range 300 {
		m.Recipients = append(m.Recipients, api.RecipientRow{Site: "hq", State: "expired", Since: at.Add(time.Second)})
	}
	list := teller.spans(&m)
	check.True(t, "there is a bound", len(list) <= 241, len(list))
	check.Equal(t, "the status", list[1].Status.Code, trace.Status_STATUS_CODE_ERROR)
	check.Equal(t, "the end", list[0].EndTimeUnixNano, uint64(at.Add(time.Second).UnixNano()))
	_, err := proto.Marshal(&trace.ScopeSpans{Spans: list})
	check.NoError(t, err)
	seen := map[string]bool{}
	for _, s := range list {
		seen[string(s.SpanId)] = true
	}
	check.Equal(t, "names", len(seen), len(list))
}

func counted(t *testing.T, c prometheus.Counter) float64 {
	var m dto.Metric
	check.NoError(t, c.Write(&m))
	return m.Counter.GetValue()
}
