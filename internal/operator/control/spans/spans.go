// Package spans exports the history of messages to an OpenTelemetry collector: one trace for each ended message of this site,
// one span for each step of its life. It reads the messages between two turns of the daemon's loop, as the page does, and sends
// from a goroutine of its own. Spans that a collector does not accept in time are dropped and counted.
//
// The format is OTLP over HTTP with Protocol Buffers. A trace says who sent to which pipe, when, and how many octets.
// It never contains the content.
package spans

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"aldis/internal/gateway/api"
)

// Bounds.
const (
	every    = 5 * time.Second // between two looks
	patience = 5 * time.Second // for the collector, and for the loop
	batch    = 100             // messages of one turn of the loop
	mostHeld = 512             // messages that wait for the collector
)

// Messages are the messages of a gateway, readable between two turns of its loop.
type Messages interface {
	IDs() []uint64                        // in no order
	Row(id uint64) (api.MessageRow, bool) // with its history; false: the id is unknown
}

// Config says where spans are sent, and which gateway they are from.
type Config struct {
	URL           string // of the collector, with its path: http://127.0.0.1:4318/v1/traces
	Name, Version string // of this gateway
	ID            uint16
	Messages      func(context.Context, func(time.Time, Messages)) error // runs a look between two turns of the loop
	Log           *slog.Logger
}

// Teller sends spans. Only one goroutine calls its methods.
type Teller struct {
	cfg     Config
	client  http.Client
	told    map[uint64]bool // ended messages that were taken; those that the gateway no longer knows are forgotten
	held    []api.MessageRow
	failing bool
	sent    prometheus.Counter
	dropped prometheus.Counter
}

// New makes a Teller. Its metrics join those in reg.
func New(cfg Config, reg prometheus.Registerer) *Teller {
	t := &Teller{cfg: cfg, told: map[uint64]bool{},
		client: http.Client{Timeout: patience, Transport: &http.Transport{Proxy: nil, MaxIdleConns: 1},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_traces_sent_total", Help: "Messages whose trace the OpenTelemetry collector accepted."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "aldis_traces_dropped_total", Help: "Messages whose trace was dropped because the collector was down or slow."})}
	reg.MustRegister(t.sent, t.dropped)
	return t
}

// Run looks and sends until ctx ends.
func (t *Teller) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.once(ctx)
		}
	}
}

// once takes the messages that have ended since its last call, and sends their spans.
func (t *Teller) once(ctx context.Context) {
	if err := t.collect(ctx); err != nil {
		return // the loop did not get to it: next time
	}
	if len(t.held) == 0 {
		return
	}
	err := t.send(ctx)
	switch {
	case err == nil:
		t.sent.Add(float64(len(t.held)))
		t.held = nil
		if t.failing {
			t.cfg.Log.Info("trace export works again", "url", t.cfg.URL)
		}
	case !t.failing:
		t.cfg.Log.Warn("trace export failed; message delivery is unaffected", "url", t.cfg.URL, "error", err)
	}
	t.failing = err != nil
	if n := len(t.held) - mostHeld; n > 0 {
		t.dropped.Add(float64(n))
		t.held = slices.Delete(t.held, 0, n)
	}
}

func (t *Teller) collect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ids []uint64
	if err := t.cfg.Messages(ctx, func(_ time.Time, m Messages) { ids = m.IDs() }); err != nil {
		return err
	}
	known := make(map[uint64]bool, len(ids))
	var fresh []uint64
	for _, id := range ids {
		if t.told[id] {
			known[id] = true
		} else {
			fresh = append(fresh, id)
		}
	}
	t.told = known
	slices.Sort(fresh)
	for part := range slices.Chunk(fresh, batch) {
		var rows []api.MessageRow
		if err := t.cfg.Messages(ctx, func(_ time.Time, m Messages) {
			for _, id := range part {
				if row, ok := m.Row(id); ok && row.State == api.StateEnded {
					rows = append(rows, row)
				}
			}
		}); err != nil {
			return err
		}
		for _, row := range rows {
			t.told[row.Number] = true
			if !row.Accepted.IsZero() { // the time of messages from before the start is unknown
				t.held = append(t.held, row)
			}
		}
	}
	return nil
}

func (t *Teller) send(ctx context.Context) error {
	body, err := proto.Marshal(t.data())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "aldis/"+t.cfg.Version)
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// data is the request: TracesData has the fields of an ExportTraceServiceRequest.
func (t *Teller) data() *trace.TracesData {
	var list []*trace.Span
	for i := range t.held {
		list = append(list, t.spans(&t.held[i])...)
	}
	return &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "aldis-gateway"), text("service.version", t.cfg.Version),
			text("service.instance.id", t.cfg.Name), number("aldis.node.id", int64(t.cfg.ID))}},
		ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "aldis"}, Spans: list}},
	}}}
}

// spans are the spans of a message: one for the whole, one for each recipient site, and below that one for each step.
func (t *Teller) spans(m *api.MessageRow) []*trace.Span {
	seed := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16([]byte("aldis"), t.cfg.ID), m.Number)
	seed = binary.BigEndian.AppendUint64(seed, uint64(m.Accepted.UnixNano()))
	id := sha256.Sum256(seed)
	n := byte(0)
	span := func(parent []byte, name string, from, to time.Time, attributes ...*common.KeyValue) *trace.Span {
		n++
		own := sha256.Sum256(append(id[:], n))
		if to.Before(from) {
			to = from
		}
		return &trace.Span{TraceId: id[:16], SpanId: own[:8], ParentSpanId: parent, Name: name, Kind: trace.Span_SPAN_KIND_INTERNAL,
			StartTimeUnixNano: uint64(from.UnixNano()), EndTimeUnixNano: uint64(to.UnixNano()), Attributes: attributes}
	}
	whole := span(nil, "message", m.Accepted, m.Accepted, text("aldis.message.id", m.ID), text("aldis.from", m.From), text("aldis.to", m.ToPipe),
		text("aldis.label", m.Label), text("aldis.precedence", m.Precedence), number("aldis.octets", int64(m.Octets)))
	list := []*trace.Span{whole}
	for _, r := range m.Recipients {
		if n >= 240 { // there are so many names of spans
			break
		}
		site := span(whole.SpanId, "to "+r.Site, m.Accepted, r.Since, text("aldis.site", r.Site), text("aldis.state", r.State), text("aldis.detail", r.Detail))
		if r.State != "delivered" && r.State != "superseded" {
			site.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: r.State}
		}
		whole.EndTimeUnixNano = max(whole.EndTimeUnixNano, site.EndTimeUnixNano)
		list = append(list, site)
		var steps []api.LifeRow
		for _, l := range m.Life {
			if l.Site == "" || l.Site == r.Site {
				steps = append(steps, l)
			}
		}
		for i, l := range steps {
			to := r.Since
			if i+1 < len(steps) {
				to = steps[i+1].At
			}
			if n < 240 {
				list = append(list, span(site.SpanId, l.What, l.At, to, text("aldis.detail", l.Detail)))
			}
		}
	}
	return list
}

// text makes an attribute. Labels come from strangers, and Protocol Buffers accept only UTF-8.
func text(key, value string) *common.KeyValue {
	value = strings.ToValidUTF8(value, "?")
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
